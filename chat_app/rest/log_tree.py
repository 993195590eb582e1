"""`/log-tree/`: the public checkpoints and proofs of the tree of log heads (docs/log-tree.md).

The tree names no chat: its leaves are hashes, and only who has the text of a leaf can use a proof.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final

import msgspec
from django.http import Http404, HttpResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from chat_app.log_tree import proofs
from chat_app.log_tree.cosigning import NotAWitness, UnknownCheckpoint, add_cosignatures
from chat_app.log_tree.growth import tree_name
from chat_app.log_tree.nodes import TreeChanged
from chat_app.log_tree.tiles import read_tile, tile_hashes
from signing_app.published import keys_of
from uamp.logs.checkpoint import BadCheckpoint, public_key_of
from uamp.transparency.notes import NOTE_CHARS_MAX, TREE, verifier_key

if TYPE_CHECKING:
    from django.http import HttpRequest

TEXT: Final = "text/plain; charset=utf-8"
HASHES: Final = "application/octet-stream"
_WEEK: Final = 604_800
_DIGITS: Final = 18


@require_safe
def checkpoint(request: HttpRequest) -> HttpResponse:
    """Return the newest checkpoint with its cosignatures, or that of `size`."""
    size = _number(request, "size") if "size" in request.GET else None
    return _public(proofs.checkpoint(size))


@require_safe
def consistency(request: HttpRequest) -> HttpResponse:
    """Return the proof that the tree of size `from` is the beginning of that of size `to`."""
    first, second = _number(request, "from"), _number(request, "to")
    try:
        path = proofs.consistency_proof(first, second)
    except TreeChanged:
        path = None
    if path is None:
        raise Http404
    hashes = [base64.b64encode(node).decode() for node in path]
    body = msgspec.json.encode({"from": first, "to": second, "hashes": hashes})
    return _public(body.decode(), media_type="application/json")


@require_safe
def proof(request: HttpRequest) -> HttpResponse:
    """Return the proof of the leaf `index`, in the checkpoint of `size` or in the best one."""
    size = _number(request, "size") if "size" in request.GET else None
    try:
        return _public(proofs.inclusion_proof(_number(request, "index"), size=size))
    except TreeChanged:
        raise Http404 from None


@require_safe
def tile(request: HttpRequest, level: str, place: str) -> HttpResponse:
    """Return a tile of the tree, whole or the first hashes of it (C2SP tlog-tiles)."""
    del request
    tile_place = read_tile(level, place)
    try:
        hashes = None if tile_place is None else tile_hashes(tile_place)
    except TreeChanged:
        hashes = None
    answer = _public(hashes, media_type=HASHES)
    # The hashes of a place in the tree never change.
    answer["Cache-Control"] = f"public, max-age={_WEEK}, immutable"
    return answer


@require_safe
def verifier_keys(request: HttpRequest) -> HttpResponse:
    """Return the keys of the tree as verifier keys, a line each, the newest first."""
    del request
    public = (public_key_of(key, owner=TREE) for key in keys_of(TREE)["keys"])
    lines = [verifier_key(tree_name(), key) for key in public if key is not None]
    return _public("".join(f"{line}\n" for line in lines))


@csrf_exempt
@require_POST
def cosign(request: HttpRequest) -> HttpResponse:
    """Take a checkpoint with the cosignature of a witness, and return it with all of them."""
    try:
        note = request.read(NOTE_CHARS_MAX + 1).decode()
        row = add_cosignatures(note, timezone.now())
    except (BadCheckpoint, UnicodeDecodeError) as error:
        return HttpResponse(f"{error}\n", status=400, content_type=TEXT)
    except UnknownCheckpoint:
        raise Http404 from None
    except NotAWitness:
        text = "None of the lines is a cosignature by one of this server's witnesses.\n"
        return HttpResponse(text, status=403, content_type=TEXT)
    return _public(proofs.published(row))


def _number(request: HttpRequest, name: str) -> int:
    text = request.GET.get(name, "")
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS):
        raise Http404
    return int(text)


def _public(text: str | bytes | None, *, media_type: str = TEXT) -> HttpResponse:
    if text is None:
        raise Http404
    answer = HttpResponse(text, content_type=media_type)
    answer["Cache-Control"] = "no-cache"
    answer["Access-Control-Allow-Origin"] = "*"
    return answer

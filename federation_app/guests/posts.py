"""Envelopes about shared chats, signed and ready to post. Synchronous."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from django.utils import timezone

from federation_app import own_names
from federation_app.envelope.errors import EnvelopeError
from federation_app.envelope.limits import ENVELOPE_BYTES, load
from federation_app.envelope.members.writing import new_envelope
from federation_app.envelope.refusals import cause_of, missing
from federation_app.guests import accounts
from federation_app.guests.contents import GUESTS_TYPE
from federation_app.message_notes import shorten
from federation_app.peers.quotas import KIB
from uamp import ErrorCode

if TYPE_CHECKING:
    from agents_app.outbound.guard import Posted
    from federation_app.envelope.members.reading import Intent
    from federation_app.models import Peer

SMALLEST: Final = 4 * KIB
"""No envelope is shortened to less."""

_accepted: Final[dict[int, int]] = {}
"""The bytes of envelopes for peers that refused larger ones, until a restart."""


@dataclass(frozen=True, kw_only=True)
class SignedPost:
    """A signed envelope, and where to post it; a text in it could be shortened."""

    peer_id: int
    url: str
    raw: bytes
    has_text: bool


class PostRefusal(NamedTuple):
    """A refusal of an envelope for good: its HTTP status, and its meaning for a person here."""

    status: int
    code: ErrorCode


def refusal_in(posted: Posted) -> PostRefusal:
    """Return the refusal in a peer's answer. Only a 404 is asked for its cause."""
    code = ErrorCode.FORBIDDEN
    if posted.status == HTTPStatus.PAYMENT_REQUIRED:
        code = ErrorCode.PAYMENT_REQUIRED
    elif posted.status == HTTPStatus.NOT_FOUND:
        code = missing(_cause_in(posted.data)) or ErrorCode.REQUEST_REFUSED
    return PostRefusal(posted.status, code)


def sign(peer: Peer, intent: Intent, members: dict[str, Any]) -> SignedPost:
    """Return an envelope for a peer about a shared chat, signed now.

    A text for which the envelope has no room is shortened, in `members`.
    """
    raw = _signed(peer, intent, members)
    surplus = len(raw) - _largest(peer)
    place = _text_in(members)
    if surplus > 0 and place is not None:
        text, host = place[0][place[1]], own_names.own_identity().authority
        shorter = shorten(text, host, room=_size(text) - surplus, size=_size)
        place[0][place[1]] = shorter
        raw = _signed(peer, intent, members)
    base = peer.address or f"https://{accounts.host_of(peer)}"
    url = f"{base.rstrip('/')}/v1/messages"
    return SignedPost(peer_id=peer.pk, url=url, raw=raw, has_text=place is not None)


def note_too_large(post: SignedPost) -> bool:
    """Note that a peer has refused an envelope for its size; return whether to sign it again.

    It is then shortened to half of that size, and so are later ones to this peer: the limit that an
    operator sets for a peer is in no document.
    """
    smaller = len(post.raw) // 2
    if not post.has_text or smaller < SMALLEST or len(post.raw) > _accepted.get(post.peer_id, inf):
        return False
    _accepted[post.peer_id] = smaller
    return True


def _signed(peer: Peer, intent: Intent, members: dict[str, Any]) -> bytes:
    value = new_envelope(
        own_names.own_signer(own_names.own_identity().did),
        to=[peer.did],
        intent=intent,
        content=msgspec.json.encode(members).decode(),
        now=timezone.now(),
        type_=GUESTS_TYPE,
    )
    return msgspec.json.encode(value)


def _cause_in(data: bytes) -> str:
    """Return the cause that a refusal's problem document names, or ""."""
    try:
        problem = load(data)
    except EnvelopeError:
        return ""
    return cause_of(problem) if isinstance(problem, dict) else ""


def _largest(peer: Peer) -> int:
    """Return the bytes of the largest envelope that a peer accepts, by its manifest or refusals.

    The manifest limits the body, which is smaller than its envelope.
    """
    kib = peer.manifest.get("limits", {}).get("max_body_kb")
    stated = ENVELOPE_BYTES if kib is None else min(ENVELOPE_BYTES, kib * KIB)
    return min(stated, _accepted.get(peer.pk, stated))


def _text_in(members: dict[str, Any]) -> tuple[dict[str, Any], str] | None:
    """Return the member with the text of a message, and its name; None if there is none."""
    event = members.get("event", {})
    for holder, name in ((members, "text"), (event, "content"), (event.get("message"), "content")):
        if holder is not None and name in holder:
            return holder, name
    return None


def _size(text: str) -> int:
    """Return the bytes of a text in an envelope: JSON in a string of JSON."""
    return len(msgspec.json.encode(msgspec.json.encode(text).decode()))

"""The proof that a signed log head is in the server's tree (C2SP tlog-proof).

A proof has the place of the leaf, the hashes beside its path to the root, and the checkpoint of
the tree. The leaf is the signed text of the log head (`uamp.logs.checkpoint.LogHead.text`).
"""

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from uamp.logs.checkpoint import BadCheckpoint, LogHead, UnknownCheckpointKey, decoded
from uamp.transparency.notes import (
    NOTE_CHARS_MAX,
    TreeHead,
    TreeNote,
    Witness,
    check_signature,
    cosignatures,
    cosigned_at,
    read_note,
)
from uamp.transparency.tree import is_included, leaf_hash

PATH: Final = "log-tree"
"""The path of the tree below its server's address, and the end of its origin."""

_FIRST: Final = "c2sp.org/tlog-proof@v1"
_LEVELS_MAX: Final = 63
_CHARS_MAX: Final = NOTE_CHARS_MAX + 50 * _LEVELS_MAX
_INDEX: Final = re.compile(r"index (0|[1-9][0-9]{0,17})")
_HASH: Final = re.compile(r"[A-Za-z0-9+/]{43}=")


class TreeProof(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed proof, not verified."""

    index: int
    path: tuple[bytes, ...]
    note: TreeNote


class LoggedHead(msgspec.Struct, frozen=True, kw_only=True):
    """A log head that is in a tree.

    ``is_signed`` is None if none of the given keys is the one that the checkpoint names.
    ``cosigned`` has the given witnesses that cosigned the checkpoint, and when, in seconds since
    1970.
    """

    tree: TreeHead
    index: int
    is_signed: bool | None
    cosigned: dict[str, int]


def tree_origin(server: str) -> str:
    """Return the name of the tree of a server, whose address is given without its scheme."""
    return f"{server}/{PATH}"


def proof_text(index: int, path: Sequence[bytes], note: str) -> str:
    """Return a proof in the form of C2SP."""
    hashes = [base64.b64encode(sibling).decode() for sibling in path]
    return "\n".join([_FIRST, f"index {index}", *hashes, "", note])


def read_proof(text: str) -> TreeProof:
    """Parse a proof. Raises BadCheckpoint."""
    before, blank, note = text.partition("\n\n")
    first, *lines = before.split("\n")
    index = _INDEX.fullmatch(lines[0]) if lines else None
    if len(text) > _CHARS_MAX or first != _FIRST or index is None or not blank:
        raise BadCheckpoint("This is not a proof of a tree.")
    if len(lines) > 1 + _LEVELS_MAX or not all(map(_HASH.fullmatch, lines[1:])):
        raise BadCheckpoint("The proof has lines that are not hashes.")
    path = tuple(decoded(line) for line in lines[1:])
    return TreeProof(index=int(index[1]), path=path, note=read_note(note))


def check_proof(
    text: str,
    head: LogHead,
    keys: Iterable[Mapping[str, Any]] = (),
    witnesses: Iterable[Witness] = (),
) -> LoggedHead:
    """Verify that a log head is in the tree of its server.

    `keys` are the JSON Web Keys of the server. Raises BadCheckpoint if the proof is wrong or the
    signature does not verify.
    """
    proof = read_proof(text)
    tree = proof.note.head
    if tree.origin != tree_origin(head.server):
        raise BadCheckpoint("The tree belongs to another server.")
    leaf = leaf_hash(head.text.encode())
    if not is_included(leaf, proof.path, index=proof.index, size=tree.size, root=tree.root):
        raise BadCheckpoint("The tree does not contain this head of the log.")
    try:
        check_signature(proof.note, keys)
        is_signed: bool | None = True
    except UnknownCheckpointKey:
        is_signed = None
    lines = cosignatures(proof.note, witnesses)
    return LoggedHead(
        tree=tree,
        index=proof.index,
        is_signed=is_signed,
        cosigned={name: cosigned_at(line) for name, line in lines.items()},
    )

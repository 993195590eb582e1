"""Checkpoints of the tree: signed notes (C2SP signed-note, tlog-checkpoint, tlog-cosignature).

The server signs a head of the tree with an Ed25519 key of the owner TREE. Witnesses, whom the
server does not control, add cosignatures: each states that the tree only grew since the witness
last looked.
"""

import base64
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, Self

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from uamp.logs.checkpoint import (
    BadCheckpoint,
    UnknownCheckpointKey,
    decoded,
    key_id,
    public_key_of,
)

TREE: Final = "tree"
"""The owner of the keys that sign checkpoints of the tree."""

NOTE_CHARS_MAX: Final = 10_000
"""The maximum length of a note, in characters."""

SIGNATURES_MAX: Final = 32
"""The maximum number of signatures of a note."""

_COSIGNATURE: Final = b"\x04"
_ID_BYTES: Final = 4
_TIME_BYTES: Final = 8
_KEY_BYTES: Final = 32
_SIGNATURE_BYTES: Final = 64
_TEXT: Final = re.compile(
    r"(?P<origin>[^\s+]{1,500})\n(?P<size>0|[1-9][0-9]{0,17})\n(?P<root>[A-Za-z0-9+/]{43}=)\n"
)
_LINE: Final = re.compile(
    r"\N{EM DASH} (?P<name>[^\s+]{1,300}) (?P<signature>[A-Za-z0-9+/]{8,500}={0,2})"
)
_VERIFIER_KEY: Final = re.compile(r"(?P<name>[^\s+]{1,300})\+(?P<id>[0-9a-f]{8})\+(?P<key>\S{44})")


class TreeHead(msgspec.Struct, frozen=True, kw_only=True):
    """The head of a tree: its name, the number of its leaves, and its root."""

    origin: str
    size: int
    root: bytes

    @property
    def text(self) -> str:
        """The signed text."""
        return f"{self.origin}\n{self.size}\n{base64.b64encode(self.root).decode()}\n"


class NoteSignature(NamedTuple):
    """A line of a note: the name and the id of a key, and what follows the id."""

    name: str
    key_id: bytes
    signature: bytes

    @property
    def line(self) -> str:
        """The line, with its line feed."""
        encoded = base64.b64encode(self.key_id + self.signature).decode()
        return f"\N{EM DASH} {self.name} {encoded}\n"


class TreeNote(msgspec.Struct, frozen=True, kw_only=True):
    """A head with the signatures in its note, which are not verified."""

    head: TreeHead
    signatures: tuple[NoteSignature, ...]

    @property
    def text(self) -> str:
        """The note."""
        return f"{self.head.text}\n{''.join(signature.line for signature in self.signatures)}"


class Witness(msgspec.Struct, frozen=True, kw_only=True):
    """The name of a witness and its Ed25519 key for cosignatures."""

    name: str
    public_key: bytes

    @classmethod
    def parse(cls, verifier_key: str) -> Self:
        """Parse a verifier key (C2SP signed-note) of type 4. Raises ValueError."""
        match = _VERIFIER_KEY.fullmatch(verifier_key)
        if match is None:
            raise ValueError("This is not a verifier key (<name>+<id>+<key>).")
        raw = decoded(match["key"])
        if raw[:1] != _COSIGNATURE or len(raw) != 1 + _KEY_BYTES:
            raise ValueError("This is not a key for Ed25519 cosignatures (type 4).")
        witness = cls(name=match["name"], public_key=raw[1:])
        if witness.key_id.hex() != match["id"]:
            raise ValueError("The id does not match the name and the key.")
        return witness

    @property
    def key_id(self) -> bytes:
        """The id of the key, which the lines of the witness name."""
        return key_id(self.name, self.public_key, kind=_COSIGNATURE)


def sign_head(head: TreeHead, *, public_key: bytes, sign: Callable[[bytes], bytes]) -> str:
    """Return the note of a head, signed with a 32-byte Ed25519 key."""
    signature = sign(head.text.encode())
    line = NoteSignature(head.origin, key_id(head.origin, public_key), signature)
    return TreeNote(head=head, signatures=(line,)).text


def verifier_key(origin: str, public_key: bytes) -> str:
    """Return the verifier key (C2SP signed-note) of a tree, with which witnesses read its notes."""
    encoded = base64.b64encode(b"\x01" + public_key).decode()
    return f"{origin}+{key_id(origin, public_key).hex()}+{encoded}"


def read_note(text: str) -> TreeNote:
    """Parse a note without verifying its signatures. Raises BadCheckpoint."""
    signed, blank, lines = text.partition("\n\n")
    match = _TEXT.fullmatch(f"{signed}\n")
    is_note = len(text) <= NOTE_CHARS_MAX and blank and lines.endswith("\n")
    if match is None or not is_note:
        raise BadCheckpoint("This is not a checkpoint of a tree.")
    head = TreeHead(origin=match["origin"], size=int(match["size"]), root=decoded(match["root"]))
    signatures = tuple(_signature(line) for line in lines[:-1].split("\n"))
    if len(signatures) > SIGNATURES_MAX:
        raise BadCheckpoint("The checkpoint has too many signatures.")
    return TreeNote(head=head, signatures=signatures)


def check_signature(note: TreeNote, keys: Iterable[Mapping[str, Any]]) -> None:
    """Verify the server's signature with these JSON Web Keys.

    Raises BadCheckpoint, or UnknownCheckpointKey if none of them is a key of trees that the note
    names.
    """
    lines = {
        signature.key_id: signature
        for signature in note.signatures
        if signature.name == note.head.origin
    }
    for jwk in keys:
        public = public_key_of(jwk, owner=TREE)
        line = None if public is None else lines.get(key_id(note.head.origin, public))
        if public is None or line is None:
            continue
        if not _is_signed(public, line.signature, note.head.text.encode()):
            raise BadCheckpoint("The signature does not match this checkpoint.")
        return
    raise UnknownCheckpointKey("The key of the tree is not among the given keys.")


def cosignatures(note: TreeNote, witnesses: Iterable[Witness]) -> dict[str, NoteSignature]:
    """Return the cosignatures of these witnesses by name, without those that do not verify."""
    lines = {}
    for witness in witnesses:
        for line in note.signatures:
            if (line.name, line.key_id) == (witness.name, witness.key_id) and _is_cosigned(
                witness, line, note.head
            ):
                lines[witness.name] = line
    return lines


def cosigned_at(line: NoteSignature) -> int:
    """Return the time of a verified cosignature, in seconds since 1970."""
    return int.from_bytes(line.signature[:_TIME_BYTES], "big")


def _is_cosigned(witness: Witness, line: NoteSignature, head: TreeHead) -> bool:
    if len(line.signature) != _TIME_BYTES + _SIGNATURE_BYTES:
        return False
    at = cosigned_at(line)
    message = f"cosignature/v1\ntime {at}\n{head.text}".encode()
    is_time = at < 1 << 63
    return is_time and _is_signed(witness.public_key, line.signature[_TIME_BYTES:], message)


def _is_signed(public_key: bytes, signature: bytes, message: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _signature(line: str) -> NoteSignature:
    match = _LINE.fullmatch(line)
    if match is None:
        raise BadCheckpoint("A line of the checkpoint is not a signature.")
    raw = decoded(match["signature"])
    return NoteSignature(match["name"], raw[:_ID_BYTES], raw[_ID_BYTES:])

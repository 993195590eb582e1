"""The signed head of a chat's log: a checkpoint (docs/log-chain.md).

A checkpoint is a signed note with an Ed25519 signature, as in C2SP's signed-note and
tlog-checkpoint, so that tools for transparency logs can verify it. In place of the root of a Merkle
tree it has the chain hash of the last entry. It needs `cryptography`, which the extra `client`
installs.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

NOTE_CHARS_MAX: Final = 2000
"""The maximum length of a checkpoint, in characters."""

OWNER: Final = "log"
"""The owner of the keys that sign checkpoints, as named in a key's `uamp_owner`."""

_ED25519: Final = b"\x01"
_ID_BYTES: Final = 4
_KEY_BYTES: Final = 32
_NOTE: Final = re.compile(
    r"(?P<origin>[^\s+]{1,500}/chats/(?P<chat_id>[A-Za-z0-9_-]{1,40}))\n"
    r"(?P<seq>0|[1-9][0-9]{0,17})\n"
    r"(?P<chain_hash>[A-Za-z0-9+/]{43}=)\n"
    r"time (?P<at>0|[1-9][0-9]{0,17})\n"
    r"\n"
    r"\N{EM DASH} (?P<name>[^\s+]+) (?P<signature>[A-Za-z0-9+/]{91}=)\n"
)


class BadCheckpoint(ValueError):
    """The note is not a checkpoint or not signed by the key it names; the message is for people."""


class UnknownCheckpointKey(BadCheckpoint):
    """None of the given keys made the signature."""


class LogHead(msgspec.Struct, frozen=True, kw_only=True):
    """The head of a log at a given time: its last place, and the chain hash there.

    ``server`` is the address of the server without its scheme; ``at`` is in seconds since 1970.
    """

    server: str
    chat_id: str
    seq: int
    chain_hash: bytes
    at: int

    @property
    def origin(self) -> str:
        """The name of the log and of its key."""
        return f"{self.server}/chats/{self.chat_id}"

    @property
    def text(self) -> str:
        """The signed text."""
        root = base64.b64encode(self.chain_hash).decode()
        return f"{self.origin}\n{self.seq}\n{root}\ntime {self.at}\n"


def sign_checkpoint(
    checkpoint: LogHead, *, public_key: bytes, sign: Callable[[bytes], bytes]
) -> str:
    """Return the note of a checkpoint, signed with a 32-byte Ed25519 key."""
    raw = key_id(checkpoint.origin, public_key) + sign(checkpoint.text.encode())
    signature = base64.b64encode(raw).decode()
    return f"{checkpoint.text}\n\N{EM DASH} {checkpoint.origin} {signature}\n"


def open_checkpoint(note: str, keys: Iterable[Mapping[str, Any]]) -> LogHead:
    """Verify a note with these JSON Web Keys and return its checkpoint.

    Raises BadCheckpoint, or UnknownCheckpointKey if no Ed25519 key of logs among them has the id
    that the note names.
    """
    checkpoint, signing_key_id, signature = _parse(note)
    for jwk in keys:
        public = public_key_of(jwk, owner=OWNER)
        if public is None or key_id(checkpoint.origin, public) != signing_key_id:
            continue
        try:
            Ed25519PublicKey.from_public_bytes(public).verify(signature, checkpoint.text.encode())
        except InvalidSignature:
            raise BadCheckpoint("The signature does not match this checkpoint.") from None
        return checkpoint
    raise UnknownCheckpointKey("The key of the checkpoint is not among the given keys.")


def read_checkpoint(note: str) -> LogHead:
    """Return the checkpoint of a note without verifying its signature. Raises BadCheckpoint."""
    return _parse(note)[0]


def key_id(name: str, public_key: bytes, *, kind: bytes = _ED25519) -> bytes:
    """Return the id of a named key (C2SP signed-note); `kind` is its type of signature."""
    return hashlib.sha256(f"{name}\n".encode() + kind + public_key).digest()[:_ID_BYTES]


def _parse(note: str) -> tuple[LogHead, bytes, bytes]:
    """Parse a note into its checkpoint, the id of its key, and its signature."""
    match = _NOTE.fullmatch(note) if len(note) <= NOTE_CHARS_MAX else None
    if match is None or match["name"] != match["origin"]:
        raise BadCheckpoint("This is not a checkpoint of a chat.")
    chain_hash, signature = decoded(match["chain_hash"]), decoded(match["signature"])
    checkpoint = LogHead(
        server=match["origin"].removesuffix(f"/chats/{match['chat_id']}"),
        chat_id=match["chat_id"],
        seq=int(match["seq"]),
        chain_hash=chain_hash,
        at=int(match["at"]),
    )
    return checkpoint, signature[:_ID_BYTES], signature[_ID_BYTES:]


def decoded(text: str) -> bytes:
    """Decode base64, accepting only its canonical spelling. Raises BadCheckpoint."""
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError:
        raise BadCheckpoint("It is not in base64.") from None
    if base64.b64encode(raw).decode() != text:
        raise BadCheckpoint("It is not in base64.")
    return raw


def public_key_of(jwk: Mapping[str, Any], *, owner: str) -> bytes | None:
    """Return the 32 bytes of an Ed25519 key (RFC 8037) of an owner, or None for any other key.

    Keys without an owner, as other libraries write them, are accepted.
    """
    if jwk.get("uamp_owner", owner) != owner:
        return None
    if jwk.get("kty") != "OKP" or jwk.get("crv") != "Ed25519" or not isinstance(jwk.get("x"), str):
        return None
    text: str = jwk["x"]
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return None
    return raw if len(raw) == _KEY_BYTES else None

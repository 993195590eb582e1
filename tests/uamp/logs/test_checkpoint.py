"""The signed note of a log's head, without a server."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from uamp.logs.checkpoint import (
    BadCheckpoint,
    LogHead,
    UnknownCheckpointKey,
    open_checkpoint,
    read_checkpoint,
    sign_checkpoint,
)

HEAD = LogHead(
    server="chat.example", chat_id="chat_a", seq=42, chain_hash=b"\xfe" * 32, at=1767323045
)
KEY = Ed25519PrivateKey.from_private_bytes(b"\1" * 32)
PUBLIC = KEY.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def jwk(public: bytes = PUBLIC, **changes: Any) -> dict[str, Any]:
    """Return a key as JSON Web Key."""
    x = base64.urlsafe_b64encode(public).rstrip(b"=").decode()
    return {"kty": "OKP", "crv": "Ed25519", "x": x, **changes}


def note(head: LogHead = HEAD) -> str:
    """Return the signed note of a head."""
    return sign_checkpoint(head, public_key=PUBLIC, sign=KEY.sign)


def test_a_signed_head_is_read_again() -> None:
    root = base64.b64encode(HEAD.chain_hash).decode()
    assert note().startswith(f"chat.example/chats/chat_a\n42\n{root}\ntime 1767323045\n\n")
    assert open_checkpoint(note(), [jwk(b"\2" * 32), jwk()]) == HEAD
    assert read_checkpoint(note()) == HEAD


@pytest.mark.parametrize(
    "key",
    [
        jwk(kty="EC"),
        jwk(crv="X25519"),
        jwk(x=None),
        jwk(x="\N{SNOWMAN}"),
        jwk(x="A"),
        jwk(PUBLIC[:-1]),
        jwk(b"\2" * 32),
    ],
)
def test_a_key_that_is_another_one_verifies_nothing(key: dict[str, Any]) -> None:
    with pytest.raises(UnknownCheckpointKey):
        open_checkpoint(note(), [key])


def test_a_signature_of_another_head_is_refused() -> None:
    other = note().replace("\n42\n", "\n43\n")
    with pytest.raises(BadCheckpoint, match="does not match this checkpoint"):
        open_checkpoint(other, [jwk()])


def changed_signature(change: Any) -> str:
    """Return the note with another base64 in the place of the signature."""
    text, encoded = note().rstrip("\n").rsplit(" ", 1)
    return f"{text} {change(encoded)}\n"


@pytest.mark.parametrize(
    "bad",
    [
        "",
        note()[:-1],
        f"{note()}\n",
        "x" * 3000,
        note().replace("/chats/", "/chat/"),
        note().replace("chat.example", "other.example", 1),
        note().replace("time 1", "time -1"),
        note().replace("\n42\n", "\n042\n"),
        changed_signature(lambda text: text[:-4]),
        changed_signature(lambda text: text[:-2] + "B="),
        note().replace(
            base64.b64encode(HEAD.chain_hash).decode(),
            base64.b64encode(HEAD.chain_hash).decode()[:-2] + "9=",
        ),
    ],
)
def test_a_malformed_checkpoint_is_refused(bad: str) -> None:
    with pytest.raises(BadCheckpoint):
        read_checkpoint(bad)

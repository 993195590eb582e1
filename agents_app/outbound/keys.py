"""The key of a remote agent: kept in its row, encrypted, for one place alone."""

import msgspec
from cryptography.fernet import InvalidToken

from agents_app.outbound.rules import Target
from signing_app.encryption import cipher

KEY_CHARS = 4096
_PURPOSE = "agents_app.remote"


class Undecipherable(Exception):
    """The key was encrypted with a SECRET_KEY that this server does not have."""


class _Kept(msgspec.Struct):
    """A key, and the scheme, host and port that it was given for."""

    place: str
    key: str


def kept(key: str, target: Target) -> str:
    """Return the text that a row keeps of a key; "" for none."""
    if not key:
        return ""
    found = _Kept(place=target.place, key=key)
    return cipher(_PURPOSE).encrypt(msgspec.json.encode(found)).decode()


def key_for(secret: str, target: Target) -> str | None:
    """Return the key that a row keeps, where it was given for this place; None for none.

    Who changes the address of a row is not given its key. Raises Undecipherable.
    """
    if not secret:
        return None
    try:
        found = msgspec.json.decode(cipher(_PURPOSE).decrypt(secret.encode()), type=_Kept)
    except InvalidToken as error:
        raise Undecipherable from error
    return found.key if found.place == target.place else None

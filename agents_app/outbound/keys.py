"""Keys of agents, encrypted in their rows and bound to one place each.

A place is a scheme, host and port, such as `https://api.openai.com:443`.
"""

import msgspec
from cryptography.fernet import InvalidToken

from signing_app.encryption import cipher

KEY_CHARS = 4096
# Rows were encrypted under this name; another one would make them unreadable.
_PURPOSE = "agents_app.remote"


class Undecipherable(Exception):
    """The key was encrypted with a SECRET_KEY that this server does not have."""


class _Kept(msgspec.Struct):
    """A key and the scheme, host and port that it was entered for."""

    place: str
    key: str


def encrypted_key(key: str, place: str) -> str:
    """Encrypt a key for a row; return "" for an empty key."""
    if not key:
        return ""
    entry = _Kept(place=place, key=key)
    return cipher(_PURPOSE).encrypt(msgspec.json.encode(entry)).decode()


def key_for(secret: str, place: str) -> str | None:
    """Return the key in a row if it was entered for this place, else None.

    Changing the address of a row therefore does not reveal its key. Raises Undecipherable.
    """
    if not secret:
        return None
    try:
        entry = msgspec.json.decode(cipher(_PURPOSE).decrypt(secret.encode()), type=_Kept)
    except InvalidToken as error:
        raise Undecipherable from error
    return entry.key if entry.place == place else None

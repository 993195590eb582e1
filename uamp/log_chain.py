"""The hash chain of a chat's log (docs/log-chain.md): what each entry hashes to, without a store.

The chain hash of an entry is made of the one before it, so that an entry which was changed, taken
out or put in changes every later one. What it covers of a payload is the digest of the payload: an
entry whose body was erased keeps its place in the chain by that digest.
"""

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
import rfc8785

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_INTEGER_MAX: Final = 2**53 - 1
_START: Final = "uamp chat log 1"
_HEX: Final = re.compile(r"[0-9a-f]{64}")


def canonical(value: Any) -> bytes:
    """Return a JSON value in the form of RFC 8785.

    Numbers are doubles, as there; one that no double holds is a string of its digits.
    """
    return plain_form(value) or rfc8785.dumps(_with_doubles(value))


def plain_form(value: Any) -> bytes | None:
    """Return a value in the form of RFC 8785 if an encoder in C writes the same; None otherwise.

    It does for texts, integers that a double holds, and members with ASCII names, thirty times as
    fast. Raises UnicodeEncodeError for lone surrogates.
    """
    return msgspec.json.encode(value, order="sorted") if _is_plain(value) else None


def payload_digest(payload: Mapping[str, Any]) -> bytes:
    """Return the SHA-256 of the payload of an entry in its canonical form."""
    return hashlib.sha256(canonical(payload)).digest()


def entry_digest(event_type: str, response_id: str, at: datetime, payload: bytes) -> bytes:
    """Return what the chain covers of an entry, given the digest of its payload."""
    lines = f"{event_type}\n{response_id}\n{microseconds(at)}\n{payload.hex()}\n"
    return hashlib.sha256(lines.encode()).digest()


def chain_start(chat_id: str, seq: int) -> bytes:
    """Return the hash before the first entry of a chain; `seq` is of the last entry before it.

    It is 0 where the chain has the whole log.
    """
    return hashlib.sha256(f"{_START}\n{chat_id}\n{seq}\n".encode()).digest()


def chain_hash(previous: bytes, seq: int, entry: bytes) -> bytes:
    """Return the chain hash of an entry, given the one before it, its place and its digest."""
    return hashlib.sha256(previous + seq.to_bytes(8, "big") + entry).digest()


def microseconds(at: datetime) -> int:
    """Return a time in microseconds since 1970, as the chain covers it."""
    return (at - _EPOCH) // _MICROSECOND


def time_of(microseconds: int) -> datetime:
    """Return the time of so many microseconds since 1970. Raises OverflowError."""
    return _EPOCH + timedelta(microseconds=microseconds)


def hash_of(text: object) -> bytes | None:
    """Return a hash that is written as 64 hexadecimal digits; None for anything else."""
    if not isinstance(text, str) or _HEX.fullmatch(text) is None:
        return None
    return bytes.fromhex(text)


def _is_plain(value: Any) -> bool:
    """Return whether keys are ASCII, and numbers integers that a double holds."""
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return True
    if kind is int:
        return bool(-_INTEGER_MAX <= value <= _INTEGER_MAX)
    if kind is dict:
        return "".join(value).isascii() and all(map(_is_plain, value.values()))
    return kind in (list, tuple) and all(map(_is_plain, value))


def _with_doubles(value: Any) -> Any:
    """Return a value whose large integers are doubles, or strings where none holds them."""
    if isinstance(value, Mapping):
        return {key: _with_doubles(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_doubles(one) for one in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _INTEGER_MAX:
        try:
            return float(value)
        except OverflowError:
            return str(value)
    return value

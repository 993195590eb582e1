"""The hash chain of a chat's log (docs/log-chain.md): how entries are hashed, without a store.

The chain hash of an entry includes that of the entry before it, so changing, removing or inserting
an entry changes every later hash. The chain covers a payload by its digest, so an entry whose body
was erased keeps its place in the chain.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
import rfc8785

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_INTEGER_MAX: Final = 2**53 - 1
_START: Final = "uamp chat log 1"
_CONTAINERS: Final = frozenset({dict, list, tuple})
_HEX: Final = re.compile(r"[0-9a-f]{64}")


def canonical(value: Any) -> bytes:
    """Encode a JSON value in the canonical form of RFC 8785.

    Numbers are doubles, as the RFC has them; an integer too large for a double becomes a string of
    its digits.
    """
    return plain_form(value) or rfc8785.dumps(_with_doubles(value))


def plain_form(value: Any) -> bytes | None:
    """Return a value in the form of RFC 8785 if the encoder in C writes the same; otherwise None.

    It does for strings, integers that a double holds exactly, and members with ASCII names, and is
    thirty times as fast. Raises UnicodeEncodeError for lone surrogates.
    """
    return msgspec.json.encode(value, order="sorted") if _is_plain(value) else None


def payload_digest(payload: Mapping[str, Any]) -> bytes:
    """Return the SHA-256 of an entry's payload in its canonical form."""
    return hashlib.sha256(canonical(payload)).digest()


def entry_digest(event_type: str, response_id: str, at: datetime, payload: bytes) -> bytes:
    """Return the digest of an entry that the chain covers, given the digest of its payload."""
    lines = f"{event_type}\n{response_id}\n{microseconds(at)}\n{payload.hex()}\n"
    return hashlib.sha256(lines.encode()).digest()


def chain_start(chat_id: str, seq: int) -> bytes:
    """Return the hash before the first entry of a chain; `seq` is that of the last entry before it.

    `seq` is 0 if the chain covers the whole log.
    """
    return hashlib.sha256(f"{_START}\n{chat_id}\n{seq}\n".encode()).digest()


def chain_hash(previous: bytes, seq: int, entry: bytes) -> bytes:
    """Return the chain hash of an entry from the previous one, its place and its digest."""
    return hashlib.sha256(previous + seq.to_bytes(8, "big") + entry).digest()


def microseconds(at: datetime) -> int:
    """Return a time in microseconds since 1970, the form that the chain covers."""
    return (at - _EPOCH) // _MICROSECOND


def time_of(microseconds: int) -> datetime:
    """Convert microseconds since 1970 to a time. Raises OverflowError."""
    return _EPOCH + timedelta(microseconds=microseconds)


def hash_of(text: object) -> bytes | None:
    """Decode a hash written as 64 hexadecimal digits; return None for anything else."""
    if not isinstance(text, str) or _HEX.fullmatch(text) is None:
        return None
    return bytes.fromhex(text)


def _is_plain(value: Any) -> bool:
    """Return whether all keys are ASCII and all numbers integers that a double holds."""
    kind = type(value)
    if kind is dict:
        return "".join(value).isascii() and _are_plain(value.values())
    if kind is list or kind is tuple:
        return _are_plain(value)
    return _are_plain((value,))


def _are_plain(values: Iterable[Any]) -> bool:
    # Most values are texts and numbers: a call for each of them would cost more than this loop.
    for value in values:
        kind = type(value)
        if kind is str or value is None or kind is bool:
            continue
        if kind is int:
            if not -_INTEGER_MAX <= value <= _INTEGER_MAX:
                return False
        elif kind not in _CONTAINERS or not _is_plain(value):
            return False
    return True


def _with_doubles(value: Any) -> Any:
    """Convert large integers to doubles, or to strings if no double holds them."""
    if isinstance(value, Mapping):
        return {key: _with_doubles(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_doubles(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _INTEGER_MAX:
        try:
            return float(value)
        except OverflowError:
            return str(value)
    return value

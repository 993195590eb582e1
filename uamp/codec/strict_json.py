"""The strict JSON loader for everything that peers send (UAMP §13.1).

It reads accepted text as ``json.loads`` does. Text that two readers could read differently, or that
costs a reader too much work, is refused, each kind with its own code.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from json import JSONDecodeError, JSONDecoder
from math import isinf
from sys import float_info
from typing import Any, NoReturn

import msgspec

from uamp.errors import ErrorCode, RemoteProtocolError
from uamp.limits import DEFAULT_LIMITS, Limits

MEDIA_KEYS = frozenset({"audio", "image", "video", "file", "thumbnail", "url"})

_EXACT = 2**53 - 1
_MAX_INTEGER = int(float_info.max)
_MAX_INTEGER_CHARS = len(str(-_MAX_INTEGER))
_UTF8_CHAR_BYTES = 4

# An unterminated string matches to the end, which keeps the scan linear on hostile text.
_STRING = re.compile(r'"(?:[^"\\]++|\\.?)*+(?:"|\Z)', re.DOTALL)
_EMPTY = re.compile(r"\{\s*\}|\[\s*\]")
_BRACKET = re.compile(r"[\[\]{}]")
_SUSPECT_ESCAPE = re.compile(r"\\u(?:d[89a-f]|0000)", re.IGNORECASE)
_BAD_CHARACTER = re.compile("[\x00\ud800-\udfff]")


class Loaded(msgspec.Struct, frozen=True):
    """A parsed frame: its value and its size in bytes, with and without its media."""

    value: object
    size: int
    plain_size: int


def load_json(raw: str | bytes, limits: Limits = DEFAULT_LIMITS, *, exact: bool = False) -> object:
    """Load a JSON text; raise RemoteProtocolError if it breaks a limit.

    Refused are duplicate keys, numbers beyond a double, NUL, lone surrogates, a byte order mark,
    trailing data, and anything over ``limits``. Integers keep all their digits; the types of events
    bound the numbers that matter. With ``exact``, for signed data, integers beyond 2^53-1 are
    refused too, because other readers round them and would read a different value from the same
    text.
    """
    return load(raw, limits, exact=exact).value


def load(raw: str | bytes, limits: Limits, *, exact: bool = False) -> Loaded:
    """Load a JSON text and return its value and size; raises as ``load_json`` does."""
    text, size = _text(raw, limits)
    openings = text.count("{") + text.count("[")
    if openings > limits.depth or openings + text.count(",") >= limits.nodes:
        _check_structure(text, limits)
    try:
        value = _decoder(limits, exact).decode(text)
    except JSONDecodeError as error:
        raise RemoteProtocolError(
            ErrorCode.INVALID_JSON, f"not JSON: {error.msg} at character {error.pos}"
        ) from None
    if "\\u" in text and _SUSPECT_ESCAPE.search(text):
        _check_characters(value)
    media = _media_bytes(value, limits) if size > limits.string_bytes else 0
    return Loaded(value, size, size - media)


def _text(raw: str | bytes, limits: Limits) -> tuple[str, int]:
    """Return the frame as text, and its size in UTF-8 bytes."""
    if len(raw) > limits.frame_bytes:
        _too_large(limits)
    if isinstance(raw, bytes):
        try:
            return raw.decode(), len(raw)
        except UnicodeDecodeError:
            raise RemoteProtocolError(ErrorCode.INVALID_JSON, "not UTF-8") from None
    if raw.isascii():
        return raw, len(raw)
    try:
        size = len(raw.encode())
    except UnicodeEncodeError:
        raise RemoteProtocolError(ErrorCode.INVALID_TEXT, "a lone surrogate") from None
    if size > limits.frame_bytes:
        _too_large(limits)
    return raw, size


def _too_large(limits: Limits) -> NoReturn:
    raise RemoteProtocolError(
        ErrorCode.FRAME_TOO_LARGE, f"a frame may have at most {limits.frame_bytes} bytes"
    )


def _check_structure(text: str, limits: Limits) -> None:
    """Check the number of values and the depth before building anything from them."""
    # A value has at most a name and a string: a text with more strings is over the limit, and is
    # not read any further.
    max_strings = 2 * limits.nodes
    skeleton, strings = _STRING.subn("s", text, count=max_strings + 1)
    openings = skeleton.count("{") + skeleton.count("[")
    # Even an empty one is a value, so this limit applies before empty ones are counted.
    is_over = strings > max_strings or openings > limits.nodes
    if is_over or 1 + skeleton.count(",") + openings - _empty(skeleton) > limits.nodes:
        raise RemoteProtocolError(
            ErrorCode.TOO_MANY_VALUES, f"a frame may have at most {limits.nodes} values"
        )
    depth = 0
    for bracket in _BRACKET.finditer(skeleton):
        depth += 1 if bracket[0] in "{[" else -1
        if depth < 0:
            # Not JSON: the decoder reports the position.
            return
        if depth > limits.depth:
            raise RemoteProtocolError(
                ErrorCode.TOO_DEEP, f"objects and arrays nest at most {limits.depth} deep"
            )


def _empty(skeleton: str) -> int:
    """Count the empty objects and arrays."""
    return sum(1 for _ in _EMPTY.finditer(skeleton))


@lru_cache(maxsize=32)
def _decoder(limits: Limits, exact: bool) -> JSONDecoder:  # noqa: FBT001 part of the cache's key
    return JSONDecoder(
        object_pairs_hook=_object_hook(limits),
        parse_int=_exact_integer if exact else _integer,
        parse_float=_real,
        parse_constant=_constant,
    )


def _object_hook(limits: Limits) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    max_members, max_key_chars = limits.members, limits.key_chars

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) != len(pairs):
            raise RemoteProtocolError(ErrorCode.DUPLICATE_KEY, "an object has a duplicate member")
        if len(pairs) > max_members:
            raise RemoteProtocolError(
                ErrorCode.TOO_MANY_MEMBERS, f"an object may have at most {max_members} members"
            )
        if members and max(map(len, members)) > max_key_chars:
            raise RemoteProtocolError(
                ErrorCode.KEY_TOO_LONG,
                f"a member's name may have at most {max_key_chars} characters",
            )
        return members

    return build


def _integer(digits: str) -> int:
    if len(digits) <= _MAX_INTEGER_CHARS:
        value = int(digits)
        if -_MAX_INTEGER <= value <= _MAX_INTEGER:
            return value
    raise RemoteProtocolError(ErrorCode.INVALID_NUMBER, "a number is too large for a double")


def _exact_integer(digits: str) -> int:
    value = _integer(digits)
    if not -_EXACT <= value <= _EXACT:
        raise RemoteProtocolError(ErrorCode.INVALID_NUMBER, "an integer is beyond 2^53-1")
    return value


def _real(digits: str) -> float:
    value = float(digits)
    if isinf(value):
        raise RemoteProtocolError(ErrorCode.INVALID_NUMBER, "a number is too large for a double")
    return value


def _constant(name: str) -> NoReturn:
    raise RemoteProtocolError(ErrorCode.INVALID_NUMBER, f"{name} is not JSON")


def _strings(value: object) -> Iterator[tuple[str, str]]:
    """Yield every string, including field names, with the name of the field that holds it."""
    pending: list[tuple[str, object]] = [("", value)]
    while pending:
        key, item = pending.pop()
        if isinstance(item, str):
            yield key, item
        elif isinstance(item, dict):
            for name, member in item.items():
                yield "", name
                pending.append((name, member))
        elif isinstance(item, list):
            pending.extend((key, element) for element in item)


def _check_characters(value: object) -> None:
    for _, string in _strings(value):
        if _BAD_CHARACTER.search(string):
            raise RemoteProtocolError(
                ErrorCode.INVALID_TEXT, "a string contains NUL or a lone surrogate"
            )


def _media_bytes(value: object, limits: Limits) -> int:
    """Return the bytes of all media in ``value``; check each string against its limit."""
    total = 0
    smallest = min(limits.string_bytes, limits.media_bytes) // _UTF8_CHAR_BYTES
    for key, string in _strings(value):
        if len(string) <= smallest and key not in MEDIA_KEYS:
            continue
        size = len(string) if string.isascii() else len(string.encode())
        is_medium = key in MEDIA_KEYS
        if size > (limits.media_bytes if is_medium else limits.string_bytes):
            raise RemoteProtocolError(
                ErrorCode.STRING_TOO_LONG, f"a string of {size} bytes is too long"
            )
        if is_medium:
            total += size
    return total

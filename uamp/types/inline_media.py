"""Media within text: base64 and ``data:`` URLs, decoded as leniently as browsers and Node do.

All media from clients are decoded here. Signatures and keys have only one valid spelling and are
decoded strictly by the code that verifies them.
"""

import binascii
import re
from typing import Final

_STANDARD: Final = bytes.maketrans(b"-_", b"+/")
_SPACE: Final = b" \t\n\r\f\v"
_GROUP: Final = 4
_SCHEME: Final = re.compile(r"\s*+data:", re.IGNORECASE)
_HEAD: Final = re.compile(r"\s*+data:([^,#]*+),", re.IGNORECASE)
_STRAY: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_STRAYS: Final = 10_000
"""With this many ``%`` that start no escape, a text was never escaped."""


def decode_base64(text: str) -> bytes:
    """Decode base64 text; raises ValueError for invalid text.

    The text may use either alphabet (RFC 4648 §4, §5), white space anywhere, and any padding.
    """
    if not text.isascii():
        raise ValueError("base64 may contain only letters, digits, +, / and =")
    return _decode(text.encode())


def media_bytes(text: str) -> bytes:
    """Return the bytes of a medium, base64 text or a ``data:`` URL; raises ValueError for neither.

    In a URL (RFC 2397) escapes are resolved, and the part from a ``#`` on is not data. Without
    ``;base64`` the data is the text itself, in UTF-8.
    """
    if not is_data_url(text):
        return decode_base64(text)
    head = _HEAD.match(text)
    if head is None:
        raise ValueError("a data: URL must have a comma before its data")
    data = text[head.end() :].partition("#")[0].encode()
    if b"%" in data:
        data = _unescape(data)
    _, *parameters = head[1].split(";")
    is_base64 = any(parameter.strip().lower() == "base64" for parameter in parameters)
    return _decode(data) if is_base64 else data


def is_data_url(text: str) -> bool:
    """Return whether a text is a ``data:`` URL, in upper or lower case."""
    return _SCHEME.match(text) is not None


def media_type_of(url: str) -> str:
    """Return the media type in a ``data:`` URL, without its parameters; '' if there is none."""
    head = _HEAD.match(url)
    return "" if head is None else head[1].partition(";")[0].strip().lower()


def _unescape(data: bytes) -> bytes:
    """Resolve percent escapes; stray ``%`` stay. Raises ValueError for too many of them."""
    data, strays = _STRAY.subn(b"%25", data, count=_STRAYS)
    if strays == _STRAYS:
        raise ValueError("a data: URL must escape % as %25")
    # Quoted-printable has the same escapes after a different character, and is decoded in C.
    return binascii.a2b_qp(data.replace(b"=", b"=3D").replace(b"%", b"="))


def _decode(text: bytes) -> bytes:
    digits = text.translate(_STANDARD, _SPACE).rstrip(b"=")
    # A leftover digit is less than a byte: the text was truncated, so the decoder refuses it.
    return binascii.a2b_base64(digits + b"=" * (-len(digits) % _GROUP), strict_mode=True)

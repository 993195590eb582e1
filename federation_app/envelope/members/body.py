"""The content of a body, with its encoding and compression (envelope §4).

`encoding` is utf-8, base64 or base64url; `compression` is none or gzip. Compressed content may
inflate to limits.INFLATED_RATIO times its size, and at most to the size of an envelope.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import TYPE_CHECKING, Final

from federation_app.envelope.errors import EnvelopeCode, EnvelopeError, malformed
from federation_app.envelope.limits import ENVELOPE_BYTES, INFLATED_RATIO
from federation_app.envelope.signatures.keys import decode64

if TYPE_CHECKING:
    from federation_app.envelope.members.reading import EnvelopeBody

_GZIP: Final = 16 + zlib.MAX_WBITS


def decoded(body: EnvelopeBody) -> bytes:
    """Return the bytes of a body; raises EnvelopeError unsupported, malformed or too_large."""
    data = _bytes_of(body)
    if body.compression == "none":
        return data
    if body.compression != "gzip":
        raise _unsupported("compression", body.compression)
    if body.encoding == "utf-8":
        raise malformed(
            "Compressed content must be encoded in base64 or base64url.", detail="encoding"
        )
    limit = min(ENVELOPE_BYTES, len(data) * INFLATED_RATIO)
    inflating = zlib.decompressobj(_GZIP)
    try:
        inflated = inflating.decompress(data, limit + 1)
    except zlib.error:
        raise malformed("The content is not valid gzip.", detail="compression") from None
    if len(inflated) > limit:
        raise EnvelopeError(
            EnvelopeCode.TOO_LARGE, "The decompressed content is too large.", detail="compression"
        )
    if not inflating.eof or inflating.unused_data:
        raise malformed("The gzip data is truncated or has trailing bytes.", detail="compression")
    return inflated


def text_of(body: EnvelopeBody) -> str:
    """Return the text of a body; raises EnvelopeError for another type, and as `decoded` does."""
    if not body.type.lower().startswith("text/"):
        raise _unsupported("type", body.type)
    try:
        text = decoded(body).decode()
    except UnicodeDecodeError:
        raise malformed("The content is not UTF-8.", detail="encoding") from None
    if "\0" in text:
        raise malformed("The content has NUL.", detail="content")
    return text


def _bytes_of(body: EnvelopeBody) -> bytes:
    match body.encoding:
        case "utf-8":
            return body.content.encode()
        case "base64url":
            return decode64(body.content.rstrip("="))
        case "base64":
            # Strictly, like the signature over it: a signed body has one spelling.
            try:
                return base64.b64decode(body.content, validate=True)
            except (binascii.Error, ValueError):
                raise malformed("The content is not base64.", detail="encoding") from None
    raise _unsupported("encoding", body.encoding)


def _unsupported(member: str, value: str) -> EnvelopeError:
    return EnvelopeError(
        EnvelopeCode.UNSUPPORTED, f"The {member} {value[:40]!r} is not supported.", detail=member
    )

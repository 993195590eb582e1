"""Records on a WebSocket (envelope §7): a length of four bytes, then JSON.

The length is an unsigned integer in network byte order. A binary message consists of whole records;
a text message, which cannot carry the prefix, is one record without it.
"""

from __future__ import annotations

import struct
from typing import Final

from federation_app.envelope.errors import EnvelopeCode, EnvelopeError, malformed
from federation_app.envelope.limits import ENVELOPE_BYTES

SUBPROTOCOL: Final = "uamp.v1"
PREFIX: Final = struct.Struct(">I")
MAX_RECORDS: Final = 64


def framed(record: bytes) -> bytes:
    """Prefix a record with its length."""
    return PREFIX.pack(len(record)) + record


def read_records(
    message: bytes | str, *, limit: int = ENVELOPE_BYTES * 2, record: int = ENVELOPE_BYTES
) -> list[bytes]:
    """Split a message of at most `limit` bytes into records of at most `record` bytes each.

    Raises EnvelopeError malformed or too_large.
    """
    if len(message) > limit:
        raise EnvelopeError(EnvelopeCode.TOO_LARGE, "The message is too large.", detail="bytes")
    if isinstance(message, str):
        return [message.encode("utf-8", "surrogatepass")]
    records: list[bytes] = []
    at = 0
    while at < len(message):
        if len(message) - at < PREFIX.size:
            raise malformed("The message ends within a length prefix.", detail="length")
        (length,) = PREFIX.unpack_from(message, at)
        if length > record:
            raise EnvelopeError(
                EnvelopeCode.TOO_LARGE,
                f"A record may have at most {record} bytes.",
                detail="length",
            )
        at += PREFIX.size
        if length == 0 or len(message) - at < length or len(records) == MAX_RECORDS:
            raise malformed(
                f"A record is empty or cut off, or there are more than {MAX_RECORDS} of them.",
                detail="length",
            )
        records.append(message[at : at + length])
        at += length
    if not records:
        raise malformed("The message is empty.", detail="length")
    return records

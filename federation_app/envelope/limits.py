"""Limits of envelopes, deltas, manifests and signatures, which the specification leaves open.

Sizes are in bytes of UTF-8. The reader refuses larger input before parsing it.
"""

from __future__ import annotations

from typing import Final

import uamp
from federation_app.envelope.errors import EnvelopeCode, EnvelopeError, malformed
from uamp import ErrorCode, RemoteProtocolError

ENVELOPE_BYTES: Final = 1024 * 1024
DELTA_BYTES: Final = 1024 * 1024
DOCUMENT_BYTES: Final = 64 * 1024
"""The limit of a manifest or a DID document."""
HUB_BYTES: Final = 512 * 1024
"""The limit of a hub, which lists up to 256 manifests."""
RECIPIENTS: Final = 16
REFERENCES: Final = 64
EXTENSION_BYTES: Final = 8 * 1024
TOKEN_BYTES: Final = 8 * 1024
URI_CHARS: Final = 512
STREAM_ID_CHARS: Final = 128
MEDIA_TYPE_CHARS: Final = 127
DEFAULT_WINDOW: Final = 64
MAX_WINDOW: Final = 1024
"""Larger windows are reduced to this one."""
WINDOW_BOUND: Final = 2**31 - 1
"""An envelope with a larger window is refused."""
INFLATED_RATIO: Final = 20
KEYS_TRIED: Final = 8
MAX_KEYS: Final = 32
TIME_WINDOW_SECONDS: Final = 300

_TOO_LARGE: Final = frozenset({ErrorCode.FRAME_TOO_LARGE, ErrorCode.STRING_TOO_LONG})


def load(raw: str | bytes, *, limit: int = ENVELOPE_BYTES) -> object:
    """Parse a JSON text of at most `limit` bytes; raises EnvelopeError.

    Duplicate members, NaN, infinities, integers beyond 2^53-1, NUL and lone surrogates are
    malformed, because two readers could interpret them differently.
    """
    limits = uamp.Limits(frame_bytes=limit, string_bytes=limit, media_bytes=limit)
    try:
        return uamp.load_json(raw, limits, exact=True)
    except RemoteProtocolError as error:
        if error.code in _TOO_LARGE:
            raise EnvelopeError(
                EnvelopeCode.TOO_LARGE, f"It has more than {limit} bytes.", detail="bytes"
            ) from None
        raise malformed(error.message, detail=str(error.code)) from None

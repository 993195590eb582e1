"""Deltas (envelope §5, schema A.2): the frames of a stream.

The specification leaves their payloads open. Here `chunk {text, offset}` carries the text of an
answer, `patch {text}` replaces all of it, and `done` has the whole answer, signed, or the signed
`digest` of one that does not fit into an envelope. Offsets count code points.
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 a field of a struct
from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec

from federation_app.envelope import limits
from federation_app.envelope.errors import EnvelopeCode, EnvelopeError, malformed
from federation_app.envelope.members.reading import StreamId, read_time, written_time

ACK_TYPE: Final = "application/vnd.uamp.ack+json"
"""The type of the body of a `progress` envelope that acknowledges deltas."""
PAYMENT_STAGE: Final = "payment_required"
"""The `stage` of a `progress` that demands a payment; its `envelope` is a signed `propose`."""
DIGEST_TYPE: Final = "application/vnd.uamp.digest+json"
"""The type of the body of the signed `digest` in a `done`: `sha256` and `length` of the text."""
MAX_SEQUENCE: Final = 2**53 - 1


class DeltaType(StrEnum):
    """The types of schema A.2."""

    PATCH = "patch"
    CHUNK = "chunk"
    PROGRESS = "progress"
    DONE = "done"
    CANCEL = "cancel"
    ERROR = "error"


TERMINAL: Final = frozenset({DeltaType.DONE, DeltaType.CANCEL, DeltaType.ERROR})
"""The types after which a producer sends nothing more."""


class StreamDelta(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One delta, with the members of schema A.2."""

    delta_seq: Annotated[int, msgspec.Meta(ge=0, le=MAX_SEQUENCE)]
    stream_id: StreamId
    ts: Annotated[str, msgspec.Meta(max_length=40)]
    type: DeltaType
    payload: dict[str, Any] = {}

    @property
    def acknowledged(self) -> int | None:
        """The last `delta_seq` that it acknowledges; None if it acknowledges nothing."""
        return ack_of(self.payload) if self.type is DeltaType.PROGRESS else None

    def encoded(self) -> bytes:
        """Return the delta as JSON."""
        return msgspec.json.encode(self)


def delta_at(
    delta_seq: int, stream_id: str, now: datetime, type_: DeltaType, payload: dict[str, Any]
) -> StreamDelta:
    """Return a delta with the given time."""
    return StreamDelta(
        delta_seq=delta_seq,
        stream_id=stream_id,
        ts=written_time(now),
        type=type_,
        payload=payload,
    )


def delta_of(value: object) -> StreamDelta:
    """Convert a parsed value to a delta; raises EnvelopeError.

    The error is 4.09 if `delta_seq` is missing (envelope §9), and 4.00 for other faults.
    """
    if isinstance(value, dict) and "delta_seq" not in value:
        raise EnvelopeError(
            EnvelopeCode.CONFLICT, "The delta has no delta_seq.", detail="delta_seq"
        )
    try:
        delta = msgspec.convert(value, StreamDelta)
    except msgspec.ValidationError as error:
        raise malformed(f"{error}.", detail="schema") from None
    read_time(delta.ts)
    return delta


def read_delta(raw: str | bytes) -> StreamDelta:
    """Parse a delta; raises EnvelopeError."""
    return delta_of(limits.load(raw, limit=limits.DELTA_BYTES))


def is_delta(value: object) -> bool:
    """Return whether a parsed value is meant as a delta rather than an envelope."""
    return isinstance(value, dict) and "intent" not in value and "stream_id" in value


def ack_of(payload: object) -> int | None:
    """Return the `ack` of a payload, or None; raises EnvelopeError malformed if it is invalid."""
    if not isinstance(payload, dict) or "ack" not in payload:
        return None
    ack = payload["ack"]
    if isinstance(ack, bool) or not isinstance(ack, int) or not 0 <= ack <= MAX_SEQUENCE:
        raise malformed("ack must be the delta_seq of a delta.", detail="ack")
    return ack

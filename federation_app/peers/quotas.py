"""The limits of one peer, which an operator sets below those of all peers (envelope A.3).

They are counted in the rows of accepted envelopes, and so by all processes together. A limit that
is not set costs no query.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db.models import Sum
from django.utils import timezone

from federation_app.envelope.errors import EnvelopeCode, EnvelopeError
from federation_app.models import ReceivedEnvelope

if TYPE_CHECKING:
    from federation_app.models import Peer

HOUR: Final = timedelta(hours=1)
KIB: Final = 1024
RETRY_SECONDS: Final = 60
"""How long a peer that is over its limit should wait; places in the last hour become free."""


def check_envelope(peer: Peer, *, body_bytes: int, size: int) -> None:
    """Raise EnvelopeError too_large or rate_limited for an envelope that exceeds a limit."""
    if peer.max_body_kb is not None and body_bytes > peer.max_body_kb * KIB:
        raise EnvelopeError(
            EnvelopeCode.TOO_LARGE,
            f"Your bodies have at most {peer.max_body_kb} KiB.",
            detail="max_body_kb",
        )
    recent = ReceivedEnvelope.objects.filter(peer=peer, created_at__gt=timezone.now() - HOUR)
    if peer.rate_lph is not None and recent[: peer.rate_lph].count() >= peer.rate_lph:
        raise _too_many(f"You may send {peer.rate_lph} envelopes an hour.", "rate_lph")
    if peer.kb_per_hour is not None:
        sent = recent.aggregate(sum=Sum("size"))["sum"] or 0
        if sent + size > peer.kb_per_hour * KIB:
            raise _too_many(f"You may send {peer.kb_per_hour} KiB an hour.", "kb_per_hour")


def streams_of(peer: Peer) -> int:
    """Return how many streams a peer may read at a time in one process."""
    most: int = settings.UAMP_ENVELOPE_STREAMS
    return most if peer.max_streams is None else min(most, peer.max_streams)


def _too_many(message: str, detail: str) -> EnvelopeError:
    return EnvelopeError(
        EnvelopeCode.RATE_LIMITED, message, detail=detail, retry_after=RETRY_SECONDS
    )

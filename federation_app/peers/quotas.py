"""The limits of one peer, which an operator sets below those of all peers (envelope A.3).

They are counted in the rows of accepted envelopes and, for the files that it is served, in its own
row, and so by all processes together. A limit that is not set costs no query.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Sum
from django.utils import timezone

from federation_app.envelope.errors import EnvelopeCode, EnvelopeError
from federation_app.models import Peer, ReceivedEnvelope

HOUR: Final = timedelta(hours=1)
KIB: Final = 1024
RETRY_SECONDS: Final = 60
"""How long a peer that is over its limit should wait; places in the last hour become free."""


def check_envelope(peer: Peer, *, body_bytes: int, size: int) -> None:
    """Raise EnvelopeError too_large or rate_limited for an envelope that exceeds a limit."""
    if peer.max_body_kb is not None and body_bytes > peer.max_body_kb * KIB:
        raise EnvelopeError(
            EnvelopeCode.TOO_LARGE,
            f"Your bodies may have at most {peer.max_body_kb} KiB.",
            detail="max_body_kb",
        )
    recent = ReceivedEnvelope.objects.filter(peer=peer, created_at__gt=timezone.now() - HOUR)
    if peer.rate_lph is not None and recent[: peer.rate_lph].count() >= peer.rate_lph:
        raise _too_many(f"You may send {peer.rate_lph} envelopes an hour.", "rate_lph")
    if peer.kb_per_hour is not None:
        _check_bytes(peer, size)


def count_file(peer: Peer, size: int) -> None:
    """Count a file that a peer is about to be served; raises EnvelopeError rate_limited.

    Files count for an hour from the first one.
    """
    if peer.kb_per_hour is None:
        return
    if size > peer.kb_per_hour * KIB:
        # It would never be accepted, however long its sender waits.
        raise EnvelopeError(
            EnvelopeCode.TOO_LARGE,
            f"You may send {peer.kb_per_hour} KiB an hour.",
            detail="kb_per_hour",
        )
    with transaction.atomic():
        row = Peer.objects.select_for_update(no_key=True).get(pk=peer.pk)
        _check_bytes(row, size)
        served = _served(row)
        row.served_since = row.served_since if served else timezone.now()
        row.served_bytes = served + size
        row.save(update_fields=["served_since", "served_bytes"])


def streams_of(peer: Peer) -> int:
    """Return the number of streams that a peer may read at a time in one process."""
    limit: int = settings.UAMP_ENVELOPE_STREAMS
    return limit if peer.max_streams is None else min(limit, peer.max_streams)


def _check_bytes(peer: Peer, size: int) -> None:
    if peer.kb_per_hour is None:
        return
    since = timezone.now() - HOUR
    rows = ReceivedEnvelope.objects.filter(peer=peer, created_at__gt=since)
    received = rows.aggregate(sum=Sum("size"))["sum"] or 0
    if received + _served(peer) + size > peer.kb_per_hour * KIB:
        message = f"You may send envelopes and fetch files of {peer.kb_per_hour} KiB an hour."
        raise _too_many(message, "kb_per_hour")


def _served(peer: Peer) -> int:
    since = peer.served_since
    return peer.served_bytes if since is not None and timezone.now() - since < HOUR else 0


def _too_many(message: str, detail: str) -> EnvelopeError:
    return EnvelopeError(
        EnvelopeCode.RATE_LIMITED, message, detail=detail, retry_after=RETRY_SECONDS
    )

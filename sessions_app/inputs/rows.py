"""The rows of inputs that were sent over HTTP, until a turn uses them. Synchronous."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.conf import settings
from django.db import transaction
from django.db.models import Sum

from sessions_app.inputs.pending import too_large, too_many
from sessions_app.models import InboundEvent, PendingInput, Session
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from django.db.models import QuerySet


PRESENTED: Final = "presented_token"
"""The key of a stored input's payment token: its id, or why it was refused; never its secret."""
_UNCOUNTED: Final = frozenset({"timestamp", "session_id", "payment_token", PRESENTED})
"""What may differ when an input is repeated."""


def store_input(
    session_id: str, event_id: str, payload: dict[str, Any], *, size: int, limit: int
) -> bool:
    """Store an input event of `size` bytes sent over HTTP, up to `limit` per session.

    Return False if the event was stored or used by a turn before, even with another `timestamp`.
    Raises RemoteProtocolError: event_id_conflict if the body differs, or too_many_inputs.
    """
    sha256 = _digest(payload)
    with transaction.atomic():
        session = Session.objects.select_for_update(no_key=True).filter(pk=session_id).first()
        digest = _known_digest(session_id, event_id)
        if digest is not None:
            if digest != sha256:
                raise RemoteProtocolError(
                    ErrorCode.EVENT_ID_CONFLICT, "This event_id was used for another event."
                )
            return False
        waiting = PendingInput.objects.filter(session_id=session_id)
        if waiting.count() >= limit:
            raise too_many()
        _check_bytes(waiting, size, settings.UAMP_PENDING_BYTES_PER_CONNECTION)
        if session is not None and session.user_id is not None:
            theirs = PendingInput.objects.filter(session__user_id=session.user_id)
            _check_bytes(theirs, size, settings.UAMP_PENDING_BYTES_PER_USER)
        PendingInput.objects.create(
            session_id=session_id, event_id=event_id, payload=payload, size_bytes=size
        )
    return True


def _known_digest(session_id: str, event_id: str) -> str | None:
    """Return the digest of a known event, whether it is pending or has been used."""
    row = PendingInput.objects.filter(session_id=session_id, event_id=event_id).first()
    if row is not None:
        return _digest(row.payload)
    effects = InboundEvent.objects.filter(session_id=session_id, event_id=event_id)
    return effects.values_list("sha256", flat=True).first()


def _digest(payload: dict[str, Any]) -> str:
    """Return the digest of an input, ignoring its session, timestamp and payment token."""
    content = {name: payload[name] for name in payload.keys() - _UNCOUNTED}
    return hashlib.sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()


def consume_inputs(ids: Sequence[int], *, at: datetime, outcome: dict[str, Any]) -> None:
    """Delete the inputs that a turn uses and record its outcome, so that repeats have no effect.

    Must run in the transaction that writes the turn.
    """
    rows = PendingInput.objects.filter(pk__in=ids)
    InboundEvent.objects.bulk_create(
        [
            InboundEvent(
                session_id=row.session_id,
                event_id=row.event_id,
                sha256=_digest(row.payload),
                outcome=outcome,
                created_at=at,
            )
            for row in rows.order_by("pk")
        ],
        # If the turn's own event has the same id, its row wins.
        ignore_conflicts=True,
    )
    rows.delete()


def _check_bytes(waiting: QuerySet[PendingInput], size: int, limit: int) -> None:
    used = waiting.aggregate(used=Sum("size_bytes"))["used"] or 0
    if used + size > limit:
        raise too_large(limit)


def pending_inputs(session_id: str) -> list[tuple[int, dict[str, Any]]]:
    """Return a session's pending inputs, in order."""
    return list(
        PendingInput.objects.filter(session_id=session_id)
        .order_by("id")
        .values_list("id", "payload")
    )


def discard_inputs(ids: Sequence[int]) -> None:
    """Delete pending inputs; clients may send them again."""
    PendingInput.objects.filter(pk__in=ids).delete()

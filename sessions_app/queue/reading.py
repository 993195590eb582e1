"""Reads of a chat's queue, for sessions and REST."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.utils import timezone

from sessions_app.models import QueuedTurn
from uamp import events as ev

if TYPE_CHECKING:
    from datetime import datetime

SHOWN_CHARS: Final = 300
"""How much of a queued text is sent to the members."""


def queue_of(chat_id: str, *, whole: bool = False) -> ev.QueueUpdated:
    """Return a chat's queue, next message first; texts are shortened unless `whole`."""
    rows = QueuedTurn.objects.filter(chat_id=chat_id).select_related("user").order_by("id")
    return ev.QueueUpdated(
        chat_id=chat_id,
        at=_ms(timezone.now()),
        items=tuple(_item(row, None if whole else SHOWN_CHARS) for row in rows),
    )


def current_queue(chat_id: str) -> ev.QueueUpdated | None:
    """Return a chat's queue, or None if it is empty."""
    queue = queue_of(chat_id)
    return queue if queue.items else None


def _item(row: QueuedTurn, limit: int | None) -> ev.QueueItem:
    return ev.QueueItem(
        id=str(row.pk),
        user_id=str(row.user_id),
        username=row.user.get_username(),
        text=row.text if limit is None or len(row.text) <= limit else f"{row.text[:limit]}…",
        files=row.files,
        status=row.status,
        code=row.code or None,
        reason=row.reason or None,
        client_event_id=row.event_id,
        queued_at=_ms(row.created_at),
    )


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)

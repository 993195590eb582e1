"""The live server processes and workers, and the work in their queues."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models import Min, Q

from sessions_app.models import ProcessBeat, ProcessKind, ToolCall, ToolCallKind, WebhookDelivery
from sessions_app.states import ToolCallState

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from django.db.models import QuerySet


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFigures:
    """A queue: its live workers, the last beat of any, and its waiting work, if rows count it.

    `oldest` is when the oldest waiting row was due. A queue that `is_off` gets no work, by the
    settings.
    """

    name: str
    workers: int
    seen_at: datetime | None
    waiting: int | None
    oldest: datetime | None
    is_off: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Liveness:
    """The live server processes, the last beat of any, the lost processes, and the queues."""

    servers: int
    seen_at: datetime | None
    lost: int
    queues: Sequence[QueueFigures]


def lost_processes(now: datetime) -> Q:
    """Return the condition for processes that stopped renewing their row."""
    return Q(seen_at__lt=now - timedelta(seconds=ProcessBeat.LOST_SECONDS))


def read_liveness(now: datetime, limit: int) -> Liveness:
    """Return the state of processes and queues; at most `limit` waiting rows are counted."""
    since = now - timedelta(seconds=ProcessBeat.LOST_SECONDS)
    beats = list(ProcessBeat.objects.order_by("-seen_at"))
    alive = [row for row in beats if row.seen_at >= since]
    servers = [row for row in alive if row.kind == ProcessKind.SERVER]
    rows: dict[str, tuple[QuerySet[Any], str]] = {
        "tools": (
            ToolCall.objects.filter(
                finished_at__isnull=True, kind=ToolCallKind.LONG, status=ToolCallState.QUEUED
            ),
            "created_at",
        ),
        "webhooks": (
            WebhookDelivery.objects.filter(finished_at__isnull=True, due_at__lte=now),
            "due_at",
        ),
    }
    has_readings = settings.UAMP_LINK_CARDS or settings.UAMP_TRANSCRIPTION_URL
    queues = []
    for queue in settings.CELERY_TASK_QUEUES:
        workers = [row for row in alive if queue.name in row.queues]
        waiting, oldest = None, None
        if queue.name in rows:
            waiting_rows, column = rows[queue.name]
            waiting = waiting_rows.order_by().values("pk")[:limit].count()
            oldest = waiting_rows.order_by().aggregate(first=Min(column))["first"]
        queues.append(
            QueueFigures(
                name=queue.name,
                workers=len(workers),
                seen_at=workers[0].seen_at if workers else None,
                waiting=waiting,
                oldest=oldest,
                is_off=queue.name == "readings" and not has_readings,
            )
        )
    return Liveness(
        servers=len(servers),
        seen_at=servers[0].seen_at if servers else None,
        lost=len(beats) - len(alive),
        queues=queues,
    )

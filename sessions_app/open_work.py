"""The amount of open work, for operators, read only from partial indexes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import Count, Min

from sessions_app.models import PaymentRequest, QueuedTurn, Response, ToolCall, WebhookDelivery
from sessions_app.states import PaymentState

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from django.db.models import QuerySet


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenWork:
    """Rows that have not ended, by state; `oldest` is the creation time of the oldest of a kind.

    The keys of `tool_calls` are (kind, state). Kinds of work without rows are missing from
    `oldest`.
    """

    responses: Mapping[str, int]
    tool_calls: Mapping[tuple[str, str], int]
    queued_turns: Mapping[str, int]
    webhook_deliveries: int
    payment_requests: int
    oldest: Mapping[str, datetime]


def open_work() -> OpenWork:
    """Count the open rows of all processes and workers (synchronous)."""
    responses = Response.objects.filter(finished_at__isnull=True)
    calls = ToolCall.objects.filter(finished_at__isnull=True)
    turns = QueuedTurn.objects.all()
    deliveries = WebhookDelivery.objects.filter(finished_at__isnull=True)
    payments = PaymentRequest.objects.filter(status=PaymentState.WAITING)
    oldest = {
        "responses": _first(responses),
        "tool_calls": _first(calls),
        "queued_turns": _first(turns),
        "webhook_deliveries": _first(deliveries),
        "payment_requests": _first(payments),
    }
    return OpenWork(
        responses=_by(responses, "status"),
        tool_calls={
            (kind, status): count
            for kind, status, count in calls.order_by()
            .values_list("kind", "status")
            .annotate(count=Count("pk"))
        },
        queued_turns=_by(turns, "status"),
        webhook_deliveries=deliveries.count(),
        payment_requests=payments.count(),
        oldest={kind: moment for kind, moment in oldest.items() if moment is not None},
    )


def _by(rows: QuerySet[Any], field: str) -> dict[str, int]:
    return dict(rows.order_by().values_list(field).annotate(count=Count("pk")))


def _first(rows: QuerySet[Any]) -> datetime | None:
    oldest: datetime | None = rows.order_by().aggregate(first=Min("created_at"))["first"]
    return oldest

"""Counts the past hours of recent days, and adds up the current ones (UTC).

A count reads the answers requested in an hour, through the index of their list, and the hour's
transfers. An hour is by_hour SETTLE_SECONDS after it ends, and again once any answers that were
still running have ended. Every process may count, but only one writes each hour.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db import IntegrityError, transaction
from django.db.models import Count, FloatField, Min, Sum
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

from payments_app.reporting.charges import charges_between, first_transfer_at
from sessions_app.models import AnswerHour, ChargeHour, CountedHour, Response

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DAYS: Final = 14
HOUR: Final = timedelta(hours=1)
SETTLE_SECONDS: Final = 120
"""A transaction that started within an hour may commit this much later."""
HOURS_AT_ONCE: Final = 6
LIVE_HOURS: Final = 1
"""How many hours before the current one may still be pending_hours on a running server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HourFigures:
    """The answers and charges of an hour, to be saved or only displayed."""

    answers: Sequence[AnswerHour]
    charges: Sequence[ChargeHour]


def count_hours(now: datetime, *, limit: int = HOURS_AT_ONCE) -> int:
    """Count up to `limit` hours of the last DAYS days, newest first; return how many."""
    last = hour_of(now - timedelta(seconds=SETTLE_SECONDS)) - HOUR
    first = _first_hour(now)
    by_hour = dict(CountedHour.objects.filter(hour__gte=first).values_list("hour", "is_complete"))
    hours = int((last - first) / HOUR) + 1
    pending_hours = [
        hour for hour in (last - HOUR * number for number in range(hours)) if not by_hour.get(hour)
    ]
    # Never by_hour hours come before hours whose answers are still running.
    pending_hours.sort(key=lambda hour: hour in by_hour)
    return sum(_count(hour, is_known=hour in by_hour) for hour in pending_hours[:limit])


def hour_of(moment: datetime) -> datetime:
    """Return the start of the hour that contains a moment."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def _first_day(now: datetime) -> datetime:
    return hour_of(now).replace(hour=0) - timedelta(days=DAYS - 1)


def _first_hour(now: datetime) -> datetime:
    """Return the first hour of the last DAYS days that has an answer or a transfer.

    A new server has no earlier hours to count.
    """
    since = _first_day(now)
    first_answer: datetime | None = Response.objects.filter(created_at__gte=since).aggregate(
        first=Min("created_at")
    )["first"]
    return hour_of(min(filter(None, (first_answer, first_transfer_at(since))), default=now))


def figures_of(start: datetime, end: datetime) -> HourFigures:
    """Return the totals of a time span, as rows of its first hour, from the original rows."""
    responses = Response.objects.filter(created_at__gte=start, created_at__lt=end)
    rows = (
        responses.filter(finished_at__isnull=False)
        .values("agent_id", "session__transport", "status", code=KT("error__code"))
        .annotate(
            answers=Count("pk"),
            read=Sum(Cast(KT("usage__input_tokens"), FloatField())),
            wrote=Sum(Cast(KT("usage__output_tokens"), FloatField())),
        )
        .order_by()
    )
    return HourFigures(
        answers=_added([_answer_hour(start, row) for row in rows]),
        charges=[
            ChargeHour(
                hour=start,
                agent_id=charge.agent_id,
                protocol=charge.protocol,
                asset=charge.amount.asset,
                amount=charge.amount.amount,
            )
            for charge in charges_between(start, end)
        ],
    )


def _answer_hour(hour: datetime, row: Mapping[str, Any]) -> AnswerHour:
    return AnswerHour(
        hour=hour,
        agent_id=row["agent_id"],
        transport=row["session__transport"] or "",
        status=row["status"],
        cause=str(row["code"] or "")[:60] if row["status"] == "failed" else "",
        answers=row["answers"],
        input_tokens=int(row["read"] or 0),
        output_tokens=int(row["wrote"] or 0),
    )


def _added(rows: list[AnswerHour]) -> list[AnswerHour]:
    """Merge rows with equal keys: stopped answers may have errors that are not their cause."""
    joined: dict[tuple[str, ...], AnswerHour] = {}
    for row in rows:
        key = (row.agent_id, row.transport, row.status, row.cause)
        if other := joined.get(key):
            other.answers += row.answers
            other.input_tokens += row.input_tokens
            other.output_tokens += row.output_tokens
        else:
            joined[key] = row
    return list(joined.values())


def _count(hour: datetime, *, is_known: bool) -> bool:
    """Write the figures of an hour unless another process does; return whether this call did."""
    end = hour + HOUR
    runs_on = Response.objects.filter(
        finished_at__isnull=True, created_at__gte=hour, created_at__lt=end
    ).exists()
    if is_known and runs_on:
        return False
    figures = figures_of(hour, end)
    try:
        with transaction.atomic():
            if is_known:
                rows = CountedHour.objects.filter(hour=hour, is_complete=False)
                if not rows.update(is_complete=True):
                    return False
                AnswerHour.objects.filter(hour=hour).delete()
                ChargeHour.objects.filter(hour=hour).delete()
            else:
                CountedHour.objects.create(hour=hour, is_complete=not runs_on)
            AnswerHour.objects.bulk_create(figures.answers)
            ChargeHour.objects.bulk_create(figures.charges)
    except IntegrityError:
        # Another process has by_hour it in the meantime.
        return False
    return True


def recent_figures(now: datetime) -> tuple[HourFigures, int]:
    """Return the figures of the last DAYS days, and how many of their hours are pending_hours.

    The current and most recent hours are added up from the answers themselves.
    """
    since = _first_day(now)
    by_hour = set(CountedHour.objects.filter(hour__gte=since).values_list("hour", flat=True))
    answers = list(AnswerHour.objects.filter(hour__gte=since))
    charges = list(ChargeHour.objects.filter(hour__gte=since))
    missing = 0
    hour, first = hour_of(now), _first_hour(now)
    for number in range(int((hour - first) / HOUR) + 1):
        at = hour - HOUR * number
        if at in by_hour:
            continue
        if number <= LIVE_HOURS:
            live = figures_of(at, at + HOUR)
            answers += live.answers
            charges += live.charges
        else:
            missing += 1
    return HourFigures(answers=answers, charges=charges), missing

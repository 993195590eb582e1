"""Charges per day and agent in a range of days, from counted hours and the current ones (UTC)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Sum
from django.db.models.functions import TruncDate

from payments_app.money import DEFAULT_ASSET, Money
from payments_app.reporting.charges import charges_between, has_transfers
from sessions_app.models import ChargeHour, CountedHour
from sessions_app.reporting.figures import Series, agent_names, series_of
from sessions_app.reporting.hours import HOUR, LIVE_HOURS, hour_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

RANGE_DAYS: Final = 366
RUNS: Final = 50
"""The most runs of uncounted hours that are searched for transfers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargedDay:
    """An agent's charges of a day, minus refunds; `agent_id` is empty if no agent was paid."""

    day: date
    agent_id: str
    agent: str
    amount: Money


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargedDays:
    """The charges of a range; those of `missing_hours` are not counted yet or never were."""

    first: date
    last: date
    rows: Sequence[ChargedDay]
    missing_hours: int

    def series(self) -> Series:
        """Return the same figures by day and agent's name."""
        days = (self.last - self.first).days + 1
        places = [_start(self.first + timedelta(days=number)) for number in range(days)]
        return series_of(places, ((_start(r.day), r.agent, r.amount.amount) for r in self.rows))


def charged_days(first: date, last: date, now: datetime) -> ChargedDays:
    """Return the charges from a day to another, inclusive; at most RANGE_DAYS are read."""
    last = min(last, first + timedelta(days=RANGE_DAYS - 1))
    start, end = _start(first), _start(last) + timedelta(days=1)
    counted = set(
        CountedHour.objects.filter(hour__gte=start, hour__lt=end).values_list("hour", flat=True)
    )
    sums: defaultdict[tuple[date, str], int] = defaultdict(int)
    for row in _counted_charges(start, end):
        sums[row["day"], row["agent_id"]] += row["total"]
    hours = [hour for hour in _hours(start, min(end, hour_of(now) + HOUR)) if hour not in counted]
    live = hour_of(now) - HOUR * LIVE_HOURS
    for hour in hours:
        for charge in charges_between(hour, hour + HOUR) if hour >= live else ():
            if charge.amount.asset == DEFAULT_ASSET:
                sums[hour.date(), charge.agent_id] += charge.amount.amount
    names = agent_names({agent_id for _, agent_id in sums})
    rows = [
        ChargedDay(
            day=day,
            agent_id=agent_id,
            agent=names.get(agent_id) or "no agent",
            amount=Money.capped(units, DEFAULT_ASSET),
        )
        for (day, agent_id), units in sums.items()
        if units
    ]
    rows.sort(key=lambda row: (row.day, row.agent, row.agent_id))
    return ChargedDays(
        first=first,
        last=last,
        rows=rows,
        missing_hours=_missing([hour for hour in hours if hour < live]),
    )


def _counted_charges(start: datetime, end: datetime) -> Any:
    return (
        ChargeHour.objects.filter(hour__gte=start, hour__lt=end, asset=DEFAULT_ASSET)
        .annotate(day=TruncDate("hour", tzinfo=UTC))
        .values("day", "agent_id")
        .annotate(total=Sum("amount"))
        .order_by()
    )


def _hours(start: datetime, end: datetime) -> Iterator[datetime]:
    while start < end:
        yield start
        start += HOUR


def _missing(hours: Sequence[datetime]) -> int:
    """Count the uncounted hours in a run that has transfers."""
    runs: list[list[datetime]] = []
    for hour in hours:
        if runs and runs[-1][-1] + HOUR == hour:
            runs[-1].append(hour)
        else:
            runs.append([hour])
    return sum(
        len(run)
        for number, run in enumerate(runs)
        if number >= RUNS or has_transfers(run[0], run[-1] + HOUR)
    )


def _start(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)

"""Calendar periods of limits and budgets, in UTC, by the database's clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from payments_app.ledger import sql

PERIODS: Final = ("day", "week", "month")


def period_of(period: str, now: datetime) -> tuple[datetime, datetime]:
    """Return the start and end of the day, week (from Monday) or month of a moment."""
    day = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    match period:
        case "day":
            return day, day + timedelta(days=1)
        case "week":
            monday = day - timedelta(days=day.weekday())
            return monday, monday + timedelta(days=7)
        case "month":
            first = day.replace(day=1)
            # 31 days after the first of a month is always in the next month.
            return first, (first + timedelta(days=31)).replace(day=1)
    raise ValueError(f"A limit must be per day, week or month, not per {period[:20]!r}.")


def database_now() -> datetime:
    """Return the database's time."""
    return sql.moment(sql.rows(f"SELECT {sql.now_sql()}")[0][0])

"""Figures of the whole ledger for operators: totals, revenue, and the largest charges.

Requests do not compute anything: the totals are cached for OVERVIEW_SECONDS, for all callers. Sums
over the transfers of DAYS days are computed once in TOP_SECONDS; those by agent and protocol are
counted hourly elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Final

from django.core.cache import cache

from payments_app.ledger.sums import Total
from payments_app.models import Account, AccountKind, Entry
from payments_app.money import DEFAULT_ASSET, Money
from payments_app.selectors import usage_by

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from payments_app.selectors import Dimension, Spent

OVERVIEW_SECONDS: Final = 60
TOP_SECONDS: Final = 3600
DAYS: Final = 14
TOP_ROWS: Final = 8
TOP_DIMENSIONS: Final[tuple[Dimension, ...]] = ("user", "person", "chat")


@dataclass(frozen=True, slots=True, kw_only=True)
class KindTotal:
    """The balance of all accounts of one kind, and how much of it is held."""

    kind: str
    posted: Money
    held: Money


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The totals of the ledger at `at`, in one asset; `days` are the last DAYS days.

    `most` are the people (by id) and chats charged most in that time, at most TOP_SECONDS old.
    """

    at: datetime
    totals: Sequence[KindTotal]
    held: Money
    revenue_today: Money
    days: Sequence[date]
    most: Mapping[Dimension, Sequence[Spent]]


def overview(asset: str = DEFAULT_ASSET) -> Overview:
    """Return the totals of the ledger, at most OVERVIEW_SECONDS old."""
    key = f"payments:overview:{asset}"
    cached: Overview | None = cache.get(key)
    if cached is None:
        cached = _read(asset)
        cache.set(key, cached, OVERVIEW_SECONDS)
    return cached


def _read(asset: str) -> Overview:
    now = datetime.now(UTC)
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    first = today - timedelta(days=DAYS - 1)
    totals = [
        KindTotal(
            kind=str(AccountKind(row["kind"]).label),
            posted=Money.capped(row["posted_sum"], asset),
            held=Money.capped(row["held_sum"], asset),
        )
        for row in Account.objects.filter(asset=asset)
        .values("kind")
        .annotate(posted_sum=Total("posted"), held_sum=Total("held"))
        .order_by("kind")
    ]
    earned = Entry.objects.filter(
        account__kind=AccountKind.PLATFORM,
        account__asset=asset,
        transfer__created_at__gte=today,
    ).aggregate(total=Total("amount", default=0))["total"]
    return Overview(
        at=now,
        totals=totals,
        held=Money.capped(sum(total.held.amount for total in totals), asset),
        revenue_today=Money.capped(earned, asset),
        days=[(first + timedelta(days=number)).date() for number in range(DAYS)],
        most=_top_spent(asset, first),
    )


def _top_spent(asset: str, since: datetime) -> Mapping[Dimension, Sequence[Spent]]:
    key = f"payments:most:{asset}"
    cached: Mapping[Dimension, Sequence[Spent]] | None = cache.get(key)
    if cached is None:
        cached = {
            name: usage_by(name, since=since, asset=asset, limit=TOP_ROWS)
            for name in TOP_DIMENSIONS
        }
        cache.set(key, cached, TOP_SECONDS)
    return cached

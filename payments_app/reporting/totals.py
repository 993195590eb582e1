"""What the whole ledger shows to operators: totals, revenue, cost by day and agent.

These are sums over many rows. Nothing here is asked for with a request: `overview` is kept
for OVERVIEW_SECONDS, for all callers.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Final

from django.core.cache import cache
from django.db.models import F, Sum
from django.db.models.functions import TruncDate

from payments_app.models import Account, AccountKind, Entry
from payments_app.money import DEFAULT_ASSET, Money
from payments_app.selectors import usage_by

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from payments_app.selectors import Dimension, Spent

OVERVIEW_SECONDS: Final = 60
DAYS: Final = 14
MOST: Final = 8
MOST_OF: Final[tuple[Dimension, ...]] = ("user", "chat", "protocol")


@dataclass(frozen=True, slots=True, kw_only=True)
class KindTotal:
    """What all accounts of one kind have, and what of it is held."""

    kind: str
    posted: Money
    held: Money


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDay:
    """What was charged for one agent on one day, in UTC, less refunds."""

    day: date
    agent_id: str
    amount: Money


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The totals of the ledger at `at`, in one asset; `charged` is of the last DAYS days.

    `most` are those who were charged most in that time: people by their ids, chats, protocols.
    """

    at: datetime
    totals: Sequence[KindTotal]
    held: Money
    revenue_today: Money
    days: Sequence[date]
    charged: Sequence[AgentDay]
    most: Mapping[Dimension, Sequence[Spent]]


def overview(asset: str = DEFAULT_ASSET) -> Overview:
    """Return the totals of the ledger, at most OVERVIEW_SECONDS old."""
    key = f"payments:overview:{asset}"
    kept: Overview | None = cache.get(key)
    if kept is None:
        kept = _read(asset)
        cache.set(key, kept, OVERVIEW_SECONDS)
    return kept


def _read(asset: str) -> Overview:
    now = datetime.now(UTC)
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    first = today - timedelta(days=DAYS - 1)
    totals = [
        KindTotal(
            kind=str(AccountKind(row["kind"]).label),
            posted=Money(row["posted_sum"], asset),
            held=Money(row["held_sum"], asset),
        )
        for row in Account.objects.filter(asset=asset)
        .values("kind")
        .annotate(posted_sum=Sum("posted"), held_sum=Sum("held"))
        .order_by("kind")
    ]
    earned = Entry.objects.filter(
        account__kind=AccountKind.PLATFORM,
        account__asset=asset,
        transfer__created_at__gte=today,
    ).aggregate(total=Sum("amount", default=0))["total"]
    return Overview(
        at=now,
        totals=totals,
        held=sum((total.held for total in totals), Money.zero(asset)),
        revenue_today=Money(earned, asset),
        days=[(first + timedelta(days=number)).date() for number in range(DAYS)],
        charged=_charged(asset, first),
        most={name: usage_by(name, since=first, asset=asset, limit=MOST) for name in MOST_OF},
    )


def _charged(asset: str, since: datetime) -> list[AgentDay]:
    rows = (
        Entry.objects.filter(
            transfer__hold__isnull=False,
            account_id=F("transfer__hold__account_id"),
            transfer__asset=asset,
            transfer__created_at__gte=since,
        )
        .annotate(day=TruncDate("transfer__created_at"))
        .values("day", "transfer__agent_id")
        .annotate(total=Sum("amount"))
        .order_by("day", "transfer__agent_id")
    )
    return [
        AgentDay(
            day=row["day"], agent_id=row["transfer__agent_id"], amount=Money(-row["total"], asset)
        )
        for row in rows
    ]

"""What a person may spend in a day, week or month, and what they let an agent take unasked.

The law: a limit is judged by the ledger's own rows, what was captured in the period and what is
held now, of all accounts of the person, their tokens' too. Periods are the calendar's, in UTC, by
the database's clock. A limit is judged in the transaction that reserves, while the person's account
is locked: two answers that begin at once do not both take the last of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from django.db import transaction
from django.db.models import F, Q, Sum

from payments_app import posting
from payments_app.accounts import account_of_user
from payments_app.models import Approval, Entry, Hold, SpendingLimit
from payments_app.money import Money

if TYPE_CHECKING:
    from collections.abc import Sequence

PERIODS: Final = ("day", "week", "month")


class LimitReached(Exception):
    """More than a limit allows; `left` is what it still does, `resets_at` when it begins anew."""

    def __init__(self, period: str, left: Money, resets_at: datetime | None) -> None:
        again = f", again from {resets_at:%Y-%m-%d %H:%M} UTC" if resets_at else ""
        super().__init__(f"The limit per {period} is reached. left: {left} {left.asset}{again}.")
        self.period = period
        self.left = left
        self.resets_at = resets_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit of a person; `agent_id` is empty where it is on everything."""

    period: str
    agent_id: str
    amount: Money


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitState:
    """A limit, and how much of it is used in the period that runs."""

    limit: Limit
    spent: Money
    held: Money
    resets_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    """What a person lets an agent take for each answer."""

    agent_id: str
    up_to: Money
    created_at: datetime


# --- Judge ---


def check(user_id: int, agent_id: str, amount: Money | str) -> None:
    """Raise LimitReached when a person's limits do not allow this.

    `amount` is what is about to be held; the name of an asset means that it is held already. Call
    it in the transaction that reserves: before, when another account than the person's own pays
    (accounts are locked in the order of their ids), else before or after.
    """
    asset = amount if isinstance(amount, str) else amount.asset
    more = Money.zero(asset) if isinstance(amount, str) else amount
    rows = SpendingLimit.objects.filter(user_id=user_id, asset=asset)
    found = list(rows.filter(agent_id__in={"", agent_id}))
    if not found:
        return
    # Whatever account pays: this one is where a person's answers wait for each other.
    posting.lock_accounts([account_of_user(user_id, asset).id])
    now = _now()
    for row in sorted(found, key=lambda row: (PERIODS.index(row.period), row.agent_id)):
        state = _state(row, now)
        left = state.limit.amount - state.spent - state.held
        if more > left:
            raise LimitReached(row.period, max(left, Money.zero(asset)), state.resets_at)


def limits_of(user_id: int) -> list[LimitState]:
    """Return a person's limits and how far each is used."""
    now = _now()
    rows = SpendingLimit.objects.filter(user_id=user_id)
    ordered = sorted(rows, key=lambda row: (row.agent_id, PERIODS.index(row.period), row.asset))
    return [_state(row, now) for row in ordered]


def set_limits(user_id: int, limits: Sequence[Limit]) -> None:
    """Put these limits in the place of a person's; ValueError for one twice or a bad period."""
    names = [(limit.period, limit.agent_id, limit.amount.asset) for limit in limits]
    if len(set(names)) != len(names):
        raise ValueError("A limit is set once for each period, agent and asset.")
    rows = [
        SpendingLimit(
            user_id=user_id,
            period=SpendingLimit.Period(limit.period),
            agent_id=limit.agent_id,
            asset=limit.amount.asset,
            amount=limit.amount.amount,
        )
        for limit in limits
    ]
    with transaction.atomic():
        # Two who set them at once: the second one's are what stays.
        posting.lock_accounts([account_of_user(user_id).id])
        SpendingLimit.objects.filter(user_id=user_id).delete()
        SpendingLimit.objects.bulk_create(rows)


def _state(row: SpendingLimit, now: datetime) -> LimitState:
    begins, ends = period_of(row.period, now)
    by_agent = {"agent_id": row.agent_id} if row.agent_id else {}
    mine = Q(account__owner_id=row.user_id, account__asset=row.asset)
    spent = Entry.objects.filter(
        mine,
        transfer__hold__isnull=False,
        account_id=F("transfer__hold__account_id"),
        transfer__created_at__gte=begins,
        **{f"transfer__{name}": value for name, value in by_agent.items()},
    ).aggregate(total=Sum("amount", default=0))["total"]
    held = Hold.objects.filter(mine, state=Hold.State.ACTIVE, **by_agent).aggregate(
        total=Sum(F("amount") - F("captured"), default=0)
    )["total"]
    return LimitState(
        limit=Limit(period=row.period, agent_id=row.agent_id, amount=Money(row.amount, row.asset)),
        spent=Money(-spent, row.asset),
        held=Money(held, row.asset),
        resets_at=ends,
    )


def period_of(period: str, now: datetime) -> tuple[datetime, datetime]:
    """Return the beginning and the end of the day, week (from Monday) or month of a moment."""
    day = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    match period:
        case "day":
            return day, day + timedelta(days=1)
        case "week":
            monday = day - timedelta(days=day.weekday())
            return monday, monday + timedelta(days=7)
        case "month":
            first = day.replace(day=1)
            # 31 days after the first of a month is in the next one.
            return first, (first + timedelta(days=31)).replace(day=1)
    raise ValueError(f"A limit is per day, week or month, not per {period[:20]!r}.")


def _now() -> datetime:
    return posting.moment(posting.rows(f"SELECT {posting.now_sql()}")[0][0])


# --- Approve ---


def approved_up_to(user_id: int, agent_id: str) -> Money | None:
    """Return what an agent may take for an answer without asking the person, or None."""
    row = Approval.objects.filter(user_id=user_id, agent_id=agent_id).first()
    return None if row is None else Money(row.up_to, row.asset)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a person said beforehand: what an agent may take unasked, and whether limits are set."""

    up_to: Money | None
    has_limits: bool


def standing(user_id: int, agent_id: str) -> Standing:
    """Return what a person said beforehand of an agent, in one question."""
    found = posting.rows(
        "SELECT a.up_to, a.asset, EXISTS (SELECT 1 FROM payments_app_spendinglimit"
        " WHERE user_id = %s) FROM (SELECT 1) one LEFT JOIN payments_app_approval a"
        " ON a.user_id = %s AND a.agent_id = %s",
        [user_id, user_id, agent_id],
    )
    up_to, asset, has_limits = found[0]
    return Standing(
        up_to=None if up_to is None else Money(up_to, asset), has_limits=bool(has_limits)
    )


def approve(user_id: int, agent_id: str, up_to: Money) -> None:
    """Let an agent take up to an amount for each answer; replaces what was allowed before."""
    posting.positive(up_to)
    Approval.objects.update_or_create(
        user_id=user_id,
        agent_id=agent_id,
        defaults={"up_to": up_to.amount, "asset": up_to.asset},
    )


def withdraw(user_id: int, agent_id: str) -> bool:
    """Ask the person again from now on; return whether there was an approval."""
    deleted, _ = Approval.objects.filter(user_id=user_id, agent_id=agent_id).delete()
    return deleted > 0


def approvals_of(user_id: int) -> list[Approved]:
    """Return what a person lets agents take, by agent."""
    return [
        Approved(
            agent_id=row.agent_id, up_to=Money(row.up_to, row.asset), created_at=row.created_at
        )
        for row in Approval.objects.filter(user_id=user_id).order_by("agent_id")
    ]

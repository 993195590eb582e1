"""What a person may spend in a day, week or month, and what they let an agent take unasked.

A limit is judged by the ledger's own rows, what was captured in the period and what is
held now, of all accounts of the person, their tokens' too. Periods are the calendar's, in UTC, by
the database's clock. A limit is judged in the transaction that reserves, while the person's account
is locked together with those that pay: two answers that begin at once do not both take the last of
it, and do not wait for each other in a circle.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from django.db import transaction
from django.db.models import F, Q, Sum

from agents_app.sponsorships import BudgetPeriod, budgets_of
from payments_app.ledger import holds, sql
from payments_app.ledger.accounts import account_of_user
from payments_app.ledger.outcomes import Authorization, HoldOutcome, LimitReached
from payments_app.models import Approval, Entry, Hold, PaymentToken, SpendingLimit
from payments_app.money import DEFAULT_ASSET, Money

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from payments_app.ledger.captures import Refusal

__all__ = [
    "PERIODS",
    "SPONSOR",
    "Approved",
    "BudgetState",
    "Guard",
    "Limit",
    "LimitReached",
    "LimitState",
    "Standing",
    "approvals_of",
    "approve",
    "authorize",
    "authorize_many",
    "budget_states",
    "check",
    "extend",
    "limits_of",
    "period_of",
    "set_limits",
    "standing",
    "withdraw",
]

PERIODS: Final = ("day", "week", "month")
SPONSOR: Final = "sponsor"
"""The purpose of a hold that an agent's owner pays by their sponsorship of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit of a person; `agent_id` is empty where it is on everything.

    With a `token_id` it is on what that token spends, and those that were made of it.
    """

    period: str
    agent_id: str
    amount: Money
    token_id: str = ""


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


# --- Reserve ---


def authorize(asked: Authorization) -> HoldOutcome:
    """Reserve as the one of a list; raises LimitReached and the refusals of `authorize_many`."""
    with transaction.atomic():
        answer = authorize_many([asked])[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def authorize_many(asked: Sequence[Authorization]) -> list[HoldOutcome | Refusal]:
    """Reserve for many within the limits of `limits_of`; see `holds.authorize_many`.

    LimitReached is a refusal like the others. A limit counts what those before in the list took.
    """
    limited = any(one.limits_of is not None or one.purpose == SPONSOR for one in asked)
    return holds.authorize_many(asked, Guard() if limited else None)


def extend(
    *,
    key: str,
    hold_id: str,
    amount: Money,
    limits_of: int | None,
    expires_in: float = 900.0,
    scope: str = "",
) -> HoldOutcome:
    """Reserve more for a hold within a person's limits; raises what `holds.extend` raises too."""
    return holds.extend(
        key=key,
        hold_id=hold_id,
        amount=amount,
        expires_in=expires_in,
        scope=scope,
        limits_of=limits_of,
        guard=None if limits_of is None else Guard(),
    )


class Guard:
    """The limits of all who are concerned by a list of holds, judged while they are locked."""

    def __init__(self) -> None:
        self._rows: list[SpendingLimit] = []
        # The token of an account, and those that it was made of.
        self._tokens: dict[int, set[str]] = {}
        self._left: dict[int, Money] = {}
        self._now: datetime | None = None
        self._budgets = _Budgets()

    def accounts(self, asked: Collection[Authorization]) -> set[int]:
        """Return the accounts where people's answers wait for each other, whatever account pays."""
        users = {one.limits_of for one in asked if one.limits_of is not None}
        rows = SpendingLimit.objects.filter(user_id__in=users)
        self._rows = sorted(rows, key=lambda row: (PERIODS.index(row.period), row.agent_id))
        if any(row.token_id for row in self._rows):
            self._tokens = _tokens_behind({one.account_id for one in asked})
        concerned = {(row.user_id, row.asset) for one in asked for row in self._of(one)}
        # In one order: two lists that make the same ones do not wait for each other in a circle.
        return {account_of_user(*one).id for one in sorted(concerned)}

    def allow(self, asked: Authorization) -> None:
        """Raise LimitReached when a limit does not allow this."""
        if self._now is None:
            self._now = _now()
        self._budgets.allow(asked, self._now)
        for row in self._of(asked):
            if row.pk not in self._left:
                state = _state(row, self._now)
                self._left[row.pk] = state.limit.amount - state.spent - state.held
            left = self._left[row.pk]
            if asked.amount > left:
                _, resets_at = period_of(row.period, self._now)
                raise LimitReached(row.period, max(left, Money.zero(row.asset)), resets_at)

    def took(self, asked: Authorization) -> None:
        """Count what is reserved: the rows that say so are written after the last one is judged."""
        self._budgets.took(asked)
        for row in self._of(asked):
            self._left[row.pk] -= asked.amount

    def _of(self, asked: Authorization) -> list[SpendingLimit]:
        return [
            row
            for row in self._rows
            if row.user_id == asked.limits_of
            and row.asset == asked.amount.asset
            and row.agent_id in {"", asked.agent_id}
            and (row.token_id is None or row.token_id in self._tokens.get(asked.account_id, ()))
        ]


class _Budgets:
    """What sponsors allow their agents' answers, judged while the sponsors' accounts are locked.

    A budget counts what was paid and is held as a sponsor, not what the same person asks for.
    """

    def __init__(self) -> None:
        self._left: dict[tuple[str, str], tuple[Money, datetime | None]] = {}
        self._known: set[str] = set()

    def allow(self, asked: Authorization, now: datetime) -> None:
        if asked.purpose != SPONSOR:
            return
        if asked.agent_id not in self._known:
            self._known.add(asked.agent_id)
            for state in _budget_states(asked.agent_id, asked.account_id, asked.amount.asset, now):
                left = state.amount - state.spent - state.held
                self._left[asked.agent_id, state.period] = (left, state.resets_at)
        found = {p: left for (agent, p), left in self._left.items() if agent == asked.agent_id}
        if not found:
            raise LimitReached(SPONSOR, Money.zero(asked.amount.asset), None)
        for period, (left, resets_at) in found.items():
            if asked.amount > left:
                raise LimitReached(period, max(left, Money.zero(left.asset)), resets_at)

    def took(self, asked: Authorization) -> None:
        if asked.purpose != SPONSOR:
            return
        for name, (left, resets_at) in self._left.items():
            if name[0] == asked.agent_id:
                self._left[name] = (left - asked.amount, resets_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetState:
    """A sponsor's budget of an agent, and how much of it is used."""

    period: str
    amount: Money
    spent: Money
    held: Money
    resets_at: datetime | None


def budget_states(agent_id: str, user_id: int, asset: str = DEFAULT_ASSET) -> list[BudgetState]:
    """Return the budgets that a person gave their agent, and how far each is used."""
    return _budget_states(agent_id, account_of_user(user_id, asset).id, asset, _now())


def _budget_states(agent_id: str, account_id: int, asset: str, now: datetime) -> list[BudgetState]:
    states = []
    mine = {"account_id": account_id, "account__asset": asset}
    held = Hold.objects.filter(
        **mine, state=Hold.State.ACTIVE, purpose=SPONSOR, agent_id=agent_id
    ).aggregate(total=Sum(F("amount") - F("captured"), default=0))["total"]
    for period, amount in budgets_of(agent_id).items():
        begins, ends = (None, None) if period == BudgetPeriod.TOTAL else period_of(period, now)
        paid = Entry.objects.filter(
            **mine,
            transfer__hold__purpose=SPONSOR,
            transfer__hold__account_id=account_id,
            transfer__agent_id=agent_id,
        )
        if begins is not None:
            paid = paid.filter(transfer__created_at__gte=begins)
        spent = paid.aggregate(total=Sum("amount", default=0))["total"]
        states.append(
            BudgetState(
                period=period,
                amount=Money.parse(amount, asset),
                spent=Money(-spent, asset),
                held=Money(held, asset),
                resets_at=ends,
            )
        )
    return states


def check(
    user_id: int, agent_id: str, amount: Money, *, account_id: int = 0, purpose: str = ""
) -> None:
    """Raise LimitReached when a person's limits do not allow this as things are; takes nothing.

    `account_id` is which one would pay, where that is a token's. What is reserved is judged by
    `authorize`, with the accounts that pay.
    """
    guard = Guard()
    asked = Authorization(
        key="",
        account_id=account_id,
        amount=amount,
        purpose=purpose,
        agent_id=agent_id,
        limits_of=user_id,
    )
    sql.lock_accounts(guard.accounts([asked]))
    guard.allow(asked)


# --- Limits ---


def limits_of(user_id: int) -> list[LimitState]:
    """Return a person's limits and how far each is used; tokens that ended have none."""
    now = _now()
    ended = Q(token__revoked_at__isnull=False) | Q(token__closed_at__isnull=False)
    rows = SpendingLimit.objects.filter(user_id=user_id).exclude(ended)
    ordered = sorted(
        rows,
        key=lambda row: (row.token_id or "", row.agent_id, PERIODS.index(row.period), row.asset),
    )
    return [_state(row, now) for row in ordered]


def set_limits(user_id: int, limits: Sequence[Limit]) -> None:
    """Put these limits in the place of a person's; ValueError for one twice or a bad period."""
    names = [
        (limit.period, limit.token_id)
        if limit.token_id
        else (limit.period, limit.agent_id, limit.amount.asset)
        for limit in limits
    ]
    if len(set(names)) != len(names):
        raise ValueError("A limit is set once for each period, agent, token and asset.")
    rows = [
        SpendingLimit(
            user_id=user_id,
            period=SpendingLimit.Period(limit.period),
            agent_id=limit.agent_id,
            token_id=limit.token_id or None,
            asset=limit.amount.asset,
            amount=limit.amount.amount,
        )
        for limit in limits
    ]
    with transaction.atomic():
        # Two who set them at once: the second one's are what stays.
        sql.lock_accounts([account_of_user(user_id).id])
        SpendingLimit.objects.filter(user_id=user_id).delete()
        SpendingLimit.objects.bulk_create(rows)


def _state(row: SpendingLimit, now: datetime) -> LimitState:
    begins, ends = period_of(row.period, now)
    by_agent = {"agent_id": row.agent_id} if row.agent_id else {}
    mine = Q(account__owner_id=row.user_id, account__asset=row.asset)
    if row.token_id is not None:
        mine &= Q(account_id__in=_accounts_of(row.token_id))
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
        limit=Limit(
            period=row.period,
            agent_id=row.agent_id,
            amount=Money(row.amount, row.asset),
            token_id=row.token_id or "",
        ),
        spent=Money(-spent, row.asset),
        held=Money(held, row.asset),
        resets_at=ends,
    )


def _accounts_of(token_id: str) -> list[int]:
    """Return the accounts of a token and of all that were made of it."""
    accounts: list[int] = []
    which = Q(pk=token_id)
    while found := list(PaymentToken.objects.filter(which).values_list("pk", "account_id")):
        accounts += [account_id for _, account_id in found]
        which = Q(parent_id__in=[pk for pk, _ in found])
    return accounts


def _tokens_behind(account_ids: Collection[int]) -> dict[int, set[str]]:
    """Return, for those of the accounts that are tokens', the token and those it was made of."""
    rows = PaymentToken.objects.filter(account_id__in=account_ids)
    behind = {}
    # As deep as a token is passed on.
    for row in rows.select_related("parent__parent__parent__parent__parent"):
        token: PaymentToken | None = row
        behind[row.account_id] = found = set[str]()
        while token is not None:
            found.add(token.pk)
            token = token.parent
    return behind


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
    return sql.moment(sql.rows(f"SELECT {sql.now_sql()}")[0][0])


# --- Approve ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a person said beforehand: what an agent may take unasked, and whether limits are set."""

    up_to: Money | None
    has_limits: bool


def standing(asked: Collection[tuple[int, str]]) -> dict[tuple[int, str], Standing]:
    """Return what people said beforehand of agents, for each (user_id, agent_id)."""
    if not asked:
        return {}
    users = sorted({user_id for user_id, _ in asked})
    agents = sorted({agent_id for _, agent_id in asked})
    of_users, of_agents = (", ".join(["%s"] * len(names)) for names in (users, agents))
    found = sql.rows(
        "SELECT user_id, agent_id, up_to, asset FROM payments_app_approval"  # noqa: S608 marks only
        f" WHERE user_id IN ({of_users}) AND agent_id IN ({of_agents})"
        " UNION ALL SELECT DISTINCT user_id, '', 0, '' FROM payments_app_spendinglimit"
        f" WHERE user_id IN ({of_users})",
        [*users, *agents, *users],
    )
    up_to = {(user, agent): Money(amount, asset) for user, agent, amount, asset in found if agent}
    limited = {user for user, agent, _, _ in found if not agent}
    return {one: Standing(up_to=up_to.get(one), has_limits=one[0] in limited) for one in asked}


def approve(user_id: int, agent_id: str, up_to: Money) -> None:
    """Let an agent take up to an amount for each answer; replaces what was allowed before."""
    sql.positive(up_to)
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

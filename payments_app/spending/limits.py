"""Limits on what a person spends in a day, week or month.

A limit is checked against the ledger's own rows: what was captured in the period and what is held
now, over all accounts of the person, their tokens' included. Holds are checked in `authorizations`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import F, Q

from payments_app.ledger import balances
from payments_app.ledger.accounts import account_of_user
from payments_app.ledger.sums import Total
from payments_app.models import Entry, Hold, HoldState, PaymentToken, SpendingLimit, SpendingPeriod
from payments_app.money import Money
from payments_app.spending.periods import PERIODS, database_now, period_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A person's limit; `agent_id` is empty if it covers all agents.

    With a `token_id` it covers spending by that token and its descendants; with a `credential` what
    is requested with it, no matter who pays.
    """

    period: str
    agent_id: str
    amount: Money
    token_id: str = ""
    credential: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitState:
    """A limit, and how much of it is used in the current period."""

    limit: Limit
    spent: Money
    held: Money
    resets_at: datetime


# --- Limits ---


def limits_of(user_id: int) -> list[LimitState]:
    """Return a person's limits and how much of each is used; ended tokens have none.

    Budgets of credentials are not included (`credential_budgets`).
    """
    now = database_now()
    ended = Q(token__revoked_at__isnull=False) | Q(token__closed_at__isnull=False)
    rows = SpendingLimit.objects.filter(user_id=user_id, credential="").exclude(ended)
    ordered = sorted(
        rows,
        key=lambda row: (row.token_id or "", row.agent_id, PERIODS.index(row.period), row.asset),
    )
    return [state_of(row, now) for row in ordered]


def set_limits(user_id: int, limits: Sequence[Limit]) -> None:
    """Replace a person's limits; raise ValueError for a duplicate or an unknown period.

    Budgets of credentials stay.
    """
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
            period=SpendingPeriod(limit.period),
            agent_id=limit.agent_id,
            token_id=limit.token_id or None,
            asset=limit.amount.asset,
            amount=limit.amount.amount,
        )
        for limit in limits
    ]
    with transaction.atomic():
        # Of two concurrent calls, the later one wins.
        balances.lock_accounts([account_of_user(user_id).id])
        SpendingLimit.objects.filter(user_id=user_id, credential="").delete()
        SpendingLimit.objects.bulk_create(rows)


def state_of(row: SpendingLimit, now: datetime) -> LimitState:
    """Return a limit and its use in the period that contains a moment."""
    begins, ends = period_of(row.period, now)
    narrowed = {"agent_id": row.agent_id} if row.agent_id else {}
    mine = Q(account__asset=row.asset)
    if not row.credential:
        mine &= Q(account__owner_id=row.user_id)
    if row.token_id is not None:
        mine &= Q(account_id__in=_accounts_of(row.token_id))
    by_credential = {"credential": row.credential} if row.credential else {}
    spent = Entry.objects.filter(
        mine,
        transfer__hold__isnull=False,
        account_id=F("transfer__hold__account_id"),
        transfer__created_at__gte=begins,
        **{f"transfer__{name}": value for name, value in narrowed.items()},
        **{f"transfer__hold__{name}": value for name, value in by_credential.items()},
    ).aggregate(total=Total("amount", default=0))["total"]
    held = Hold.objects.filter(mine, state=HoldState.ACTIVE, **narrowed, **by_credential).aggregate(
        total=Total(F("amount") - F("captured"), default=0)
    )["total"]
    return LimitState(
        limit=Limit(
            period=row.period,
            agent_id=row.agent_id,
            amount=Money(row.amount, row.asset),
            token_id=row.token_id or "",
            credential=row.credential,
        ),
        spent=Money.capped(-spent, row.asset),
        held=Money.capped(held, row.asset),
        resets_at=ends,
    )


def _accounts_of(token_id: str) -> list[int]:
    """Return the accounts of a token and all its descendants."""
    accounts: list[int] = []
    which = Q(pk=token_id)
    while rows := list(PaymentToken.objects.filter(which).values_list("pk", "account_id")):
        accounts += [account_id for _, account_id in rows]
        which = Q(parent_id__in=[pk for pk, _ in rows])
    return accounts

"""Budgets of sponsors: how much an agent's owner pays for the agent's answers.

A budget counts captures and holds with the purpose `sponsor`, never what the same person pays for
their own requests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.db.models import F

from agents_app.models import BudgetPeriod
from agents_app.sponsorships import budgets_of
from payments_app.ledger.accounts import account_of_user
from payments_app.ledger.outcomes import Authorization, LimitReached
from payments_app.ledger.sums import Total
from payments_app.models import Entry, Hold, HoldState
from payments_app.money import DEFAULT_ASSET, Money
from payments_app.spending.periods import database_now, period_of

if TYPE_CHECKING:
    from datetime import datetime

SPONSOR: Final = "sponsor"
"""The purpose of a hold that an agent's owner pays as its sponsor."""


class BudgetGuard:
    """The budgets of sponsors, checked while the sponsors' accounts are locked.

    A budget counts what was paid or is held as a sponsor, not the same person's own requests.
    """

    def __init__(self) -> None:
        self._remaining: dict[tuple[str, str], tuple[Money, datetime | None]] = {}
        self._read_agents: set[str] = set()

    def allow(self, request: Authorization, now: datetime) -> None:
        """Raise LimitReached if a budget does not allow this."""
        if request.purpose != SPONSOR:
            return
        if request.agent_id not in self._read_agents:
            self._read_agents.add(request.agent_id)
            for state in states_of_account(
                request.agent_id, request.account_id, request.amount.asset, now
            ):
                remaining = state.amount - state.spent - state.held
                self._remaining[request.agent_id, state.period] = (remaining, state.resets_at)
        budgets = {
            p: remaining
            for (agent, p), remaining in self._remaining.items()
            if agent == request.agent_id
        }
        if not budgets:
            raise LimitReached(SPONSOR, Money.zero(request.amount.asset), None)
        for period, (remaining, resets_at) in budgets.items():
            if request.amount > remaining:
                raise LimitReached(period, max(remaining, Money.zero(remaining.asset)), resets_at)

    def took(self, request: Authorization) -> None:
        """Count a reservation, for the requests after it in the list."""
        if request.purpose != SPONSOR:
            return
        for name, (remaining, resets_at) in self._remaining.items():
            if name[0] == request.agent_id:
                self._remaining[name] = (remaining - request.amount, resets_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetState:
    """A sponsor's budget for an agent, and how much of it is used."""

    period: str
    amount: Money
    spent: Money
    held: Money
    resets_at: datetime | None


def budget_states(agent_id: str, user_id: int, asset: str = DEFAULT_ASSET) -> list[BudgetState]:
    """Return the budgets that a person gave their agent, and how much of each is used."""
    return states_of_account(agent_id, account_of_user(user_id, asset).id, asset, database_now())


def states_of_account(
    agent_id: str, account_id: int, asset: str, now: datetime
) -> list[BudgetState]:
    """Return the budgets that an account gave an agent, and how much of each is used."""
    states = []
    mine = {"account_id": account_id, "account__asset": asset}
    held = Hold.objects.filter(
        **mine, state=HoldState.ACTIVE, purpose=SPONSOR, agent_id=agent_id
    ).aggregate(total=Total(F("amount") - F("captured"), default=0))["total"]
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
        spent = paid.aggregate(total=Total("amount", default=0))["total"]
        states.append(
            BudgetState(
                period=period,
                amount=Money.parse(amount, asset),
                spent=Money.capped(-spent, asset),
                held=Money.capped(held, asset),
                resets_at=ends,
            )
        )
    return states

"""Budgets of chats and of agents in them, checked when money is reserved. Synchronous.

A budget counts the charges of its period and the reservations of running answers. The chat's lock
serialises these checks, so that two answers starting at once cannot both use the last of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chat_app.log.entries import lock_chats
from chat_app.members.agents.budgets import ChatBudget, budgets_of
from payments_app.money import Money
from payments_app.spending import chat_totals
from uamp.amounts import format_amount

if TYPE_CHECKING:
    from collections.abc import Iterable


class BudgetReached(Exception):
    """An answer would exceed the rest of its chat's budget; the message is for people."""

    def __init__(self, budget: ChatBudget, remaining: Money) -> None:
        whose = f"of {budget.agent} in this chat" if budget.agent_id else "of this chat"
        when = "for today" if budget.period == "day" else "in total"
        amount = format_amount(str(Money.parse(budget.amount, remaining.asset)), remaining.asset)
        has = format_amount(str(remaining), remaining.asset)
        super().__init__(
            f"The budget {whose} is too low: {has} of {amount} {when} is left."
            " An owner of the chat can raise it."
        )
        self.reason = "budget" if budget.agent_id else "chat_budget"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatBudgetState:
    """A budget, with its used and reserved amounts."""

    budget: ChatBudget
    amount: Money
    spent: Money
    held: Money

    @property
    def remaining(self) -> Money:
        """The rest of the budget, never below zero."""
        return max(self.amount - self.spent - self.held, Money.zero(self.amount.asset))


def state_of(budget: ChatBudget, asset: str) -> ChatBudgetState:
    """Return the state of a budget: the amounts used and reserved."""
    since = chat_totals.day_begins() if budget.period == "day" else None
    where = (budget.chat_id, budget.agent_id, asset)
    return ChatBudgetState(
        budget=budget,
        amount=Money.parse(budget.amount, asset),
        spent=chat_totals.charged(*where, since=since),
        held=chat_totals.reserved(*where),
    )


def lock_if_limited(chat_ids: Iterable[str]) -> None:
    """Lock the chats that have a budget. Call before taking any other lock of a reservation."""
    ChatBudgetGuard(chat_ids).lock()


class ChatBudgetGuard:
    """The budgets of several reservations' chats, checked one reservation after the other."""

    def __init__(self, chat_ids: Iterable[str]) -> None:
        self._budgets = budgets_of({chat_id for chat_id in chat_ids if chat_id})
        self._remaining: dict[tuple[ChatBudget, str], Money] = {}

    def lock(self) -> None:
        """Lock the chats that have a budget; must run inside a transaction."""
        if self._budgets:
            lock_chats({budget.chat_id for budget in self._budgets})

    def allow(self, chat_id: str, agent_id: str, amount: Money) -> None:
        """Raise BudgetReached if a budget has less than the amount left."""
        for budget in self._of(chat_id, agent_id):
            key = (budget, amount.asset)
            if key not in self._remaining:
                self._remaining[key] = state_of(budget, amount.asset).remaining
            if amount > self._remaining[key]:
                raise BudgetReached(budget, self._remaining[key])

    def took(self, chat_id: str, agent_id: str, amount: Money) -> None:
        """Count an amount that will be reserved, for later checks."""
        for budget in self._of(chat_id, agent_id):
            self._remaining[budget, amount.asset] -= amount

    def _of(self, chat_id: str, agent_id: str) -> list[ChatBudget]:
        whose = {(chat_id, ""), (chat_id, agent_id)}
        return [budget for budget in self._budgets if (budget.chat_id, budget.agent_id) in whose]


def check(chat_id: str, agent_id: str, amount: Money) -> None:
    """Raise BudgetReached if the budgets do not currently allow an amount."""
    ChatBudgetGuard([chat_id]).allow(chat_id, agent_id, amount)

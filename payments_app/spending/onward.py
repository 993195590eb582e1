"""Budgets for paying remote agents on other servers, and what was taken from them.

The money on the other server belongs to the agent's owner. Here an account holds their budget: they
fill it, and each payment is reserved and captured from it, so that two answers never take the same
part. Its counterpart is a mirror of its own, so that no number of budgets adds up in one account.
Rows of a payment have an id derived from the response's, because the response's own id is used to
find what the answer costs here.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from django.db import transaction

from agents_app.models import Agent, AgentKind
from agents_app.remote.onward import CURRENCY, OnwardTotals, OverBudget
from agents_app.sponsorships import NotTheOwner
from payments_app.ledger import captures, holds
from payments_app.ledger.accounts import ensure_account, external_account
from payments_app.ledger.outcomes import Authorization, InsufficientFunds, Split
from payments_app.ledger.plans import Capture
from payments_app.ledger.sums import Total
from payments_app.ledger.transfers import transfer
from payments_app.models import Account, AccountKind, Entry, Hold, HoldState, Transfer
from payments_app.money import DEFAULT_ASSET, InvalidAmount, Money

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from payments_app.ledger.outcomes import AccountRef

ONWARD: Final = "onward"
"""The purpose of these holds, the kind of their transfers, and the first part of their accounts."""
MAX_BUDGET: Final = "100000"
"""The largest budget of an agent. Owners enter it freely: it is no money that they have here."""
HELD_SECONDS: Final = 86_400.0
"""How long a payment stays held if its process died before counting it."""


class NotRemote(ValueError):
    """Agents that run here or dial in are not paid on other servers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnwardBudget:
    """The budget for paying a remote agent: what is left, reserved and paid."""

    left: Money
    held: Money
    spent: Money


def onward_id(response_id: str) -> str:
    """Return the ledger's id of the onward payments for a response."""
    return f"onw_{response_id.removeprefix('resp_')}"[:40]


@transaction.atomic
def set_budget(agent_id: str, by: User, amount: Money) -> OnwardBudget:
    """Set the amount that a person's remote agent may be paid from now on.

    Raises NotTheOwner and NotRemote, and InvalidAmount above MAX_BUDGET.
    """
    limit = Money.parse(MAX_BUDGET, amount.asset)
    if amount > limit:
        raise InvalidAmount(f"A budget may be at most {limit} {limit.asset}.")
    agent = Agent.objects.select_for_update(no_key=True).filter(pk=agent_id, owner=by).first()
    if agent is None:
        raise NotTheOwner(agent_id)
    if agent.kind != AgentKind.REMOTE:
        raise NotRemote(agent_id)
    account = _account(agent_id, by.pk, amount.asset)
    mirror = _mirror(account.code, account.asset)
    more = amount - _state(account).left
    if more.amount > 0:
        _move(mirror, account, more)
    elif more.amount < 0:
        _move(account, mirror, Money(-more.amount, more.asset))
    return _state(account)


def budget_of(agent_id: str, user_id: int) -> OnwardBudget:
    """Return the budget that a person gave a remote agent of theirs."""
    return _state(_account(agent_id, user_id, DEFAULT_ASSET))


class BudgetLedger:
    """The payment counter of `agents_app.remote.onward`; synchronous, each call a transaction."""

    def reserve(self, agent_id: str, response_id: str, amount: str, currency: str) -> str:
        """Hold an amount of the agent's budget and return the hold's id; raises OverBudget."""
        owner_id = Agent.objects.filter(pk=agent_id).values_list("owner_id", flat=True).first()
        if owner_id is None:
            raise OverBudget("its agent has no owner who could set a budget")
        try:
            money = Money.parse(amount, currency)
            account = _account(agent_id, owner_id, money.asset)
        except InvalidAmount as error:
            raise OverBudget(str(error)) from error
        request = Authorization(
            key=f"{ONWARD}:{uuid.uuid4().hex}",
            account_id=account.id,
            amount=money,
            purpose=ONWARD,
            response_id=onward_id(response_id),
            expires_in=HELD_SECONDS,
        )
        answer = holds.authorize_many([request])[0]
        if isinstance(answer, InsufficientFunds):
            text = f"the budget has {answer.available}, and {money} {money.asset} is asked for"
            raise OverBudget(text)
        if isinstance(answer, Exception):
            raise OverBudget(str(answer))
        return answer.hold_id

    def payments_of(self, response_id: str) -> OnwardTotals:
        """Return the sums that a response has reserved and paid so far, in CURRENCY."""
        onward = onward_id(response_id)
        open_holds = Hold.objects.filter(
            response_id=onward, purpose=ONWARD, state=HoldState.ACTIVE, account__asset=CURRENCY
        )
        # The holds of a response are captured and released together, the oldest first.
        rows = list(open_holds.order_by("created_at", "pk"))
        payments = Transfer.objects.filter(response_id=onward, kind=ONWARD, asset=CURRENCY)
        paid = payments.aggregate(total=Total("amount", default=0))["total"]
        return OnwardTotals(
            hold_id=rows[0].pk if rows else "",
            held=Decimal(str(Money(sum(row.amount for row in rows), CURRENCY))),
            paid=Decimal(str(Money.capped(paid, CURRENCY))),
        )

    def settle(self, response_id: str, hold_id: str, amount: str, currency: str) -> None:
        """Take an amount of what is held for a response, and release the rest.

        `hold_id` is its first open hold, which makes the key of a repeat.
        """
        money = Money.parse(amount, currency)
        code = Hold.objects.values_list("account__code", flat=True).get(pk=hold_id)
        answer = captures.capture_many(
            [
                Capture(
                    key=f"{ONWARD}:{hold_id}",
                    response_id=onward_id(response_id),
                    amount=money if money.amount else None,
                    splits=[Split(_mirror(code, currency).id, money)] if money.amount else (),
                    kind=ONWARD if money.amount else "void",
                    release=True,
                )
            ]
        )[0]
        if isinstance(answer, Exception):
            raise answer


def _account(agent_id: str, owner_id: int, asset: str) -> AccountRef:
    return ensure_account(
        code=f"{ONWARD}:{agent_id}:{owner_id}:{asset}",
        kind=AccountKind.EXTERNAL,
        asset=asset,
        agent_id=agent_id,
    )


def _mirror(code: str, asset: str) -> AccountRef:
    """Return the counterpart of the budget with this code."""
    return external_account(code.removesuffix(f":{asset}"), asset)


def _move(debit: AccountRef, credit: AccountRef, amount: Money) -> None:
    key = f"{ONWARD}:{uuid.uuid4().hex}"
    transfer(key=key, debit=debit.id, credit=credit.id, amount=amount, kind="onward_budget")


def _state(account: AccountRef) -> OnwardBudget:
    row = Account.objects.get(pk=account.id)
    entries = Entry.objects.filter(account=row, transfer__kind=ONWARD)
    spent = entries.aggregate(total=Total("amount", default=0))["total"]
    return OnwardBudget(
        left=Money(row.posted - row.held, account.asset),
        held=Money(row.held, account.asset),
        spent=Money.capped(-spent, account.asset),
    )

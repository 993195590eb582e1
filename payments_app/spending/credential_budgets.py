"""Budgets of credentials: the most that what programs request with one may cost in a period.

A budget is a spending limit of its person that counts what was reserved and charged under the name
of the credential, from any account: the person's, a token's, a pool's or another person's. It is
checked together with the payer's limits (`authorizations`), so that two answers that start at once
cannot both take the last of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from payments_app.ledger import balances
from payments_app.ledger.accounts import account_of_user
from payments_app.models import SpendingLimit, SpendingPeriod
from payments_app.spending.limits import state_of
from payments_app.spending.periods import database_now

if TYPE_CHECKING:
    from collections.abc import Collection

    from payments_app.money import Money
    from payments_app.spending.limits import LimitState


def set_budget(user_id: int, credential: str, *, period: str, amount: Money) -> None:
    """Give a person's credential a budget, replacing any earlier one.

    Raises ValueError for a period that is not a SpendingPeriod, and for a negative amount.
    """
    if amount.amount < 0:
        raise ValueError("A budget must not be negative.")
    with transaction.atomic():
        # Concurrent reservations are checked against either the old budget or the new one.
        balances.lock_accounts([account_of_user(user_id, amount.asset).id])
        SpendingLimit.objects.update_or_create(
            user_id=user_id,
            credential=credential,
            asset=amount.asset,
            defaults={"period": SpendingPeriod(period), "amount": amount.amount},
        )


def limited(credentials: Collection[str]) -> set[str]:
    """Return those of the credentials that have a budget."""
    names = [credential for credential in credentials if credential]
    rows = SpendingLimit.objects.filter(credential__in=names) if names else ()
    return {row.credential for row in rows}


def budgets_of(credentials: Collection[str]) -> dict[str, LimitState]:
    """Return the budgets of the credentials that have one, and how much of each is used."""
    now = database_now()
    rows = SpendingLimit.objects.filter(
        credential__in=[credential for credential in credentials if credential]
    )
    return {row.credential: state_of(row, now) for row in rows}

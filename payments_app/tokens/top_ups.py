"""Topping up a payment token: the same token with a higher balance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from payments_app.ledger.accounts import account_of_user
from payments_app.ledger.transfers import transfer
from payments_app.models import PaymentToken
from payments_app.money import Money
from payments_app.tokens.issuance import issued
from payments_app.tokens.lookup import by_id, owned

if TYPE_CHECKING:
    from payments_app.ledger.outcomes import TransferOutcome


def top_up(*, key: str, token_id: str, user_id: int, amount: Money) -> TransferOutcome:
    """Move an amount from the owner's account into a token.

    Raises UnknownToken for another person's token, TokenRefused for an ended one, and the errors of
    transfer.
    """
    with transaction.atomic():
        owned(token_id, user_id)
        PaymentToken.objects.select_for_update(no_key=True).get(pk=token_id)
        token = by_id(token_id)
        return transfer(
            key=key,
            scope=f"token:top_up:{token_id}",
            debit=account_of_user(user_id, amount.asset).id,
            credit=token.account_id,
            amount=amount,
            kind="token",
            by=user_id,
        )


def reissued(token_id: str, user_id: int) -> str:
    """Return a person's token as a new JWT with its current balance; "" for an opaque one."""
    row = owned(token_id, user_id)
    return (
        issued(row, Money.zero(row.account.asset), replayed=True).token if row.form == "jwt" else ""
    )

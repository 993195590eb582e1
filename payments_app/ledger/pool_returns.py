"""The return of what is left in the pool of a deleted chat."""

from __future__ import annotations

from typing import Final

from django.db import transaction

from payments_app.ledger.sums import Total
from payments_app.ledger.transfers import refund
from payments_app.models import Account, AccountKind, Transfer
from payments_app.money import Money

SCOPE: Final = "returned pools"
REASON: Final = "The chat was deleted."


def return_pool(chat_id: str) -> None:
    """Refund what is left in a chat's pool to those who deposited it, the latest deposit first.

    Nothing may be reserved from the pool afterwards. Money without a depositor, such as an
    operator's adjustment, stays. Raises LedgerFrozen.
    """
    with transaction.atomic():
        for pool in Account.objects.filter(
            kind=AccountKind.POOL, code__startswith=f"pool:{chat_id}:"
        ):
            _return(pool, chat_id)


def _return(pool: Account, chat_id: str) -> None:
    available = pool.posted - pool.held
    deposits = Transfer.objects.filter(
        kind="pool", chat_id=chat_id, asset=pool.asset, reverses__isnull=True
    )
    refunded = deposits.annotate(refunded=Total("reversals__amount", default=0))
    for deposit in refunded.order_by("-created_at", "-pk"):
        amount = min(available, deposit.amount - deposit.refunded)
        if amount <= 0:
            continue
        refund(
            key=deposit.pk,
            scope=SCOPE,
            transfer_id=deposit.pk,
            by=None,
            reason=REASON,
            amount=Money(amount, pool.asset),
        )
        available -= amount

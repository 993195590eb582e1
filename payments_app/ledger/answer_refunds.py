"""Refunds of a whole answer, which may have been charged by several transfers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from payments_app.ledger.outcomes import NotRefundable, UnknownTransfer
from payments_app.ledger.transfers import refund
from payments_app.models import Transfer

if TYPE_CHECKING:
    from payments_app.ledger.outcomes import TransferOutcome


def refund_answer(
    *, key: str, response_id: str, by: int | None, reason: str, scope: str = ""
) -> tuple[TransferOutcome, ...]:
    """Return whatever is left of each of an answer's charges; all of them, or none.

    Charges without a rest are left out. Raises UnknownTransfer if nothing was charged,
    NotRefundable if nothing is left, and the errors of `refund`.
    """
    charges = Transfer.objects.exclude(response_id="").filter(
        response_id=response_id, hold__isnull=False, reverses__isnull=True
    )
    outcomes = []
    with transaction.atomic():
        ids = list(charges.order_by("pk").values_list("pk", flat=True))
        if not ids:
            raise UnknownTransfer("Nothing was charged for this answer.")
        for transfer_id in ids:
            try:
                with transaction.atomic():
                    outcome = refund(
                        key=f"{key}:{transfer_id}",
                        scope=scope,
                        transfer_id=transfer_id,
                        by=by,
                        reason=reason,
                    )
            except NotRefundable:
                continue  # it was refunded before
            outcomes.append(outcome)
        if not outcomes:
            raise NotRefundable("left: 0")
    return tuple(outcomes)

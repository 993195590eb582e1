"""Adjustments of balances by operators: small ones at once, larger ones by two people.

An operator may adjust by up to UAMP_ADJUSTMENT_ALONE in 24 hours, all accounts together. An
adjustment beyond that waits until a second operator approves it, and none is larger than
UAMP_ADJUSTMENT_MAX.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from payments_app import services
from payments_app.ledger.outcomes import IdempotencyConflict, LedgerError, NeedsSecond, OwnMoney
from payments_app.ledger.own_money import refuse_own
from payments_app.models import AdjustmentRequest, AdjustmentState
from payments_app.money import InvalidAmount, Money

if TYPE_CHECKING:
    from payments_app.ledger.outcomes import TransferOutcome

SCOPE = "adjustment"


class AdjustmentDecided(LedgerError):
    """The adjustment was already made or refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjusted:
    """The result of `adjust`: a transfer, or a request that waits for a second operator.

    `replayed` if the key had done it before.
    """

    transfer: TransferOutcome | None = None
    request: AdjustmentRequest | None = None
    replayed: bool = False


def needs_second(amount: Money, by: int) -> bool:
    """Return whether an adjustment by this signed amount needs a second operator."""
    return services.exceeds_solo_limit(amount, by, _solo_limit(amount.asset))


def adjust(*, key: str, account: int, amount: Money, by: int, reason: str, scope: str) -> Adjusted:
    """Change a balance by a signed amount, or ask a second operator to.

    Raises InvalidAmount above UAMP_ADJUSTMENT_MAX, and the errors of `services.adjust`.
    """
    limit = Money.parse(settings.UAMP_ADJUSTMENT_MAX, amount.asset)
    if abs(amount.amount) > limit.amount:
        raise InvalidAmount(f"An adjustment may be at most {limit} {amount.asset}.")
    if not reason.strip():
        raise ValueError("An adjustment needs a reason.")
    if not AdjustmentRequest.objects.filter(key=key).exists():
        with suppress(NeedsSecond):
            done = services.adjust(
                key=key,
                scope=scope,
                account=account,
                amount=amount,
                by=by,
                reason=reason,
                solo_limit=_solo_limit(amount.asset),
            )
            return Adjusted(transfer=done, replayed=done.replayed)
    refuse_own([account], by)
    row, is_new = AdjustmentRequest.objects.get_or_create(
        key=key,
        defaults={
            "account_id": account,
            "amount": amount.amount,
            "asset": amount.asset,
            "reason": reason[:500],
            "asked_by_id": by,
        },
    )
    if (row.account_id, row.amount, row.asked_by_id) != (account, amount.amount, by):
        raise IdempotencyConflict(f"The key {key!r} was used for another adjustment.")
    return Adjusted(request=row, replayed=not is_new)


def approve(request_id: int, *, by: int, reason: str) -> TransferOutcome:
    """Make an adjustment that another operator asked for.

    Raises OwnMoney, AdjustmentDecided, ValueError without a reason, and the errors of
    `services.adjust`.
    """
    with transaction.atomic():
        row = _open(request_id, reason)
        if row.asked_by_id in {None, by}:
            raise OwnMoney("You asked for this adjustment: another operator has to decide.")
        done = services.adjust(
            key=f"adjustment:{row.pk}",
            scope=SCOPE,
            account=row.account_id,
            amount=Money(row.amount, row.asset),
            by=by,
            reason=row.reason,
        )
        _end(row, AdjustmentState.MADE, by, reason, done.transfer_id)
        return done


def refuse(request_id: int, *, by: int, reason: str) -> None:
    """Refuse an adjustment; the operator who asked for it may withdraw it this way.

    Raises OwnMoney, AdjustmentDecided, ValueError without a reason.
    """
    with transaction.atomic():
        row = _open(request_id, reason)
        refuse_own([row.account_id], by)
        _end(row, AdjustmentState.REFUSED, by, reason)


def _solo_limit(asset: str) -> Money:
    return Money.parse(settings.UAMP_ADJUSTMENT_ALONE, asset)


def _open(request_id: int, reason: str) -> AdjustmentRequest:
    if not reason.strip():
        raise ValueError("A decision needs a reason.")
    row = AdjustmentRequest.objects.select_for_update(no_key=True).get(pk=request_id)
    if row.state != AdjustmentState.OPEN:
        raise AdjustmentDecided(f"The adjustment is already {row.get_state_display().lower()}.")
    return row


def _end(row: AdjustmentRequest, state: str, by: int, reason: str, transfer_id: str = "") -> None:
    AdjustmentRequest.objects.filter(pk=row.pk).update(
        state=state,
        decided_by=by,
        decided_at=Now(),
        decision=reason[:500],
        transfer_id=transfer_id,
    )

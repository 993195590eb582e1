"""The events that the payer of an answer receives (UAMP §3.3, §7.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.conf import settings

from payments_app.money import Money
from payments_app.tokens import lookup as token_lookup
from uamp import PaymentErrorCode
from uamp import events as ev

if TYPE_CHECKING:
    from datetime import datetime

    from sessions_app.models import PaymentRequest

WAITING_FOR_PAYMENT: Final = "waiting_for_payment"
"""The stage of an answer whose payer has been asked to pay."""
LOW_BALANCE: Final = 5
"""Warn when the balance covers fewer answers than this."""


def required(row: PaymentRequest, agent: str) -> ev.PaymentRequired:
    """Return the event that requests a payment (UAMP §7.2)."""
    schemes = [ev.PaymentScheme(scheme="token", network=token_lookup.NETWORK)]
    if row.payer_id is not None:
        schemes.append(ev.PaymentScheme(scheme="balance", network=token_lookup.NETWORK))
    extra = {"action": row.action} if row.action else None
    return ev.PaymentRequired(
        response_id=row.response_id,
        requirements=ev.PaymentRequirements(
            amount=str(Money(row.amount, row.asset)),
            currency=row.asset,
            schemes=tuple(schemes),
            expires_at=int(row.deadline.timestamp()),
            reason=row.reason,
            ap2=settings.UAMP_AP2 or None,
            extra={**(extra or {}), "agent": agent},
        ),
        extra=extra,
    )


def waiting_for(row: PaymentRequest) -> ev.Progress:
    """Return the event for a chat's other members while an answer waits for its payer.

    Clients in another language than English write their own sentence from `user_id`. Reads the
    payer's row.
    """
    payer = "" if row.payer is None else row.payer.get_username()
    return ev.Progress(
        target="response",
        target_id=row.response_id,
        stage=WAITING_FOR_PAYMENT,
        message=f"Waiting for {payer}'s payment",
        response_id=row.response_id,
        user_id=None if row.payer_id is None else str(row.payer_id),
    )


def payment_taken(response_id: str) -> ev.Progress:
    """Return the event for a chat's other members once the answer is paid."""
    return ev.Progress(
        target="response", target_id=response_id, stage="in_progress", response_id=response_id
    )


def revoked(response_id: str, agent: str, amount: Money) -> ev.PaymentError:
    """Return the error for a payer whose approval of the agent has ended (UAMP §7.2)."""
    return ev.PaymentError(
        code=PaymentErrorCode.MANDATE_REVOKED,
        message=f"{agent} may no longer charge without asking. Pay to continue the answer.",
        balance_required=str(amount),
        can_retry=True,
        response_id=response_id,
    )


def withdrawn(response_id: str) -> ev.PaymentError:
    """Return the error that withdraws a payment request whose work has ended (UAMP §7.2)."""
    return ev.PaymentError(
        code=PaymentErrorCode.PAYMENT_FAILED,
        message="The work has ended. Nothing is due.",
        can_retry=False,
        response_id=response_id,
    )


def accepted(response_id: str, payment_id: str, balance: Money | None) -> ev.PaymentAccepted:
    """Return the event of an accepted payment (UAMP §7.2)."""
    return ev.PaymentAccepted(
        payment_id=payment_id,
        response_id=response_id,
        balance_remaining=None if balance is None else str(balance),
    )


def balance_event(
    response_id: str, balance: Money, cost: Money, *, ends_at: datetime | None = None
) -> ev.PaymentBalance:
    """Return the balance after an answer, in both formats (UAMP §7.2, transports).

    `ends_at` is the expiry of the token that paid.
    """
    lasts = balance.amount // cost.amount if cost.amount > 0 else None
    return ev.PaymentBalance(
        balance=str(balance),
        currency=balance.asset,
        low_balance_warning=lasts is not None and lasts < LOW_BALANCE,
        estimated_remaining=lasts,
        expires_at=None if ends_at is None else int(ends_at.timestamp()),
        balance_remaining=str(balance),
        threshold=str(cost * LOW_BALANCE),
        response_id=response_id,
    )

"""Payment events, both ways (UAMP §5.15, §7.2).

One class per wire type; a field without a default is required on the wire.
"""

from typing import Any

import msgspec

from uamp.events.base import Event
from uamp.types.bounds import Time


class PaymentScheme(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A payment method (UAMP §7.2)."""

    scheme: str
    network: str | None = None
    address: str | None = None
    min_amount: str | None = None
    max_amount: str | None = None
    extra: dict[str, Any] | None = None


class PaymentRequirements(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The payment due: a decimal string; ``expires_at`` is Unix seconds (UAMP §7.2)."""

    amount: str
    currency: str
    schemes: tuple[PaymentScheme, ...]
    expires_at: Time | None = None
    reason: str | None = None
    ap2: dict[str, Any] | None = None
    extra: dict[str, Any] | None = None


class PaymentRequired(Event, frozen=True, kw_only=True, tag="payment.required"):
    """A response cannot continue until it is paid (UAMP §7.2).

    ``extra`` with the action ``topup`` means that the response pauses and continues once paid; it
    is sent here and in ``requirements``.
    """

    response_id: str | None = None
    requirements: PaymentRequirements
    extra: dict[str, Any] | None = None


class PaymentAccepted(Event, frozen=True, kw_only=True, tag="payment.accepted"):
    """The payment was accepted; sent once, before the first delta (UAMP §3.3)."""

    payment_id: str | None = None
    response_id: str | None = None
    balance_remaining: str | None = None
    expires_at: Time | None = None


class PaymentBalance(Event, frozen=True, kw_only=True, tag="payment.balance"):
    """The remaining balance, a decimal string (UAMP §7.2).

    ``balance_remaining`` and ``threshold`` are the transports' specification's names for the
    balance and for the amount below which ``low_balance_warning`` is true.
    """

    balance: str
    currency: str
    low_balance_warning: bool | None = None
    estimated_remaining: Time | None = None
    expires_at: Time | None = None
    balance_remaining: str | None = None
    threshold: str | None = None
    response_id: str | None = None


class PaymentError(Event, frozen=True, kw_only=True, tag="payment.error"):
    """The payment failed, with a code from §7.2 (UAMP §7.2)."""

    code: str
    message: str
    balance_required: str | None = None
    balance_current: str | None = None
    can_retry: bool | None = None
    response_id: str | None = None


class Payment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A payment token or proof; ``amount`` is a decimal string (UAMP §5.15).

    ``network`` and ``currency`` default to those of ``payment.required``; any others are refused.
    """

    scheme: str
    network: str | None = None
    token: str | None = None
    amount: str | None = None
    currency: str | None = None
    proof: Any = None
    ap2_credential: Any = None


class PaymentSubmit(Event, frozen=True, kw_only=True, tag="payment.submit"):
    """The answer to ``payment.required`` (UAMP §5.15)."""

    payment: Payment
    response_id: str | None = None

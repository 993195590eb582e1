"""Top-ups by Stripe: a Checkout Session, and its signed webhook (requirements/stripe.txt).

A request is one Checkout Session, whose idempotency key is the request's id. The webhook's
signature is verified over the received bytes, and its contents are compared with the request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import stripe
from django.conf import settings

from payments_app.money import InvalidAmount, Money
from payments_app.top_ups.provider import ForeignHook, ProviderFailed, TopUpReport, TopUpStart

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stripe._base_address import BaseAddresses

CENT: Final = 10_000_000
"""A cent in the ledger's smallest units."""
SMALLEST_CENTS: Final = 50
PAID: Final = {"checkout.session.completed", "checkout.session.async_payment_succeeded"}
OVER: Final = {"checkout.session.async_payment_failed", "checkout.session.expired"}


class StripeProvider:
    """Cards and whatever else Stripe's Checkout accepts, in dollars."""

    name = "stripe"
    label = "Pay by card"

    def currencies(self) -> tuple[str, ...]:
        """Return dollars only."""
        return ("USD",)

    def check(self, amount: Money) -> None:
        """Accept whole cents, at least fifty."""
        if amount.amount % CENT or amount.amount < SMALLEST_CENTS * CENT:
            raise InvalidAmount("An amount must be in whole cents and at least 0.50.")

    def start(self, request_id: str, amount: Money) -> TopUpStart:
        """Create the Checkout Session."""
        try:
            session = self._client().v1.checkout.sessions.create(
                {
                    "mode": "payment",
                    "client_reference_id": request_id,
                    "line_items": [
                        {
                            "quantity": 1,
                            "price_data": {
                                "currency": "usd",
                                "unit_amount": amount.amount // CENT,
                                "product_data": {"name": "Credit"},
                            },
                        }
                    ],
                    "success_url": f"{settings.UAMP_ISSUER}/?topup={request_id}",
                    "cancel_url": f"{settings.UAMP_ISSUER}/?topup=cancelled",
                },
                {"idempotency_key": request_id},
            )
        except stripe.StripeError as error:
            raise ProviderFailed("The payment could not be started. Try again later.") from error
        return TopUpStart(url=session.url or "", reference=session.id)

    def hook(self, body: bytes, headers: Mapping[str, str]) -> TopUpReport | None:
        """Return the webhook's report on a checkout session of this server."""
        if not settings.UAMP_STRIPE_WEBHOOK_SECRET:
            # Any client could sign with an empty secret.
            raise ForeignHook("The webhook secret is not set.")
        try:
            event: Any = stripe.Webhook.construct_event(
                body, headers.get("Stripe-Signature", ""), settings.UAMP_STRIPE_WEBHOOK_SECRET
            )
        except (ValueError, stripe.SignatureVerificationError) as error:
            raise ForeignHook("The signature of the webhook call is invalid.") from error
        session = event.data.object
        if event.type not in PAID | OVER or not session.client_reference_id:
            return None
        if event.type in PAID and session.payment_status != "paid":
            # Some payment methods take days: another call reports the outcome.
            return None
        if event.type in OVER:
            reason = event.type.removeprefix("checkout.session.").replace("_", " ")
            return TopUpReport(
                request_id=session.client_reference_id,
                paid=False,
                reference=session.id,
                reason=reason,
            )
        if session.currency != "usd":
            raise ForeignHook("The payment is in another currency.")
        return TopUpReport(
            request_id=session.client_reference_id,
            paid=True,
            reference=session.id,
            amount=Money(int(session.amount_total) * CENT),
        )

    def _client(self) -> stripe.StripeClient:
        addresses: BaseAddresses = (
            {"api": settings.UAMP_STRIPE_API} if settings.UAMP_STRIPE_API else {}
        )
        return stripe.StripeClient(
            settings.UAMP_STRIPE_KEY, base_addresses=addresses, max_network_retries=2
        )

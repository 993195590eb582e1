"""Payments on a chain for answers of peers (x402), offered in a `propose` and sent in a `confirm`.

They are settled and credited into a token like those of HTTP requests. The token then pays for the
answer that waits, like one that the peer has sent itself.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from federation_app.envelope.errors import EnvelopeCode, EnvelopeError
from payments_app import x402
from payments_app.money import InvalidAmount, Money
from sessions_app.transports import payment_threads
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ON_CHAIN: Final = "exact"
"""The scheme of x402 and of the payment in a `confirm`."""
CREDITED: Final = (
    "The payment was settled. Send the same payment again, for this answer or for the next one of"
    " its agent."
)


def offered(demand: ev.PaymentRequired) -> ev.PaymentRequirements:
    """Return the terms of a `propose`: the response to name in the `confirm`, and any x402 offer.

    The response is the one that waits, which may be work that the answer delegated.
    """
    requirements = demand.requirements
    extra = {**(requirements.extra or {}), "response_id": demand.response_id}
    offer = x402.exact_offer(Money.parse(requirements.amount, requirements.currency))
    if offer is None:
        return msgspec.structs.replace(requirements, extra=extra)
    scheme = ev.PaymentScheme(scheme=ON_CHAIN, network=offer["network"], address=offer["payTo"])
    offers = {"x402Version": x402.VERSION, "accepts": [offer]}
    return msgspec.structs.replace(
        requirements,
        schemes=(*requirements.schemes, scheme),
        extra={**extra, "x402": offers},
    )


async def taken(payment: ev.Payment, demand: ev.PaymentRequired, *, peer: str) -> ev.Payment:
    """Have a payment on a chain settled; return one with the token that it was credited to.

    `demand` is the one that the answer waits with, and `peer` the key of the payer. Raises
    RemoteProtocolError payment_not_due, and payment_required for a payment that is refused.
    """
    try:
        _check_terms(payment, demand.requirements)
        paid = await payment_threads.run(partial(_accepted, payment, demand, peer=peer))
    except (x402.PaymentNotTaken, InvalidAmount) as error:
        raise RemoteProtocolError(ErrorCode.PAYMENT_REQUIRED, str(error)) from error
    return ev.Payment(scheme="token", token=paid.secret)


def not_due() -> RemoteProtocolError:
    """Return the refusal of a payment for an answer that does not wait for it."""
    return RemoteProtocolError(
        ErrorCode.PAYMENT_NOT_DUE,
        "No payment is due for this answer, and this message charged nothing. A payment on a chain"
        " that was settled before pays for the next answer of its agent.",
    )


def several_due(demands: Sequence[ev.PaymentRequired]) -> EnvelopeError:
    """Return the refusal of a payment that names none of several responses that wait."""
    waiting = ", ".join(
        f"{demand.response_id} ({demand.requirements.amount} {demand.requirements.currency})"
        for demand in demands
    )
    return EnvelopeError(
        EnvelopeCode.CONFLICT,
        f"Several payments are due: name one in response_id. {waiting}. Nothing was charged.",
        detail="response_id",
        response_ids=tuple(demand.response_id for demand in demands if demand.response_id),
    )


def due_of(demands: Iterable[ev.PaymentRequired]) -> list[ev.PaymentRequired]:
    """Return the demands that can still be paid; the first of them is the one to propose."""
    return [demand for demand in demands if _is_due(demand)]


def _is_due(demand: ev.PaymentRequired) -> bool:
    return (demand.requirements.expires_at or 0) > time.time()


def _accepted(payment: ev.Payment, demand: ev.PaymentRequired, *, peer: str) -> x402.Accepted:
    """Settle a payment, unless its demand has expired while it waited for a thread."""
    if not _is_due(demand):
        raise not_due()
    return x402.accept_from_peer(payment.proof, _requirement_of(demand), peer=peer)


def _check_terms(payment: ev.Payment, needed: ev.PaymentRequirements) -> None:
    """Refuse a payment that names other terms beside its proof; raises PaymentNotTaken.

    Raises InvalidAmount for an amount that is not one.
    """
    due = Money.parse(needed.amount, needed.currency)
    offer = x402.exact_offer(due)
    if payment.network is not None and (offer is None or payment.network != offer["network"]):
        raise x402.PaymentNotTaken(
            "payment_failed", f"The payment is for another network: {payment.network[:40]!r}."
        )
    if payment.currency is not None and payment.currency.upper() != due.asset:
        raise x402.PaymentNotTaken(
            "payment_failed", f"Pay in {due.asset}, not {payment.currency[:40]!r}."
        )
    if payment.amount is not None and Money.parse(payment.amount, due.asset) < due:
        raise x402.PaymentNotTaken(
            "payment_failed", f"The payment is too low: {due} {due.asset} is due."
        )


def _requirement_of(demand: ev.PaymentRequired) -> dict[str, Any]:
    """Return the x402 requirements that a payment of a demand has to meet."""
    needed = demand.requirements
    agent = str((needed.extra or {})["agent"])
    return x402.requirements(
        Money.parse(needed.amount, needed.currency),
        resource_url=f"urn:uamp:agent:{agent}",
        description=f"An answer of {agent}",
        agent=agent,
        response_id=demand.response_id,
    )

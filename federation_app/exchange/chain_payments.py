"""Payments on a chain for answers of peers (x402), offered in a `propose` and sent in a `confirm`.

They are settled and credited into a token like those of HTTP requests. The token then pays for the
answer that waits, like one that the peer has sent itself.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any, Final

import msgspec

from payments_app import x402
from payments_app.money import Money
from sessions_app.transports import payment_threads
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

ON_CHAIN: Final = "exact"
"""The scheme of x402 and of the payment in a `confirm`."""
CREDITED: Final = (
    "The answer ended while the payment was settled. Send the same payment for the next answer of"
    " its agent."
)


def offered(requirements: ev.PaymentRequirements) -> ev.PaymentRequirements:
    """Return a demand with the x402 offer that a `confirm` can accept, if this server has one."""
    offer = x402.exact_offer(Money.parse(requirements.amount, requirements.currency))
    if offer is None:
        return requirements
    scheme = ev.PaymentScheme(scheme=ON_CHAIN, network=offer["network"], address=offer["payTo"])
    offers = {"x402Version": x402.VERSION, "accepts": [offer]}
    return msgspec.structs.replace(
        requirements,
        schemes=(*requirements.schemes, scheme),
        extra={**(requirements.extra or {}), "x402": offers},
    )


async def taken(payment: ev.Payment, demand: ev.PaymentRequired | None, *, peer: str) -> ev.Payment:
    """Have a payment on a chain settled; return the payment by the token that it is credited to.

    `demand` is the one that the answer waits with, and `peer` the key of the payer. Raises
    RemoteProtocolError payment_not_due, and payment_required for a payment that is refused.
    """
    if demand is None or (demand.requirements.expires_at or 0) <= time.time():
        # Nothing may be settled for an answer that does not wait for it.
        raise RemoteProtocolError(
            ErrorCode.PAYMENT_NOT_DUE, "No payment is due for this answer; nothing was charged."
        )
    take = partial(x402.accept_from_peer, payment.proof, _requirement_of(demand), peer=peer)
    try:
        paid = await payment_threads.run(take)
    except x402.PaymentNotTaken as error:
        raise RemoteProtocolError(ErrorCode.PAYMENT_REQUIRED, str(error)) from error
    return ev.Payment(scheme="token", token=paid.secret)


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

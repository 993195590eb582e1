"""The facilitator: verifies and settles payments on a chain for us, over HTTP (x402 v1 and v2).

Anything but a complete answer (a refused connection, a timeout, a 500) is NoAnswer. The payment may
have happened: the caller has to ask again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, TypeVar

import httpx
from django.conf import settings
from x402.http.facilitator_client import HTTPFacilitatorClientSync
from x402.http.facilitator_client_base import FacilitatorConfig
from x402.schemas.payments import PaymentPayload, PaymentRequirements
from x402.schemas.v1 import PaymentPayloadV1, PaymentRequirementsV1

if TYPE_CHECKING:
    from collections.abc import Callable

    from x402.schemas.responses import SettleResponse, VerifyResponse

Payload: TypeAlias = PaymentPayload | PaymentPayloadV1
Requirements: TypeAlias = PaymentRequirements | PaymentRequirementsV1


Answer = TypeVar("Answer")


class NoAnswer(Exception):
    """The facilitator returned no outcome of the payment."""


def verify(payload: Payload, requirements: Requirements) -> VerifyResponse:
    """Ask whether a payment is valid; raises NoAnswer."""
    return _answer_of(lambda client: client.verify(payload, requirements))


def settle(payload: Payload, requirements: Requirements) -> SettleResponse:
    """Have a payment carried out; raises NoAnswer if the outcome is unknown."""
    return _answer_of(lambda client: client.settle(payload, requirements))


def _answer_of(ask: Callable[[HTTPFacilitatorClientSync], Answer]) -> Answer:
    # A redirect would send the payment to a server that the operator did not choose.
    with httpx.Client(timeout=settings.UAMP_X402_SECONDS, follow_redirects=False) as http:
        config = FacilitatorConfig(url=settings.UAMP_X402_FACILITATOR, http_client=http)
        try:
            return ask(HTTPFacilitatorClientSync(config))
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise NoAnswer(f"The facilitator did not respond: {type(error).__name__}.") from error

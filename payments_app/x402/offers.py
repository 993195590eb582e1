"""The demand: the body and the headers of a 402.

One response serves clients of x402 version 2 (the header), and those of the transports' text
(`error`, `status_code`, `context.accepts`). Amounts are integers of the smallest unit in `accepts`,
decimal strings in `context.accepts`. Money on a chain is taken at par: a USDC is a dollar.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec
from django.conf import settings

from payments_app.money import ASSETS, InvalidAmount, Money
from payments_app.tokens.lookup import NETWORK, X402_NETWORK

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION: Final = 2
TIMEOUT_SECONDS: Final = 300
CHAIN_SCALE: Final = 6
"""Decimal places of the stablecoin of the `exact` scheme."""
ON_CHAIN: Final = frozenset({"USD", "USDC"})
OLD_NAMES: Final = {
    "eip155:1": "ethereum",
    "eip155:137": "polygon",
    "eip155:8453": "base",
    "eip155:43114": "avalanche",
    "eip155:84532": "base-sepolia",
}
"""The names of the networks in version 1."""
EXPOSED: Final = "PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE"


def requirements(
    amount: Money,
    *,
    resource_url: str,
    description: str,
    agent: str,
    response_id: str | None = None,
    error: str = "Payment required",
) -> dict[str, Any]:
    """Return the body of a 402: what an answer of `agent` costs, and how to pay it.

    The resource is named without its query, which may hold a payment token: the offer goes to
    logs of clients and to the facilitator. Raises InvalidAmount unless the demand is positive.
    """
    if amount.amount <= 0:
        raise InvalidAmount("The amount of a payment must be positive.")
    accepts = [_by_token(amount, agent)]
    if exact := exact_offer(amount):
        accepts.append(exact)
    body: dict[str, Any] = {
        "x402Version": VERSION,
        "error": error,
        "status_code": 402,
        "amount": str(amount),
        "currency": amount.asset,
        "agent": agent,
        "resource": {
            "url": urlsplit(resource_url)._replace(query="", fragment="").geturl(),
            "description": description,
            "mimeType": "application/json",
        },
        "accepts": accepts,
        "context": {"accepts": [_in_decimals(offer, amount) for offer in accepts]},
    }
    return {**body, "response_id": response_id} if response_id else body


def required_headers(body: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of the 402 with this body; version 2 reads nothing else."""
    fields = {name: body[name] for name in ("x402Version", "error", "resource", "accepts")}
    return {
        "PAYMENT-REQUIRED": encode(fields),
        "Cache-Control": "no-store",
        "Access-Control-Expose-Headers": EXPOSED,
    }


def encode(value: Mapping[str, Any]) -> str:
    """Return JSON in base64, the encoding of every x402 header."""
    return base64.b64encode(msgspec.json.encode(value)).decode()


def demanded(body: Mapping[str, Any]) -> Money:
    """Return the amount that a body of `requirements` demands."""
    return Money.parse(body["amount"], body["currency"])


def _by_token(amount: Money, agent: str) -> dict[str, Any]:
    return {
        "scheme": "token",
        "network": X402_NETWORK,
        "asset": amount.asset,
        "amount": str(amount.amount),
        "payTo": agent,
        "maxTimeoutSeconds": TIMEOUT_SECONDS,
        "extra": {"tokenType": "jwt", "decimals": ASSETS[amount.asset].scale},
    }


def exact_offer(amount: Money) -> dict[str, Any] | None:
    """Return the demand for `exact` on a chain; None without a facilitator or for other assets."""
    if not (settings.UAMP_X402_FACILITATOR and settings.UAMP_X402_PAY_TO):
        return None
    if amount.asset not in ON_CHAIN:
        return None
    return {
        "scheme": "exact",
        "network": settings.UAMP_X402_NETWORK,
        "asset": settings.UAMP_X402_ASSET,
        "amount": str(on_chain(amount)),
        "payTo": settings.UAMP_X402_PAY_TO,
        "maxTimeoutSeconds": TIMEOUT_SECONDS,
        "extra": {
            "name": settings.UAMP_X402_ASSET_NAME,
            "version": settings.UAMP_X402_ASSET_VERSION,
        },
    }


def on_chain(amount: Money) -> int:
    """Return an amount in the stablecoin's smallest unit, rounded up so that it suffices."""
    unit: int = 10 ** (ASSETS[amount.asset].scale - CHAIN_SCALE)
    return -(-amount.amount // unit)


def from_chain(atomic: int, asset: str) -> Money:
    """Return the ledger's amount for an amount of the stablecoin."""
    unit: int = 10 ** (ASSETS[asset].scale - CHAIN_SCALE)
    return Money(atomic * unit, asset)


def _in_decimals(offer: Mapping[str, Any], amount: Money) -> dict[str, Any]:
    """Return an offer in the form of the transports' text and the reference clients."""
    network = NETWORK if offer["scheme"] == "token" else offer["network"]
    return {
        **offer,
        "network": network,
        "amount": str(amount),
        "maxAmountRequired": str(amount),
        "currency": amount.asset,
    }

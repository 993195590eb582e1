"""Demands for payment with x402, as agents called over HTTP send them with a 402.

Only the scheme `token` is paid: a token of the agent's own server, in dollars. Payments on a chain
would need a wallet.
"""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec

from agents_app.remote.onward import CURRENCY
from uamp.types.inline_media import decode_base64

PAYMENT = "PAYMENT-SIGNATURE"
"""The header of the request that carries the payment."""
VERSION = 2
OFFERS = 32
"""The most offers of a demand that are read."""
_DEMAND = "PAYMENT-REQUIRED"
_NETWORKS = frozenset({"uamp", "uamp:main"})
_DIGITS = 30
_DECIMALS = 18
_PAYEE_CHARS = 100


@dataclass(frozen=True, kw_only=True)
class TokenDemand:
    """An offer to be paid with a token: `amount` dollars, as a decimal string, for `payee`."""

    offer: Mapping[str, Any]
    amount: str
    payee: str

    def header(self, token: str) -> str:
        """Return the header that pays with a token."""
        document = {
            "x402Version": VERSION,
            "accepted": self.offer,
            "payload": {"token": token},
        }
        return base64.b64encode(msgspec.json.encode(document)).decode()


def demand_in(headers: Mapping[str, str], body: bytes) -> TokenDemand | None:
    """Return the first offer of a 402 that a token can pay, or None."""
    for document in _documents(headers, body):
        offers = document.get("accepts")
        if document.get("x402Version") != VERSION or not isinstance(offers, list):
            continue
        for offer in offers[:OFFERS]:
            if (demand := _demand_of(offer)) is not None:
                return demand
    return None


def _documents(headers: Mapping[str, str], body: bytes) -> Iterator[dict[str, Any]]:
    """Yield the demand of the header, then that of the body."""
    try:
        header = decode_base64(headers.get(_DEMAND, ""))
    except ValueError:
        header = b""
    for data in (header, body):
        try:
            document = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        if isinstance(document, dict):
            yield document


def _demand_of(offer: object) -> TokenDemand | None:
    if not isinstance(offer, dict):
        return None
    extra = offer.get("extra")
    decimals = extra.get("decimals") if isinstance(extra, dict) else None
    amount, payee, network = offer.get("amount"), offer.get("payTo"), offer.get("network")
    if (
        offer.get("scheme") != "token"
        or not isinstance(network, str)
        or network not in _NETWORKS
        or offer.get("asset") != CURRENCY
        or type(decimals) is not int
        or not 0 <= decimals <= _DECIMALS
        or not isinstance(payee, str)
        or not 0 < len(payee) <= _PAYEE_CHARS
        or not isinstance(amount, str)
        or not (amount.isascii() and amount.isdigit() and len(amount) <= _DIGITS)
    ):
        return None
    dollars = Decimal(amount).scaleb(-decimals).normalize()
    return TokenDemand(offer=offer, amount=f"{dollars:f}", payee=payee)

"""Take a payment that came with a request, before the work begins.

A refused payment leaves nothing behind but a receipt that records it. A token is only inspected:
the ledger takes the cost of the answer from it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from payments_app.money import InvalidAmount, Money
from payments_app.services import ReceiptConflict
from payments_app.tokens import lookup as token_lookup
from payments_app.x402 import exact, offers
from payments_app.x402.headers import BadHeader, Offered, offer_in, parse_payment, token_beside
from payments_app.x402.refusal import PaymentNotTaken
from uamp.amounts import format_amount

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Accepted", "PaymentNotTaken", "accept", "accept_from_peer"]

_INTEGER: Final = re.compile(r"[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """An accepted payment: the token to spend, and headers for the response.

    `secret` opens the token of a payment on a chain.
    """

    scheme: str
    token_id: str
    account_id: int
    available: Money
    payer: str
    response_headers: Mapping[str, str]
    secret: str = field(default="", repr=False)


def accept(
    headers: Mapping[str, str],
    requirement: Mapping[str, Any],
    *,
    user_id: int | None = None,
    visitor: str = "",
    secret: str = "",
) -> Accepted | None:
    """Take a request's payment of the demand in `requirement`; return None without a payment.

    `user_id` is the signed-in sender, `visitor` names a visitor's address. `secret` comes from an
    earlier Accepted of the same request, to take its payment again; X-Payment-Token next to a
    payment has the same effect.

    Raises PaymentNotTaken. Called outside a transaction, since `exact` queries the facilitator.
    """
    try:
        offer = parse_payment(headers)
    except BadHeader as error:
        raise PaymentNotTaken("token_invalid", str(error)) from error
    if offer is None:
        return None
    match offer.scheme:
        case "token":
            return _token(offer, requirement)
        case "exact":
            token = secret or token_beside(headers)
            sender = exact.Sender(user_id=user_id, visitor=visitor, secret=token)
            return _exact(offer, requirement, sender)
    raise PaymentNotTaken("payment_failed", "Pay with the scheme token or exact.")


def accept_from_peer(
    document: Mapping[str, Any], requirement: Mapping[str, Any], *, peer: str
) -> Accepted:
    """Take the payment on a chain, an x402 document, that a peer server signed and sent.

    The peer may send it again, for what it left over. Raises PaymentNotTaken. Called outside a
    transaction, like `accept`.
    """
    try:
        offer = offer_in(document)
    except BadHeader as error:
        raise PaymentNotTaken("token_invalid", str(error)) from error
    if offer.scheme != "exact":
        raise PaymentNotTaken("payment_failed", "The payment is not of the scheme exact.")
    return _exact(offer, requirement, exact.Sender(peer=peer))


def _token(offer: Offered, requirement: Mapping[str, Any]) -> Accepted:
    amount = offers.demanded(requirement)
    _check_terms(offer.document, amount)
    try:
        token = token_lookup.resolve(offer.token, agent=requirement["agent"])
    except token_lookup.TokenRefused as error:
        raise PaymentNotTaken(error.code, str(error)) from error
    if token.asset != amount.asset:
        raise PaymentNotTaken("token_invalid", f"The token is not in {amount.asset}.")
    if token.available < amount:
        needed = format_amount(str(amount), amount.asset)
        there = format_amount(str(token.available), token.asset)
        raise PaymentNotTaken(
            "insufficient_balance", f"This costs {needed}, and the balance is {there}. Top up."
        )
    if token.per_use is not None and token.per_use < amount:
        raise PaymentNotTaken(
            "rate_limited", f"The token allows {token.per_use} {token.asset} for one answer."
        )
    payer = "" if token.owner_id is None else str(token.owner_id)
    return Accepted(
        scheme="token",
        token_id=token.id,
        account_id=token.account_id,
        available=token.available,
        payer=payer,
        response_headers=_headers(
            {
                "success": True,
                "payer": payer,
                "transaction": token.id,
                "network": token_lookup.X402_NETWORK,
                "amount": str(amount.amount),
            }
        ),
    )


def _check_terms(document: Mapping[str, Any], due: Money) -> None:
    """Refuse a token payment whose document does not match the terms of the demand.

    That is another network, another currency, or a lower amount. Raises PaymentNotTaken.
    """
    accepted, payload = document.get("accepted"), document.get("payload")
    places = [place for place in (accepted, document, payload) if isinstance(place, dict)]
    networks = [place["network"] for place in places if place.get("network") is not None]
    assets = [
        place[name]
        for place in places
        for name in ("asset", "currency")
        if place.get(name) is not None
    ]
    for network in networks:
        if not isinstance(network, str) or network not in token_lookup.NETWORKS:
            raise PaymentNotTaken(
                "payment_failed",
                f"Pay on the network {token_lookup.X402_NETWORK}, not {str(network)[:40]!r}.",
            )
    for asset in assets:
        if not isinstance(asset, str) or asset.upper() != due.asset:
            raise PaymentNotTaken("payment_failed", f"Pay in {due.asset}, not {str(asset)[:40]!r}.")
    in_units = token_lookup.X402_NETWORK in networks
    for place in places:
        if place.get("amount") is not None:
            _check_amount(place["amount"], due, in_units=in_units)


def _check_amount(value: object, due: Money, *, in_units: bool) -> None:
    """Refuse an amount below the one that is due; raises PaymentNotTaken.

    The offers of x402 have amounts in smallest units, those in `context.accepts` decimal strings
    (`offers.requirements`); their networks tell them apart.
    """
    text = str(value)
    try:
        if in_units and _INTEGER.fullmatch(text):
            amount = Money(int(text), due.asset)
        else:
            amount = Money.parse(text, due.asset)
    except InvalidAmount as error:
        raise PaymentNotTaken("token_invalid", f"The payment is invalid: {error}") from error
    if amount < due:
        raise PaymentNotTaken(
            "payment_failed",
            f"You offered {amount} {amount.asset}; {due} {due.asset} is due. Submit at least that.",
        )


def _exact(offer: Offered, requirement: Mapping[str, Any], sender: exact.Sender) -> Accepted:
    try:
        paid = exact.take(offer, requirement, sender)
        token = token_lookup.by_id(paid.token_id, agent=requirement["agent"])
    except token_lookup.TokenRefused as error:
        raise PaymentNotTaken(error.code, str(error)) from error
    except (ReceiptConflict, InvalidAmount) as error:
        raise PaymentNotTaken("token_invalid", f"The payment is invalid: {error}") from error
    if token.available < offers.demanded(requirement):
        raise PaymentNotTaken(exact.PAYMENT_USED, "This payment was used up. Sign a new one.")
    answer: dict[str, Any] = {
        "success": True,
        "payer": paid.payer,
        "transaction": paid.transaction,
        "network": paid.network,
        "amount": paid.atomic,
        # Lets the client spend what the answer does not use.
        "extra": {"token": paid.secret},
    }
    return Accepted(
        scheme="exact",
        token_id=token.id,
        account_id=token.account_id,
        available=token.available,
        payer=paid.payer,
        response_headers=_headers(answer),
        secret=paid.secret,
    )


def _headers(answer: Mapping[str, Any]) -> dict[str, str]:
    encoded = offers.encode(answer)
    return {
        "PAYMENT-RESPONSE": encoded,
        "X-PAYMENT-RESPONSE": encoded,
        "Cache-Control": "no-store",
        "Access-Control-Expose-Headers": offers.EXPOSED,
    }

"""Payments in the metadata of tasks: the a2a-x402 extension, version 0.2."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import uamp
from uamp import ErrorCode, PaymentErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gateway_app.types.stored_response import SettledPayment
    from uamp.events import Event

EXTENSION: Final = "https://github.com/google-agentic-commerce/a2a-x402/blob/main/spec/v0.2"
STATUS: Final = "x402.payment.status"
REQUIRED: Final = "x402.payment.required"
PAYLOAD: Final = "x402.payment.payload"
RECEIPTS: Final = "x402.payment.receipts"
ERROR: Final = "x402.payment.error"
_ERRORS: Final[dict[str, str]] = {
    PaymentErrorCode.INSUFFICIENT_BALANCE: "INSUFFICIENT_FUNDS",
    PaymentErrorCode.TOKEN_EXPIRED: "EXPIRED_PAYMENT",
    PaymentErrorCode.TOKEN_INVALID: "INVALID_SIGNATURE",
    PaymentErrorCode.MANDATE_REVOKED: "INVALID_SIGNATURE",
}
_INTEGER: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
_UNPAID: Final = frozenset({ErrorCode.PAYMENT_REQUIRED, ErrorCode.PAYMENT_TIMEOUT})


def demanded(event: Event, refusal: ev.PaymentError | None) -> dict[str, Any]:
    """Return the metadata of a demand for payment; empty for any other event."""
    if not isinstance(event, ev.PaymentRequired):
        return {}
    extra = event.requirements.extra or {}
    metadata = {STATUS: "payment-required", REQUIRED: extra.get("x402", {})}
    if refusal is not None:
        metadata[STATUS] = "payment-failed"
        metadata[ERROR] = _ERRORS.get(refusal.code, "SETTLEMENT_FAILED")
    return metadata


def completed(settled: Iterable[SettledPayment]) -> dict[str, Any]:
    """Return the metadata of an answer whose payment was settled in its task."""
    receipts = [
        {
            "success": True,
            "transaction": payment.transaction,
            "network": payment.network,
            "asset": payment.asset,
            "amount": str(payment.amount),
        }
        for payment in settled
    ]
    return {STATUS: "payment-completed", RECEIPTS: receipts}


def failed(code: str) -> dict[str, Any]:
    """Return the metadata of a task that ended unpaid."""
    if code not in _UNPAID:
        return {}
    error = "EXPIRED_PAYMENT" if code == ErrorCode.PAYMENT_TIMEOUT else "SETTLEMENT_FAILED"
    return {STATUS: "payment-failed", ERROR: error}


def submitted(metadata: Mapping[str, Any], demand: ev.PaymentRequired) -> ev.Payment | None:
    """Return the payment in a message's metadata; None if there is none.

    It has the network, currency and amount of the offer that the client accepted, if the client
    sends them. Raises RemoteProtocolError for a payload that is not a payment by token.
    """
    payload = metadata.get(PAYLOAD)
    if payload is None:
        return None
    terms: Mapping[str, Any] = {}
    token = payload
    if isinstance(payload, dict):
        accepted, inner = payload.get("accepted"), payload.get("payload")
        terms = accepted if isinstance(accepted, dict) else payload
        token = inner.get("token") if isinstance(inner, dict) else payload.get("token")
    if not isinstance(token, str) or not token or terms.get("scheme", "token") != "token":
        raise RemoteProtocolError(
            ErrorCode.INVALID_EVENT,
            f"`{PAYLOAD}` must be a payment of the scheme token, with `payload.token`.",
        )
    return uamp.Payment(
        scheme="token",
        token=token,
        network=_text_of(terms, "network"),
        currency=_text_of(terms, "asset"),
        amount=_amount_of(terms, demand),
    )


def _text_of(terms: Mapping[str, Any], name: str) -> str | None:
    value = terms.get(name)
    if value is None or isinstance(value, str):
        return value
    raise RemoteProtocolError(ErrorCode.INVALID_EVENT, f"`{name}` in `{PAYLOAD}` must be a string.")


def _amount_of(terms: Mapping[str, Any], demand: ev.PaymentRequired) -> str | None:
    """Return the amount of an accepted offer as a decimal string.

    In offers of x402, amounts are integers of the smallest unit.
    """
    value = terms.get("amount")
    if value is None:
        return None
    if not _INTEGER.fullmatch(str(value)):
        raise RemoteProtocolError(
            ErrorCode.INVALID_EVENT,
            f"`amount` in `{PAYLOAD}` must be a whole number of the currency's smallest units.",
        )
    (offer,) = (demand.requirements.extra or {})["x402"]["accepts"]
    return format(Decimal(str(value)).scaleb(-offer["extra"]["decimals"]), "f")


def is_rejected(metadata: Mapping[str, Any]) -> bool:
    """Return whether the client declines to pay."""
    return metadata.get(STATUS) == "payment-rejected"

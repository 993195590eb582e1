"""Read a payment from a request's headers, in every form that clients send (webagents §5.5).

PAYMENT-SIGNATURE is version 2 of x402. X-PAYMENT is version 1, or a token, bare or in base64.
X-Payment-Token is a token. The first one present counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

import uamp
from uamp.limits import DEFAULT_LIMITS
from uamp.types.inline_media import decode_base64

if TYPE_CHECKING:
    from collections.abc import Mapping

HEADERS: Final = ("payment-signature", "x-payment", "x-payment-token")
HEADER_CHARS: Final = 16_384
_LIMITS: Final = msgspec.structs.replace(DEFAULT_LIMITS, frame_bytes=HEADER_CHARS)


class BadHeader(ValueError):
    """The payment header cannot be parsed; the message is for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """The payment that a client offers: a token, or (`document`) an x402 payment."""

    token: str = ""
    version: int = 2
    scheme: str = "token"
    document: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderPayment:
    """A payment as found in a header; a token is a secret, a payment on a chain is not."""

    value: str = field(repr=False)
    is_secret: bool


def parse_payment(headers: Mapping[str, str]) -> Offered | None:
    """Return the payment of a request, or None if it has none; raises BadHeader."""
    name, value = _counts(headers)
    return _read(value, only_token=name == "x-payment-token") if value else None


def payment_in_headers(headers: Mapping[str, str]) -> HeaderPayment | None:
    """Return the payment that a request carries, or None if it is missing or unreadable."""
    try:
        offer = parse_payment(headers)
    except BadHeader:
        # It is refused when it is used to pay.
        return None
    if offer is None:
        return None
    return HeaderPayment(value=_counts(headers)[1], is_secret=offer.scheme == "token")


def _counts(headers: Mapping[str, str]) -> tuple[str, str]:
    """Return the header that counts, with its value."""
    named = {name.lower(): value for name, value in headers.items()}
    for name in HEADERS:
        if value := named.get(name, "").strip():
            return name, value
    return "", ""


def token_beside(headers: Mapping[str, str]) -> str:
    """Return the token in X-Payment-Token next to another payment, or ''."""
    named = {name.lower(): value for name, value in headers.items()}
    value = named.get("x-payment-token", "").strip()
    return value if len(value) <= HEADER_CHARS else ""


def _read(value: str, *, only_token: bool) -> Offered:
    if len(value) > HEADER_CHARS:
        raise BadHeader(f"A payment header may have at most {HEADER_CHARS} characters.")
    if only_token or "." in value or "_" in value[:5]:
        return Offered(token=value)
    try:
        text = decode_base64(value)
    except ValueError:
        raise BadHeader("The payment header is neither a token nor base64.") from None
    if not text.lstrip().startswith(b"{"):
        return Offered(token=value)
    try:
        document = uamp.load_json(text, _LIMITS)
    except uamp.RemoteProtocolError as error:
        raise BadHeader(f"The payment header cannot be read: {error.message}.") from error
    if not isinstance(document, dict):
        raise BadHeader("A payment must be a JSON object.")
    return offer_in(document)


def offer_in(document: Mapping[str, Any]) -> Offered:
    """Return a payment of version 2, whose scheme is in `accepted`, or of version 1.

    Raises BadHeader.
    """
    accepted, payload = document.get("accepted"), document.get("payload")
    version = document.get("x402Version", 1 if accepted is None else 2)
    chosen = accepted if isinstance(accepted, dict) else document
    scheme = chosen.get("scheme")
    # A version must be an integer: True is not one, and other types may be unhashable.
    if type(version) is not int or version not in {1, 2}:
        raise BadHeader("This is not a payment of x402 version 1 or 2.")
    if not isinstance(scheme, str) or not isinstance(payload, dict):
        raise BadHeader("This is not a payment of x402 version 1 or 2.")
    token = ""
    if scheme == "token":
        token = payload.get("token", "")
        if not isinstance(token, str) or not token:
            raise BadHeader("A payment with the scheme token needs a token.")
    return Offered(token=token, version=version, scheme=scheme, document=document)

"""Verifies receipts against the documents that the server signed (docs/signatures.md).

Receipts are those of REST and of exports: objects with `amount`, `currency`, `transfers` and the
`document` that binds them to a message.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from uamp.signatures.canonical import text_sha256
from uamp.signatures.claims import (
    RECEIPT_TYPE,
    RECEIPTS,
    TYPE,
    AnswerClaims,
    Price,
    ReceiptClaims,
)
from uamp.signatures.jws import BadSignature, UnknownKey, open_signature
from uamp.signatures.trust import SignatureState, distrust, is_retired

_SIGNED: Final = ("agent", "amount", "refunded", "fee", "currency", "paid_at")
"""The members of a receipt that must equal the claims of the same name."""


class ReceiptCheck(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of checking a receipt; `claims` are set once they are verified."""

    state: SignatureState
    detail: str
    claims: ReceiptClaims | None = None
    kid: str | None = None

    @property
    def is_good(self) -> bool:
        """Whether the check found nothing against the receipt."""
        return self.state not in (SignatureState.CHANGED, SignatureState.UNKNOWN_KEY)


def check_receipt(
    receipt: Mapping[str, Any],
    keys: Iterable[Mapping[str, Any]],
    *,
    chat_id: str | None = None,
    message: Mapping[str, Any] | None = None,
) -> ReceiptCheck:
    """Check a receipt against its `document`.

    `keys` are the JSON Web Keys of the server. `chat_id`, and the `message` of the answer with its
    `signature`, are compared if given: the agent signed the price, and the server signs the receipt
    when it is read.
    """
    keys = tuple(keys)
    document = receipt.get("document")
    if document is None:
        return ReceiptCheck(state=SignatureState.UNSIGNED, detail="The receipt is not signed.")
    try:
        claims, key = open_signature(document, keys, typ=RECEIPT_TYPE, claims=ReceiptClaims)
    except UnknownKey as error:
        return ReceiptCheck(state=SignatureState.UNKNOWN_KEY, detail=str(error))
    except BadSignature as error:
        return ReceiptCheck(state=SignatureState.CHANGED, detail=str(error))
    distrusted = distrust(key, owner=RECEIPTS, at=claims.iat)
    if distrusted is not None:
        return ReceiptCheck(state=SignatureState.UNKNOWN_KEY, detail=distrusted)
    state, detail = _compare(claims, key, receipt, chat_id, message)
    if state is not SignatureState.CHANGED and message is not None:
        price = _signed_price(message, keys)
        if price is not None and not _is_of_price(claims, price):
            state = SignatureState.CHANGED
            detail = f"The agent signed a different price: {price.amount} {price.currency}."
    return ReceiptCheck(state=state, detail=detail, claims=claims, kid=str(key["kid"]))


def _compare(
    claims: ReceiptClaims,
    key: Mapping[str, Any],
    receipt: Mapping[str, Any],
    chat_id: str | None,
    message: Mapping[str, Any] | None,
) -> tuple[SignatureState, str]:
    """Compare a receipt with a document whose signature is good."""
    if not _is_as_signed(claims, receipt) or chat_id not in {None, claims.chat_id}:
        return SignatureState.CHANGED, "The receipt differs from what the server signed."
    if message is not None and not _is_of(claims, message):
        return SignatureState.CHANGED, "The receipt belongs to another answer."
    if is_retired(key):
        return (
            SignatureState.ROTATED,
            "It is unchanged since the server signed it, with a key retired since.",
        )
    return SignatureState.VALID, "It is unchanged since the server signed it."


def _signed_price(message: Mapping[str, Any], keys: Iterable[Mapping[str, Any]]) -> Price | None:
    """Return the price signed with an answer, or None if it is not known."""
    try:
        claims, _ = open_signature(message.get("signature"), keys, typ=TYPE, claims=AnswerClaims)
    except BadSignature:
        # A fault in the answer's signature is reported for the answer.
        return None
    return claims.price


def _is_of_price(claims: ReceiptClaims, price: Price) -> bool:
    """Return whether a receipt matches a price; zero has the currency of the work passed on."""
    is_same_currency = claims.amount == "0" or claims.currency == price.currency
    return claims.amount == price.amount and is_same_currency


def _is_as_signed(claims: ReceiptClaims, receipt: Mapping[str, Any]) -> bool:
    """Return whether a receipt agrees with its document; an export leaves out the response."""
    return (
        all(receipt.get(name) == getattr(claims, name) for name in _SIGNED)
        and receipt.get("transfers") == list(claims.transfers)
        and receipt.get("response_id", claims.response_id) == claims.response_id
    )


def _is_of(claims: ReceiptClaims, message: Mapping[str, Any]) -> bool:
    """Return whether this message, as it was signed, is the answer that was paid."""
    signature = message.get("signature")
    signed = text_sha256(signature) if isinstance(signature, str) else None
    return (
        message.get("response_id") == claims.response_id
        and message.get("id") == claims.message_id
        and signed == claims.answer_hash
    )

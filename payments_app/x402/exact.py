"""The scheme `exact`: a facilitator moves a stablecoin on a chain (x402).

A payment is its payer's authorization, identified by network, asset, payer and nonce: one receipt,
credited once, into a token created for it. The receipt is written after the payment is verified and
before it is settled. An answer that is late, duplicated, lost, or a 500 after the money moved
leaves the receipt `submitted`; sending the same payment again queries the outcome.

A payment belongs to its first sender, because anyone can read it on the chain and repeat it. Until
it is taken, that is the signed-in person, the peer server, or the visitor from the same address
with the same document. A credited payment is taken once. After that it is accepted only from the
person or the peer that first sent it, or together with the secret of its token, which the first
response carries.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils.crypto import salted_hmac
from pydantic import ValidationError
from x402.schemas.payments import PaymentPayload, PaymentRequirements
from x402.schemas.v1 import PaymentPayloadV1, PaymentRequirementsV1

from payments_app import services
from payments_app.models import PaymentToken, Receipt, ReceiptState
from payments_app.tokens import issuance
from payments_app.tokens import lookup as token_lookup
from payments_app.x402 import facilitator, offers
from payments_app.x402.refusal import PaymentNotTaken
from telemetry import log_fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from x402.schemas.responses import SettleResponse

    from payments_app.money import Money
    from payments_app.x402.headers import Offered

logger = logging.getLogger(__name__)

PROVIDER: Final = "x402"
PAYMENT_USED: Final = "payment_used"
"""The 402 code for a payment on a chain that was already taken."""
_ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]{40}", re.ASCII)
_NONCE: Final = re.compile(r"0x[0-9a-fA-F]{64}", re.ASCII)
_INTEGER: Final = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Paid:
    """A payment that is credited; `secret` opens its token."""

    token_id: str
    payer: str
    network: str
    transaction: str
    atomic: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """The sender of a payment: a signed-in person, a peer, or a visitor identified by address.

    `peer` names a server that signed the request. `secret` is the one sent along with the payment.
    """

    user_id: int | None = None
    peer: str = ""
    visitor: str = ""
    secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Payment:
    """The signed authorization, the requirements it must meet, and its sender."""

    payload: facilitator.Payload
    requirements: facilitator.Requirements
    payer: str
    atomic: int
    external_id: str
    sha256: str
    token_id: str
    amount: Money
    agent: str
    sender: Sender
    # Identifies the visitor who sent this document; None for a person or a peer.
    visitor: str | None

    @property
    def account_id(self) -> int:
        """The account of the payment's token, created on first use."""
        return issuance.token_account(self.token_id, self.amount.asset, None)


def take(offer: Offered, requirement: Mapping[str, Any], sender: Sender) -> Paid:
    """Have a payment verified and settled, and credit it once.

    Raises PaymentNotTaken: `payment_used` if another sender sent it first, or if it was already
    taken, unless the sender is the person who first sent it or presents the secret of its token.
    """
    payment = _read(offer, requirement, sender)
    receipt = _receipt(payment)
    if receipt is None:
        # An invalid payment leaves no row, since any client may send one.
        receipt = _noted(payment)
    if receipt is not None and receipt.state == ReceiptState.CONFIRMED:
        return _again(payment, receipt)
    try:
        settled = _settle(payment)
    except PaymentNotTaken:
        receipt = _receipt(payment)
        if receipt is None or receipt.state != ReceiptState.CONFIRMED:
            raise
        # A request beside this one has settled it meanwhile.
        return _again(payment, receipt)
    return _credit(payment, settled)


def _noted(payment: _Payment) -> Receipt | None:
    """Verify an unknown payment, and return the receipt written for it.

    If another request for another person records and settles it at the same time, it is no longer
    valid, and that is the reason reported.
    """
    try:
        _verify(payment)
    except PaymentNotTaken:
        if (receipt := _receipt(payment)) is None:
            raise
        return receipt
    _note(payment)
    return _receipt(payment)


def _receipt(payment: _Payment) -> Receipt | None:
    """Return the receipt of a payment; raises PaymentNotTaken if it is another sender's."""
    receipt = Receipt.objects.filter(provider=PROVIDER, external_id=payment.external_id).first()
    if receipt is None:
        return None
    if receipt.payload.get("sha256") != payment.sha256:
        # Known, but with another signature: the sender saw the payment on the chain.
        raise PaymentNotTaken(
            "token_invalid", "This payment was already sent with a different signature."
        )
    if not (_is_senders(payment, receipt) or _is_of_visitor(payment, receipt)):
        raise _used()
    return receipt


def _is_of_visitor(payment: _Payment, receipt: Receipt) -> bool:
    """Return whether the visitor who first sent a payment sends it again unchanged.

    Until it is taken, they have no secret to present.
    """
    first = receipt.payload.get("visitor")
    return first is not None and first == payment.visitor


def _is_senders(payment: _Payment, receipt: Receipt) -> bool:
    """Return whether a payment came with something that the chain does not reveal."""
    sender = payment.sender
    if sender.user_id is not None and receipt.payload.get("user") == sender.user_id:
        return True
    if sender.peer and receipt.payload.get("peer") == sender.peer:
        return True
    if not sender.secret:
        return False
    try:
        return token_lookup.resolve(sender.secret).id == payment.token_id
    except token_lookup.TokenRefused:
        return False


def _used() -> PaymentNotTaken:
    return PaymentNotTaken(
        PAYMENT_USED,
        "This payment was used. Sign a new one, or show the token that its first answer carried.",
    )


# --- Parsing ---


def _read(offer: Offered, requirement: Mapping[str, Any], sender: Sender) -> _Payment:
    demanded = offers.demanded(requirement)
    ours = offers.exact_offer(demanded)
    if ours is None:
        raise PaymentNotTaken("payment_failed", "On-chain payments are not accepted here.")
    try:
        payload: facilitator.Payload = (
            PaymentPayloadV1.model_validate(offer.document)
            if offer.version == 1
            else PaymentPayload.model_validate(offer.document)
        )
    except ValidationError as error:
        raise PaymentNotTaken(
            "token_invalid", "The payment lacks fields that x402 requires."
        ) from error
    signed = payload.payload.get("authorization")
    if not isinstance(signed, dict):
        raise PaymentNotTaken("payment_failed", "Only EIP-3009 authorizations are accepted here.")
    payer, nonce, value = (str(signed.get(name, "")) for name in ("from", "nonce", "value"))
    if not (_ADDRESS.fullmatch(payer) and _NONCE.fullmatch(nonce) and _INTEGER.fullmatch(value)):
        raise PaymentNotTaken("token_invalid", "The payment's authorization is incomplete.")
    atomic = int(value)
    if atomic < int(ours["amount"]):
        raise PaymentNotTaken(
            "insufficient_balance",
            f"The payment is too low: {demanded} {demanded.asset} is needed.",
        )
    requirements = _requirements(payload, {**ours, "amount": value}, requirement)
    name = f"{ours['network']}:{ours['asset']}:{payer}:{nonce}".lower()
    token_id = f"pt_{hashlib.sha256(name.encode()).hexdigest()[:32]}"
    return _Payment(
        payload=payload,
        requirements=requirements,
        payer=payer,
        atomic=atomic,
        external_id=name,
        sha256=hashlib.sha256(str(payload.payload.get("signature")).encode()).hexdigest(),
        token_id=token_id,
        amount=offers.from_chain(atomic, demanded.asset),
        agent=str(requirement["agent"]),
        sender=sender,
        visitor=None if sender.user_id is not None or sender.peer else _visitor(sender, offer),
    )


def _visitor(sender: Sender, offer: Offered) -> str:
    """Return a name for a visitor and the document they sent, without storing their address."""
    document = msgspec.json.encode(offer.document, order="deterministic")
    whole = b"\n".join((sender.visitor.encode(), document))
    return salted_hmac(__name__, whole, algorithm="sha256").hexdigest()


def _requirements(
    payload: facilitator.Payload, ours: Mapping[str, Any], requirement: Mapping[str, Any]
) -> facilitator.Requirements:
    """Return our requirements for the payment, never what the client says it accepted."""
    if isinstance(payload, PaymentPayloadV1):
        network = offers.OLD_NAMES.get(ours["network"], ours["network"])
        if payload.network not in {network, ours["network"]}:
            raise PaymentNotTaken("payment_failed", f"Pay on the network {network}.")
        return PaymentRequirementsV1(
            scheme="exact",
            network=payload.network,
            max_amount_required=ours["amount"],
            resource=requirement["resource"]["url"],
            description=requirement["resource"]["description"],
            mime_type="application/json",
            pay_to=ours["payTo"],
            max_timeout_seconds=ours["maxTimeoutSeconds"],
            asset=ours["asset"],
            extra=dict(ours["extra"]),
        )
    accepted = payload.accepted
    theirs = (accepted.network, accepted.asset.lower(), accepted.pay_to.lower())
    if theirs != (ours["network"], ours["asset"].lower(), ours["payTo"].lower()):
        raise PaymentNotTaken("payment_failed", "The payment is for another network or receiver.")
    return PaymentRequirements.model_validate(ours)


# --- The facilitator ---


def _note(payment: _Payment) -> None:
    services.record_receipt(
        provider=PROVIDER,
        external_id=payment.external_id,
        account_id=payment.account_id,
        amount=payment.amount,
        state="submitted",
        payload={
            "sha256": payment.sha256,
            "payer": payment.payer,
            "user": payment.sender.user_id,
            "peer": payment.sender.peer,
            "visitor": payment.visitor,
        },
    )


def _verify(payment: _Payment) -> None:
    try:
        answer = facilitator.verify(payment.payload, payment.requirements)
    except facilitator.NoAnswer as error:
        raise _later() from error
    if not answer.is_valid:
        raise PaymentNotTaken(
            "payment_failed", f"The payment is invalid: {_short(answer.invalid_reason)}."
        )
    if answer.payer is not None and answer.payer.lower() != payment.payer.lower():
        raise PaymentNotTaken("payment_failed", "The payment was signed by another payer.")


def _settle(payment: _Payment) -> SettleResponse:
    try:
        answer = facilitator.settle(payment.payload, payment.requirements)
    except facilitator.NoAnswer as error:
        raise _later() from error
    if not answer.success:
        # It stays submitted: an attempt before or beside this one may have moved the money.
        raise _later(f" ({_short(answer.error_reason)})")
    if answer.amount is not None and answer.amount != str(payment.atomic):
        with log_fields.within(payment_id=payment.external_id):
            logger.error("%s was settled with %s", payment.external_id, answer.amount)
        raise PaymentNotTaken("payment_failed", "The payment was settled with a different amount.")
    return answer


def _later(reason: str = "") -> PaymentNotTaken:
    return PaymentNotTaken(
        "payment_failed",
        f"The outcome of the payment is not known yet{reason}. Send the same payment again.",
    )


def _short(reason: str | None) -> str:
    return (reason or "no reason was given")[:100]


# --- The ledger ---


def _credit(payment: _Payment, answer: SettleResponse) -> Paid:
    """Credit a settled payment into its token; a second request finds it done."""
    with transaction.atomic():
        done = services.top_up(
            key=payment.external_id,
            scope=PROVIDER,
            account=payment.account_id,
            amount=payment.amount,
            provider=PROVIDER,
            external_id=payment.external_id,
            memo=f"x402 {answer.transaction}"[:500],
        )
        if not done.replayed:
            _make_token(payment)
            receipt = Receipt.objects.get(provider=PROVIDER, external_id=payment.external_id)
            receipt.payload["transaction"] = answer.transaction[:200]
            receipt.save(update_fields=["payload"])
    if done.replayed:
        return _again(
            payment, Receipt.objects.get(provider=PROVIDER, external_id=payment.external_id)
        )
    return _paid(payment, answer.transaction)


def _again(payment: _Payment, receipt: Receipt) -> Paid:
    """Return a payment that was credited before, to its sender; raises PaymentNotTaken."""
    if not _is_senders(payment, receipt):
        # An operator may have found it on the chain and credited it, so its visitor has not taken
        # it yet.
        try:
            with transaction.atomic():
                _make_token(payment)
        except IntegrityError:
            raise _used() from None
    elif not PaymentToken.objects.filter(pk=payment.token_id).exists():
        with contextlib.suppress(IntegrityError), transaction.atomic():
            _make_token(payment)
    return _paid(payment, str(receipt.payload.get("transaction", "")))


def _make_token(payment: _Payment) -> None:
    issuance.make_for_payer(
        payment.token_id,
        payment.account_id,
        name=f"x402 {payment.payer}",
        audience=(payment.agent,),
    )


def _paid(payment: _Payment, transaction_id: str) -> Paid:
    return Paid(
        token_id=payment.token_id,
        payer=payment.payer,
        network=settings.UAMP_X402_NETWORK,
        transaction=transaction_id,
        atomic=str(payment.atomic),
        secret=issuance.secret_of(payment.token_id),
    )

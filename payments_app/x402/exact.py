"""The scheme `exact`: a stablecoin moves on a chain, carried out by a facilitator (notes §5, x402).

The law: a payment is its payer's authorization, named by network, asset, payer and nonce: one
receipt, credited once, into a token made for it. The receipt is written after the payment was
verified and before it is settled. An answer that is late, doubled, lost, or a 500 after the money
moved leaves the receipt `submitted`; the same payment again asks again and finds what became of it.
A payment that an answer was charged to is used up: on a chain everybody can read and repeat it.
What that answer left over is spent with the token's secret, which only the first answer carries.
"""

from __future__ import annotations

import hashlib
import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from pydantic import ValidationError
from x402.schemas.payments import PaymentPayload, PaymentRequirements
from x402.schemas.v1 import PaymentPayloadV1, PaymentRequirementsV1

from payments_app import services, tokens
from payments_app.models import Hold, PaymentToken, Receipt
from payments_app.x402 import facilitator, offers
from payments_app.x402.refusal import PaymentNotTaken

if TYPE_CHECKING:
    from collections.abc import Mapping

    from x402.schemas.responses import SettleResponse

    from payments_app.money import Money
    from payments_app.x402.headers import Offered

logger = logging.getLogger(__name__)

PROVIDER: Final = "x402"
_ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]{40}", re.ASCII)
_NONCE: Final = re.compile(r"0x[0-9a-fA-F]{64}", re.ASCII)
_INTEGER: Final = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Paid:
    """A payment that is credited; `secret` opens its token, in the first answer only."""

    token_id: str
    payer: str
    network: str
    transaction: str
    atomic: str
    secret: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Payment:
    """What was signed, and what it is held against."""

    payload: facilitator.Payload
    wanted: facilitator.Requirements
    payer: str
    atomic: int
    external_id: str
    sha256: str
    token_id: str
    amount: Money
    agent: str

    @property
    def account_id(self) -> int:
        """The account of the payment's token, made on first use."""
        return tokens.token_account(self.token_id, self.amount.asset, None)


def take(offer: Offered, requirement: Mapping[str, Any]) -> Paid:
    """Have a payment verified and settled, and credit it once; raises PaymentNotTaken."""
    payment = _read(offer, requirement)
    receipt = Receipt.objects.filter(provider=PROVIDER, external_id=payment.external_id).first()
    if receipt is not None and receipt.payload.get("sha256") != payment.sha256:
        # Known, but not with this signature: somebody repeats what they saw on the chain.
        raise PaymentNotTaken("token_invalid", "This payment is known with another signature.")
    if receipt is not None and receipt.state == Receipt.State.CONFIRMED:
        return _again(payment, str(receipt.payload.get("transaction", "")))
    if receipt is None:
        # What is not good leaves no row: anybody may send it.
        _verify(payment)
        _note(payment)
    return _credit(payment, _settle(payment))


# --- What was sent ---


def _read(offer: Offered, requirement: Mapping[str, Any]) -> _Payment:
    demanded = offers.demanded(requirement)
    ours = offers.exact_offer(demanded)
    if ours is None:
        raise PaymentNotTaken("payment_failed", "Payments on a chain are not taken here.")
    try:
        payload: facilitator.Payload = (
            PaymentPayloadV1.model_validate(offer.document)
            if offer.version == 1
            else PaymentPayload.model_validate(offer.document)
        )
    except ValidationError as error:
        raise PaymentNotTaken("token_invalid", "The payment lacks what x402 demands.") from error
    signed = payload.payload.get("authorization")
    if not isinstance(signed, dict):
        raise PaymentNotTaken("payment_failed", "Only EIP-3009 authorizations are taken here.")
    payer, nonce, value = (str(signed.get(name, "")) for name in ("from", "nonce", "value"))
    if not (_ADDRESS.fullmatch(payer) and _NONCE.fullmatch(nonce) and _INTEGER.fullmatch(value)):
        raise PaymentNotTaken("token_invalid", "The authorization of the payment is not whole.")
    atomic = int(value)
    if atomic < int(ours["amount"]):
        raise PaymentNotTaken(
            "insufficient_balance", f"{demanded} {demanded.asset} are needed: the payment is less."
        )
    wanted = _wanted(payload, {**ours, "amount": value}, requirement)
    name = f"{ours['network']}:{ours['asset']}:{payer}:{nonce}".lower()
    token_id = f"pt_{hashlib.sha256(name.encode()).hexdigest()[:32]}"
    return _Payment(
        payload=payload,
        wanted=wanted,
        payer=payer,
        atomic=atomic,
        external_id=name,
        sha256=hashlib.sha256(str(payload.payload.get("signature")).encode()).hexdigest(),
        token_id=token_id,
        amount=offers.from_chain(atomic, demanded.asset),
        agent=str(requirement["agent"]),
    )


def _wanted(
    payload: facilitator.Payload, ours: Mapping[str, Any], requirement: Mapping[str, Any]
) -> facilitator.Requirements:
    """Return what the payment is held against: ours, never what the client says it accepted."""
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
        payload={"sha256": payment.sha256, "payer": payment.payer},
    )


def _verify(payment: _Payment) -> None:
    try:
        answer = facilitator.verify(payment.payload, payment.wanted)
    except facilitator.NoAnswer as error:
        raise _later() from error
    if not answer.is_valid:
        raise PaymentNotTaken(
            "payment_failed", f"The payment is not good: {_short(answer.invalid_reason)}."
        )
    if answer.payer is not None and answer.payer.lower() != payment.payer.lower():
        raise PaymentNotTaken("payment_failed", "The payment was signed by somebody else.")


def _settle(payment: _Payment) -> SettleResponse:
    try:
        answer = facilitator.settle(payment.payload, payment.wanted)
    except facilitator.NoAnswer as error:
        raise _later() from error
    if not answer.success:
        # Submitted it stays: an earlier try, whose answer was lost, may have moved the money.
        raise PaymentNotTaken(
            "payment_failed", f"The payment was not carried out: {_short(answer.error_reason)}."
        )
    if answer.amount is not None and answer.amount != str(payment.atomic):
        logger.error("%s was settled with %s", payment.external_id, answer.amount)
        raise PaymentNotTaken("payment_failed", "The payment was carried out with another amount.")
    return answer


def _later() -> PaymentNotTaken:
    return PaymentNotTaken(
        "payment_failed",
        "It is not known yet what became of the payment. Send the same payment again.",
    )


def _short(reason: str | None) -> str:
    return (reason or "no reason was given")[:100]


# --- The ledger ---


def _credit(payment: _Payment, answer: SettleResponse) -> Paid:
    """Credit a settled payment into its token; who comes second finds it done."""
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
            Receipt.objects.filter(provider=PROVIDER, external_id=payment.external_id).update(
                payload={
                    "sha256": payment.sha256,
                    "payer": payment.payer,
                    "transaction": answer.transaction[:200],
                }
            )
    if done.replayed:
        return _again(payment, answer.transaction)
    return _paid(payment, answer.transaction, secret=tokens.secret_of(payment.token_id))


def _again(payment: _Payment, transaction_id: str) -> Paid:
    """Return a payment that was credited before, while no answer was charged to it."""
    used = Hold.objects.filter(
        Q(captured__gt=0) | Q(state=Hold.State.ACTIVE), account_id=payment.account_id
    )
    if used.exists():
        raise PaymentNotTaken("payment_failed", "This payment was used. Sign a new one.")
    if not PaymentToken.objects.filter(pk=payment.token_id).exists():
        # An operator credited it, who had looked on the chain: no answer of a facilitator came.
        _make_token(payment)
    return _paid(payment, transaction_id)


def _make_token(payment: _Payment) -> None:
    tokens.make_for_payer(
        payment.token_id,
        payment.account_id,
        name=f"x402 {payment.payer}",
        audience=(payment.agent,),
    )


def _paid(payment: _Payment, transaction_id: str, *, secret: str = "") -> Paid:
    return Paid(
        token_id=payment.token_id,
        payer=payment.payer,
        network=settings.UAMP_X402_NETWORK,
        transaction=transaction_id,
        atomic=str(payment.atomic),
        secret=secret,
    )

"""Requests in envelopes about a stream: for a position, a chat or a payment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from federation_app.envelope.errors import EnvelopeCode, EnvelopeError, malformed
from federation_app.envelope.limits import load
from federation_app.envelope.members.reading import Intent
from federation_app.envelope.streams.deltas import MAX_SEQUENCE, ack_of
from federation_app.terms.chain_payments import ON_CHAIN
from uamp import events as ev

if TYPE_CHECKING:
    from federation_app.envelope.members.reading import EnvelopeBody
    from federation_app.exchange.admission import Admitted
    from federation_app.models import EnvelopeStream

PROOF_BYTES: Final = 16 * 1024


def check_receiver(admitted: Admitted, stream: EnvelopeStream) -> None:
    """Raise EnvelopeError conflict for a payment of an agent that the peer did not ask."""
    if admitted.envelope.intent is Intent.CONFIRM and stream.receiver != admitted.receiver:
        raise EnvelopeError(
            EnvelopeCode.CONFLICT, "The stream belongs to another name on this server.", detail="to"
        )


def place_of(admitted: Admitted) -> int | None:
    """Return the delta that an envelope about a stream names; raises EnvelopeError malformed.

    It is `ack` of a `progress`, `after` of a `subscribe`, and the predecessor of `expected` in an
    `error`.
    """
    intent, body = admitted.envelope.intent, admitted.envelope.body
    if intent is Intent.PROGRESS:
        ack = ack_of(_members_of(body))
        if ack is None:
            raise malformed("A progress envelope must have an ack.", detail="ack")
        return ack
    if intent is Intent.SUBSCRIBE and body.content:
        return _number(_members_of(body).get("after", -1), least=-1, name="after")
    if intent is Intent.ERROR:
        return missing_of(_members_of(body))
    return None


def chat_of(admitted: Admitted) -> str:
    """Return the chat that a `subscribe` names; "" for any other envelope."""
    envelope = admitted.envelope
    if envelope.intent is not Intent.SUBSCRIBE or not envelope.body.content:
        return ""
    chat_id = _members_of(envelope.body).get("chat", "")
    if not isinstance(chat_id, str):
        raise malformed("chat must be the id of a chat.", detail="chat")
    return chat_id


def payment_of(admitted: Admitted) -> ev.PaymentSubmit | None:
    """Return the payment in a `confirm`; raises EnvelopeError for an invalid one.

    `response_id` names the response of the demand, as its `propose` does. The payment is a token,
    or a payment on a chain whose x402 document is the `proof`. A peer cannot spend the balance of
    its account, because the person whose account it is agrees to prices beforehand, and to nothing
    else.
    """
    if admitted.envelope.intent is not Intent.CONFIRM:
        return None
    members = _members_of(admitted.envelope.body)
    try:
        payment = msgspec.convert(members.get("payment"), ev.Payment)
        response_id = msgspec.convert(members.get("response_id"), str | None)
    except msgspec.ValidationError as error:
        raise malformed(
            f"A confirm envelope must have a valid payment: {error}.", detail="payment"
        ) from None
    if payment.scheme == ON_CHAIN:
        proof = payment.proof
        if not isinstance(proof, dict) or len(msgspec.json.encode(proof)) > PROOF_BYTES:
            raise malformed(
                f"The proof of a payment must be an x402 payment of at most {PROOF_BYTES} bytes.",
                detail="payment",
            )
    elif payment.scheme != "token":
        raise EnvelopeError(
            EnvelopeCode.UNAUTHORIZED,
            f"Pay with a payment token, or with the scheme {ON_CHAIN}.",
            detail="payment",
        )
    return ev.PaymentSubmit(payment=payment, response_id=response_id)


def missing_of(error: dict[str, Any]) -> int:
    """Return the last delta that a reader has, from its error 4.09; raises EnvelopeError."""
    if error.get("code") != EnvelopeCode.CONFLICT.value:
        raise EnvelopeError(
            EnvelopeCode.UNSUPPORTED, "Only error 4.09 with `expected` is supported.", detail="code"
        )
    return _number(error.get("expected"), least=0, name="expected") - 1


def _members_of(body: EnvelopeBody) -> dict[str, Any]:
    value = load(body.content)
    if not isinstance(value, dict):
        raise malformed("The content of this body must be a JSON object.", detail="body")
    return value


def _number(value: object, *, least: int, name: str) -> int:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if not isinstance(value, int) or not is_number or not least <= value <= MAX_SEQUENCE:
        raise malformed(f"{name} must be the delta_seq of a delta.", detail=name)
    return value

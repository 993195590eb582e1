"""AG-UI interrupts: the decisions that a run waits for, and the answers in a later run.

The id of an interrupt names the waiting response, so any process can accept the answer. An
interrupt about delegated work names the other agent's response too.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

import uamp
from gateway_app.ag_ui.read import InterruptAnswer, invalid
from uamp import events as ev
from uamp.amounts import format_amount

if TYPE_CHECKING:
    from collections.abc import Mapping

APPROVAL: Final = "tool_approval"
PAYMENT: Final = "payment_required"
_DELEGATED: Final = "delegated_approval"
_DELEGATED_PAYMENT: Final = "delegated_payment"
_APPROVAL_SCHEMA: Final = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "reason": {"type": "string"}},
}
_PAYMENT_SCHEMA: Final = {
    "type": "object",
    "properties": {"token": {"type": "string"}},
    "required": ["token"],
}
# Members of the UAMP frame rather than of its content.
_FRAME: Final = frozenset({"type", "event_id", "timestamp", "session_id", "seq"})


def interrupt_of(event: uamp.Event, waiting: str) -> dict[str, Any] | None:
    """Return the decision that a person or a payer must make before `waiting` resumes.

    None for an event that asks for something else.
    """
    match event:
        case ev.ToolApprovalRequired(response_id=response_id, call_id=call_id):
            is_own = response_id == waiting
            place = f"{waiting}:{call_id}" if is_own else f"{waiting}:{response_id}:{call_id}"
            id_ = f"{APPROVAL if is_own else _DELEGATED}:{place}"
            reason, schema, expires = APPROVAL, _APPROVAL_SCHEMA, event.expires_at
            message = f"{event.agent or 'The agent'} asks to call {event.name}."
            call = call_id if is_own else None
        case ev.PaymentRequired(requirements=needed):
            id_, reason, schema = f"{PAYMENT}:{waiting}", PAYMENT, _PAYMENT_SCHEMA
            costs = format_amount(needed.amount, needed.currency)
            message = f"This answer costs up to {costs}."
            if event.response_id != waiting:
                id_ = f"{_DELEGATED_PAYMENT}:{waiting}:{event.response_id}"
                agent = (needed.extra or {}).get("agent", "another agent")
                message = f"Work delegated to {agent} costs up to {costs}."
            call, expires = None, needed.expires_at
        case _:
            return None
    until = None if expires is None else datetime.fromtimestamp(expires, UTC).isoformat()
    members = {"toolCallId": call, "expiresAt": until}
    return {
        "id": id_,
        "reason": reason,
        "message": message,
        "responseSchema": schema,
        "metadata": event_content(event),
    } | {name: value for name, value in members.items() if value is not None}


def answer_of(answer: InterruptAnswer) -> tuple[str, uamp.Event]:
    """Return the response that an answer is for, and the event that delivers it.

    An approval stands unless its payload denies it; a payment carries a token. Raises
    RemoteProtocolError for an id that names no interrupt and for a payment without a token.
    """
    kind, _, rest = answer.interrupt_id.partition(":")
    waiting, _, call_id = rest.partition(":")
    payload = answer.payload if isinstance(answer.payload, dict) else {}
    resolved = answer.status == "resolved"
    asking = waiting
    if kind == _DELEGATED:
        asking, _, call_id = call_id.partition(":")
    if kind in {APPROVAL, _DELEGATED} and waiting and asking and call_id:
        reason = payload.get("reason")
        return waiting, uamp.ToolApprove(
            call_id=call_id,
            response_id=asking,
            approved=resolved and payload.get("approved", True) is True,
            reason=reason if isinstance(reason, str) else None,
        )
    if kind == PAYMENT or (kind == _DELEGATED_PAYMENT and call_id):
        unpaid = waiting if kind == PAYMENT else call_id
    else:
        unpaid = ""
    if waiting and unpaid:
        if not resolved:
            return waiting, uamp.ResponseCancel(response_id=unpaid)
        return waiting, uamp.PaymentSubmit(response_id=unpaid, payment=_payment_of(payload))
    raise invalid("`interruptId` does not match an open interrupt.")


def _payment_of(payload: Mapping[str, Any]) -> uamp.Payment:
    """Return the payment in an answer, whose members are those of UAMP (UAMP §5.15).

    Raises RemoteProtocolError for anything but a payment by token.
    """
    try:
        payment = msgspec.convert({"scheme": "token", **payload}, uamp.Payment)
    except msgspec.ValidationError as error:
        raise invalid(f"The payload is not a valid payment: {error}.") from None
    if payment.scheme != "token" or payment.token is None:
        raise invalid("The payload must be a payment of the scheme token, with a `token`.")
    return payment


def event_content(value: Any) -> dict[str, Any]:
    """Return the content of an event, without the members of its frame."""
    members: dict[str, Any] = msgspec.to_builtins(value)
    return {name: part for name, part in members.items() if name not in _FRAME}

"""Demands of an answer on its client, and the refusals of a client that cannot meet them.

A demand of delegated work is one of the answer that the client requested (`billing.demands`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec

from sessions_app import database
from sessions_app.billing import demands
from sessions_app.tools import delegated_calls
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev
from uamp.amounts import format_amount

if TYPE_CHECKING:
    from collections.abc import Iterable

    from uamp.events import Event

END_TRIES: Final = 40
END_SECONDS: Final = 0.1
_BELOW: Final = (
    ev.ToolApprovalRequired,
    ev.ToolApprovalDone,
    ev.PaymentRequired,
    ev.PaymentAccepted,
    ev.PaymentError,
)


async def is_of_work_below(event: Event, response_id: str) -> bool:
    """Return whether an event is a question about work that a response delegated."""
    if not isinstance(event, _BELOW) or not event.response_id or not response_id:
        return False
    if event.response_id == response_id:
        return False
    return await database.run(delegated_calls.works_for, event.response_id, response_id)


async def answer_of(event: Event) -> str:
    """Return the requested answer that an event is about, though delegated work may send it."""
    response_id: str = getattr(event, "response_id", None) or ""
    if not response_id or not isinstance(event, _BELOW):
        return response_id
    return await database.run(delegated_calls.requested_answer, response_id)


def refusal_of(event: Event, response_id: str) -> RemoteProtocolError | None:
    """Return the error for a demand that a client cannot meet in the protocol that it uses.

    Its details name, as `demand`, the agent that asks, the amount, and the response to pay. None
    for any other event.
    """
    match event:
        case ev.PaymentRequired(requirements=needed):
            agent = str((needed.extra or {}).get("agent", "The agent"))
            costs = format_amount(needed.amount, needed.currency)
            is_own = event.response_id == response_id
            demand = {"agent": agent, "amount": needed.amount, "currency": needed.currency}
            return RemoteProtocolError(
                ErrorCode.PAYMENT_REQUIRED,
                f"The answer costs {costs} more than was paid for it."
                if is_own
                else f"{agent}, to which the agent passed work on, asks for {costs}.",
                details={
                    "response_id": response_id,
                    "demand": {**demand, "response_id": event.response_id},
                },
            )
        case ev.ToolApprovalRequired():
            return RemoteProtocolError(
                ErrorCode.FORBIDDEN,
                f"A person has to allow the call of {event.name} first.",
                details={"response_id": response_id},
            )
    return None


async def refusal(pending: Iterable[Event], response_id: str) -> RemoteProtocolError:
    """Return the error for an answer that waits for what its client cannot do.

    If none of its pending questions is such a demand, it waits for someone else, or was stopped.
    """
    for question in pending:
        if (refused := refusal_of(question, response_id)) is not None:
            return refused
    rows = await database.run(demands.open_payments, response_id)
    if not rows:
        return RemoteProtocolError(ErrorCode.INTERRUPTED, "The answer was stopped.")
    payer = "another person" if rows[0].payer is None else rows[0].payer.get_username()
    return RemoteProtocolError(
        ErrorCode.PAYMENT_REQUIRED, f"The answer waits for a payment of {payer}."
    )


async def charged_failure(event: Event, response_id: str) -> Event:
    """Return a `response.error` with what its response has cost; any other event as it is.

    Work that the response delegated is stopped when it fails; the end of that work is awaited.
    """
    if not isinstance(event, ev.ResponseError):
        return event
    charged = await charged_details(response_id, has_stopped=True)
    details = {**(event.error.details or {}), **charged}
    error = msgspec.structs.replace(event.error, details=details)
    return msgspec.structs.replace(event, error=error)


async def charged_details(response_id: str, *, has_stopped: bool = False) -> dict[str, Any]:
    """Return the id of a response and, as `charged`, what it and its delegated work have cost.

    With `has_stopped`, the response has ended or is ending, in whichever process it runs; its end
    and that of its delegated work are awaited, for at most END_TRIES * END_SECONDS.
    """
    charges = await database.run(demands.charges_of, response_id)
    for _ in range(END_TRIES if has_stopped else 0):
        if charges.is_final:
            break
        await asyncio.sleep(END_SECONDS)
        charges = await database.run(demands.charges_of, response_id)
    amounts = [{"amount": str(amount), "currency": amount.asset} for amount in charges.amounts]
    return {"response_id": response_id, "charged": amounts}

"""The end of a response as one write: its terminal event, its message, what it used."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from django.conf import settings
from django.utils import timezone

import uamp
from chat_app.contents import references
from chat_app.log.entries import NewEvent, NewMessage, message_event
from payments_app.money import MAX_DIGITS, InvalidAmount, Money
from sessions_app.billing.reservations import Charge
from sessions_app.billing.usage import CAUSES, Bill, Cause, Meter, of_failed, of_stopped
from sessions_app.frames import new_event_id, now_ms
from sessions_app.records import CallAnswer
from sessions_app.store.records import Finish
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessions_app.response.context import RunContext

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a response ends: `status` is its end state, `error` why it failed.

    `cause` is who caused that, where the code of the error alone does not say it.
    """

    status: str
    finish_reason: str | None = None
    error: ev.ErrorDetail | None = None
    cause: Cause | None = None

    @property
    def is_stopped(self) -> bool:
        """Whether the asker or the payer caused that the response was not completed."""
        if self.error is None:
            return self.status == "cancelled"
        return (self.cause or CAUSES.get(self.error.code)) is Cause.ASKER


def finish_of(
    context: RunContext,
    ending: Ending,
    *,
    builder: uamp.OutputBuilder,
    meter: Meter,
    has_tool_calls: bool,
    held: Money | None = None,
) -> Finish:
    """Return the write that ends a response: exactly one terminal event.

    `held` is what is reserved for it, where that is known.
    """
    at, status, error = timezone.now(), ending.status, ending.error
    usage, charge = _used(context, ending, builder, meter, held)
    output = tuple(builder.output)
    terminal = _terminal_event(context.response_id, ending, output, usage)
    message = None
    if output:
        text_only = len(output) == 1 and isinstance(output[0], uamp.TextContent)
        message = NewMessage(
            id=f"msg_{new_event_id().replace('-', '')}",
            role="assistant",
            at=at,
            name=context.spec.name,
            content=builder.text,
            content_items=() if text_only else output,
            sender_agent_id=context.spec.id,
            response_id=context.response_id,
            status=status,
        )
    return Finish(
        chat_id=context.chat_id,
        response_id=context.response_id,
        fence=context.fence,
        status=status,
        event=NewEvent(
            type=uamp.type_of(terminal),
            payload=uamp.to_dict(terminal),
            response_id=context.response_id,
        ),
        message=message,
        message_event=message_event(context.chat_id, message) if message else None,
        text=builder.text,
        output=msgspec.to_builtins(output),
        usage=msgspec.to_builtins(usage),
        error=msgspec.to_builtins(error),
        content_ids=references.content_ids(output) if message and message.content_items else (),
        has_tool_calls=has_tool_calls,
        parent=context.parent,
        answer=_answer(context, status, error, builder) if context.parent else None,
        charge=charge,
        at=at,
    )


def _used(
    context: RunContext,
    ending: Ending,
    builder: uamp.OutputBuilder,
    meter: Meter,
    held: Money | None,
) -> tuple[uamp.UsageStats | None, Charge | None]:
    """Return what the answer used, with its cost, and what is to be paid for it."""
    pricing, status = context.spec.pricing, ending.status
    if status != "completed" and not ending.is_stopped:
        meter.unsent()
    if pricing.is_free:
        # No provider has counted the step that was stopped: about that is told.
        return meter.usage if status == "completed" else meter.used(), None
    usage = meter.used()
    try:
        bill = meter.bill()
    except InvalidAmount:
        # All that is held is taken, and no more: a provider counted more than the ledger can.
        logger.exception("the usage of %s is beyond the ledger: %s", context.response_id, usage)
        bill = Bill.of_output(Money(10**MAX_DIGITS - 1, pricing.currency))
    if ending.is_stopped:
        tokens = meter.tokens_written()
        has_begun = bool(builder.output or tokens)
        bill = of_stopped(bill, pricing, has_begun=has_begun, tokens=tokens)
        usage = usage or (uamp.UsageStats() if has_begun else None)
    elif status != "completed":
        bill = of_failed(bill, settings.UAMP_CHARGE_UNFINISHED)
    # More than what is held is never taken, so nothing else is said.
    amount = bill.total if held is None else min(bill.total, held)
    if usage is not None:
        usage = msgspec.structs.replace(usage, cost=bill.told(amount))
    return usage, Charge(
        response_id=context.response_id,
        chat_id=context.asked_in,
        agent_id=context.spec.id,
        amount=amount,
        protocol=context.protocol,
    )


def _answer(
    context: RunContext, status: str, error: ev.ErrorDetail | None, builder: uamp.OutputBuilder
) -> CallAnswer:
    """Return what the agent that asked is told: the text and every medium that came with it."""
    name, text = context.spec.name, builder.text
    if error is not None:
        failed = f"{name} could not finish: {error.message}"
        text = f"{failed} So far it said:\n\n{text}" if text else failed
    elif status == "cancelled":
        stopped = f"{name} was stopped."
        text = f"{stopped} So far it said:\n\n{text}" if text else stopped
    return CallAnswer(
        result=text or f"{name} said nothing.",
        is_error=status != "completed",
        content_items=_media(builder.output),
    )


def _media(output: Sequence[uamp.ContentItem]) -> tuple[uamp.ContentItem, ...]:
    """Return the media of an output, those of tool results too, each once."""
    found: dict[str, uamp.ContentItem] = {}
    for item in output:
        inner = item.tool_result.content_items if isinstance(item, uamp.ToolResultContent) else ()
        for medium in (item, *(inner or ())):
            for content_id in references.content_ids([medium])[:1]:
                if not isinstance(medium, uamp.ToolResultContent):
                    found.setdefault(content_id, medium)
    return tuple(found.values())


def _terminal_event(
    response_id: str,
    ending: Ending,
    output: tuple[uamp.ContentItem, ...],
    usage: uamp.UsageStats | None,
) -> ev.Event:
    event: ev.Event
    if ending.error is not None:
        event = ev.ResponseError(response_id=response_id, error=ending.error, usage=usage)
    elif ending.status == "cancelled":
        event = ev.ResponseCancelled(response_id=response_id, partial_output=output, usage=usage)
    else:
        response = ev.ResponseOutput(
            id=response_id,
            status=ending.status,
            output=output,
            usage=usage,
            finish_reason=ending.finish_reason,
        )
        event = ev.ResponseDone(response_id=response_id, response=response)
    return msgspec.structs.replace(event, event_id=new_event_id(), timestamp=now_ms())

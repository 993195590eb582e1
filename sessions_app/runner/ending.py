"""The end of a response as one write: its terminal event, its message, what it used (notes G4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from django.conf import settings
from django.utils import timezone

import uamp
from chat_app import contents
from chat_app.services import NewEvent, NewMessage, message_event
from sessions_app.frames import new_event_id, now_ms
from sessions_app.paying import Charge
from sessions_app.prices import Meter, of_unfinished
from sessions_app.turns import CallAnswer, Finish
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessions_app.runner.context import RunContext


def finish_of(
    context: RunContext,
    *,
    status: str,
    error: ev.ErrorDetail | None,
    finish_reason: str | None,
    builder: uamp.OutputBuilder,
    meter: Meter,
    has_tool_calls: bool,
) -> Finish:
    """Return the write that ends a response: exactly one terminal event (notes G4)."""
    at = timezone.now()
    usage, charge = _used(context, status, builder, meter)
    output = tuple(builder.output)
    terminal = _terminal_event(context.response_id, status, error, finish_reason, output, usage)
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
        content_ids=contents.content_ids(output) if message and message.content_items else (),
        has_tool_calls=has_tool_calls,
        parent=context.parent,
        answer=_answer(context, status, error, builder) if context.parent else None,
        charge=charge,
        at=at,
    )


def _used(
    context: RunContext, status: str, builder: uamp.OutputBuilder, meter: Meter
) -> tuple[uamp.UsageStats | None, Charge | None]:
    """Return what the answer used, with its cost, and what is to be paid for it (DESIGN D7)."""
    pricing = context.spec.pricing
    if pricing.is_free:
        return meter.usage, None
    usage = meter.used(builder.offset)
    bill = meter.bill(builder.offset)
    if status != "completed":
        bill = of_unfinished(bill, settings.UAMP_CHARGE_UNFINISHED)
    if usage is not None:
        usage = msgspec.structs.replace(usage, cost=bill.told())
    return usage, Charge(
        response_id=context.response_id,
        chat_id=context.asked_in,
        agent_id=context.spec.id,
        amount=bill.total,
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
            for content_id in contents.content_ids([medium])[:1]:
                if not isinstance(medium, uamp.ToolResultContent):
                    found.setdefault(content_id, medium)
    return tuple(found.values())


def _terminal_event(
    response_id: str,
    status: str,
    error: ev.ErrorDetail | None,
    finish_reason: str | None,
    output: tuple[uamp.ContentItem, ...],
    usage: uamp.UsageStats | None,
) -> ev.Event:
    event: ev.Event
    if error is not None:
        event = ev.ResponseError(response_id=response_id, error=error)
    elif status == "cancelled":
        event = ev.ResponseCancelled(response_id=response_id, partial_output=output)
    else:
        response = ev.ResponseOutput(
            id=response_id, status=status, output=output, usage=usage, finish_reason=finish_reason
        )
        event = ev.ResponseDone(response_id=response_id, response=response)
    return msgspec.structs.replace(event, event_id=new_event_id(), timestamp=now_ms())

"""The end of a response as one write: its terminal event, its message, what it used (notes G4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from django.utils import timezone

import uamp
from chat_app import contents
from chat_app.services import NewEvent, NewMessage, message_event
from sessions_app.frames import new_event_id, now_ms
from sessions_app.turns import Finish
from uamp import events as ev

if TYPE_CHECKING:
    from sessions_app.runner.run import RunContext


def finish_of(
    context: RunContext,
    *,
    status: str,
    error: ev.ErrorDetail | None,
    finish_reason: str | None,
    builder: uamp.OutputBuilder,
    usage: uamp.UsageStats | None,
    has_tool_calls: bool,
) -> Finish:
    """Return the write that ends a response: exactly one terminal event (notes G4)."""
    at = timezone.now()
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
        at=at,
    )


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

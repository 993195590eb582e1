"""The last write of a response: its message, terminal event, usage and charge."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from django.conf import settings
from django.utils import timezone

import uamp
from chat_app.contents import references
from chat_app.ids import new_event_id, new_hex
from chat_app.log.entries import NewMessage, message_event, salted_entry
from payments_app import services as ledger
from payments_app.money import MAX_DIGITS, InvalidAmount, Money
from sessions_app.billing.reservations import AnswerCharge
from sessions_app.billing.unfinished import failed_charge, interrupted_charge, stopped_charge
from sessions_app.billing.usage import Bill
from sessions_app.billing.weights import step_usage
from sessions_app.frames import now_ms
from sessions_app.records import CallAnswer
from sessions_app.states import CAUSE_CHARS
from sessions_app.store.records import Finish
from uamp import events as ev
from uamp.digital_source import AI_MADE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessions_app.response.context import RunContext
    from sessions_app.response.end.endings import Ending
    from sessions_app.response.output.answer import RunningAnswer
    from sessions_app.response.port import RunPort

logger = logging.getLogger(__name__)


class Concerned(NamedTuple):
    """The people mentioned in an answer, and the followers of its thread."""

    mentions: tuple[int, ...] = ()
    followers: tuple[int, ...] = ()


def finish_of(
    port: RunPort,
    ending: Ending,
    *,
    has_calls: bool,
    held: Money | None,
    concerned: Concerned,
) -> Finish:
    """Return the write that ends a response, with exactly one terminal event.

    `held` is the amount reserved for it, if known. `concerned` are people of the chat.
    """
    context, answer, builder = port.context, port.answer, port.answer.builder
    at, status, error = timezone.now(), ending.status, ending.error
    usage, charge = _used(context, ending, answer, held)
    output = tuple(builder.output)
    terminal = _terminal_event(context.response_id, ending, output, usage)
    message = None
    if output:
        text_only = len(output) == 1 and isinstance(output[0], uamp.TextContent)
        message = NewMessage(
            id=f"msg_{new_hex()}",
            role="assistant",
            at=at,
            name=context.spec.name,
            content=builder.text,
            content_items=() if text_only else output,
            sender_agent_id=context.spec.id,
            response_id=context.response_id,
            status=status,
            transport=context.protocol,
            version_of=context.replaces,
            thread=context.thread,
            mentions=concerned.mentions,
            followers=concerned.followers,
        )
    return Finish(
        chat_id=context.chat_id,
        response_id=context.response_id,
        fence=context.fence,
        status=status,
        event=salted_entry(terminal, response_id=context.response_id),
        message=message,
        message_event=message_event(context.chat_id, message) if message else None,
        text=builder.text,
        output=msgspec.to_builtins(output),
        usage=msgspec.to_builtins(usage),
        error=msgspec.to_builtins(error),
        error_cause=ending.error_cause or None,
        inferences=answer.inferences.rows(),
        content_ids=references.content_ids(output) if message and message.content_items else (),
        has_tool_calls=has_calls,
        parent=context.parent,
        answer=_call_answer(context, status, error, builder) if context.parent else None,
        charge=charge,
        at=at,
    )


def has_reached(answer: RunningAnswer) -> bool:
    """Return whether an answer has output for its client: text, sound, media or a client's call.

    The result of a tool with a price counts, too; thoughts, and calls of the server's tools and of
    other agents, do not.
    """
    output, meter = answer.builder.output, answer.meter
    has_written = any(
        (isinstance(item, uamp.TextContent) and item.text)
        # Its arguments are sent to the client, and may be the whole answer.
        or (isinstance(item, uamp.ToolCallContent) and item.tool_call.name in meter.client_tools)
        for item in output
    )
    return bool(has_written or meter.has_spoken or meter.tools or _media(output))


def _used(
    context: RunContext,
    ending: Ending,
    answer: RunningAnswer,
    held: Money | None,
) -> tuple[uamp.UsageStats | None, AnswerCharge | None]:
    """Return an answer's usage, including its cost, and the charge for it."""
    meter, pricing, status = answer.meter, context.spec.pricing, ending.status
    if status != "completed" and not ending.is_stopped:
        meter.mark_unsent()
    if pricing.is_free:
        # No provider counted the interrupted step, so the usage is an estimate.
        return meter.usage if status == "completed" else meter.used(), None
    usage = meter.used()
    try:
        bill = meter.due()
    except InvalidAmount:
        # A provider's count exceeds the ledger's range. Take all that is held and no more.
        logger.exception("the usage of %s is beyond the ledger: %s", context.response_id, usage)
        bill = Bill.of_output(Money(10**MAX_DIGITS - 1, pricing.currency))
    whole, is_delivered = bill, bool(answer.builder.output or meter.has_spoken)
    tokens = meter.tokens_written()
    if ending.is_stopped:
        has_begun = bool(is_delivered or tokens) and not ending.is_refused
        bill = stopped_charge(bill, pricing, has_begun=has_begun, tokens=tokens)
        usage = usage or (uamp.UsageStats() if is_delivered or tokens else None)
    elif status != "completed":
        bill = failed_charge(
            bill,
            pricing,
            settings.UAMP_CHARGE_UNFINISHED,
            is_delivered=is_delivered,
            tokens=tokens,
        )
        usage = usage or (uamp.UsageStats() if is_delivered else None)
    if ending.is_by_others:
        expected = pricing.expected_tokens or _usual_output(context)
        bill = interrupted_charge(bill, whole, tokens=tokens, of=expected)
    # A charge never exceeds the amount held, so report that as the cost.
    amount = bill.total if held is None else min(bill.total, held)
    if usage is not None:
        usage = msgspec.structs.replace(usage, cost=bill.as_cost(amount))
    return usage, AnswerCharge(
        response_id=context.response_id,
        chat_id=context.asked_in,
        agent_id=context.spec.id,
        amount=amount,
        protocol=context.protocol,
        transfer_id=ledger.new_transfer_id(),
    )


def _usual_output(context: RunContext) -> int:
    """Return the output tokens of a step: those reserved, without an asker's higher limit.

    Otherwise the asker could choose which share of the price is charged.
    """
    reserved = msgspec.structs.replace(context.request, history=(), resume=())
    unasked = msgspec.structs.replace(reserved, params={})
    steps = (step_usage(context.spec, request) for request in (reserved, unasked))
    return min(step.output_tokens or 1 for step in steps)


def _call_answer(
    context: RunContext, status: str, error: ev.ErrorDetail | None, builder: uamp.OutputBuilder
) -> CallAnswer:
    """Return the result of the delegating call: the text, and all media in the output."""
    name, text, cause = context.spec.name, builder.text, ""
    if error is not None:
        cause = f"the agent failed: {error.code}"
        failed = f"{name} could not finish: {error.message}"
        text = f"{failed} So far it said:\n\n{text}" if text else failed
    elif status == "cancelled":
        cause = "the agent was stopped"
        stopped = f"{name} was stopped."
        text = f"{stopped} So far it said:\n\n{text}" if text else stopped
    return CallAnswer(
        result=text or f"{name} said nothing.",
        is_error=status != "completed",
        content_items=_media(builder.output),
        cause=cause[:CAUSE_CHARS],
    )


def _media(output: Sequence[uamp.ContentItem]) -> tuple[uamp.ContentItem, ...]:
    """Return the media of an output, including those in tool results, without duplicates."""
    by_id: dict[str, uamp.ContentItem] = {}
    for item in output:
        inner = item.tool_result.content_items if isinstance(item, uamp.ToolResultContent) else ()
        for medium in (item, *(inner or ())):
            for content_id in references.content_ids([medium])[:1]:
                if not isinstance(medium, uamp.ToolResultContent):
                    by_id.setdefault(content_id, medium)
    return tuple(by_id.values())


def _terminal_event(
    response_id: str,
    ending: Ending,
    output: tuple[uamp.ContentItem, ...],
    usage: uamp.UsageStats | None,
) -> ev.Event:
    event: ev.ResponseDone | ev.ResponseError | ev.ResponseCancelled
    if ending.error is not None:
        event = ev.ResponseError(
            response_id=response_id, error=ending.error, partial_output=output, usage=usage
        )
    elif ending.status == "cancelled":
        canceller = ending.canceller
        event = ev.ResponseCancelled(
            response_id=response_id,
            partial_output=output,
            usage=usage,
            user_id=None if canceller is None else str(canceller.user_id),
            username=None if canceller is None else canceller.username,
        )
    else:
        response = ev.ResponseOutput(
            id=response_id,
            status=ending.status,
            output=output,
            usage=usage,
            finish_reason=ending.finish_reason,
        )
        event = ev.ResponseDone(response_id=response_id, response=response)
    return msgspec.structs.replace(
        event,
        event_id=new_event_id(),
        timestamp=now_ms(),
        digital_source_type=AI_MADE if output else None,
    )

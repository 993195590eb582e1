"""The single end of a response: cost, terminal event, message and one fenced write.

Runs end here, and so do responses that recovery cannot continue.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from django.conf import settings
from django.utils import timezone

import uamp
from chat_app.contents import references
from chat_app.conversation.threads import followers_of
from chat_app.ids import new_event_id, new_hex
from chat_app.log.entries import NewEvent, NewMessage, message_event
from chat_app.members.mentions import mentioned_people
from chat_app.transcripts.transcripts import keep_words
from payments_app import services as ledger
from payments_app.money import MAX_DIGITS, InvalidAmount, Money
from sessions_app import database
from sessions_app.billing.reservations import AnswerCharge
from sessions_app.billing.unfinished import of_failed, of_others, of_stopped
from sessions_app.billing.usage import CAUSES, Bill, Cause
from sessions_app.billing.weights import step_usage
from sessions_app.frames import now_ms
from sessions_app.models import Response
from sessions_app.records import CallAnswer
from sessions_app.response.end.signature import is_signed, signed
from sessions_app.store.records import Fenced, Finish, Finished
from sessions_app.tools.calls import begun_calls
from uamp import events as ev
from uamp.digital_source import AI_MADE
from uamp.output import medium_delta

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import TypeAlias

    from sessions_app.response.checkpoints import Checkpoints
    from sessions_app.response.context import RunContext
    from sessions_app.response.output.answer import RunningAnswer
    from sessions_app.response.payment_guard import PaymentGuard
    from sessions_app.response.port import RunPort
    from sessions_app.store.group_commit import TurnStore
    from sessions_app.store.records import FinishOutcome
    from sessions_app.store.responses import Canceller

    OnEnd: TypeAlias = Callable[["RunContext", "CommittedEnd"], None]

logger = logging.getLogger(__name__)

RETRY_SECONDS: Final = (0.2, 1.0, 3.0)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a response ends: its final state `status` and the `error` if it failed.

    `cause` names the party at fault if the error code does not imply it. `error_cause` is the
    original error message, for operators. `canceller` is the person who cancelled, if any.
    """

    status: str
    finish_reason: str | None = None
    error: ev.ErrorDetail | None = None
    cause: Cause | None = None
    canceller: Canceller | None = None
    error_cause: str = ""

    @property
    def is_stopped(self) -> bool:
        """Whether the asker or the payer kept the response from completing."""
        if self.error is None:
            return self.status == "cancelled"
        return (self.cause or CAUSES.get(self.error.code)) is Cause.ASKER

    @property
    def is_by_others(self) -> bool:
        """Whether someone other than the asker and the payer ended the response."""
        code = self.error.code if self.error else ""
        return (self.cause or CAUSES.get(code)) is Cause.OTHERS

    def judged(self, people: Collection[int | None]) -> Ending:
        """Return the ending with its cause, if it was cancelled by none of these people."""
        if self.canceller is None or self.canceller.user_id in people:
            return self
        return replace(self, cause=Cause.OTHERS)


class CommittedEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The committed end of a response: `count` log entries from `first_seq`."""

    first_seq: int
    count: int
    message: NewMessage | None
    # Whether delegated work may still be running, or people may still be asked to approve calls.
    may_have_open_work: bool


class ResponseEnd:
    """Writes and publishes the end of one response.

    `write` is called once, by the run's task or by recovery. `on_end` is called between the commit
    and the publishing, on the event loop.
    """

    def __init__(
        self,
        port: RunPort,
        guard: PaymentGuard | None,
        checkpoints: Checkpoints,
        *,
        store: TurnStore,
        on_end: OnEnd,
    ) -> None:
        self._port, self._guard, self._checkpoints = port, guard, checkpoints
        self._store = store
        self._on_end = on_end

    async def write(
        self, ending: Ending, *, has_calls: bool = True, may_have_open_work: bool = True
    ) -> None:
        """End the response: one fenced write, then publish what it committed.

        `has_calls` is whether the response may have rows of tool calls, which end with it. Never
        raises if the database is down: the lease then expires and recovery ends the response.
        """
        port, guard = self._port, self._guard
        finish, outcome = await self._commit(ending, has_calls=has_calls)
        await port.subscribers.drain()
        if finish is None or outcome is None or isinstance(outcome, Fenced):
            # Another process ended it; local listeners read the end from the log.
            port.subscribers.watch()
            return
        events = [finish.event, *([finish.message_event] if finish.message_event else [])]
        committed = CommittedEnd(
            first_seq=outcome.first_seq,
            count=len(events),
            message=finish.message,
            may_have_open_work=may_have_open_work,
        )
        self._on_end(port.context, committed)
        for seq, event in enumerate(events, outcome.first_seq):
            await port.subscribers.send_event(seq, event)
        if guard is not None and finish.charge:
            await guard.close(finish.charge.amount, outcome.available)
        if isinstance(outcome, Finished):
            await self._checkpoints.forget()

    async def _commit(
        self, ending: Ending, *, has_calls: bool
    ) -> tuple[Finish | None, FinishOutcome | None]:
        finish: Finish | None = None
        for pause in (*RETRY_SECONDS, None):
            try:
                if finish is None:
                    finish = await self._settled(ending, has_calls=has_calls)
                    if is_signed(finish):
                        finish = await signed(finish, self._port.context)
                return finish, await self._store.finish(finish)
            except Exception:
                # The database may be down briefly. If it stays down, the sweep ends the response.
                logger.exception("the end of %s could not be written", self._port.response_id)
                if pause is None:
                    return finish, None
                await asyncio.sleep(pause)
        return finish, None

    async def _settled(self, ending: Ending, *, has_calls: bool) -> Finish:
        """Return the write of the end, with a charge capped at the amount held now."""
        port, guard = self._port, self._guard
        if guard is not None:
            ending = ending.judged({port.context.user_id, guard.payer_id})
        if not port.sound.is_silent:
            spoken = await database.run(port.sound.keep)
            if spoken is not None and (delta := medium_delta(spoken)) is not None:
                port.answer.builder.add(ev.ResponseDelta(delta=delta))
        if port.transcripts:
            await database.run(_keep_words, port.response_id, port.transcripts)
        if ending.is_stopped and (open_calls := port.answer.meter.without_result()):
            rows = await database.run(begun_calls, port.response_id, open_calls)
            port.answer.meter.count_begun(rows)
        text = port.answer.builder.text
        concerned = _Concerned()
        if port.context.fan_out and ("@" in text or port.context.thread is not None):
            concerned = await database.run(
                _concerned, port.context.chat_id, port.context.thread, text
            )
        finish = _finish_of(
            port,
            ending,
            has_calls=has_calls,
            held=None if guard is None else guard.held,
            concerned=concerned,
        )
        if guard is None or finish.charge is None:
            return finish
        await guard.ends(finish.charge.amount)
        return _finish_of(port, ending, has_calls=has_calls, held=guard.held, concerned=concerned)


def _keep_words(response_id: str, texts: Sequence[str]) -> None:
    """Store the transcript of the audio that a response answers, for everyone who may play it."""
    question_id = Response.objects.values_list("message_id", flat=True).get(pk=response_id)
    if question_id is not None:
        keep_words(question_id, texts)


class _Concerned(NamedTuple):
    """The people mentioned in an answer, and the followers of its thread."""

    mentions: tuple[int, ...] = ()
    followers: tuple[int, ...] = ()


def _concerned(chat_id: str, thread: str | None, text: str) -> _Concerned:
    mentions = mentioned_people(chat_id, text)
    if thread is None:
        return _Concerned(mentions)
    return _Concerned(mentions, followers_of(chat_id, thread, mentions=mentions))


def _finish_of(
    port: RunPort,
    ending: Ending,
    *,
    has_calls: bool,
    held: Money | None,
    concerned: _Concerned,
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
        error_cause=ending.error_cause or None,
        inferences=answer.inferences.rows(),
        content_ids=references.content_ids(output) if message and message.content_items else (),
        has_tool_calls=has_calls,
        parent=context.parent,
        answer=_call_answer(context, status, error, builder) if context.parent else None,
        charge=charge,
        at=at,
    )


def _used(
    context: RunContext,
    ending: Ending,
    answer: RunningAnswer,
    held: Money | None,
) -> tuple[uamp.UsageStats | None, AnswerCharge | None]:
    """Return an answer's usage, including its cost, and the charge for it."""
    meter, pricing, status = answer.meter, context.spec.pricing, ending.status
    if status != "completed" and not ending.is_stopped:
        meter.unsent()
    if pricing.is_free:
        # No provider counted the interrupted step, so the usage is an estimate.
        return meter.usage if status == "completed" else meter.used(), None
    usage = meter.used()
    try:
        bill = meter.bill()
    except InvalidAmount:
        # A provider's count exceeds the ledger's range. Take all that is held and no more.
        logger.exception("the usage of %s is beyond the ledger: %s", context.response_id, usage)
        bill = Bill.of_output(Money(10**MAX_DIGITS - 1, pricing.currency))
    whole, is_delivered = bill, bool(answer.builder.output or meter.has_spoken)
    tokens = meter.tokens_written()
    if ending.is_stopped:
        has_begun = bool(is_delivered or tokens)
        bill = of_stopped(bill, pricing, has_begun=has_begun, tokens=tokens)
        usage = usage or (uamp.UsageStats() if has_begun else None)
    elif status != "completed":
        bill = of_failed(
            bill,
            pricing,
            settings.UAMP_CHARGE_UNFINISHED,
            is_delivered=is_delivered,
            tokens=tokens,
        )
        usage = usage or (uamp.UsageStats() if is_delivered else None)
    if ending.is_by_others:
        most = pricing.expected_tokens or step_usage(context.spec, context.request).output_tokens
        bill = of_others(bill, whole, tokens=tokens, of=most or 1)
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


def _call_answer(
    context: RunContext, status: str, error: ev.ErrorDetail | None, builder: uamp.OutputBuilder
) -> CallAnswer:
    """Return the result of the delegating call: the text, and all media in the output."""
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
    """Return the media of an output, including those in tool results, without duplicates."""
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

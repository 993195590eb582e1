"""The single end of a response: cost, terminal event, message and one fenced write.

Runs end here, and so do responses that recovery cannot continue.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec

from chat_app.conversation.threads import followers_of
from chat_app.log.entries import NewMessage
from chat_app.members.mentions import mentioned_people
from chat_app.mentioned import has_sign
from chat_app.transcripts.transcripts import keep_words
from payments_app import selectors as ledger_rows
from sessions_app import database
from sessions_app.access import standing
from sessions_app.billing import demands
from sessions_app.models import Response
from sessions_app.response.end.signature import is_signed, signed
from sessions_app.response.end.writes import Concerned, finish_of, has_reached
from sessions_app.store.records import Fenced, Finish, Finished
from sessions_app.tools.calls import started_calls
from sessions_app.tools.delegated_calls import calls_above
from uamp import events as ev
from uamp.output import medium_delta

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from sessions_app.response.checkpoints import Checkpoints
    from sessions_app.response.context import RunContext
    from sessions_app.response.end.endings import Ending
    from sessions_app.response.payment_guard import PaymentGuard
    from sessions_app.response.port import RunPort
    from sessions_app.store.group_commit import TurnStore
    from sessions_app.store.records import FinishOutcome

    OnEnd: TypeAlias = Callable[["RunContext", "CommittedEnd"], None]

logger = logging.getLogger(__name__)

RETRY_SECONDS: Final = (0.2, 1.0, 3.0)


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
        settled: Finish | None = None
        finish: Finish | None = None
        for pause in (*RETRY_SECONDS, None):
            try:
                # Each step is done once. A retry repeats only those that failed.
                if settled is None:
                    settled = await self._settled(ending, has_calls=has_calls)
                if finish is None:
                    finish = await self._signed(settled)
                return finish, await self._store.finish(finish)
            except Exception:
                # The database may be down briefly. If it stays down, the sweep ends the response.
                logger.exception("the end of %s could not be written", self._port.response_id)
                if pause is None:
                    return finish, None
                await asyncio.sleep(pause)
        return finish, None

    async def _signed(self, settled: Finish) -> Finish:
        """Return the write of the end with its signature, if it is to be signed."""
        if not is_signed(settled):
            return settled
        return await signed(settled, self._port.context)

    async def _judged(self, ending: Ending, guard: PaymentGuard) -> Ending:
        """Return an ending with its cause, by who ended the response and who pays for it."""
        context = self._port.context
        if ending.is_unexplained and context.parent is not None:
            loss = await database.run(_loss_above, context)
            ending = ending if loss is None else ending.after(loss)
        if ending.ended_by is None and ending.canceller is None:
            return ending
        # The chat's rule may have changed since: the ledger knows whose money is held.
        only_payer = await database.run(ledger_rows.only_payer, context.response_id)
        return ending.judged({context.user_id, guard.payer_id, only_payer})

    async def _settled(self, ending: Ending, *, has_calls: bool) -> Finish:
        """Return the write of the end, with a charge capped at the amount held now."""
        port, guard = self._port, self._guard
        if guard is not None:
            ending = await self._judged(ending, guard)
            if ending.is_stopped and not has_reached(port.answer):
                is_refused = await database.run(demands.is_demanding, port.response_id)
                ending = replace(ending, is_refused=is_refused)
        if not port.sound.is_silent:
            spoken = await database.run_long(port.context.counted_as, port.sound.keep)
            if spoken is not None and (delta := medium_delta(spoken)) is not None:
                port.answer.builder.add(ev.ResponseDelta(delta=delta))
        if port.transcripts:
            await database.run(_keep_words, port.response_id, port.transcripts)
        if ending.is_stopped and (open_calls := port.answer.meter.without_result()):
            rows = await database.run(started_calls, port.response_id, open_calls)
            port.answer.meter.count_begun(rows)
        text = port.answer.builder.text
        concerned = Concerned()
        if port.context.fan_out and (has_sign(text) or port.context.thread is not None):
            concerned = await database.run(
                _concerned, port.context.chat_id, port.context.thread, text
            )
        finish = finish_of(
            port,
            ending,
            has_calls=has_calls,
            held=None if guard is None else guard.held,
            concerned=concerned,
        )
        if guard is None or finish.charge is None:
            return finish
        await guard.ends(finish.charge.amount)
        return finish_of(port, ending, has_calls=has_calls, held=guard.held, concerned=concerned)


def _loss_above(context: RunContext) -> standing.Loss | None:
    """Return why an answer that a response works for had to stop, if it lost its right."""
    above = [call.response_id for call in calls_above(context.response_id)]
    rows = Response.objects.filter(pk__in=above).values_list("pk", "agent_id", "agent__name")
    bases = {
        pk: standing.AnswerBasis(
            agent_id=agent_id,
            agent=agent,
            user_id=context.user_id,
            chat_id=context.asked_in,
            credential=context.credential,
            actors=context.actors,
            is_delegated=pk != above[-1],
        )
        for pk, agent_id, agent in rows
    }
    return next(iter(standing.revoked_answers(bases).values()), None)


def _keep_words(response_id: str, texts: Sequence[str]) -> None:
    """Store the transcript of the audio that a response answers, for everyone who may play it."""
    question_id = Response.objects.values_list("message_id", flat=True).get(pk=response_id)
    if question_id is not None:
        keep_words(question_id, texts)


def _concerned(chat_id: str, thread: str | None, text: str) -> Concerned:
    mentions = mentioned_people(chat_id, text)
    if thread is None:
        return Concerned(mentions)
    return Concerned(mentions, followers_of(chat_id, thread, mentions=mentions))

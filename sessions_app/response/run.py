"""One running response: it iterates the agent and sends to its listeners.

A run belongs to the process, not to a socket. Listeners in this process get each frame as it is
made; the rest of the chat gets text collected over UAMP_COALESCE_MS. No delta is a database write.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
import weakref
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.conf import settings
from django.db import DataError

import uamp
from agents_app.runtime.agent_run import AgentError, RunFinished, run_agent, run_by_client
from chat_app.contents import storage
from chat_app.log import fanout
from sessions_app import database
from sessions_app.billing.payers import Payment
from sessions_app.billing.usage import Cause, Meter
from sessions_app.frames import frame, new_event_id, now_ms
from sessions_app.response.broadcast import Courier
from sessions_app.response.checkpoints import Checkpoints
from sessions_app.response.finish import Ending, finish_of
from sessions_app.response.payment_guard import Till
from sessions_app.response.row_state import RowState
from sessions_app.response.text_frames import Speech
from sessions_app.response.tool_broker import Broker
from sessions_app.store import leases, responses
from sessions_app.store.records import Fenced, Finish, Finished, FinishOutcome
from sessions_app.tools.calls import begun_calls, root_chat
from uamp import ErrorCode
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from chat_app.log.entries import NewMessage
    from sessions_app.response.context import Listener, RunContext
    from sessions_app.response.tool_broker import Begin
    from sessions_app.store.group_commit import TurnStore

logger = logging.getLogger(__name__)

FINISH_RETRY_SECONDS: Final = (0.2, 1.0, 3.0)


class Run:
    """A response that runs in this process."""

    def __init__(
        self,
        context: RunContext,
        *,
        store: TurnStore,
        on_written: Callable[[Run, int, int, NewMessage | None], None],
        begin: Begin,
        paused: set[str],
    ) -> None:
        self.context = context
        self._on_written = on_written
        self.builder = uamp.OutputBuilder()
        if context.request.resume:
            self.builder.add(_so_far(context))
        self.meter = Meter(context.spec, client_tools=run_by_client(context.spec, context.request))
        self.meter.resume(context.usage_before, context.request.resume)
        self.dirty = False
        self.row = RowState(context)
        # They serve the run and end with it: a circle would keep the whole answer in memory until
        # the garbage collector comes, which is seldom (`lifespan.calm_collector`).
        port: Run = weakref.proxy(self)
        self.broker = Broker(port, begin)
        self.till = None if context.spec.pricing.is_free else Till(port, _payment(context))
        self._checkpoints = Checkpoints(port)
        self._speech = Speech(port)
        self._store = store
        self._listeners: list[Listener] = []
        self._courier = Courier(context.chat_id, settings.UAMP_COALESCE_MS / 1000)
        self._fan_out = context.fan_out
        self._cancelled = False
        self._parked = False
        self._is_ending = False
        self._is_over = False
        self._task: asyncio.Task[None] | None = None
        self._limit: asyncio.Timeout | None = None
        most = context.spec.max_seconds or math.inf
        self._seconds = min(settings.UAMP_RESPONSE_SECONDS, most)
        # What the answer waits for that does not count, and the time that it has left after that.
        self._waits = 0
        self._paused = paused
        self._pauses = 0
        self._left = math.inf

    @property
    def itself(self) -> Run:
        """The run, for what must keep it: its own parts have a weak reference only."""
        return self

    @property
    def response_id(self) -> str:
        """The response."""
        return self.context.response_id

    @property
    def fans_out(self) -> bool:
        """Whether somebody besides the listeners in this process may hear it."""
        return self._fan_out or not self._listeners

    @property
    def has_ended(self) -> bool:
        """Whether nothing may be said any more."""
        return self._is_ending

    @property
    def only_waits(self) -> bool:
        """Whether it waits for a person, a client, a worker, another agent or a payment: a row."""
        return bool(self._pauses or self.broker.waiting) and not self.broker.is_handing

    # --- Life ---

    def start(self, ending: Ending | None = None) -> asyncio.Task[None]:
        """Begin, as a task of the process: it knows nothing of the task that asked for it.

        With an `ending` the agent is not run: what another process left behind ends so.
        """
        self._task = asyncio.create_task(
            self._run(ending), name=self.response_id, context=contextvars.Context()
        )
        return self._task

    def cancel(self) -> None:
        """Stop for the user: the provider's request is closed, what was said is kept.

        A run that is writing its end has ended already.
        """
        if self._task is not None and not self._cancelled and not self._is_ending:
            self._cancelled = True
            self._task.cancel()

    async def join(self) -> None:
        """Wait until it has ended, or was given back."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def park(self) -> None:
        """Stop without an end, so that another process can take the response over."""
        if self._task is None or self._task.done():
            return
        self._parked = True
        self._task.cancel()
        await asyncio.wait([self._task])
        try:
            await database.run(responses.flush_responses, [self.unflushed()])
        except (DataError, ValueError):
            # Whoever takes it over has what was kept before.
            logger.exception("the answer so far of %s was not kept", self.response_id)
        if not await database.run(leases.park_response, self.response_id, fence=self.context.fence):
            logger.info("response %s was not this process's to give back", self.response_id)

    def listen(self, listener: Listener) -> bool:
        """Let a listener in this process hear every frame; False when there is nothing to come.

        A run may be over before its process has forgotten it: who came then would never be told
        that it ended.
        """
        if not self._is_over and listener not in self._listeners:
            self._listeners.append(listener)
        return not self._is_over

    def leave(self, listener: Listener) -> None:
        """Stop telling a listener; from now on its chat group tells it."""
        if listener in self._listeners:
            self._listeners.remove(listener)
            self.watch()

    def watch(self) -> None:
        """Tell the chat's group from here on: somebody listens there."""
        self._fan_out = True

    def plain_output(self) -> list[dict[str, Any]]:
        """Return the answer so far as plain values."""
        plain: list[dict[str, Any]] = msgspec.to_builtins(self.builder.output)
        return plain

    def unflushed(self) -> responses.Flush:
        """Return the answer so far, which is kept a few times a second, not per delta."""
        self.dirty = False
        return responses.Flush(
            response_id=self.response_id,
            fence=self.context.fence,
            output=self.builder.output,
            usage=self.meter.usage,
        )

    # --- What the agent says ---

    async def _run(self, ending: Ending | None) -> None:
        try:
            ending = ending or await self._stream()
        except asyncio.CancelledError:
            if self._parked or not self._cancelled:
                raise
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
            ending = Ending("cancelled")
        except TimeoutError:
            failed = _failed(ErrorCode.TIMEOUT, "The answer took too long.")
            cause = Cause.ASKER if self.broker.took_the_time_of(self._seconds) else Cause.SERVER
            ending = replace(failed, cause=cause)
        except AgentError as error:
            ending = _failed(error.code, error.message, error.retry_after)
        except Exception:
            # Whatever went wrong, the response must end, and its reader must hear of it.
            logger.exception("response %s failed", self.response_id)
            ending = _failed(ErrorCode.INTERNAL_ERROR, "The server could not finish the answer.")
        finally:
            self._is_ending = True
            self._speech.flush()
        try:
            await self._finish(ending)
        finally:
            self._is_over = True
            for listener in list(self._listeners):
                listener.ended(self.response_id)

    async def _stream(self) -> Ending:
        context = self.context
        finish_reason: str | None = None
        if context.request.checkpoint is not None:
            # What its last process said after the checkpoint is said anew.
            self.dirty = True
            self._courier.replace(self.response_id, self.builder.text)
        async with asyncio.timeout(self._seconds) as self._limit:
            if self.till is not None:
                await self.till.open()
            await self.go_on()
            agent = run_agent(
                context.spec,
                context.request,
                broker=self.broker,
                media=self,
                checkpoints=self._checkpoints,
            )
            try:
                async for event in agent:
                    if isinstance(event, RunFinished):
                        finish_reason = event.finish_reason
                        continue
                    if self.till is not None:
                        await self.till.watch(event)
                    self.publish(event)
                    if self.till is not None and isinstance(event, ev.UsageDelta):
                        await self.till.counted()
            finally:
                await agent.aclose()
            if self.till is not None:
                await self.till.complete()
            # A wait whose tool was given up is over with the answer.
            await self.row.goes_on()
        return Ending("completed", finish_reason)

    async def go_on(self) -> None:
        """Say in the row that the answer goes on, once it waits for no tool and no payment."""
        till = self.till
        await self.row.goes_on(lambda: bool(self.broker.waiting or (till and till.waiting)))

    async def load(self, content_id: str) -> tuple[bytes, str]:
        """Return a content of this chat for the provider call (runtime.agent_run.MediaLoader)."""
        return await database.run(storage.read_in_chat, content_id, self.context.chat_id)

    def publish(self, event: ev.Event) -> None:
        """Add an event to the answer and tell it to everybody who hears this response."""
        if isinstance(event, ev.ResponseDelta) and event.delta.type == "text":
            if event.delta.text:
                self._publish_text(event.delta, event.delta.text)
            return
        # An answer that fails or is cancelled has used what its inferences used so far.
        self.meter.add(event)
        self.builder.add(event)
        self.dirty = True
        text = frame(event)
        self.tell_here(text)
        if self._fan_out:
            self._courier.signal(
                fanout.signal_message(
                    chat_id=self.context.chat_id,
                    frame=text,
                    origin=self.context.origin,
                    response_id=self.response_id,
                    before_end=True,
                )
            )

    def _publish_text(self, delta: ev.Delta, text: str) -> None:
        offset = self.builder.offset
        self.meter.wrote(text)
        self.builder.add_text(text)
        self.dirty = True
        self._speech.say(offset, delta, text)

    def tell_text(self, offset: int, delta: ev.Delta, text: str) -> None:
        """Tell text of the answer to everybody who hears it; `delta` holds the same text."""
        # The hottest path: one event is made, with all that it has, and encoded once.
        if self._listeners:
            encoded = uamp.encode(
                ev.ResponseDelta(
                    event_id=new_event_id(),
                    timestamp=now_ms(),
                    response_id=self.response_id,
                    delta=delta,
                    offset=offset,
                )
            )
            for listener in self._listeners:
                listener.text(self.response_id, offset, text, encoded)
        if self._fan_out:
            self._courier.text(self.response_id, offset, text, self.context.origin)

    def tell_here(self, text: str) -> None:
        """Tell a frame to those in this process who asked, after the text that came before it."""
        self._speech.flush()
        for listener in self._listeners:
            listener.frame(self.response_id, text)

    def tell_asker(self, event: ev.Event) -> None:
        """Tell the session that asked, wherever it is now: a `tool.call` is for one client."""
        text = frame(event)
        self.tell_here(text)
        if self.fans_out:
            self._courier.signal(
                fanout.signal_message(
                    chat_id=self.context.chat_id,
                    frame=text,
                    origin=self.context.origin,
                    response_id=self.response_id,
                    to_session_id=self.context.session_id,
                    before_end=True,
                )
            )

    async def ask_person(self, asked: ev.ToolApprovalRequired) -> None:
        """Ask whoever may decide (ToolCall.asked_in): the chat in which the work was asked for."""
        text = frame(asked)
        self.tell_here(text)
        chat_id = await database.run(root_chat, self.response_id)
        signal = fanout.signal_message(
            chat_id=chat_id, frame=text, origin=self.context.origin, response_id=self.response_id
        )
        await fanout.send(fanout.chat_group(chat_id), signal)

    @contextmanager
    def pausing(self) -> Iterator[None]:
        """Let the answer take no room of its process while it only waits (Capacity.paused)."""
        self._pauses += 1
        self._paused.add(self.response_id)
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses:
                self._paused.discard(self.response_id)

    @contextmanager
    def unhurried(self) -> Iterator[None]:
        """Let the time that a person or another agent takes not count as the answer's."""
        limit, now = self._limit, asyncio.get_running_loop().time
        if limit is None:
            yield
            return
        self._waits += 1
        if self._waits == 1:
            # An agent that waits for several has its time back when the last of them is there.
            self._left = (limit.when() or math.inf) - now()
            limit.reschedule(None)
        try:
            yield
        finally:
            self._waits -= 1
            if self._waits == 0 and not limit.expired():
                limit.reschedule(now() + self._left)

    # --- The end ---

    async def _finish(self, ending: Ending) -> None:
        finish, outcome = await self._write(ending)
        await self._courier.drain()
        if finish is None or outcome is None or isinstance(outcome, Fenced):
            # Somebody else ended it; who listens here reads that from the log.
            self._fan_out = True
        else:
            await self._tell_end(finish, outcome.first_seq)
            if self.till and finish.charge:
                await self.till.close(finish.charge.amount, outcome.available)
        if isinstance(outcome, Finished):
            await self._checkpoints.forget()

    async def _write(self, ending: Ending) -> tuple[Finish | None, FinishOutcome | None]:
        finish: Finish | None = None
        for pause in (*FINISH_RETRY_SECONDS, None):
            try:
                finish = finish or await self._finish_of(ending)
                return finish, await self._store.finish(finish)
            except Exception:
                # The database may be away for a moment; after the lease the sweeper ends it.
                logger.exception("the end of %s could not be written", self.response_id)
                if pause is None:
                    return finish, None
                await asyncio.sleep(pause)
        return finish, None

    async def _tell_end(self, finish: Finish, first_seq: int) -> None:
        events = [finish.event, *([finish.message_event] if finish.message_event else [])]
        self._on_written(self, first_seq, len(events), finish.message)
        for seq, new in enumerate(events, first_seq):
            text = fanout.frame_of(new.payload, seq)
            for listener in self._listeners:
                listener.event(seq, new.type, self.response_id, text)
            if self._fan_out:
                await fanout.send(
                    fanout.chat_group(finish.chat_id),
                    fanout.event_message(
                        chat_id=finish.chat_id,
                        seq=seq,
                        event_type=new.type,
                        response_id=self.response_id,
                        frame=text,
                        origin=self.context.origin,
                    ),
                )

    async def _finish_of(self, ending: Ending) -> Finish:
        if ending.is_stopped and (open_calls := self.meter.without_result()):
            rows = await database.run(begun_calls, self.response_id, open_calls)
            self.meter.count_begun(rows)
        finish = self._as_held(ending)
        if self.till is None or finish.charge is None:
            return finish
        await self.till.ends(finish.charge.amount)
        return self._as_held(ending)

    def _as_held(self, ending: Ending) -> Finish:
        return finish_of(
            self.context,
            ending,
            builder=self.builder,
            meter=self.meter,
            has_tool_calls=self.broker.used,
            held=None if self.till is None else self.till.held,
        )


def _payment(context: RunContext) -> Payment:
    """Return how the answer is paid: by asking, where its price is newer than its beginning."""
    return context.payment or Payment(source=None, payer_id=context.user_id)


def _so_far(context: RunContext) -> ev.ResponseDone:
    """Return the kept output of a response that goes on, as the builder takes it in."""
    output = ev.ResponseOutput(
        id=context.response_id, status="in_progress", output=tuple(context.request.resume)
    )
    return ev.ResponseDone(response_id=context.response_id, response=output)


def _failed(code: str, message: str, retry_after: float | None = None) -> Ending:
    details = None if retry_after is None else {"retry_after": retry_after}
    return Ending("failed", error=ev.ErrorDetail(code=code, message=message, details=details))

"""A running response: iterates the agent and publishes its events.

A run belongs to the process, not to a socket. Listeners in this process get each frame immediately;
the rest of the chat gets text batched over UAMP_COALESCE_MS. Deltas are not written to the
database.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import weakref
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from django.db import DatabaseError, DataError, InterfaceError

from agents_app.runtime.agent_run import AgentError, DaemonElsewhere, cause_of, run_agent
from chat_app.contents import storage
from sessions_app import database
from sessions_app.billing.usage import Cause
from sessions_app.response.checkpoints import Checkpoints
from sessions_app.response.daemons import ResponseDaemons
from sessions_app.response.end.endings import Ending
from sessions_app.response.end.finish import ResponseEnd
from sessions_app.response.measured import MeasuredResponse
from sessions_app.response.output.spoken_sound import milliseconds_of, sound_of
from sessions_app.response.payment_guard import PaymentGuard
from sessions_app.response.port import RunPort
from sessions_app.response.remote_tasks import ResponseTasks
from sessions_app.response.tool_broker import ResponseToolBroker
from sessions_app.store import leases, responses
from telemetry import log_fields, spans
from uamp import ErrorCode
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import TypeAlias

    from opentelemetry.context import Context

    from sessions_app.access.standing import Loss
    from sessions_app.connected.directory import ConnectedAgents
    from sessions_app.models import PaymentRequest, ToolCall
    from sessions_app.response.clock import IdleResponses
    from sessions_app.response.context import Listener, RunContext
    from sessions_app.response.end.finish import OnEnd
    from sessions_app.response.output.answer import RunningAnswer
    from sessions_app.response.tool_broker import Delegate
    from sessions_app.store.group_commit import TurnStore

    Give: TypeAlias = Callable[..., Awaitable[None]]

logger = logging.getLogger(__name__)


class Run:
    """A response running in this process.

    `start` creates its only task. Connections call `listen`, `leave` and `watch`. The process calls
    `cancel`, `revoke`, `park` and `lose`, reads the properties, and calls `settle_…` when a row
    shows that a wait is over. All run on one event loop. A run's parts share a RunPort and do not
    know the run.
    """

    def __init__(
        self,
        context: RunContext,
        *,
        store: TurnStore,
        on_end: OnEnd,
        delegate: Delegate,
        idle: IdleResponses,
        connected: ConnectedAgents,
        give: Give,
    ) -> None:
        self.context = context
        self._port = port = RunPort(context, idle)
        self._guard = None if context.spec.pricing.is_free else PaymentGuard(port)
        self._tools = ResponseToolBroker(port, self._guard, delegate)
        self._checkpoints = Checkpoints(port)
        self._end = ResponseEnd(port, self._guard, self._checkpoints, store=store, on_end=on_end)
        self._daemons = ResponseDaemons(context, connected)
        self._remote = ResponseTasks(context)
        self._give = give
        self._measured = MeasuredResponse(context)
        self._is_cancelled = False
        self._revoked: Ending | None = None
        self._is_parked = False
        self._task: asyncio.Task[None] | None = None

    @property
    def response_id(self) -> str:
        """The id of the response."""
        return self.context.response_id

    @property
    def answer(self) -> RunningAnswer:
        """The answer so far."""
        return self._port.answer

    @property
    def has_price(self) -> bool:
        """Whether the answer has to be paid for."""
        return self._guard is not None

    @property
    def has_ended(self) -> bool:
        """Whether it has published everything but its end."""
        return self._port.has_ended

    @property
    def only_waits(self) -> bool:
        """Whether it is only waiting for a client, person, worker, agent or payment."""
        waits = self._port.clock.is_idle or self._tools.waiting
        return bool(waits) and not self._tools.is_delegating

    @property
    def waits_for_client(self) -> bool:
        """Whether it can only proceed with a `tool.result`, a person's decision or a payment."""
        waits = self._tools.waits_for_client or self.waiting_payments
        return bool(waits) and not self._tools.is_opening

    @property
    def waiting_calls(self) -> list[int]:
        """The keys of the tool calls whose results it awaits."""
        return self._tools.waiting

    @property
    def undecided_calls(self) -> list[int]:
        """The keys of the tool calls that await approval."""
        return self._tools.asking

    @property
    def waiting_payments(self) -> list[int]:
        """The keys of the payment requests that it is waiting for."""
        return [] if self._guard is None else self._guard.waiting

    # --- Lifecycle ---

    def start(self) -> asyncio.Task[None]:
        """Start as a task of the process, which inherits only the ids of the calling task."""
        request_id, parent = log_fields.current().request_id, spans.current()
        self._task = asyncio.create_task(
            self._run(request_id, parent), name=self.response_id, context=contextvars.Context()
        )
        return self._task

    def cancel(self) -> None:
        """Stop at the user's request, closing the provider's request and keeping the answer so far.

        A run that is writing its end has already ended.
        """
        if self._task is not None and not self._is_cancelled and not self.has_ended:
            self._is_cancelled = True
            self._task.cancel()

    def revoke(self, loss: Loss) -> asyncio.Task[None] | None:
        """Stop like `cancel`, but end as failed: the asker or agent lost the right to continue.

        Return the task that writes the end, if there is one.
        """
        if not self._is_cancelled:
            self._revoked = _failed(loss.code, loss.message).after(loss)
            self.cancel()
        return self._task

    async def park(self) -> None:
        """Stop without ending, so that another process can take the response over."""
        if self._task is None or self._task.done():
            return
        self._is_parked = self._remote.is_left = True
        self._task.cancel()
        await asyncio.wait([self._task])
        try:
            await database.run(responses.flush_responses, [self.answer.flush()])
        except (DataError, ValueError):
            # The next process continues from what was stored before.
            logger.exception("the answer so far of %s was not kept", self.response_id)
        if not await database.run(leases.park_response, self.response_id, fence=self.context.fence):
            logger.info(
                "could not hand response %s back: another process holds it", self.response_id
            )

    def lose(self) -> None:
        """Stop without ending or publishing more: another process holds the response."""
        if self._task is None or self.has_ended:
            return
        self._is_parked = self._remote.is_left = True
        # Its listeners receive the rest from the chat's group and the log.
        self._port.subscribers.end()
        self._task.cancel()

    # --- Listeners ---

    def listen(self, listener: Listener) -> bool:
        """Add a listener for every frame; return False if nothing will follow."""
        return self._port.subscribers.listen(listener)

    def leave(self, listener: Listener) -> None:
        """Remove a listener; from now on its frames go to the chat's group."""
        self._port.subscribers.leave(listener)

    def watch(self) -> None:
        """Send every frame to the chat's group too, for clients that read it there."""
        self._port.subscribers.watch()

    # --- Completed waits ---

    def settle_calls(self, rows: list[ToolCall]) -> None:
        """Accept tool calls that have ended."""
        self._tools.settle(rows)

    def decide_calls(self, pks: Sequence[int]) -> None:
        """Accept tool calls that a person has approved or refused."""
        self._tools.decided(pks)

    def settle_payments(self, rows: list[PaymentRequest]) -> None:
        """Accept payment requests that are paid or expired."""
        if self._guard is not None:
            self._guard.settle(rows)

    # --- The task ---

    async def _run(self, request_id: str, parent: Context | None) -> None:
        log_fields.begin(request_id=request_id)
        with self._measured.span(parent):
            tools = self._tools
            try:
                ending = await self._ending()
            except DaemonElsewhere as held:
                await self._give_away(held.process)
                return
            try:
                await self._end.write(
                    ending,
                    has_calls=tools.has_calls,
                    may_have_open_work=tools.has_delegated or tools.has_asked,
                )
            finally:
                self._port.subscribers.end()
        self._measured.end(ending)

    async def _give_away(self, process: str) -> None:
        """Hand the response to the process that holds the socket of the agent's daemon."""
        try:
            await self._give(self.response_id, fence=self.context.fence, process=process)
        except (DatabaseError, InterfaceError):
            # Recovery finds it when its lease ends.
            logger.exception("response %s was not given to %s", self.response_id, process)
        finally:
            self._port.subscribers.watch()
            self._port.subscribers.end()

    async def _ending(self) -> Ending:
        """Run the agent and return how the response ends.

        Raises CancelledError if the run is parked, and DaemonElsewhere if another process has to
        continue it.
        """
        try:
            return await self._stream()
        except asyncio.CancelledError:
            if self._is_parked or not self._is_cancelled:
                raise
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
            return self._revoked or Ending("cancelled", canceller=await self._canceller())
        except DaemonElsewhere:
            raise
        except TimeoutError:
            failed = _failed(ErrorCode.TIMEOUT, "The answer took too long.")
            is_clients = self._tools.client_time.explains(self._port.clock.seconds)
            return replace(failed, cause=Cause.ASKER if is_clients else Cause.SERVER)
        except AgentError as error:
            failed = _failed(error.code, error.message, error.retry_after)
            cause = Cause.SERVER if error.is_elsewhere else None
            return replace(failed, error_cause=cause_of(error), cause=cause)
        except Exception as error:
            # The response must end, and its readers must learn of the failure.
            logger.exception("response %s failed", self.response_id)
            failed = _failed(ErrorCode.INTERNAL_ERROR, "The server could not finish the answer.")
            return replace(failed, error_cause=cause_of(error))
        finally:
            self._port.end()

    async def _canceller(self) -> responses.Canceller | None:
        """Return the person who cancelled it, or None while the database is down."""
        try:
            return await database.run(responses.canceller_of, self.response_id)
        except DatabaseError:
            logger.warning("the canceller of %s was not read", self.response_id, exc_info=True)
            return None

    async def _stream(self) -> Ending:
        port, guard, request = self._port, self._guard, self.context.request
        if request.checkpoint is not None or request.remote_task is not None:
            # Anything that the previous process sent after the checkpoint, or of the remote
            # agent's answer, is sent again.
            port.answer.keep_for_next_flush()
            port.subscribers.replace_text(port.answer.text)
        async with port.clock.limit():
            media_tokens = 0 if guard is None else await guard.open()
            await port.row.resume()
            # The agent's objects form reference cycles, which must not keep the answer alive.
            end = await run_agent(
                self.context.spec,
                request,
                self._receive if guard is None else partial(self._receive_paid, guard),
                broker=weakref.proxy(self._tools),
                media=self,
                checkpoints=weakref.proxy(self._checkpoints),
                daemons=self._daemons,
                recorder=self._remote,
                inferences=port.answer.inferences,
                media_tokens=media_tokens,
            )
            if guard is not None:
                await guard.complete()
            port.row.end_waits()
            await port.row.resume()
        return Ending("completed", end.finish_reason)

    def _receive(self, output: ev.Event | str) -> Awaitable[None] | None:
        self._measured.count()
        self._port.publish(output)
        piece = sound_of(output)
        return None if piece is None else self._port.sound.wait_for_listeners(piece)

    async def _receive_paid(self, guard: PaymentGuard, output: ev.Event | str) -> None:
        piece = sound_of(output)
        if piece is None:
            await guard.watch(output)
        else:
            await guard.spoke(milliseconds_of(piece))
        if (waiting := self._receive(output)) is not None:
            await waiting
        if isinstance(output, ev.UsageDelta):
            await guard.counted()

    async def load(self, content_id: str) -> tuple[bytes, str]:
        """Return a content of this chat for a provider call (runtime.agent_run.MediaLoader)."""
        is_paid = not self.context.spec.pricing.reads_free
        read = partial(storage.read_in_chat, is_paid=is_paid)
        return await database.run(read, content_id, self.context.chat_id)


def _failed(code: str, message: str, retry_after: float | None = None) -> Ending:
    details = None if retry_after is None else {"retry_after": retry_after}
    return Ending("failed", error=ev.ErrorDetail(code=code, message=message, details=details))

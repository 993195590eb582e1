"""The tool calls of one response: each is written as a row, sent, and then awaited.

Waits are rows; the waiting coroutine only saves reading them. If this process is gone, the result
still finds the row, and the response continues from its stored output.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
from django.utils import timezone

import uamp
from agents_app.conversation.state_changes import described
from agents_app.conversation.text_weights import max_weight
from agents_app.tools.registry import ServerTool, ToolError, ToolOutcome
from sessions_app import database
from sessions_app.models import ToolCall, ToolCallKind
from sessions_app.records import CallAnswer
from sessions_app.response.client_time import ClientTime
from sessions_app.response.row_state import takeover_error
from sessions_app.states import ToolCallState
from sessions_app.tools import approvals, calls
from sessions_app.tools.calls import OpenedCall, open_call
from sessions_app.tools.contents import presentable
from sessions_app.tools.delegated_calls import answer_call
from sessions_app.tools.shared_states import change_for_response, read_for_response
from sessions_app.tools.tasks import notify_workers
from uamp import RemoteProtocolError
from uamp import events as ev
from uamp.shared_state import StateChange

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from agents_app.conversation.delegation_orders import DelegationOrder
    from sessions_app.response.payment_guard import PaymentGuard
    from sessions_app.response.port import DelegatedRun, RunPort
    from uamp.json_patch import PatchOperation
    from uamp.shared_state import VersionedState

    Delegate: TypeAlias = Callable[
        [RunPort, int, uamp.ToolCallData, DelegationOrder], Awaitable[Sequence[DelegatedRun]]
    ]


KEEPALIVE_SECONDS: Final = 30.0


class ResponseToolBroker:
    """The ToolBroker (agents_app.runtime.agent_run) of one response.

    The run's task and its tools' tasks call it. Any task of the event loop may read its properties
    and, after reading the rows, call `settle` and `decided`. `delegate` starts the response of
    another agent (turn.delegation).
    """

    def __init__(self, port: RunPort, guard: PaymentGuard | None, delegate: Delegate) -> None:
        self._port, self._context = port, port.context
        self._guard = guard
        self._delegate = delegate
        self._waits: dict[int, asyncio.Future[ToolOutcome]] = {}
        self._client_time = ClientTime()
        self._asking: dict[int, asyncio.Event] = {}
        self._delegated: dict[int, DelegatedRun] = {}
        # The number of orders being handed to other agents, which have not started on them.
        self._delegating = 0
        # Client calls being written, which have not all been sent yet.
        self._opening = 0
        # After a takeover, what the earlier process did is unknown; assume everything.
        self.has_calls = port.context.was_taken_over
        self.has_delegated = port.context.was_taken_over
        self.has_asked = port.context.was_taken_over

    @property
    def waiting(self) -> list[int]:
        """The keys of the calls whose results are awaited."""
        return list(self._waits)

    @property
    def asking(self) -> list[int]:
        """The keys of the calls that await approval."""
        return list(self._asking)

    @property
    def waits_for_client(self) -> bool:
        """Whether the answer can only proceed with a `tool.result` or a person's decision."""
        asks = any(not decision.is_set() for decision in self._asking.values())
        # Another agent working for this answer may be waiting in the same way.
        below = any(run.waits_for_client for run in self._delegated.values())
        return bool(self._client_time.is_running or asks or below)

    @property
    def is_opening(self) -> bool:
        """Whether a client call has been written but not sent."""
        return bool(self._opening)

    @property
    def is_delegating(self) -> bool:
        """Whether work is being delegated, or the end of delegated work is being processed."""
        return bool(self._delegating) or any(run.has_ended for run in self._delegated.values())

    @property
    def client_time(self) -> ClientTime:
        """The time that the client took for its calls."""
        return self._client_time

    # --- Admission: the agent's next action must be paid ---

    async def admit_step(self) -> None:
        """Let the next inference be sent once it is paid."""
        if self._guard is not None:
            await self._guard.admit_step()

    async def admit_tool(self, call: uamp.ToolCallData) -> None:
        """Let a tool run once it is paid."""
        if self._guard is not None:
            await self._guard.admit_tool(call.name)
        self._port.answer.meter.began(call.id)

    async def wrote(self, text: str) -> None:
        """Count text that the model writes into its calls, once it is paid."""
        if self._guard is not None:
            await self._guard.wrote(text)

    def inference_sent(self) -> None:
        """Count the input of an inference as it is sent."""
        self._port.answer.meter.mark_sent()

    # --- Client tools ---

    async def client_tool(self, call: uamp.ToolCallData) -> ToolOutcome:
        """Send a `tool.call` to the session's client and await its `tool.result` (UAMP §3.2)."""
        port = self._port
        self._opening += 1
        try:
            opened, event = await self._open_for_client(call)
        finally:
            self._opening -= 1
        wait = self._wait(opened.pk)
        with self._client_time.of_call(opened.pk, wait), port.clock.idle():
            port.send_to_asker(event)
            outcome = await self._settle(opened.pk, wait)
        port.answer.add(
            ev.ToolResult(
                call_id=event.call_id,
                result=outcome.result,
                is_error=outcome.is_error,
                content_items=outcome.content_items or None,
            )
        )
        return outcome

    async def hand_over(self, call: uamp.ToolCallData) -> None:
        """Send the client a call that ends the response; no result is awaited.

        The row records that the call was made, and ends with the response.
        """
        opened, event = await self._open_for_client(call)
        self._end_wait(opened.pk)
        await self._port.row.resume()
        self._port.send_to_asker(event)

    async def _open_for_client(self, call: uamp.ToolCallData) -> tuple[OpenedCall, ev.ToolCall]:
        """Add a call to the answer and write it; return its row and the event for the client."""
        event = ev.ToolCall(
            call_id=call.id,
            name=call.name,
            arguments=call.arguments,
            response_id=self._context.response_id,
        )
        answer = self._port.answer
        # Calls stand in the output in the order in which the model made them.
        answer.add(event)
        opened = await self._open(ToolCallKind.CLIENT, call)
        if opened.call_id != call.id:
            answer.rename_call(call.id, opened.call_id)
            event = msgspec.structs.replace(event, call_id=opened.call_id)
        return opened, event

    # --- Long tools ---

    async def long_tool(self, tool: ServerTool, call: uamp.ToolCallData) -> ToolOutcome:
        """Hand a call to a worker, after a person's approval if the tool requires it.

        The row is the queue; the Celery task only makes a worker look at it.
        """
        self._port.answer.meter.has_row(call.id)
        opened = await self._open(ToolCallKind.LONG, call, needs_approval=tool.needs_approval)
        wait = self._wait(opened.pk)
        with self._keepalive(call.id):
            if opened.status == ToolCallState.ASKING:
                await self._ask(call, opened)
            else:
                await database.run(notify_workers, opened.pk)
            return await self._settle(opened.pk, wait)

    async def _ask(self, call: uamp.ToolCallData, opened: OpenedCall) -> None:
        """Ask a person and wait for the decision; the answer's clock is stopped meanwhile."""
        question = approval_of(self._context.spec.name, self._context.response_id, call, opened)
        decided = self._asking[opened.pk] = asyncio.Event()
        self.has_asked = True
        try:
            await self._port.ask_person(question)
            self.decided(await database.run(approvals.decided_calls, [opened.pk]))
            with self._port.clock.stopped():
                await decided.wait()
        finally:
            del self._asking[opened.pk]

    def decided(self, pks: Sequence[int]) -> None:
        """Accept calls that a person approved; refused calls have ended as well."""
        for pk in pks:
            if (decision := self._asking.get(pk)) is not None:
                decision.set()

    # --- Other agents and contents ---

    async def delegate(self, call: uamp.ToolCallData, order: DelegationOrder) -> ToolOutcome:
        """Delegate a task to another agent (UAMP §8.5.4); the end of its response ends the call."""
        self.has_delegated = True
        self._port.answer.meter.has_row(call.id)
        self._delegating += 1
        try:
            opened = await self._open(ToolCallKind.AGENT, call)
            wait = self._wait(opened.pk)
            if opened.status == ToolCallState.WAITING:
                await self._give(opened.pk, call, order)
        finally:
            self._delegating -= 1
        try:
            # The other agent has its own time limit, and may have to wait for a person.
            with self._keepalive(call.id), self._port.clock.stopped():
                return await self._settle(opened.pk, wait)
        finally:
            self._delegated.pop(opened.pk, None)

    async def _give(self, pk: int, call: uamp.ToolCallData, order: DelegationOrder) -> None:
        try:
            runs = await self._delegate(self._port, pk, call, order)
            self._delegated.update((pk, run) for run in runs)
        except (ToolError, RemoteProtocolError) as error:
            reason = error.message if isinstance(error, RemoteProtocolError) else str(error)
            refused = CallAnswer(result=reason, is_error=True, cause="refused")
            await database.run(answer_call, pk, refused, at=timezone.now())

    async def present(self, content_ids: Sequence[str]) -> tuple[uamp.ContentItem, ...]:
        """Return the items of contents that the chat may see (UAMP §8.5.4); raises ToolError."""
        context = self._context
        return await database.run(presentable, context.response_id, context.chat_id, content_ids)

    async def shared_state(self) -> VersionedState:
        """Return the state of the response's chat, or the one that was paid for if it has grown."""
        context = self._context
        state = await database.run(read_for_response, context.chat_id)
        paid = context.request.shared_state
        if paid is None or context.spec.pricing.reads_free:
            return state
        weighs, reserved = (max_weight(described(value)) for value in (state, paid))
        return state if weighs <= reserved else paid

    async def change_state(
        self, patch: Sequence[PatchOperation], *, version: int
    ) -> VersionedState:
        """Change the state of the response's chat; raises ToolError for an invalid change.

        A run that has lost its response to another process changes nothing.
        """
        context = self._context
        change = StateChange(patch=patch, version=version)
        state = await database.run(
            change_for_response,
            change,
            chat_id=context.chat_id,
            response_id=context.response_id,
            fence=context.fence,
            agent=context.spec.name,
        )
        if state is None:
            raise takeover_error()
        return state

    # --- Rows and waits ---

    @contextmanager
    def _keepalive(self, call_id: str) -> Iterator[None]:
        sending = asyncio.create_task(self._send_keepalives(call_id))
        try:
            yield
        finally:
            sending.cancel()

    async def _send_keepalives(self, call_id: str) -> None:
        """Publish periodically that a long tool is still running.

        Clients that do not know `progress` give up on a response after two minutes of silence.
        """
        while True:
            await asyncio.sleep(KEEPALIVE_SECONDS)
            progress = ev.ToolProgress(call_id=call_id, text="")
            self._port.publish(
                ev.ResponseDelta(
                    response_id=self._context.response_id,
                    delta=ev.Delta(type="tool_progress", tool_progress=progress),
                )
            )

    async def _open(
        self, kind: str, call: uamp.ToolCallData, *, needs_approval: bool = False
    ) -> OpenedCall:
        self.has_calls = True
        port, answer = self._port, self._port.answer
        async with port.row.begin_wait() as waits:
            snapshot = answer.snapshot()
            opened = await database.run(
                open_call,
                response_id=self._context.response_id,
                fence=self._context.fence,
                kind=kind,
                call=call,
                text=snapshot.text,
                output=snapshot.output,
                needs_approval=needs_approval,
            )
            if opened is None:
                raise takeover_error()
            self._wait(opened.pk)
            waits.add(("call", opened.pk))
        # A concurrent flush may have overwritten the output that has this call with an older one.
        answer.keep_for_next_flush()
        return opened

    def _wait(self, pk: int) -> asyncio.Future[ToolOutcome]:
        return self._waits.setdefault(pk, asyncio.get_running_loop().create_future())

    def _end_wait(self, pk: int) -> None:
        self._waits.pop(pk, None)
        self._port.row.end_wait(("call", pk))

    async def _settle(self, pk: int, wait: asyncio.Future[ToolOutcome]) -> ToolOutcome:
        try:
            # The answer may have arrived before this process started waiting.
            self.settle(await database.run(calls.ended_calls, [pk]))
            outcome = await wait
        finally:
            self._end_wait(pk)
        await self._port.row.resume()
        return outcome

    def settle(self, rows: list[ToolCall]) -> None:
        """Accept calls that have ended."""
        self.decided([row.pk for row in rows])
        for row in rows:
            wait = self._waits.get(row.pk)
            if wait is not None and not wait.done():
                wait.set_result(outcome_of(row))
                self._client_time.has_result(row.pk)


def outcome_of(row: ToolCall) -> ToolOutcome:
    """Return the outcome stored in the row of an ended call."""
    return ToolOutcome(
        result=row.result,
        is_error=row.is_error,
        content_items=msgspec.convert(row.content_items, tuple[uamp.ContentItem, ...]),
        # An approval does not end the call; a refusal does.
        is_refused=row.decided_at is not None and row.decided_at == row.finished_at,
    )


def approval_of(
    agent: str, response_id: str, call: uamp.ToolCallData, opened: OpenedCall
) -> ev.ToolApprovalRequired:
    """Return the event that asks a person to approve a call."""
    return ev.ToolApprovalRequired(
        call_id=call.id,
        name=call.name,
        arguments=call.arguments,
        response_id=response_id,
        agent=agent,
        user_id=opened.asker,
        expires_at=int(opened.deadline.timestamp()),
    )

"""Tool calls of a run: written first, then told, then awaited.

A wait is a row. The coroutine that waits here is only the quick way to go on: when this process is
gone, the answer finds the row, and the response is continued from its kept output.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
from django.utils import timezone

import uamp
from agents_app.tools.registry import ServerTool, ToolError, ToolOutcome
from sessions_app import database, selectors
from sessions_app.models import ToolCall
from sessions_app.records import CallAnswer
from sessions_app.response.row_state import taken_over
from sessions_app.tools.calls import OpenedCall, answer_call, open_call
from sessions_app.tools.contents import presentable
from sessions_app.tools.tasks import ring
from uamp import RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from agents_app.conversation.teamwork import Order
    from sessions_app.response.run import Run

    Begin: TypeAlias = Callable[[Run, int, uamp.ToolCallData, Order], Awaitable[Sequence[Run]]]


ALIVE_SECONDS: Final = 30.0


class Broker:
    """The ToolBroker of one run; `begin` has another agent begin (turn.delegation)."""

    def __init__(self, run: Run, begin: Begin) -> None:
        self._run = run
        self._begin = begin
        # Whether other agents were given work, so that a cancelled run cancels theirs too.
        self.has_delegated = run.context.was_taken_over
        self._waits: dict[int, asyncio.Future[ToolOutcome]] = {}
        self._client_waits: set[int] = set()
        # How long the client had calls to answer, since when it has some, and whether it left one.
        self._client_seconds = 0.0
        self._client_since: float | None = None
        self._is_unanswered = False
        self._asking: dict[int, asyncio.Event] = {}
        self._below: dict[int, Run] = {}
        # How many orders are being given to other agents: they do not work yet.
        self._giving = 0
        # Whether a person was asked, so that nobody is when the run has ended.
        self.has_asked = run.context.was_taken_over
        # Calls for the client that are being written: it was not told of all of them yet.
        self._opening = 0
        self.used = run.context.was_taken_over

    @property
    def waiting(self) -> list[int]:
        """The keys of the rows that this run waits for."""
        return list(self._waits)

    @property
    def asking(self) -> list[int]:
        """The keys of the rows that wait for a person's word."""
        return list(self._asking)

    @property
    def _is_asking(self) -> bool:
        return any(not decision.is_set() for decision in self._asking.values())

    @property
    def waits_for_client(self) -> bool:
        """Whether only a `tool.result`, a person's word or a payment lets this run go on."""
        till = self._run.till
        unpaid = till is not None and bool(till.waiting)
        # Another agent that works for this one may wait likewise.
        below = any(run.broker.waits_for_client for run in self._below.values())
        return bool(self._client_waits or self._is_asking or unpaid or below) and not self._opening

    @property
    def is_handing(self) -> bool:
        """Whether this run gives work to another agent just now, or has yet to hear of its end."""
        return bool(self._giving) or any(run.has_ended for run in self._below.values())

    async def admit_step(self) -> None:
        """Let another step begin once it is paid."""
        if self._run.till is not None:
            await self._run.till.admit_step()

    async def admit_tool(self, call: uamp.ToolCallData) -> None:
        """Let a tool run once it is paid."""
        if self._run.till is not None:
            await self._run.till.admit_tool(call.name)
        self._run.meter.began(call.id)

    async def wrote(self, text: str) -> None:
        """Count what the model writes into its calls, once it is paid."""
        if self._run.till is not None:
            await self._run.till.wrote(text)

    async def client_tool(self, call: uamp.ToolCallData) -> ToolOutcome:
        """Ask the session's client (UAMP §3.2): `tool.call`, then its `tool.result`."""
        run = self._run
        asked = ev.ToolCall(
            call_id=call.id,
            name=call.name,
            arguments=call.arguments,
            response_id=run.response_id,
        )
        run.builder.add(asked)
        self._opening += 1
        try:
            pk = (await self._open(ToolCall.Kind.CLIENT, call)).pk
        finally:
            self._opening -= 1
        wait = self._wait(pk)
        with self._timed(pk, wait), run.pausing():
            run.tell_asker(asked)
            outcome = await self._settle(pk, wait)
        told = ev.ToolResult(
            call_id=call.id,
            result=outcome.result,
            is_error=outcome.is_error,
            content_items=outcome.content_items or None,
        )
        run.meter.add(told)
        run.builder.add(told)
        return outcome

    @contextmanager
    def _timed(self, pk: int, wait: asyncio.Future[ToolOutcome]) -> Iterator[None]:
        """Count the time in which the client has calls to answer; calls at once count once."""
        now = asyncio.get_running_loop().time
        self._client_waits.add(pk)
        if self._client_since is None:
            self._client_since = now()
        try:
            yield
        finally:
            self._is_unanswered |= not wait.done() or wait.cancelled()
            self._client_waits.discard(pk)
            if not self._client_waits and self._client_since is not None:
                self._client_seconds += now() - self._client_since
                self._client_since = None

    def took_the_time_of(self, seconds: float) -> bool:
        """Return whether the client is why an answer took longer than these seconds.

        It left a call without a result, or took more than half of the time for its results.
        """
        return self._is_unanswered or self._client_seconds > seconds / 2

    def inference_sent(self) -> None:
        """Count the input of an inference that is sent now."""
        self._run.meter.sent()

    async def hand_over(self, call: uamp.ToolCallData) -> None:
        """Tell the session's client of a call at which the response ends; no result is awaited.

        The row says that the call was made, and ends with the response.
        """
        run = self._run
        asked = ev.ToolCall(
            call_id=call.id, name=call.name, arguments=call.arguments, response_id=run.response_id
        )
        run.builder.add(asked)
        opened = await self._open(ToolCall.Kind.CLIENT, call)
        self._waits.pop(opened.pk, None)
        await run.go_on()
        run.tell_asker(asked)

    async def long_tool(self, tool: ServerTool, call: uamp.ToolCallData) -> ToolOutcome:
        """Hand a call to a worker, once a person allowed it where the tool wants that.

        The row is the queue, Celery is the doorbell.
        """
        self._run.meter.has_row(call.id)
        opened = await self._open(ToolCall.Kind.LONG, call, needs_approval=tool.needs_approval)
        wait = self._wait(opened.pk)
        telling = asyncio.create_task(self._tell_alive(call.id))
        try:
            if opened.status == ToolCall.Status.ASKING:
                await self._ask(call, opened)
            else:
                await database.run(ring, opened.pk)
            return await self._settle(opened.pk, wait)
        finally:
            telling.cancel()

    async def _ask(self, call: uamp.ToolCallData, opened: OpenedCall) -> None:
        """Ask a person, and wait for their word; only that time does not count as the answer's."""
        asked = approval_of(self._run.context.spec.name, self._run.response_id, call, opened)
        decided = self._asking[opened.pk] = asyncio.Event()
        self.has_asked = True
        try:
            await self._run.ask_person(asked)
            self.decided(await database.run(selectors.decided_calls, [opened.pk]))
            with self._run.unhurried(), self._run.pausing():
                await decided.wait()
        finally:
            del self._asking[opened.pk]

    def decided(self, pks: Sequence[int]) -> None:
        """Let calls go on that a person allowed; those that were refused have ended too."""
        for pk in pks:
            if (decision := self._asking.get(pk)) is not None:
                decision.set()

    async def delegate(self, call: uamp.ToolCallData, order: Order) -> ToolOutcome:
        """Have another agent do a task (UAMP §8.5.4): its response answers the row."""
        run = self._run
        self.has_delegated = True
        run.meter.has_row(call.id)
        self._giving += 1
        try:
            opened = await self._open(ToolCall.Kind.AGENT, call)
            wait = self._wait(opened.pk)
            if opened.status == ToolCall.Status.WAITING:
                await self._give(opened.pk, call, order)
        finally:
            self._giving -= 1
        telling = asyncio.create_task(self._tell_alive(call.id))
        try:
            # The other one has its own time, and may have to wait for a person.
            with run.unhurried(), run.pausing():
                return await self._settle(opened.pk, wait)
        finally:
            telling.cancel()
            self._below.pop(opened.pk, None)

    async def _give(self, pk: int, call: uamp.ToolCallData, order: Order) -> None:
        try:
            runs = await self._begin(self._run.itself, pk, call, order)
            self._below.update((pk, below) for below in runs)
        except (ToolError, RemoteProtocolError) as error:
            told = error.message if isinstance(error, RemoteProtocolError) else str(error)
            refused = CallAnswer(result=told, is_error=True)
            await database.run(answer_call, pk, refused, at=timezone.now())

    async def present(self, content_ids: Sequence[str]) -> tuple[uamp.ContentItem, ...]:
        """Return the items of contents that the chat may see (UAMP §8.5.4); raises ToolError."""
        context = self._run.context
        return await database.run(presentable, context.response_id, context.chat_id, content_ids)

    async def _tell_alive(self, call_id: str) -> None:
        """Say now and then that a long tool still runs.

        Clients that know no `progress` give up on a response that says nothing for two minutes.
        """
        while True:
            await asyncio.sleep(ALIVE_SECONDS)
            progress = ev.ToolProgress(call_id=call_id, text="")
            self._run.publish(
                ev.ResponseDelta(
                    response_id=self._run.response_id,
                    delta=ev.Delta(type="tool_progress", tool_progress=progress),
                )
            )

    async def _open(
        self, kind: str, call: uamp.ToolCallData, *, needs_approval: bool = False
    ) -> OpenedCall:
        self.used = True
        async with self._run.row.waits():
            opened = await database.run(
                open_call,
                response_id=self._run.response_id,
                fence=self._run.context.fence,
                kind=kind,
                call=call,
                text=self._run.builder.text,
                output=self._run.builder.output,
                needs_approval=needs_approval,
            )
            if opened is None:
                raise taken_over()
            self._wait(opened.pk)
        # A flush that was under way may have put an older output over the one with this call.
        self._run.dirty = True
        return opened

    def _wait(self, pk: int) -> asyncio.Future[ToolOutcome]:
        return self._waits.setdefault(pk, asyncio.get_running_loop().create_future())

    async def _settle(self, pk: int, wait: asyncio.Future[ToolOutcome]) -> ToolOutcome:
        try:
            # The answer may have come before this process waited for it.
            self.settle(await database.run(selectors.ended_calls, [pk]))
            outcome = await wait
        finally:
            self._waits.pop(pk, None)
        await self._run.go_on()
        return outcome

    def settle(self, rows: list[ToolCall]) -> None:
        """Take the ends of calls, from the doorbell or from reading the rows."""
        self.decided([row.pk for row in rows])
        for row in rows:
            wait = self._waits.get(row.pk)
            if wait is not None and not wait.done():
                wait.set_result(outcome_of(row))
                self._client_waits.discard(row.pk)


def outcome_of(row: ToolCall) -> ToolOutcome:
    """Return the outcome that an ended row keeps."""
    return ToolOutcome(
        result=row.result,
        is_error=row.is_error,
        content_items=msgspec.convert(row.content_items, tuple[uamp.ContentItem, ...]),
        # The decision that a call may run does not end it.
        is_refused=row.decided_at is not None and row.decided_at == row.finished_at,
    )


def approval_of(
    agent: str, response_id: str, call: uamp.ToolCallData, opened: OpenedCall
) -> ev.ToolApprovalRequired:
    """Return the event that asks a person to allow a call."""
    return ev.ToolApprovalRequired(
        call_id=call.id,
        name=call.name,
        arguments=call.arguments,
        response_id=response_id,
        agent=agent,
        user_id=opened.asker,
        expires_at=int(opened.deadline.timestamp()),
    )

"""Tool calls of a run: written first, then told, then awaited (DESIGN D6, notes G5, G6).

A wait is a row. The coroutine that waits here is only the quick way to go on: when this process is
gone, the answer finds the row, and the response is continued from its kept output.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

import uamp
from agents_app.runtime import AgentError
from agents_app.tools import ServerTool, ToolOutcome
from sessions_app import database, selectors, services
from sessions_app.models import ToolCall
from sessions_app.tasks import ring
from uamp import ErrorCode
from uamp import events as ev

if TYPE_CHECKING:
    from sessions_app.runner.run import Run


ALIVE_SECONDS: Final = 30.0


class Broker:
    """The ToolBroker of one run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._waits: dict[int, asyncio.Future[ToolOutcome]] = {}
        self._client_waits: set[int] = set()
        # Calls for the client that are being written: it was not told of all of them yet.
        self._opening = 0
        self.used = bool(run.context.request.resume)

    @property
    def waiting(self) -> list[int]:
        """The keys of the rows that this run waits for."""
        return list(self._waits)

    @property
    def waits_for_client(self) -> bool:
        """Whether only a `tool.result` lets this run go on."""
        return bool(self._client_waits) and not self._opening

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
            pk = await self._open(ToolCall.Kind.CLIENT, call)
        finally:
            self._opening -= 1
        wait = self._wait(pk)
        self._client_waits.add(pk)
        run.tell_asker(asked)
        try:
            outcome = await self._settle(pk, wait)
        finally:
            self._client_waits.discard(pk)
        run.builder.add(
            ev.ToolResult(
                call_id=call.id,
                result=outcome.result,
                is_error=outcome.is_error,
                content_items=outcome.content_items or None,
            )
        )
        return outcome

    async def long_tool(self, tool: ServerTool, call: uamp.ToolCallData) -> ToolOutcome:
        """Hand a call to a worker: the row is the queue, Celery is the doorbell."""
        del tool  # the worker finds it by the name in the row
        pk = await self._open(ToolCall.Kind.LONG, call)
        wait = self._wait(pk)
        await database.run(ring, pk)
        telling = asyncio.create_task(self._tell_alive(call.id))
        try:
            return await self._settle(pk, wait)
        finally:
            telling.cancel()

    async def _tell_alive(self, call_id: str) -> None:
        """Say now and then that a long tool still runs.

        Clients that know no `progress` give up on a response that says nothing for two minutes
        (notes/webagents.md §2.1).
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

    async def _open(self, kind: str, call: uamp.ToolCallData) -> int:
        self.used = True
        pk = await database.run(
            services.open_call,
            response_id=self._run.response_id,
            fence=self._run.context.fence,
            kind=kind,
            call=call,
            text=self._run.builder.text,
            output=self._run.builder.output,
        )
        if pk is None:
            # Whoever holds the response now goes on; this run's end will be fenced off.
            raise AgentError("Another process goes on with it.", code=ErrorCode.INTERRUPTED)
        # A flush that was under way may have put an older output over the one with this call.
        self._run.dirty = True
        return pk

    def _wait(self, pk: int) -> asyncio.Future[ToolOutcome]:
        return self._waits.setdefault(pk, asyncio.get_running_loop().create_future())

    async def _settle(self, pk: int, wait: asyncio.Future[ToolOutcome]) -> ToolOutcome:
        try:
            # The answer may have come before this process waited for it.
            self.settle(await database.run(selectors.ended_calls, [pk]))
            outcome = await wait
        finally:
            self._waits.pop(pk, None)
        if not self._waits:
            await database.run(
                services.set_running, self._run.response_id, fence=self._run.context.fence
            )
        return outcome

    def settle(self, rows: list[ToolCall]) -> None:
        """Take the ends of calls, from the doorbell or from reading the rows."""
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
    )

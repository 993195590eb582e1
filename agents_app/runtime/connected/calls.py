"""The tool calls of one answer of a daemon: its own, the client's and the server's."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from agents_app.runtime.connected.tools import DaemonTools
from agents_app.runtime.failures import AgentError
from agents_app.runtime.model_calls import CALLS_AT_ONCE
from uamp.errors import ErrorCode
from uamp.events import ToolCall, ToolResult
from uamp.storable_text import storable
from uamp.types.content import ToolCallData, ToolResultData
from uap.uamp_adapter.history import plain_result

if TYPE_CHECKING:
    from agents_app.runtime.connected.claims import DaemonClaims
    from agents_app.runtime.connected.daemons import DaemonAnswer
    from agents_app.runtime.run_request import RunRequest, ToolBroker
    from agents_app.selectors import AgentSpec
    from uamp.events import Event

CALLS: Final = 1_024
"""The most calls in one answer."""
_ID_CHARS: Final = 128


class DaemonCalls:
    """The calls of one answer; only the run's task calls its methods.

    A call of the client's tool is a row. Results of the client's and the server's tools are sent to
    the daemon by separate tasks (`result_tasks`), so that the answer can continue in the meantime.
    """

    def __init__(
        self,
        spec: AgentSpec,
        request: RunRequest,
        broker: ToolBroker,
        answer: DaemonAnswer,
        claims: DaemonClaims,
    ) -> None:
        # Whether the response ends at calls that its client answers in a later turn.
        self.was_handed_over = False
        self.result_tasks: set[asyncio.Task[None]] = set()
        self._name, self._is_free = spec.name, spec.pricing.is_free
        self._ends_at_tools = request.ends_at_tools
        self._tools = DaemonTools(spec, request, broker)
        self._broker, self._answer, self._claims = broker, answer, claims
        self._call_ids: set[str] = set()
        # Calls that the daemon runs itself and that have no result yet.
        self._open: set[str] = set()

    def __contains__(self, call_id: object) -> bool:
        return call_id in self._call_ids

    async def admit_daemon_call(self, call: ToolCallData) -> ToolCallData:
        """Return a call of a tool that the daemon runs itself, once it has been paid for."""
        call = await self._new(call.id, call.name, call.arguments)
        if not self._is_free:
            await self._broker.admit_tool(call)
        self._open.add(call.id)
        return call

    def ended(self, result: ToolResultData) -> ToolResultData:
        """Return the result of a call that the daemon ran."""
        if result.call_id not in self._open:
            self._claims.fail("the result of a call that was not made, or has one")
        self._open.discard(result.call_id)
        self._claims.read(result.result, is_shown=True)
        is_error = result.is_error or result.status == "error"
        return ToolResultData(
            call_id=result.call_id,
            result=storable(result.result),
            is_error=is_error,
            status="error" if is_error else "success",
            duration_ms=result.duration_ms,
        )

    async def ask(self, event: ToolCall) -> None:
        """Have the client run its tool (UAMP §6.10), or the server one of the agent's tools."""
        call = await self._new(event.call_id, event.name, event.arguments)
        is_served = call.name in self._tools
        if not is_served and call.name not in self._tools.of_client:
            self._refuse(call, "Unknown tool in this conversation.")
        elif len(self.result_tasks) >= CALLS_AT_ONCE:
            self._refuse(call, f"Only {CALLS_AT_ONCE} calls can run at once. Make this call again.")
        elif is_served:
            self._tools.called(call)
            self.result_tasks.add(asyncio.create_task(self._served(call)))
        elif self._ends_at_tools:
            await self._broker.hand_over(call)
            self.was_handed_over = True
        else:
            self.result_tasks.add(asyncio.create_task(self._answered(call)))

    def reap(self) -> None:
        """Discard finished tasks; raises the error of a failed one."""
        for task in [task for task in self.result_tasks if task.done()]:
            self.result_tasks.discard(task)
            task.result()

    def take_events(self) -> list[Event]:
        """Return the events that the server's tool calls have produced since the last time."""
        return self._tools.take_events()

    async def stop(self) -> None:
        """Cancel all pending calls."""
        for task in self.result_tasks:
            task.cancel()
        if self.result_tasks:
            await asyncio.wait(self.result_tasks)

    async def _answered(self, call: ToolCallData) -> None:
        outcome = await self._broker.client_tool(call)
        self._claims.read(outcome.result, is_shown=False)
        self._answer.send(
            ToolResult(
                call_id=call.id,
                result=plain_result(outcome.result),
                is_error=outcome.is_error,
                content_items=outcome.content_items or None,
            )
        )

    async def _served(self, call: ToolCallData) -> None:
        text, is_error = await self._tools.run(call)
        self._claims.read(text, is_shown=True)
        self._answer.send(ToolResult(call_id=call.id, result=text, is_error=is_error))

    def _refuse(self, call: ToolCallData, message: str) -> None:
        self._answer.send(ToolResult(call_id=call.id, result=message, is_error=True))

    async def _new(self, call_id: str, name: str, arguments: str) -> ToolCallData:
        claims = self._claims
        if len(call_id) > _ID_CHARS or not (call_id.isascii() and call_id.isprintable()):
            claims.fail(f"the id of a call has 1 to {_ID_CHARS} characters of ASCII")
        if not call_id or not 0 < len(name) <= _ID_CHARS:
            claims.fail(f"a call has an id and a name of 1 to {_ID_CHARS} characters")
        if call_id in self._call_ids:
            claims.fail("two calls of one id")
        if len(self._call_ids) >= CALLS:
            raise AgentError(
                f"{self._name} made more than {CALLS} tool calls and was stopped.",
                code=ErrorCode.TOO_MANY_STEPS,
            )
        self._call_ids.add(call_id)
        claims.wrote(name + arguments)
        if not self._is_free:
            await self._broker.wrote(name + arguments)
        return ToolCallData(id=call_id, name=storable(name), arguments=storable(arguments or "{}"))

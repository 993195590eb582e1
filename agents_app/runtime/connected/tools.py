"""The server's tools of a connected agent, called by its daemon and run as for a model.

They are the tools of the agent's row. Each call is paid for, run by the server, a worker or another
agent, and shown in the answer; the daemon receives its result.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import msgspec

from agents_app.runtime.failures import AgentError
from agents_app.runtime.run_tools import RunTools
from uap.uamp_adapter.stream import Translator
from upp import EventDelta, StreamEvent, ToolCall, UPPError, current_tool_call

if TYPE_CHECKING:
    from agents_app.runtime.run_request import RunRequest, ToolBroker
    from agents_app.selectors import AgentSpec
    from uamp.events import Event
    from uamp.types.content import ToolCallData


class DaemonTools:
    """The server's tools in one answer of a daemon.

    The run's task calls `called` and `take_events`; the task of each call calls `run`.
    """

    def __init__(self, spec: AgentSpec, request: RunRequest, broker: ToolBroker) -> None:
        tools = RunTools(spec, request, broker, schema=None)
        self.of_client = tools.client_tools
        self._tools = {
            tool.name: tool for tool in tools.upp_tools() if tool.name not in self.of_client
        }
        self._translator = Translator(request.response_id, outcomes=tools.outcomes)
        self._events: deque[Event] = deque()

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def called(self, call: ToolCallData) -> None:
        """Show that a call has started."""
        delta = EventDelta(tool_call_id=call.id, tool_name=call.name, arguments_json=call.arguments)
        self._show(StreamEvent(type="tool_execution_start", index=0, delta=delta))

    async def run(self, call: ToolCallData) -> tuple[str, bool]:
        """Run a call and show its end; return the result's text and whether it is an error.

        Raises AgentError if the answer is over.
        """
        try:
            text, is_error = await self._result(call), False
        except UPPError as error:
            if isinstance(error.__cause__, AgentError):
                raise error.__cause__ from None
            raise
        except Exception as error:  # noqa: BLE001 the model reads a tool's error
            text, is_error = str(error), True
        delta = EventDelta(
            tool_call_id=call.id, tool_name=call.name, result=text, is_error=is_error
        )
        self._show(StreamEvent(type="tool_execution_end", index=0, delta=delta))
        return text, is_error

    async def _result(self, call: ToolCallData) -> str:
        try:
            arguments = msgspec.json.decode(call.arguments, type=dict)
        except msgspec.MsgspecError:
            raise ValueError("The arguments are not a JSON object.") from None
        current_tool_call.set(
            ToolCall(tool_call_id=call.id, tool_name=call.name, arguments=arguments)
        )
        running = self._tools[call.name].run(arguments)
        return str(await running)

    def take_events(self) -> list[Event]:
        """Return the events that the calls have produced since the last time."""
        events = list(self._events)
        self._events.clear()
        return events

    def _show(self, event: StreamEvent) -> None:
        self._events += [
            output for output in self._translator.translate(event) if not isinstance(output, str)
        ]

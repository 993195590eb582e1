"""The chat's tools in a served agent, run by the client or the server (UAMP §6.10)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from uamp.content_labels import labelled
from uamp.events import InputText, ToolCall, ToolResult
from uamp.events.base import Event
from uamp.types.session import ToolDefinition
from uap.uamp_adapter.history import plain_result
from upp import Tool, current_tool_call

logger = logging.getLogger(__name__)

_NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}}


class ChatToolFailedError(Exception):
    """A call failed or was refused; the model may read the message."""


class ChatTools:
    """The chat's tools in one answer; its tasks and the daemon's reader share one event loop.

    A call is sent as `tool.call` and waits until `receive` gets its `tool.result`. The agent's own
    tools take precedence over the chat's tools of the same name.
    """

    def __init__(
        self,
        event: InputText,
        *,
        agent_tools: Sequence[str],
        response_id: str,
        send: Callable[[Event], Awaitable[None]],
    ) -> None:
        self._response_id = response_id
        self._send = send
        self._open: dict[str, asyncio.Future[ToolResult]] = {}
        self._definitions: dict[str, ToolDefinition] = {}
        for tool in definitions_of(event):
            if tool.function is not None and tool.name not in agent_tools:
                self._definitions.setdefault(tool.name, tool)

    @property
    def names(self) -> frozenset[str]:
        """The names of the tools."""
        return frozenset(self._definitions)

    def upp_tools(self) -> tuple[Tool, ...]:
        """Return the tools in the form that `upp` calls."""
        return tuple(self._tool(definition) for definition in self._definitions.values())

    def receive(self, result: ToolResult) -> None:
        """Process the result of a call; ignore results without an open call."""
        waiting = self._open.get(result.call_id)
        if waiting is not None and not waiting.done():
            waiting.set_result(result)

    def _tool(self, definition: ToolDefinition) -> Tool:
        function = definition.function
        return Tool(
            name=definition.name,
            description=(function.description if function else None) or "",
            parameters=(function.parameters if function else None) or _NO_PARAMETERS,
            run=self._run,
        )

    async def _run(self, _arguments: dict[str, Any]) -> str:
        call = current_tool_call.get()
        waiting: asyncio.Future[ToolResult] = asyncio.get_running_loop().create_future()
        self._open[call.tool_call_id] = waiting
        request = ToolCall(
            call_id=call.tool_call_id,
            name=call.tool_name,
            arguments=msgspec.json.encode(call.arguments).decode(),
            response_id=self._response_id,
        )
        try:
            await self._send(request)
            result = await waiting
        finally:
            del self._open[call.tool_call_id]
        text = labelled(plain_result(result.result), result.content_items or ())
        if result.is_error:
            raise ChatToolFailedError(text)
        return text


def definitions_of(event: InputText) -> tuple[ToolDefinition, ...]:
    """Return the tools in the `context` of an input, or none if it is invalid."""
    tools = (event.context or {}).get("tools")
    if not tools:
        return ()
    try:
        return msgspec.convert(tools, tuple[ToolDefinition, ...])
    except msgspec.ValidationError as error:
        logger.warning("ignored the invalid tools of a chat: %s", error)
        return ()

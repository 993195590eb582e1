"""The tools of one run: of the client, of the server, and `present`, `set_state`, `delegate`.

A call runs once it is paid. Its outcome is kept for the translator, and its text goes to the model.
"""

import logging
import time
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from agents_app.conversation import delegation_orders, presentation, state_changes
from agents_app.conversation.delegation_orders import (
    DELEGATE,
    delegate_description,
    delegate_schema,
)
from agents_app.conversation.presentation import PRESENT, PRESENT_DESCRIPTION, PRESENT_SCHEMA
from agents_app.conversation.state_changes import (
    SET_STATE,
    SET_STATE_DESCRIPTION,
    SET_STATE_SCHEMA,
)
from agents_app.runtime.client_parts import ClientParts
from agents_app.runtime.failures import AgentError
from agents_app.runtime.model_calls import CALLS_AT_ONCE
from agents_app.runtime.offered_tools import tools_of_agent, tools_of_client
from agents_app.runtime.run_request import RunRequest, ToolBroker
from agents_app.runtime.short_tools import run_here
from agents_app.selectors import AgentSpec
from agents_app.tools.registry import ServerTool, ToolOutcome
from telemetry import metrics
from uamp.content_labels import labelled, pure
from uamp.types.content import ToolCallContent, ToolCallData, ToolResultContent
from uamp.types.session import ToolDefinition
from uap import AgentStreamEvent
from uap.uamp_adapter.history import plain_result
from upp import ErrorCode as ProviderErrorCode
from upp import LLMRequest, Tool, UPPError, current_tool_call

logger = logging.getLogger(__name__)

_NO_PARAMETERS = {"type": "object", "properties": {}}


class HandedOver(Exception):
    """The client has calls to answer in another turn."""


class ToolFailedError(Exception):
    """A tool's own failure, in words that the model and users may read."""


class RunTools:
    """The tools of one run, and what its calls share.

    The task that iterates the run calls `admit_step`, `saw` and `sent`; each call of a tool runs in
    a task of its own and waits until `saw` has read its `tool_execution_start`. `outcomes` are the
    outcomes by call id, `declined` the calls that the client or a person made fail, `surplus` those
    that are not to be run.
    """

    def __init__(
        self,
        spec: AgentSpec,
        request: RunRequest,
        broker: ToolBroker,
        *,
        schema: Mapping[str, Any] | None,
    ) -> None:
        self._spec = spec
        self._request = request
        self._broker = broker
        self.outcomes: dict[str, ToolOutcome] = {}
        self.surplus: set[str] = set()
        self.declined: set[str] = set()
        # Whether the client was given calls whose results come in another turn.
        self._handed_over = False
        self._is_free = spec.pricing.is_free
        self._named: set[str] = set()
        self._server_tools = tools_of_agent(spec)
        self.client_tools = tools_of_client(request.tools, self._server_tools)
        self.parts = ClientParts(
            tools=self.client_tools,
            schema=schema,
            goes_on=bool(request.resume or request.checkpoint),
            reads_result=_ends_in_result(request, self.client_tools),
        )

    def offered(self) -> list[Tool]:
        """Return the tools as `upp` calls them; the client's come first."""
        return [
            *(self._client_tool(tool) for tool in self.client_tools.values()),
            *(self._server_tool(tool) for tool in self._server_tools.values()),
            *self._tools_of_agents(),
        ]

    async def admit_step(self) -> None:
        """Let another step begin once it is paid, unless the response ends at client's tools."""
        if self._handed_over:
            raise HandedOver
        await self._broker.admit_step()

    async def count(self, event: AgentStreamEvent) -> None:
        """Count the text of a call, which has a payer."""
        if event.upp is None or event.upp.type != "tool_call_delta":
            return
        delta = event.upp.delta
        call_id, text = delta.tool_call_id or "", delta.arguments_json or ""
        if call_id not in self._named:
            self._named.add(call_id)
            text += delta.tool_name or ""
        await self._broker.wrote(text)

    def sent(self, request: LLMRequest) -> None:
        """Take note that an inference is sent."""
        self.parts.sent(request)
        self._broker.inference_sent()

    def _client_tool(self, definition: ToolDefinition) -> Tool:
        async def run(_arguments: dict[str, Any]) -> str:
            call = self._call()
            # It has no price, but the tokens that it was written with have.
            await self._admit(call)
            if self._request.ends_at_tools:
                return await self._hand_over(call)
            return await self._finish("client", answered(call))

        async def answered(call: ToolCallData) -> ToolOutcome:
            outcome = await self._broker.client_tool(call)
            self.parts.result_came()
            if outcome.is_error:
                self.declined.add(call.id)
            # The client sends JSON text; the model reads what it says, as in every later turn.
            return replace(outcome, result=plain_result(outcome.result))

        function = definition.function
        return Tool(
            name=definition.name,
            description=(function.description if function else None) or "",
            parameters=(function.parameters if function else None) or _NO_PARAMETERS,
            run=run,
        )

    async def _hand_over(self, call: ToolCallData) -> str:
        """Give the client a call; the text that this returns is not used."""
        self._handed_over = True
        try:
            await self._broker.hand_over(call)
        except AgentError as error:
            raise UPPError(error.message, code=ProviderErrorCode.CANCELLED) from error
        return ""

    def _server_tool(self, tool: ServerTool) -> Tool:
        async def run(arguments: dict[str, Any]) -> str:
            call = self._call()
            await self._admit(call)
            if tool.long_running:
                return await self._finish("worker", self._broker.long_tool(tool, call))
            return await self._finish("server", run_here(tool, call.id, arguments))

        return Tool(
            name=tool.name, description=tool.description, parameters=tool.parameters, run=run
        )

    def _call(self) -> ToolCallData:
        """Return the call that runs in this task; raises ToolFailedError for one too many."""
        call = current_tool_call.get()
        if call.tool_call_id in self.surplus:
            raise ToolFailedError(
                f"Only {CALLS_AT_ONCE} calls are run at once, and this one was not. Make it again."
            )
        arguments = msgspec.json.encode(call.arguments).decode()
        return ToolCallData(id=call.tool_call_id, name=call.tool_name, arguments=arguments)

    async def _admit(self, call: ToolCallData) -> None:
        """Let a call run once it is paid, and the tokens that it was written with.

        All events before it were received, counted and paid when a tool begins.
        """
        if self._is_free:
            return
        try:
            await self._broker.admit_tool(call)
        except AgentError as error:
            # It is not paid: the run is over, and the model is not asked again.
            raise UPPError(error.message, code=ProviderErrorCode.CANCELLED) from error

    def _tools_of_agents(self) -> list[Tool]:
        """Return `present`, `set_state` and `delegate`, where the agent has them."""

        async def present(arguments: dict[str, Any]) -> str:
            await self._admit(self._call())
            return await self._finish("server", presentation.present(self._broker, arguments))

        async def set_state(arguments: dict[str, Any]) -> str:
            await self._admit(self._call())
            return await self._finish("server", state_changes.set_state(self._broker, arguments))

        async def delegate(arguments: dict[str, Any]) -> str:
            call = self._call()
            await self._admit(call)
            return await self._finish(
                "agent", delegation_orders.delegate(self._broker, call, arguments)
            )

        tools = []
        if PRESENT in self._spec.tools:
            tools.append(
                Tool(
                    name=PRESENT,
                    description=PRESENT_DESCRIPTION,
                    parameters=PRESENT_SCHEMA,
                    run=present,
                )
            )
        if SET_STATE in self._spec.tools:
            tools.append(
                Tool(
                    name=SET_STATE,
                    description=SET_STATE_DESCRIPTION,
                    parameters=SET_STATE_SCHEMA,
                    run=set_state,
                )
            )
        if self._spec.delegates:
            tools.append(
                Tool(
                    name=DELEGATE,
                    description=delegate_description(self._spec.delegates),
                    parameters=delegate_schema(self._spec.delegates),
                    run=delegate,
                )
            )
        return tools

    async def _finish(self, kind: str, running: Awaitable[ToolOutcome]) -> str:
        """Keep the outcome for the translator and return its text; an error is raised.

        `kind` is by what it runs: the server, a worker, the client or another agent.
        """
        began = time.monotonic()
        try:
            outcome = await running
        except AgentError as error:
            # The broker ended the run, not the tool: the model is not asked again.
            raise UPPError(error.message, code=ProviderErrorCode.CANCELLED) from error
        except Exception:
            logger.exception("Agent %s: a tool broke", self._spec.name)
            metrics.TOOL_CALLS.labels(kind, "broken").inc()
            raise ToolFailedError("The tool broke inside the server.") from None
        metrics.TOOL_SECONDS.labels(kind).observe(time.monotonic() - began)
        metrics.TOOL_CALLS.labels(kind, "failed" if outcome.is_error else "done").inc()
        call_id = current_tool_call.get().tool_call_id
        self.outcomes[call_id] = outcome
        if outcome.is_refused:
            self.declined.add(call_id)
        if outcome.is_error:
            raise ToolFailedError(pure(outcome.result))
        items = () if outcome.is_presented else outcome.content_items
        return labelled(outcome.result, items)


def _ends_in_result(request: RunRequest, client_tools: Mapping[str, ToolDefinition]) -> bool:
    """Return whether the run goes on with a result that the client's tool returned."""
    if not request.resume or not isinstance(request.resume[-1], ToolResultContent):
        return False
    call_id = request.resume[-1].tool_result.call_id
    calls = [one.tool_call for one in request.resume if isinstance(one, ToolCallContent)]
    return any(call.id == call_id and call.name in client_tools for call in calls)

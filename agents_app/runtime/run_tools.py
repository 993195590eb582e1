"""The tools of one run: the client's, the server's, `present`, `set_state` and `delegate`.

A call runs once it is paid for. The translator reads its outcome, the model its text.
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
from agents_app.runtime.offered_tools import NO_PARAMETERS, tools_of_agent, tools_of_client
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


class HandedOver(Exception):
    """The client has to answer calls in a later turn."""


class ToolFailedError(Exception):
    """A tool's own failure, with a message that the model and users may read."""


class RunTools:
    """The tools of one run and the state that its calls share.

    The task that iterates the run calls `admit_step`, `saw` and `sent`. Each tool call runs in its
    own task and waits until `saw` has read its `tool_execution_start`. `outcomes` maps call ids to
    outcomes, `declined` holds the calls that the client or a person made fail, and `surplus` those
    that must not be run.
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
        # Whether the client was given calls whose results arrive in a later turn.
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

    def upp_tools(self) -> list[Tool]:
        """Return the tools in the form that `upp` calls; the client's come first."""
        return [
            *(self._client_tool(tool) for tool in self.client_tools.values()),
            *(self._server_tool(tool) for tool in self._server_tools.values()),
            *self._tools_of_agents(),
        ]

    async def admit_step(self) -> None:
        """Allow another paid step, unless the response ends at the client's tools."""
        if self._handed_over:
            raise HandedOver
        await self._broker.admit_step()

    async def admit_inference(self) -> None:
        """Allow another paid inference."""
        await self._broker.admit_step()

    async def count(self, event: AgentStreamEvent) -> None:
        """Count the text of a call towards its payment."""
        if event.upp is None or event.upp.type != "tool_call_delta":
            return
        delta = event.upp.delta
        call_id, text = delta.tool_call_id or "", delta.arguments_json or ""
        if call_id not in self._named:
            self._named.add(call_id)
            text += delta.tool_name or ""
        await self._broker.wrote(text)

    def sent(self, request: LLMRequest) -> None:
        """Note that an inference is being sent."""
        self.parts.sent(request)
        self._broker.inference_sent()

    def _client_tool(self, definition: ToolDefinition) -> Tool:
        async def run(_arguments: dict[str, Any]) -> str:
            call = self._call()
            # The tool is free, but the tokens of the call are not.
            await self._admit(call)
            if self._request.ends_at_tools:
                return await self._hand_over(call)
            return await self._finish("client", answered(call))

        async def answered(call: ToolCallData) -> ToolOutcome:
            outcome = await self._broker.client_tool(call)
            self.parts.result_came()
            if outcome.is_error:
                self.declined.add(call.id)
            # The client sends JSON; the model reads the decoded text, as in every later turn.
            return replace(outcome, result=plain_result(outcome.result))

        function = definition.function
        return Tool(
            name=definition.name,
            description=(function.description if function else None) or "",
            parameters=(function.parameters if function else None) or NO_PARAMETERS,
            run=run,
        )

    async def _hand_over(self, call: ToolCallData) -> str:
        """Hand a call to the client; the returned text is not used."""
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
        """Return the call that runs in this task; raises ToolFailedError if it is surplus."""
        call = current_tool_call.get()
        if call.tool_call_id in self.surplus:
            raise ToolFailedError(
                f"Only {CALLS_AT_ONCE} calls can run at once, so this one was not run."
                " Call it again."
            )
        arguments = msgspec.json.encode(call.arguments).decode()
        return ToolCallData(id=call.tool_call_id, name=call.tool_name, arguments=arguments)

    async def _admit(self, call: ToolCallData) -> None:
        """Allow a call once it and the tokens it was written with are paid for.

        All earlier events have been received, counted and paid for when a tool begins.
        """
        if self._is_free:
            return
        try:
            await self._broker.admit_tool(call)
        except AgentError as error:
            # Payment failed: the run is over, and the model is not called again.
            raise UPPError(error.message, code=ProviderErrorCode.CANCELLED) from error

    def _tools_of_agents(self) -> list[Tool]:
        """Return `present`, `set_state` and `delegate`, if the agent has them."""

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
        """Store the outcome for the translator and return its text; raise if it is an error.

        `kind` says where the tool runs: on the server, in a worker, at the client or in another
        agent.
        """
        began = time.monotonic()
        try:
            outcome = await running
        except AgentError as error:
            # The broker, not the tool, ended the run: the model is not called again.
            raise UPPError(error.message, code=ProviderErrorCode.CANCELLED) from error
        except Exception:
            logger.exception("Agent %s: a tool failed", self._spec.name)
            metrics.TOOL_CALLS.labels(kind, "broken").inc()
            raise ToolFailedError("The tool failed inside the server.") from None
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
    """Return whether the run resumes after a result of a client's tool."""
    if not request.resume or not isinstance(request.resume[-1], ToolResultContent):
        return False
    call_id = request.resume[-1].tool_result.call_id
    calls = [
        content.tool_call for content in request.resume if isinstance(content, ToolCallContent)
    ]
    return any(call.id == call_id and call.name in client_tools for call in calls)

"""One run of an agent: a request in, UAMP events out (DESIGN D5).

The law: a run knows the agent, the conversation and three doors (the broker for tools that run
elsewhere, the loader for media, the keeper of checkpoints) and nothing else. Limits are set here,
around a library that has none. Leaving the generator cancels everything that the run started, down
to the provider's request.
"""

import logging
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import msgspec

from agents_app import teamwork
from agents_app.borders import Border, CheckpointKeeper, recent
from agents_app.checkpoints import Checkpoint
from agents_app.failures import AgentError, fail
from agents_app.history import MediaLoader, output_messages, plain_result, to_conversation
from agents_app.mcp_tools import served
from agents_app.model_calls import CALLS_AT_ONCE, OrderlyModel, Tokens
from agents_app.providers import build_model, vendor_params
from agents_app.selectors import AgentSpec
from agents_app.short_tools import run_here
from agents_app.strategies import make_strategy
from agents_app.stream import Translator, usage_stats
from agents_app.teamwork import Doors
from agents_app.tools import (
    ServerTool,
    ToolOutcome,
    server_tools,
)
from uamp.content import ContentItem, Message, TextContent, ToolCallContent, ToolCallData
from uamp.errors import ErrorCode
from uamp.events import Event
from uamp.session import ResponseFormat, ToolDefinition, UsageStats
from uap import Agent, AgentState, AgentStrategy, agent
from uap.execution import ExecutionStrategy
from upp import ErrorCode as ProviderErrorCode
from upp import Message as ModelMessage
from upp import Tool, ToolUseStrategy, UPPError, current_tool_call

__all__ = [
    "AgentError",
    "CheckpointKeeper",
    "MediaLoader",
    "RunFinished",
    "RunRequest",
    "ToolBroker",
    "run_agent",
]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """What a run answers.

    `tools` are those that the client declared, `params` may hold model, temperature and max_tokens,
    and `resume` is what this response said before its process died: texts, thoughts, calls and
    results. Calls in `resume` without a result are run again, under their old ids. With a
    `checkpoint` the agent goes on from there, and `resume` is its output and what was added to it.
    `written` are the tokens that the response has cost before.
    """

    response_id: str
    history: Sequence[Message]
    instructions: str | None = None
    tools: Sequence[ToolDefinition] = ()
    response_format: ResponseFormat | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    resume: Sequence[ContentItem] = ()
    checkpoint: Checkpoint | None = None
    written: int = 0


class ToolBroker(Doors, Protocol):
    """Runs the tools that do not run here; the turn runner has one."""

    async def client_tool(self, call: ToolCallData) -> ToolOutcome:
        """Send `tool.call` and wait for `tool.result` (UAMP §6.10, §5.14)."""

    async def long_tool(self, tool: ServerTool, call: ToolCallData) -> ToolOutcome:
        """Have a worker run a long tool, or wait for the one that already runs this call."""


@dataclass(frozen=True, kw_only=True)
class RunFinished:
    """The last item of a run; not an event.

    `usage` counts this run only, not what came before it in a resumed response. `finish_reason` is
    stop, length, tool_calls, content_filter or the provider's own word. `steps` are inferences.
    """

    usage: UsageStats
    finish_reason: str
    steps: int
    model: str


ANSWER_CHARS = 1_000_000
"""So much one answer may say and think: it is kept whole, and shown whole to whoever comes."""
_FINISH_REASONS = {"end_turn": "stop", "max_tokens": "length", "tool_use": "tool_calls"}


async def run_agent(
    spec: AgentSpec,
    request: RunRequest,
    *,
    broker: ToolBroker,
    media: MediaLoader,
    checkpoints: CheckpointKeeper | None = None,
) -> AsyncGenerator[Event | RunFinished, None]:
    """Answer a request: yield the response's events, and last a RunFinished.

    Text deltas carry no offset: the caller knows what was sent before. After each step but the last
    one the state goes to `checkpoints`, before the next step begins. Raises AgentError. Close the
    generator (`contextlib.aclosing`) or cancel its task to stop the run.
    """
    if spec.kind != "hosted":
        raise AgentError(f"{spec.name} does not run on this server.", code=ErrorCode.AGENT_OFFLINE)
    run = _Run(spec, request, broker)
    kept = request.checkpoint
    try:
        conversation = await to_conversation(
            recent(spec, request.history),
            agent_name=spec.name,
            resume=request.resume if kept is None else (),
            media=None if spec.provider == "scripted" else media,
        )
        state = _opening(conversation.messages, request)
        border = Border(
            spec,
            checkpoints,
            kept,
            before=len(conversation.messages),
            tokens=run.tokens,
            admit=broker.admit_step,
        )
        bot = run.agent(conversation.system, border.hooks())
        async with bot.stream(None, state) as stream:
            async for event in stream:
                for translated in run.translator.follow(event):
                    yield translated
                if run.translator.written > ANSWER_CHARS:
                    raise AgentError(
                        f"{spec.name} wrote more than {ANSWER_CHARS} characters and was stopped.",
                        code=ErrorCode.PROVIDER_ERROR,
                    )
                border.saw(event)
            result = await stream.result()
    except UPPError as error:
        fail(spec, error)
    turn = result.turn
    traces = result.state.subagent_traces[len(state.subagent_traces) :]
    usage = sum((trace.usage for trace in traces if trace.usage is not None), turn.usage)
    yield RunFinished(
        usage=usage_stats(usage),
        finish_reason=_FINISH_REASONS.get(turn.stop_reason, turn.stop_reason),
        steps=turn.cycles,
        model=bot.model.model_id,
    )


def _opening(conversation: Sequence[ModelMessage], request: RunRequest) -> AgentState:
    """Return the state in which a run begins: it goes on where its messages end."""
    kept = request.checkpoint
    if kept is None:
        return AgentState.initial().with_context(conversation)
    added = output_messages(kept.shown_after(request.resume))
    return kept.state.with_context((*conversation, *kept.state.messages, *added))


def _ended_in_text(request: RunRequest) -> bool:
    """Return whether the last thing that was shown is the text of a step that is over."""
    plan = (request.checkpoint.state.plan if request.checkpoint else None) or ()
    under_way = any(step.status == "in_progress" for step in plan)
    return not under_way and isinstance([None, *request.resume][-1], TextContent)


class _Run:
    """The parts of one run that its tools share."""

    def __init__(self, spec: AgentSpec, request: RunRequest, broker: ToolBroker) -> None:
        self._spec = spec
        self._request = request
        self._broker = broker
        self._outcomes: dict[str, ToolOutcome] = {}
        self._surplus: set[str] = set()
        self.tokens = Tokens(most=spec.max_output_tokens, written=request.written)
        self._server_tools = _server_tools(spec)
        self._client_tools = _client_tools(request.tools, self._server_tools)
        self.translator = Translator(
            request.response_id,
            client_tools=frozenset(self._client_tools),
            known_calls=frozenset(
                item.tool_call.id for item in request.resume if isinstance(item, ToolCallContent)
            ),
            outcomes=self._outcomes,
            goes_on=_ended_in_text(request),
        )

    def agent(self, context: Sequence[str], hooks: AgentStrategy) -> Agent:
        """Return the agent, configured for this request; the client's tools come first."""
        spec, request = self._spec, self._request
        # The first to say what is wrong with an agent's row.
        model = build_model(spec, model=request.params.get("model"))
        wanted, structure = request.response_format, None
        if wanted is not None and wanted.type == "text":
            wanted = None
        if wanted is not None:
            schema = wanted.json_schema
            structure = (schema.schema if schema is not None else None) or {"type": "object"}
        params = vendor_params(spec, request.params, wanted)
        system = (spec.instructions, request.instructions or "", *context)
        had = request.checkpoint.tool_rounds if request.checkpoint else 0
        return agent(
            model=OrderlyModel(model, self.tokens, self._surplus),
            execution=_strategy(spec),
            strategy=hooks,
            system="\n\n".join(text for text in system if text) or None,
            tools=[
                *(self._client_tool(tool) for tool in self._client_tools.values()),
                *(self._server_tool(tool) for tool in self._server_tools.values()),
                *self._own_tools(),
            ],
            structure=structure,
            params=params,
            # Whoever goes on after the last round has one more: none would mean no calls at all.
            tool_strategy=ToolUseStrategy(max_iterations=max(spec.max_steps - had, 1)),
        )

    def _client_tool(self, definition: ToolDefinition) -> Tool:
        async def run(_arguments: dict[str, Any]) -> str:
            return await self._finish(answered(self._call()))

        async def answered(call: ToolCallData) -> ToolOutcome:
            outcome = await self._broker.client_tool(call)
            # The client sends JSON text; the model reads what it says, as in every later turn.
            return replace(outcome, result=plain_result(outcome.result))

        function = definition.function
        return Tool(
            name=definition.name,
            description=(function.description if function else None) or "",
            parameters=(function.parameters if function else None) or _NO_PARAMETERS,
            run=run,
        )

    def _server_tool(self, tool: ServerTool) -> Tool:
        async def run(arguments: dict[str, Any]) -> str:
            call = self._call()
            await self._admit(tool.name)
            if tool.long_running:
                return await self._finish(self._broker.long_tool(tool, call))
            return await self._finish(run_here(tool, call.id, arguments))

        return Tool(
            name=tool.name, description=tool.description, parameters=tool.parameters, run=run
        )

    def _call(self) -> ToolCallData:
        """Return the call that is run; raises what the model reads for one too many."""
        call = current_tool_call.get()
        if call.tool_call_id in self._surplus:
            raise _ToolFailedError(
                f"Only {CALLS_AT_ONCE} calls are run at once, and this one was not. Make it again."
            )
        arguments = msgspec.json.encode(call.arguments).decode()
        return ToolCallData(id=call.tool_call_id, name=call.tool_name, arguments=arguments)

    async def _admit(self, name: str) -> None:
        try:
            await self._broker.admit_tool(name)
        except AgentError as error:
            # Nobody pays for it: the run is over, and the model is not asked what it thinks of it.
            raise UPPError(error.message, code=ProviderErrorCode.CANCELLED) from error

    def _own_tools(self) -> list[Tool]:
        async def present(arguments: dict[str, Any]) -> str:
            self._call()
            return await self._finish(teamwork.present(self._broker, arguments))

        async def delegate(arguments: dict[str, Any]) -> str:
            call = self._call()
            await self._admit(teamwork.DELEGATE)
            return await self._finish(teamwork.delegate(self._broker, call, arguments))

        tools = []
        if teamwork.PRESENT in self._spec.tools:
            tools.append(
                Tool(
                    name=teamwork.PRESENT,
                    description=teamwork.PRESENT_DESCRIPTION,
                    parameters=teamwork.PRESENT_SCHEMA,
                    run=present,
                )
            )
        if self._spec.delegates:
            tools.append(
                Tool(
                    name=teamwork.DELEGATE,
                    description=teamwork.delegate_description(self._spec.delegates),
                    parameters=teamwork.delegate_schema(self._spec.delegates),
                    run=delegate,
                )
            )
        return tools

    async def _finish(self, running: Awaitable[ToolOutcome]) -> str:
        """Keep the outcome for the translator and return its text; an error is raised."""
        try:
            outcome = await running
        except AgentError as error:
            # The broker ended the run, not the tool: the model is not asked again.
            raise UPPError(error.message, code=ProviderErrorCode.CANCELLED) from error
        except Exception:
            logger.exception("Agent %s: a tool broke", self._spec.name)
            raise _ToolFailedError("The tool broke inside the server.") from None
        self._outcomes[current_tool_call.get().tool_call_id] = outcome
        if outcome.is_error:
            raise _ToolFailedError(teamwork.pure(outcome.result))
        items = () if outcome.is_presented else outcome.content_items
        return teamwork.labelled(outcome.result, items)


class _ToolFailedError(Exception):
    """A tool's own failure, in words that the model and users may read."""


_NO_PARAMETERS = {"type": "object", "properties": {}}


def _strategy(spec: AgentSpec) -> ExecutionStrategy:
    try:
        return make_strategy(spec.strategy, spec.strategy_options, max_steps=spec.max_steps)
    except ValueError as error:
        # The row was written past the form that checks it.
        raise UPPError(
            str(error), code=ProviderErrorCode.INVALID_REQUEST, provider=spec.provider
        ) from error


def _server_tools(spec: AgentSpec) -> dict[str, ServerTool]:
    known = {
        **{listed.name: served(listed) for listed in spec.source_tools},
        **server_tools(),
    }
    for name in spec.tools:
        if name not in known and name != teamwork.PRESENT:
            logger.warning("Agent %s: this server has no tool named %s", spec.name, name)
    tools = {name: known[name] for name in spec.tools if name in known}
    for name in spec.approvals:
        if name in tools and not tools[name].long_running:
            # The row was written past the form that checks it; nobody could be asked.
            logger.warning("Agent %s: %s is short and cannot wait for a person", spec.name, name)
            del tools[name]
        elif name in tools:
            tools[name] = replace(tools[name], needs_approval=True)
    return tools


def _client_tools(
    declared: Sequence[ToolDefinition], taken: Mapping[str, ServerTool]
) -> dict[str, ToolDefinition]:
    """Return the client's functions by name; it cannot take the name of a server tool."""
    found: dict[str, ToolDefinition] = {}
    own = {teamwork.PRESENT, teamwork.DELEGATE}
    for tool in declared:
        if tool.function is not None and tool.name not in taken and tool.name not in own:
            found.setdefault(tool.name, tool)
    return found

"""One run of an agent: a request in, UAMP events out.

A run knows the agent, the conversation and three doors (the broker for tools that run
elsewhere, the loader for media, the keeper of checkpoints) and nothing else. Limits are set here,
around a library that has none. Leaving the generator cancels everything that the run started, down
to the provider's request.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import msgspec

from agents_app.checkpoints import Checkpoint
from agents_app.conversation import teamwork
from agents_app.conversation.history import (
    MediaLoader,
    open_ended,
    output_messages,
    plain_result,
    to_conversation,
)
from agents_app.conversation.teamwork import Doors
from agents_app.mcp.tools import served
from agents_app.providers.clients import build_model, vendor_params
from agents_app.providers.options import audio_formats
from agents_app.runtime.client_parts import ClientParts
from agents_app.runtime.failures import AgentError, fail
from agents_app.runtime.model_calls import CALLS_AT_ONCE, OrderlyModel, Tokens
from agents_app.runtime.short_tools import run_here
from agents_app.runtime.step_hooks import Border, CheckpointKeeper, recent
from agents_app.runtime.stream import Translator, added_usage, usage_stats
from agents_app.runtime.structured import Formed, FormedModel, form_of
from agents_app.selectors import AgentSpec
from agents_app.strategies import make_strategy
from agents_app.tools.registry import ServerTool, ToolOutcome, server_tools
from uamp.errors import ErrorCode
from uamp.events import Event, UsageDelta
from uamp.types.content import (
    ContentItem,
    Message,
    TextContent,
    ToolCallContent,
    ToolCallData,
    ToolResultContent,
)
from uamp.types.session import ResponseFormat, ToolDefinition, UsageStats
from uap import Agent, AgentState, AgentStrategy, AgentStreamEvent, agent
from uap.execution import ExecutionStrategy
from upp import ErrorCode as ProviderErrorCode
from upp import LLMRequest, Model, Tool, ToolUseStrategy, UPPError, current_tool_call
from upp import Message as ModelMessage

__all__ = [
    "AgentError",
    "CheckpointKeeper",
    "MediaLoader",
    "RunFinished",
    "RunRequest",
    "ToolBroker",
    "offered",
    "run_agent",
    "run_by_client",
]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """What a run answers.

    `tools` are those that the client declared, `params` may hold model, temperature, max_tokens
    and `extensions`, the session's options by vendor, and `resume` is what this response said
    before its process died: texts, thoughts, calls and results. Calls in `resume` without a
    result are run again, under their old ids. With a `checkpoint` the agent goes on from there,
    and `resume` is its output and what was added to it. `written` are the tokens that the
    response has cost before. With `ends_at_tools` the run ends after a step in which the
    client's tools were called. `asker` is the name under which limits count who asked.
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
    ends_at_tools: bool = False
    asker: str = ""


class ToolBroker(Doors, Protocol):
    """Runs the tools that do not run here; the turn runner has one."""

    async def client_tool(self, call: ToolCallData) -> ToolOutcome:
        """Send `tool.call` and wait for `tool.result` (UAMP §6.10, §5.14)."""

    async def hand_over(self, call: ToolCallData) -> None:
        """Send `tool.call` for a call at which the response ends."""

    async def long_tool(self, tool: ServerTool, call: ToolCallData) -> ToolOutcome:
        """Have a worker run a long tool, or wait for the one that already runs this call."""


@dataclass(frozen=True, kw_only=True)
class RunFinished:
    """The last item of a run; not an event.

    `usage` counts this run only, not what came before it in a resumed response. `finish_reason` is
    stop, length, tool_calls or the provider's own word. `steps` are inferences. An answer that the
    provider's filter stopped is an AgentError instead.
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
    used, steps = UsageStats(), 0
    kept = request.checkpoint
    try:
        conversation = await to_conversation(
            recent(spec, request.history),
            agent_name=spec.name,
            resume=request.resume if kept is None else (),
            media=None if spec.provider == "scripted" else media,
            hears=bool(audio_formats(spec.provider, spec.options)),
        )
        state = _opening(spec, conversation.messages, request)
        border = Border(
            spec,
            checkpoints,
            kept,
            before=len(conversation.messages),
            tokens=run.tokens,
            admit=run.admit_step,
        )
        bot = run.agent(conversation.system, border.hooks())
        if run.form is not None:
            await run.form.check()
        async with bot.stream(None, state) as stream:
            async for event in stream:
                for translated in run.translator.follow(event):
                    if isinstance(translated, UsageDelta):
                        used, steps = added_usage(used, translated.delta), steps + 1
                    yield translated
                if run.translator.written > ANSWER_CHARS:
                    raise AgentError(
                        f"{spec.name} wrote more than {ANSWER_CHARS} characters and was stopped.",
                        code=ErrorCode.ANSWER_TOO_LONG,
                    )
                await run.saw(event)
                border.saw(event)
            result = await stream.result()
    except _HandedOver:
        yield RunFinished(
            usage=used, finish_reason="tool_calls", steps=steps, model=bot.model.model_id
        )
        return
    except UPPError as error:
        fail(spec, error, parts=run.parts.refused(), declined=run.declined)
    turn = result.turn
    if turn.stop_reason == "content_filter":
        raise AgentError(
            "The model's provider filtered the rest of the answer out.",
            code=ErrorCode.CONTENT_FILTERED,
        )
    traces = result.state.subagent_traces[len(state.subagent_traces) :]
    usage = sum((trace.usage for trace in traces if trace.usage is not None), turn.usage)
    yield RunFinished(
        usage=usage_stats(usage),
        finish_reason=_FINISH_REASONS.get(turn.stop_reason, turn.stop_reason),
        steps=turn.cycles,
        model=bot.model.model_id,
    )


def _opening(
    spec: AgentSpec, conversation: Sequence[ModelMessage], request: RunRequest
) -> AgentState:
    """Return the state in which a run begins: it goes on where its messages end."""
    kept = request.checkpoint
    if kept is None:
        state, messages = AgentState.initial(), tuple(conversation)
    else:
        added = output_messages(kept.shown_after(request.resume))
        state, messages = kept.state, (*conversation, *kept.state.messages, *added)
        if not added:
            return state.with_context(messages)
    scripted = spec.provider == "scripted"
    return state.with_context(open_ended(messages, resumes=kept is not None, scripted=scripted))


def _ended_in_text(request: RunRequest) -> bool:
    """Return whether the last thing that was shown is the text of a step that is over."""
    plan = (request.checkpoint.state.plan if request.checkpoint else None) or ()
    under_way = any(step.status == "in_progress" for step in plan)
    return not under_way and isinstance([None, *request.resume][-1], TextContent)


def _ends_in_result(request: RunRequest, client_tools: Mapping[str, ToolDefinition]) -> bool:
    """Return whether the run goes on with a result that the client's tool returned."""
    if not request.resume or not isinstance(request.resume[-1], ToolResultContent):
        return False
    call_id = request.resume[-1].tool_result.call_id
    calls = [one.tool_call for one in request.resume if isinstance(one, ToolCallContent)]
    return any(call.id == call_id and call.name in client_tools for call in calls)


class _Run:
    """The parts of one run that its tools share."""

    def __init__(self, spec: AgentSpec, request: RunRequest, broker: ToolBroker) -> None:
        self._spec = spec
        self._request = request
        self._broker = broker
        self._outcomes: dict[str, ToolOutcome] = {}
        self._surplus: set[str] = set()
        # Whether the client was given calls whose results come in another turn.
        self._handed_over = False
        self._is_free = spec.pricing.is_free
        # By call, whether all that came before it was read, counted and paid.
        self._read: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._named: set[str] = set()
        self.tokens = Tokens(most=spec.max_output_tokens, written=request.written)
        self.form = form_of(spec, request.response_format, asker=request.asker)
        # The calls that the client or a person made fail.
        self.declined: set[str] = set()
        self._server_tools = _server_tools(spec)
        self._client_tools = _client_tools(request.tools, self._server_tools)
        self.parts = ClientParts(
            tools=self._client_tools,
            schema=None if self.form is None else self.form.schema,
            goes_on=bool(request.resume or request.checkpoint),
            reads_result=_ends_in_result(request, self._client_tools),
        )
        self.translator = Translator(
            request.response_id,
            client_tools=frozenset(self._client_tools),
            known_calls=frozenset(
                item.tool_call.id for item in request.resume if isinstance(item, ToolCallContent)
            ),
            outcomes=self._outcomes,
            goes_on=_ended_in_text(request),
        )

    async def admit_step(self) -> None:
        """Let another step begin once it is paid, unless the response ends at client's tools."""
        if self._handed_over:
            raise _HandedOver
        await self._broker.admit_step()

    async def saw(self, event: AgentStreamEvent) -> None:
        """Take note that an event was read: a call that has a payer waits for those before it."""
        if event.upp is None or self._is_free:
            return
        kind, delta = event.upp.type, event.upp.delta
        call_id = delta.tool_call_id or ""
        if kind == "tool_execution_start":
            self._read[call_id].set()
        elif kind == "tool_call_delta":
            text = delta.arguments_json or ""
            if call_id not in self._named:
                self._named.add(call_id)
                text += delta.tool_name or ""
            await self._broker.wrote(text)

    def agent(self, context: Sequence[str], hooks: AgentStrategy) -> Agent:
        """Return the agent, configured for this request; the client's tools come first."""
        spec, request = self._spec, self._request
        # The first to say what is wrong with an agent's row.
        model = build_model(
            spec, model=request.params.get("model"), extensions=request.params.get("extensions")
        )
        params = vendor_params(spec, request.params)
        orderly: Model = OrderlyModel(
            model,
            self.tokens,
            self._surplus,
            keeps_ids=not request.ends_at_tools,
            sent=self._sent,
            answered=self.parts.took,
        )
        execution, form = _strategy(spec), self.form
        if form is not None:
            orderly, execution = FormedModel(orderly, form), Formed(execution, form)
        system = (spec.instructions, request.instructions or "", *context)
        had = request.checkpoint.tool_rounds if request.checkpoint else 0
        return agent(
            model=orderly,
            execution=execution,
            strategy=hooks,
            system="\n\n".join(text for text in system if text) or None,
            tools=[
                *(self._client_tool(tool) for tool in self._client_tools.values()),
                *(self._server_tool(tool) for tool in self._server_tools.values()),
                *self._own_tools(),
            ],
            structure=None if form is None else form.schema,
            params=params,
            # Whoever goes on after the last round has one more: none would mean no calls at all.
            tool_strategy=ToolUseStrategy(max_iterations=max(spec.max_steps - had, 1)),
        )

    def _sent(self, request: LLMRequest) -> None:
        self.parts.sent(request)
        self._broker.inference_sent()

    def _client_tool(self, definition: ToolDefinition) -> Tool:
        async def run(_arguments: dict[str, Any]) -> str:
            call = self._call()
            # It has no price, but the tokens that it was written with have.
            await self._admit(call)
            if self._request.ends_at_tools:
                return await self._hand_over(call)
            return await self._finish(answered(call))

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

    async def _admit(self, call: ToolCallData) -> None:
        """Let a call run once it is paid, and the tokens that it was written with."""
        if self._is_free:
            return
        await self._read[call.id].wait()
        try:
            await self._broker.admit_tool(call)
        except AgentError as error:
            # Nobody pays for it: the run is over, and the model is not asked what it thinks of it.
            raise UPPError(error.message, code=ProviderErrorCode.CANCELLED) from error

    def _own_tools(self) -> list[Tool]:
        async def present(arguments: dict[str, Any]) -> str:
            await self._admit(self._call())
            return await self._finish(teamwork.present(self._broker, arguments))

        async def delegate(arguments: dict[str, Any]) -> str:
            call = self._call()
            await self._admit(call)
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
        call_id = current_tool_call.get().tool_call_id
        self._outcomes[call_id] = outcome
        if outcome.is_refused:
            self.declined.add(call_id)
        if outcome.is_error:
            raise _ToolFailedError(teamwork.pure(outcome.result))
        items = () if outcome.is_presented else outcome.content_items
        return teamwork.labelled(outcome.result, items)


class _HandedOver(Exception):
    """The client has calls to answer in another turn."""


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


def offered(spec: AgentSpec, request: RunRequest) -> list[tuple[str, str, Mapping[str, Any]]]:
    """Return the tools that a model is told of: names, descriptions and parameters."""
    served_here = _server_tools(spec)
    tools: list[tuple[str, str, Mapping[str, Any]]] = [
        (tool.name, tool.description, tool.parameters) for tool in served_here.values()
    ]
    tools += [
        (tool.name, said.description or "", said.parameters or {})
        for tool in _client_tools(request.tools, served_here).values()
        if (said := tool.function) is not None
    ]
    if teamwork.PRESENT in spec.tools:
        tools.append((teamwork.PRESENT, teamwork.PRESENT_DESCRIPTION, teamwork.PRESENT_SCHEMA))
    if spec.delegates:
        about = teamwork.delegate_description(spec.delegates)
        tools.append((teamwork.DELEGATE, about, teamwork.delegate_schema(spec.delegates)))
    return tools


def run_by_client(spec: AgentSpec, request: RunRequest) -> frozenset[str]:
    """Return the names of the tools that the client of a request runs itself."""
    if not request.tools:
        return frozenset()
    return frozenset(_client_tools(request.tools, _server_tools(spec)))


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

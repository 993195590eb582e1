"""One run of an agent: a request in, UAMP events out.

A run knows the agent, the conversation and three ports: the broker, the media loader and the
checkpoint keeper. Limits are set here, around a library that has none. Cancelling the task of a run
cancels everything that the run started, down to the provider's request.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from agents_app.conversation.history import open_ended, output_messages, to_conversation
from agents_app.conversation.media import MediaLoader
from agents_app.providers.clients import build_model, vendor_params
from agents_app.providers.options import audio_formats
from agents_app.runtime.failures import AgentError, fail
from agents_app.runtime.model_calls import OrderlyModel, Tokens
from agents_app.runtime.run_request import RunFinished, RunRequest, ToolBroker
from agents_app.runtime.run_tools import HandedOver, RunTools
from agents_app.runtime.step_hooks import CheckpointKeeper, StepHooks, recent
from agents_app.runtime.stream import Translator, added_usage, usage_stats
from agents_app.runtime.structured import Form, Formed, FormedModel, form_of
from agents_app.selectors import AgentSpec
from agents_app.strategies import make_strategy
from uamp.errors import ErrorCode
from uamp.events import Event, UsageDelta
from uamp.types.content import TextContent, ToolCallContent
from uamp.types.session import UsageStats
from uap import Agent, AgentState, AgentStrategy, AgentStreamEvent, agent
from uap.execution import ExecutionStrategy
from upp import ErrorCode as ProviderErrorCode
from upp import Message as ModelMessage
from upp import Model, ToolUseStrategy, UPPError

__all__ = [
    "AgentError",
    "CheckpointKeeper",
    "MediaLoader",
    "Receive",
    "RunFinished",
    "RunRequest",
    "ToolBroker",
    "run_agent",
]

ANSWER_CHARS = 1_000_000
"""The most characters of text and thought in one answer, which is stored and shown whole."""
_FINISH_REASONS = {"end_turn": "stop", "max_tokens": "length", "tool_use": "tool_calls"}


Receive = Callable[[Event], Awaitable[None]]
EVENTS_AT_ONCE = 64
"""After so many events of an agent other tasks have a turn, however fast its model is."""


async def run_agent(
    spec: AgentSpec,
    request: RunRequest,
    receive: Receive,
    *,
    broker: ToolBroker,
    media: MediaLoader,
    checkpoints: CheckpointKeeper | None = None,
) -> RunFinished:
    """Answer a request: await `receive` with each event of the response, and return the end.

    `receive` gets one event at a time; the model and the tools continue when it returns. Text
    deltas carry no offset: the caller knows what was sent before. After each step but the last one
    the state goes to `checkpoints`, before the next step begins. Raises AgentError, and what
    `receive` raises. Cancel the task to stop the run.
    """
    if spec.kind != "hosted":
        raise AgentError(f"{spec.name} does not run on this server.", code=ErrorCode.AGENT_OFFLINE)
    tokens = Tokens(most=spec.max_output_tokens, written=request.written)
    form = form_of(spec, request.response_format, asker=request.asker)
    tools = RunTools(spec, request, broker, schema=None if form is None else form.schema)
    events = _AgentEvents(spec, tools, _translator(request, tools), receive)
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
        hooks = StepHooks(
            spec,
            checkpoints,
            kept,
            before=len(conversation.messages),
            tokens=tokens,
            admit=tools.admit_step,
        )
        bot = build_agent(
            spec,
            request,
            tools,
            context=conversation.system,
            hooks=hooks.strategy(),
            tokens=tokens,
            form=form,
        )
        if form is not None:
            await form.check()
        result = await bot.stream(None, state).relay(events.emit)
    except HandedOver:
        return RunFinished(
            usage=events.used,
            finish_reason="tool_calls",
            steps=events.inferences,
            model=bot.model.model_id,
        )
    except UPPError as error:
        fail(spec, error, parts=tools.parts.refused(), declined=tools.declined)
    finally:
        events.end()
    turn = result.turn
    if turn.stop_reason == "content_filter":
        raise AgentError(
            "The model's provider filtered the rest of the answer out.",
            code=ErrorCode.CONTENT_FILTERED,
        )
    traces = result.state.subagent_traces[len(state.subagent_traces) :]
    usage = sum((trace.usage for trace in traces if trace.usage is not None), turn.usage)
    return RunFinished(
        usage=usage_stats(usage),
        finish_reason=_FINISH_REASONS.get(turn.stop_reason, turn.stop_reason),
        steps=turn.cycles,
        model=bot.model.model_id,
    )


class _AgentEvents:
    """Translates the events of an agent and gives them to the receiver, in order.

    The task of the run and the tasks of its tools call `emit`; a lock lets one at a time.
    """

    def __init__(
        self, spec: AgentSpec, tools: RunTools, translator: Translator, receive: Receive
    ) -> None:
        self.used = UsageStats()
        self.inferences = 0
        self._spec = spec
        self._tools = tools
        self._translator = translator
        self._receive: Receive | None = receive
        self._lock = asyncio.Lock()
        self._count = 0

    async def emit(self, event: AgentStreamEvent) -> None:
        """Return when an event was received, counted and paid."""
        async with self._lock:
            await self._pass_on(event)
        self._count += 1
        if self._count % EVENTS_AT_ONCE == 0:
            await asyncio.sleep(0)

    def end(self) -> None:
        """Release the receiver, which holds the answer: an agent's objects form circles."""
        self._receive = None

    async def _pass_on(self, event: AgentStreamEvent) -> None:
        for translated in self._translator.follow(event):
            if isinstance(translated, UsageDelta):
                self.used = added_usage(self.used, translated.delta)
                self.inferences += 1
            if self._receive is not None:
                await self._receive(translated)
        if self._translator.written > ANSWER_CHARS:
            raise AgentError(
                f"{self._spec.name} wrote more than {ANSWER_CHARS} characters and was stopped.",
                code=ErrorCode.ANSWER_TOO_LONG,
            )
        await self._tools.count(event)


def build_agent(
    spec: AgentSpec,
    request: RunRequest,
    tools: RunTools,
    *,
    context: Sequence[str],
    hooks: AgentStrategy,
    tokens: Tokens,
    form: Form | None,
) -> Agent:
    """Return the uap agent of a row, configured for one request.

    Raises UPPError for a row that no provider can serve. `context` are system texts of the
    conversation, which follow the instructions of the row and of the request.
    """
    model = build_model(
        spec, model=request.params.get("model"), extensions=request.params.get("extensions")
    )
    params = vendor_params(spec, request.params)
    orderly: Model = OrderlyModel(
        model,
        tokens,
        tools.surplus,
        keeps_ids=not request.ends_at_tools,
        sent=tools.sent,
        answered=tools.parts.took,
    )
    execution = _strategy(spec)
    if form is not None:
        orderly, execution = FormedModel(orderly, form), Formed(execution, form)
    system = (spec.instructions, request.instructions or "", *context)
    had = request.checkpoint.tool_rounds if request.checkpoint else 0
    return agent(
        model=orderly,
        execution=execution,
        strategy=hooks,
        system="\n\n".join(text for text in system if text) or None,
        tools=tools.offered(),
        structure=None if form is None else form.schema,
        params=params,
        # A run that continues after the last round has one more: zero would forbid all calls.
        tool_strategy=ToolUseStrategy(max_iterations=max(spec.max_steps - had, 1)),
    )


def _strategy(spec: AgentSpec) -> ExecutionStrategy:
    try:
        return make_strategy(spec.strategy, spec.strategy_options, max_steps=spec.max_steps)
    except ValueError as error:
        # The row was written past the form that checks it.
        raise UPPError(
            str(error), code=ProviderErrorCode.INVALID_REQUEST, provider=spec.provider
        ) from error


def _translator(request: RunRequest, tools: RunTools) -> Translator:
    return Translator(
        request.response_id,
        client_tools=frozenset(tools.client_tools),
        known_calls=frozenset(
            item.tool_call.id for item in request.resume if isinstance(item, ToolCallContent)
        ),
        outcomes=tools.outcomes,
        goes_on=_ended_in_text(request),
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

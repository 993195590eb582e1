"""One run of an agent: a request in, UAMP events out.

A run knows the agent, the conversation and three ports: the broker, the media loader and the
checkpoint saver. It adds the limits that the underlying library does not have. Cancelling the task
of a run cancels everything the run has started, including the provider's request.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from agents_app.conversation.state_changes import SET_STATE, STATE, described
from agents_app.inferences import InferenceLog
from agents_app.providers.clients import build_model, vendor_params
from agents_app.providers.options import audio_formats, speech_formats
from agents_app.providers.output_limits import with_reserved_limit
from agents_app.remote import health
from agents_app.remote.models import Give, remote_model
from agents_app.remote.parameters import params_of
from agents_app.remote.tasks import TaskRecorder
from agents_app.runtime.connected.daemons import DaemonElsewhere, Daemons
from agents_app.runtime.connected.run import run_connected
from agents_app.runtime.failures import AgentError, cause_of, check_remote, fail, without_secrets
from agents_app.runtime.model_calls import OrderlyModel, Tokens
from agents_app.runtime.run_request import RunFinished, RunRequest, ToolBroker
from agents_app.runtime.run_tools import HandedOver, RunTools
from agents_app.runtime.step_hooks import CheckpointSaver, StepHooks, recent
from agents_app.runtime.structured import Form, Formed, FormedModel, form_of
from agents_app.runtime.tool_choice import choosing
from agents_app.runtime.usage import added_usage
from agents_app.selectors import AgentSpec
from agents_app.strategies import make_strategy
from uamp.errors import ErrorCode
from uamp.events import Event, UsageDelta
from uamp.types.content import TextContent, ToolCallContent
from uamp.types.session import UsageStats
from uap import Agent, AgentState, AgentStrategy, AgentStreamEvent, agent
from uap.execution import ExecutionStrategy
from uap.uamp_adapter.history import open_ended, output_messages, to_conversation
from uap.uamp_adapter.media import MediaLoader
from uap.uamp_adapter.stream import Translator, usage_stats
from upp import ErrorCode as ProviderErrorCode
from upp import Message as ModelMessage
from upp import Model, ProviderConfig, ToolUseStrategy, UPPError

__all__ = [
    "AgentError",
    "CheckpointSaver",
    "DaemonElsewhere",
    "Daemons",
    "MediaLoader",
    "Receive",
    "RunFinished",
    "RunRequest",
    "ToolBroker",
    "cause_of",
    "run_agent",
]

ANSWER_CHARS = 1_000_000
"""The most characters of text, thoughts and calls in one answer, which is stored and shown whole.
"""
ANSWER_SOUND_BYTES = 16 * 1024 * 1024
"""The most bytes of audio in one answer, which is stored whole: almost six minutes of PCM."""
_FINISH_REASONS = {"end_turn": "stop", "max_tokens": "length", "tool_use": "tool_calls"}

Receive = Callable[[Event | str], Awaitable[None] | None]
"""Receives an answer's text as str and its other events; the run awaits the returned value."""
EVENTS_AT_ONCE = 64
"""After this many events of an agent, other tasks get a turn, however fast its model is."""


async def run_agent(
    spec: AgentSpec,
    request: RunRequest,
    receive: Receive,
    *,
    broker: ToolBroker,
    media: MediaLoader,
    checkpoints: CheckpointSaver | None = None,
    daemons: Daemons | None = None,
    recorder: TaskRecorder | None = None,
    inferences: InferenceLog | None = None,
    media_tokens: int = 0,
) -> RunFinished:
    """Answer a request with a hosted, remote or connected agent; return the end of the run.

    `receive` gets the text and events of the response one at a time; the model and the tools
    continue once the awaitable that it returned is done. `recorder` records the answer of a remote
    agent while it is in progress there, `inferences` each request to a model. `media_tokens` is the
    most that the media of the conversation may count in an inference. Raises AgentError, whatever
    `receive` raises, and DaemonElsewhere if another process holds the socket of a connected agent.
    Cancel the task to stop the run.
    """
    if spec.kind != "connected":
        return await _run_model(
            spec,
            request,
            receive,
            broker=broker,
            media=media,
            checkpoints=checkpoints,
            recorder=recorder,
            inferences=inferences,
            media_tokens=media_tokens,
        )
    if daemons is None:
        raise AgentError(
            f"{spec.name} is a connected agent and can only be asked in a chat.",
            code=ErrorCode.AGENT_OFFLINE,
        )
    try:
        finished = await run_connected(spec, request, receive, broker=broker, daemons=daemons)
    except AgentError as error:
        message = cause_of(error) or without_secrets(error.message)
        await health.note_daemon_failure(spec, error.code, message=message)
        raise
    await health.note_answer(spec)
    return finished


async def _run_model(
    spec: AgentSpec,
    request: RunRequest,
    receive: Receive,
    *,
    broker: ToolBroker,
    media: MediaLoader,
    checkpoints: CheckpointSaver | None,
    recorder: TaskRecorder | None,
    inferences: InferenceLog | None,
    media_tokens: int,
) -> RunFinished:
    """Run a hosted agent on its model, or a remote agent as if it were one.

    After each step but the last, the state is saved to `checkpoints` before the next step begins.
    """
    if spec.kind == "remote":
        check_remote(spec, servers=request.servers)
    tokens = Tokens(limit=spec.max_output_tokens, written=request.written)
    form = form_of(spec, request.response_format, asker=request.asker)
    tools = RunTools(spec, request, broker, schema=None if form is None else form.schema)
    events = _AgentEvents(spec, tools, _translator(request, tools), receive)
    checkpoint = request.checkpoint
    try:
        conversation = await to_conversation(
            recent(spec, request.history),
            agent_name=spec.name,
            media=None if spec.provider == "scripted" else media,
            accepts_audio=bool(audio_formats(spec.provider, spec.options)),
            names_audio=not speech_formats(spec.provider),
        )
        state = _opening(spec, conversation.messages, request)
        context = [*conversation.system]
        if SET_STATE in spec.tools:
            shared = await broker.shared_state()
            context.append(described(shared))
            state = state.with_metadata(STATE, shared.value)
        hooks = StepHooks(
            spec,
            checkpoints,
            checkpoint,
            before=len(conversation.messages),
            tokens=tokens,
            admit=tools.admit_step,
        )
        bot = build_agent(
            spec,
            request,
            tools,
            context=context,
            hooks=hooks.strategy(),
            tokens=tokens,
            form=form,
            give=events.give,
            recorder=recorder,
            inferences=inferences,
            media_tokens=media_tokens,
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
        if spec.kind == "remote":
            await health.note_failure(spec, error, message=cause_of(error))
        fail(
            spec,
            error,
            response_id=request.response_id,
            parts=tools.parts.refused(),
            declined=tools.declined,
        )
    finally:
        events.end()
    if spec.kind == "remote":
        await health.note_answer(spec)
    turn = result.turn
    if turn.stop_reason == "content_filter":
        raise AgentError(
            "The model's provider filtered the rest of the answer.",
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
    """Translates the events of an agent and passes them to the receiver in order.

    The run's task and the tasks of its tools all call `emit`, which serializes them.
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
        self._is_free = spec.pricing.is_free
        # A receiver that need not wait returns before the next event can arrive.
        self._is_receiving = False
        self._received = asyncio.Event()
        self._count = 0

    async def emit(self, event: AgentStreamEvent) -> None:
        """Translate an event; return once it has been received, counted and paid for."""
        await self._turn()
        try:
            for output in self._translator.follow(event):
                if (receiving := self._give(output)) is not None:
                    await receiving
            if self._translator.written > ANSWER_CHARS:
                raise AgentError(
                    f"{self._spec.name} wrote more than {ANSWER_CHARS} characters and was stopped.",
                    code=ErrorCode.ANSWER_TOO_LONG,
                )
            if self._translator.spoken > ANSWER_SOUND_BYTES:
                raise AgentError(
                    f"{self._spec.name} spoke too long and was stopped.",
                    code=ErrorCode.ANSWER_TOO_LONG,
                )
            if not self._is_free:
                await self._tools.count(event)
        finally:
            self._is_receiving = False
            self._received.set()
        self._count += 1
        if self._count % EVENTS_AT_ONCE == 0:
            await asyncio.sleep(0)

    async def give(self, event: Event) -> None:
        """Pass on another event of a remote agent; return once it has been received."""
        await self._turn()
        try:
            if (receiving := self._give(event)) is not None:
                await receiving
        finally:
            self._is_receiving = False
            self._received.set()

    async def _turn(self) -> None:
        while self._is_receiving:
            self._received.clear()
            await self._received.wait()
        self._is_receiving = True

    def end(self) -> None:
        """Drop the receiver, which holds the answer: an agent's objects form reference cycles."""
        self._receive = None

    def _give(self, event: Event | str) -> Awaitable[None] | None:
        if isinstance(event, UsageDelta):
            self.used = added_usage(self.used, event.delta)
            self.inferences += 1
        return None if self._receive is None else self._receive(event)


def build_agent(
    spec: AgentSpec,
    request: RunRequest,
    tools: RunTools,
    *,
    context: Sequence[str],
    hooks: AgentStrategy,
    tokens: Tokens,
    form: Form | None,
    give: Give,
    recorder: TaskRecorder | None = None,
    inferences: InferenceLog | None = None,
    media_tokens: int = 0,
) -> Agent:
    """Build the uap agent of a row, configured for one request.

    `give` receives what a remote agent shows besides its text, thoughts and calls. `context` holds
    the system messages of the conversation, which follow the instructions of the row and of the
    request. Raises UPPError if no provider can serve the row.
    """
    if spec.kind == "remote":
        model = remote_model(
            spec,
            response_id=request.response_id,
            servers=request.servers,
            give=give,
            recorder=recorder,
            handle=request.remote_task,
        )
        is_compatible = spec.provider == "openai_compat"
        params = (vendor_params if is_compatible else params_of)(spec, request.params)
    else:
        model = build_model(
            spec, model=request.params.get("model"), extensions=request.params.get("extensions")
        )
        params = with_reserved_limit(spec, vendor_params(spec, request.params))
    orderly: Model = OrderlyModel(
        choosing(model, spec.provider, request),
        tokens,
        tools.surplus,
        keeps_ids=not request.ends_at_tools,
        admit=tools.admit_inference,
        sent=tools.sent,
        answered=tools.parts.took,
        log=inferences or InferenceLog(),
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
        tools=tools.upp_tools(),
        structure=None if form is None else form.schema,
        params=params,
        config=ProviderConfig(media_tokens=media_tokens),
        # A run that resumes after the last round gets one more: zero would forbid all calls.
        tool_strategy=ToolUseStrategy(max_iterations=max(spec.max_steps - had, 1)),
    )


def _strategy(spec: AgentSpec) -> ExecutionStrategy:
    try:
        return make_strategy(spec.strategy, spec.strategy_options, max_steps=spec.max_steps)
    except ValueError as error:
        # The row was written without the form that checks it.
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
        sound_format=request.params.get("speech", {}).get("format", "pcm16"),
    )


def _opening(
    spec: AgentSpec, conversation: Sequence[ModelMessage], request: RunRequest
) -> AgentState:
    """Return the state in which a run starts, continuing after its last messages."""
    checkpoint = request.checkpoint
    state = AgentState.initial() if checkpoint is None else checkpoint.state
    output = request.resume if checkpoint is None else checkpoint.output_since(request.resume)
    added = output_messages(output)
    messages = (*conversation, *state.messages, *added)
    if checkpoint is not None and not added:
        return state.with_context(messages)
    scripted = spec.provider == "scripted"
    return state.with_context(open_ended(messages, resumes=bool(added), scripted=scripted))


def _ended_in_text(request: RunRequest) -> bool:
    """Return whether the last output shown is the text of a completed step."""
    plan = (request.checkpoint.state.plan if request.checkpoint else None) or ()
    under_way = any(step.status == "in_progress" for step in plan)
    return not under_way and isinstance([None, *request.resume][-1], TextContent)

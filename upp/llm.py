"""`llm()`: one configured model, and the loop that runs its tools (UPP-1.3 §5).

A provider handles one request and one response; the loop around it is here. It sends the
conversation, runs the calls of an answer in parallel, sends their results, and ends with the first
answer without calls. Cancelling the task that runs the loop cancels every inference and every tool.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, TypedDict, Unpack

from msgspec import UNSET, UnsetType

from upp.config.provider_config import ProviderConfig
from upp.conversation.messages import (
    MESSAGE_KINDS,
    AudioBlock,
    DocumentBlock,
    ImageBlock,
    InferenceInput,
    Message,
    ToolResultMessage,
    UserMessage,
    VideoBlock,
    to_message,
    unanswered_calls,
    with_joined_results,
)
from upp.conversation.thread import Thread
from upp.conversation.turn import TokenUsage, Turn
from upp.errors import ErrorCode, TooManyRoundsError, UPPError
from upp.middleware.chain import Chain, Middleware, MiddlewareContext, maybe_await
from upp.model import LLMRequest, LLMResponse, Model, infer
from upp.stream import Emit, StreamEvent, StreamResult, object_delta
from upp.tool_runner import ToolRunner
from upp.tools import Tool, ToolCall, ToolExecution, ToolUseStrategy

History = Sequence[Message] | Thread
"""The history before the turn, which is not part of the Turn."""


_ROUNDS = 10
"""The tool rounds of a tool strategy that sets no limit (UPP-1.3 §5.6)."""


class LLMOptions(TypedDict, total=False):
    """The options of `llm()` other than the model; `with_options` changes them."""

    system: str | None
    tools: Sequence[Tool]
    structure: Mapping[str, Any] | None
    params: Mapping[str, Any] | None
    config: ProviderConfig | None
    tool_strategy: ToolUseStrategy | None
    max_iterations: int | None
    middleware: Sequence[Middleware]


def llm(*, model: Model, **options: Unpack[LLMOptions]) -> "LLMInstance":
    """Return a configured model (UPP-1.3 §5.1).

    `system` is the system prompt, `structure` the JSON Schema of the answer, `params` are passed to
    the vendor unchanged, and `config` overrides the provider's own. `max_iterations` defaults to
    that of `tool_strategy`, else 10; None means no limit, 0 returns the calls unexecuted. Raises
    UPPError INVALID_REQUEST if the API lacks a requested feature or two tools share a name, and
    TypeError for an unknown option.
    """
    for name in options.keys() - LLMOptions.__annotations__.keys():
        close = get_close_matches(name, LLMOptions.__annotations__, n=1)
        suggestion = f" Did you mean {close[0]!r}?" if close else ""
        raise TypeError(f"llm() has no option {name!r}.{suggestion}")
    strategy = options.get("tool_strategy") or ToolUseStrategy()
    limit = options.get("max_iterations", strategy.max_iterations)
    limit = _ROUNDS if limit is UNSET else limit
    if limit != strategy.max_iterations:
        strategy = replace(strategy, max_iterations=limit)
    tools = tuple(options.get("tools", ()))
    structure = options.get("structure")
    if tools and not model.capabilities.tools:
        raise _refusal(model, "The provider does not support tools.")
    if structure is not None and not model.capabilities.structured_output:
        raise _refusal(model, "The provider does not support structured output.")
    if len({tool.name for tool in tools}) < len(tools):
        raise _refusal(model, "Two tools have the same name.")
    return LLMInstance(
        model=model,
        system=options.get("system"),
        tools=tools,
        structure=structure,
        params=dict(options.get("params") or {}),
        config=options.get("config"),
        tool_strategy=strategy,
        middleware=tuple(options.get("middleware", ())),
    )


@dataclass(frozen=True, kw_only=True)
class LLMInstance:
    """A configured model. It keeps no state between calls.

    `middleware_state` is for callers that drive the loop themselves: their middleware then shares
    one `state` across related calls, instead of a new one for each.
    """

    model: Model
    system: str | None
    tools: tuple[Tool, ...]
    structure: Mapping[str, Any] | None
    params: Mapping[str, Any]
    config: ProviderConfig | None
    tool_strategy: ToolUseStrategy
    middleware: tuple[Middleware, ...]
    middleware_state: dict[str, Any] | None = None

    @property
    def max_iterations(self) -> int | None:
        """The maximum number of tool rounds."""
        limit = self.tool_strategy.max_iterations
        return _ROUNDS if isinstance(limit, UnsetType) else limit

    def with_options(self, **changes: Unpack[LLMOptions]) -> "LLMInstance":
        """Return an instance of the same model with some options changed; raises like `llm()`."""
        options: LLMOptions = {
            "system": self.system,
            "tools": self.tools,
            "structure": self.structure,
            "params": self.params,
            "config": self.config,
            "tool_strategy": self.tool_strategy,
            "middleware": self.middleware,
        }
        options.update(changes)
        instance = llm(model=self.model, **options)
        return replace(instance, middleware_state=self.middleware_state)

    async def generate(self, history: History | InferenceInput, *inputs: InferenceInput) -> Turn:
        """Run to the end and return the Turn.

        Without a history, the first argument is an input too; each input becomes a separate
        message. If the history ends in calls without results, those run first. Raises UPPError
        INVALID_REQUEST if more tool rounds than `max_iterations` would be needed, the API does not
        support the media, or the history contains anything but messages; otherwise, the provider's
        errors.
        """
        return await self._run(history, inputs, _discard, streaming=False)

    def stream(self, history: History | InferenceInput, *inputs: InferenceInput) -> StreamResult:
        """Like `generate`, but live; raises UPPError INVALID_REQUEST if there is no streaming."""
        if not self.model.capabilities.streaming:
            raise _refusal(self.model, "The provider does not support streaming.")
        return StreamResult(lambda emit: self._run(history, inputs, emit, streaming=True))

    async def run_tools(
        self,
        calls: Sequence[ToolCall],
        *,
        after: Mapping[int, Collection[int]] | None = None,
        emit: Emit | None = None,
    ) -> tuple[ToolResultMessage, tuple[ToolExecution, ...]]:
        """Run the calls of one answer; return their results and execution records.

        For callers that drive the loop themselves with `max_iterations=0`. All calls run in
        parallel, after the `tool_execution_start` of each, except that a call whose position is in
        `after` waits for the calls at the positions given there, which must not form a cycle.
        Results are in the order of the calls, executions in the order in which they ended. The
        hooks of the tool strategy and of the middleware see the calls. Raises errors of an
        approval, and UPPError from a tool.
        """
        chain = self._chain((), streaming=emit is not None)
        runner = ToolRunner(
            tools=self.tools,
            strategy=self.tool_strategy,
            chain=chain,
            emit=_through(chain, emit or _discard),
        )
        return await runner.run(calls, after or {})

    def _chain(self, messages: tuple[Message, ...], *, streaming: bool) -> Chain:
        request = LLMRequest(
            messages=messages,
            system=self.system,
            params=self.params,
            tools=self.tools,
            structure=self.structure,
            config=self.config,
        )
        context = MiddlewareContext(
            model_id=self.model.model_id,
            provider=self.model.provider,
            streaming=streaming,
            request=request,
            state={} if self.middleware_state is None else self.middleware_state,
        )
        return Chain(self.middleware, context)

    async def _run(
        self,
        history: History | InferenceInput,
        inputs: Sequence[InferenceInput],
        emit: Emit,
        *,
        streaming: bool,
    ) -> Turn:
        before, new_messages = self._conversation(history, inputs)
        chain = self._chain((*before, *new_messages), streaming=streaming)
        known_ids = {message.id for message in before}
        try:
            await chain.begin()
            turn = await self._loop(chain, known_ids, _through(chain, emit) if streaming else emit)
            return await chain.end(turn)
        except asyncio.CancelledError:
            await chain.abort()
            raise
        except Exception as error:
            await chain.fail(error)
            raise

    async def _loop(self, chain: Chain, known_ids: Collection[str], emit: Emit) -> Turn:
        """Infer and run tools until there is an answer; messages not in `known` are new."""
        request = chain.context.request
        _check_media(self.model, request.messages)
        strategy = self.tool_strategy
        runner = ToolRunner(tools=request.tools, strategy=strategy, chain=chain, emit=emit)
        produced: list[Message] = []
        executions: list[ToolExecution] = []
        usage = TokenUsage()
        cycles = rounds = 0

        async def run_tools(calls: Sequence[ToolCall]) -> None:
            results, executed = await runner.run(calls, {})
            produced.append(results)
            executions.extend(executed)

        pending = unanswered_calls(request.messages)
        if pending and strategy.max_iterations != 0:
            await run_tools(pending)
        while True:
            messages = (*request.messages, *produced) if produced else request.messages
            messages = with_joined_results(messages)
            next_request = (
                request if messages is request.messages else replace(request, messages=messages)
            )
            response = await _infer(self.model, next_request, emit)
            cycles += 1
            usage += response.usage
            produced.append(response.message)
            calls = response.message.tool_calls
            is_last = not calls or not request.tools or response.data is not None
            if is_last or strategy.max_iterations == 0:
                break
            if rounds == strategy.max_iterations:
                if strategy.on_max_iterations is not None:
                    await maybe_await(strategy.on_max_iterations(rounds))
                raise TooManyRoundsError(
                    f"The model requested more than {rounds} tool rounds.",
                    code=ErrorCode.INVALID_REQUEST,
                    provider=self.model.provider,
                )
            rounds += 1
            await run_tools(calls)
        new_messages = (message for message in request.messages if message.id not in known_ids)
        return Turn(
            messages=(*new_messages, *produced),
            response=response.message,
            tool_executions=tuple(executions),
            usage=usage,
            cycles=cycles,
            stop_reason=response.stop_reason,
            data=response.data,
        )

    def _conversation(
        self, history: History | InferenceInput, inputs: Sequence[InferenceInput]
    ) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
        """Return the earlier messages and the new ones."""
        if isinstance(history, Thread):
            before: tuple[Any, ...] = tuple(history.messages)
        elif isinstance(history, Sequence) and not isinstance(history, str):
            before = tuple(history)
        else:
            before, inputs = (), (history, *inputs)
        for message in before:
            if not isinstance(message, MESSAGE_KINDS):
                kind = type(message).__name__
                raise _refusal(self.model, f"A history holds only messages, not {kind}.")
        return before, tuple(to_message(item) for item in inputs)


async def _infer(model: Model, request: LLMRequest, emit: Emit) -> LLMResponse:
    if request.structure is None:
        return await infer(model, request, emit)

    async def emit_both(event: StreamEvent) -> None:
        await emit(event)
        if event.type == "text_delta":
            await emit(object_delta(event.delta.text or "", index=event.index))

    return await infer(model, request, emit_both)


def _check_media(model: Model, messages: Sequence[Message]) -> None:
    capabilities = model.capabilities
    unsupported = tuple(
        kind
        for kind, is_supported in (
            (ImageBlock, capabilities.image_input),
            (DocumentBlock, capabilities.document_input),
            (AudioBlock, capabilities.audio_input),
            (VideoBlock, capabilities.video_input),
        )
        if not is_supported
    )
    if not unsupported:
        return
    for message in messages:
        if isinstance(message, UserMessage):
            for block in message.content:
                if isinstance(block, unsupported):
                    raise _refusal(model, f"The provider does not accept a {type(block).__name__}.")


def _refusal(model: Model, message: str) -> UPPError:
    return UPPError(message, code=ErrorCode.INVALID_REQUEST, provider=model.provider)


def _through(chain: Chain, emit: Emit) -> Emit:
    """Return an emit function that passes events through the middleware."""
    if chain.is_empty:
        return emit

    async def transformed(event: StreamEvent) -> None:
        for output in chain.transform(event):
            await emit(output)

    return transformed


async def _discard(event: StreamEvent) -> None:
    """Drop an event that no caller reads."""

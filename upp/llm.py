"""`llm()`: one model with its configuration, and the loop that runs its tools (UPP-1.3 §5).

The law: a provider does one request and one response; the loop around it lives here. It sends the
conversation, runs the calls of an answer together, sends their results, and ends with the first
answer without calls. Every inference and every tool is cancelled with the task that runs the loop.
"""

import asyncio
import inspect
import time
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from upp.errors import ErrorCode, TooManyRoundsError, UPPError
from upp.messages import (
    AssistantMessage,
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
)
from upp.stream import Emit, EventDelta, StreamEvent, StreamResult
from upp.tools import Tool, ToolCall, ToolExecution, ToolResult, current_tool_call
from upp.turn import TokenUsage, Turn


class LLMCapabilities(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a provider's API can do, whatever the model (UPP-1.3 §5.4)."""

    streaming: bool = True
    tools: bool = True
    structured_output: bool = True
    image_input: bool = False
    document_input: bool = False
    video_input: bool = False
    audio_input: bool = False


@dataclass(frozen=True, kw_only=True)
class LLMRequest:
    """What a provider gets for one inference; `params` go to the vendor as they are."""

    messages: tuple[Message, ...]
    system: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    tools: tuple[Tool, ...] = ()
    structure: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class LLMResponse:
    """What came of one inference; a provider's stream ends with it."""

    message: AssistantMessage
    usage: TokenUsage
    stop_reason: str
    data: Any = None


class Model(Protocol):
    """A provider bound to a model; what the factories in `upp.providers` return."""

    @property
    def model_id(self) -> str:
        """The provider's name of the model."""

    @property
    def provider(self) -> str:
        """The name of the provider."""

    @property
    def capabilities(self) -> LLMCapabilities:
        """What the API can do."""

    def stream(self, request: LLMRequest) -> AsyncGenerator[StreamEvent | LLMResponse, None]:
        """Do one inference: yield its events, and last its LLMResponse.

        Closing the generator, or cancelling the task that reads it, closes the request. Raises
        UPPError.
        """


def llm(
    *,
    model: Model,
    system: str | None = None,
    tools: Sequence[Tool] = (),
    structure: Mapping[str, Any] | None = None,
    params: Mapping[str, Any] | None = None,
    max_iterations: int | None = 10,
) -> "LLMInstance":
    """Return the model with its configuration (UPP-1.3 §5.1).

    `max_iterations` is the number of tool rounds: None for no limit, 0 to get the calls back
    unexecuted. Raises UPPError INVALID_REQUEST when the API lacks what is asked for or two tools
    share a name.
    """
    if tools and not model.capabilities.tools:
        raise _refusal(model, "The provider has no tools.")
    if structure is not None and not model.capabilities.structured_output:
        raise _refusal(model, "The provider has no structured output.")
    if len({tool.name for tool in tools}) < len(tools):
        raise _refusal(model, "Two tools have the same name.")
    return LLMInstance(
        model=model,
        system=system,
        tools=tuple(tools),
        structure=structure,
        params=dict(params or {}),
        max_iterations=max_iterations,
    )


@dataclass(frozen=True, kw_only=True)
class LLMInstance:
    """A configured model; it keeps no state between two calls."""

    model: Model
    system: str | None
    tools: tuple[Tool, ...]
    structure: Mapping[str, Any] | None
    params: Mapping[str, Any]
    max_iterations: int | None

    async def generate(self, history: Sequence[Message], *inputs: InferenceInput) -> Turn:
        """Run to the end and return the Turn.

        Each input becomes a message of its own. A history that ends in calls without results starts
        with those calls. Raises UPPError: INVALID_REQUEST when a tool round more than
        `max_iterations` would be needed or the API lacks the media; else the provider's errors.
        """
        return await self._run(history, inputs, _discard)

    def stream(self, history: Sequence[Message], *inputs: InferenceInput) -> StreamResult:
        """Like `generate`, but live; raises UPPError INVALID_REQUEST at once without streaming."""
        if not self.model.capabilities.streaming:
            raise _refusal(self.model, "The provider has no streaming.")
        return StreamResult(lambda emit: self._run(history, inputs, emit))

    async def _run(
        self, history: Sequence[Message], inputs: Sequence[InferenceInput], emit: Emit
    ) -> Turn:
        produced = [to_message(given) for given in inputs]
        self._check_media((*history, *produced))
        executions: list[ToolExecution] = []
        usage = TokenUsage()
        cycles = rounds = 0
        pending = unanswered_calls((*history, *produced))
        if pending and self.max_iterations != 0:
            answer, executed = await self.run_tools(pending, emit=emit)
            produced.append(answer)
            executions += executed
        while True:
            response = await self._infer((*history, *produced), emit)
            cycles += 1
            usage += response.usage
            produced.append(response.message)
            calls = response.message.tool_calls
            last = not calls or not self.tools or response.data is not None
            if last or self.max_iterations == 0:
                break
            if rounds == self.max_iterations:
                raise TooManyRoundsError(
                    f"The model asked for more than {rounds} tool rounds.",
                    code=ErrorCode.INVALID_REQUEST,
                    provider=self.model.provider,
                )
            rounds += 1
            answer, executed = await self.run_tools(calls, emit=emit)
            produced.append(answer)
            executions += executed
        return Turn(
            messages=tuple(produced),
            response=response.message,
            tool_executions=tuple(executions),
            usage=usage,
            cycles=cycles,
            stop_reason=response.stop_reason,
            data=response.data,
        )

    async def _infer(self, messages: tuple[Message, ...], emit: Emit) -> LLMResponse:
        request = LLMRequest(
            messages=messages,
            system=self.system,
            params=self.params,
            tools=self.tools,
            structure=self.structure,
        )
        response: LLMResponse | None = None
        async with aclosing(self.model.stream(request)) as events:
            async for event in events:
                if isinstance(event, StreamEvent):
                    await emit(event)
                else:
                    response = event
        if response is None:
            raise UPPError(
                "The provider's stream ended without a response.",
                code=ErrorCode.INVALID_RESPONSE,
                provider=self.model.provider,
            )
        return response

    async def run_tools(
        self,
        calls: Sequence[ToolCall],
        *,
        after: Mapping[int, Collection[int]] | None = None,
        emit: Emit | None = None,
    ) -> tuple[ToolResultMessage, tuple[ToolExecution, ...]]:
        """Run the calls of one answer and return their results and what was executed.

        For who drives the loop from outside with `max_iterations=0`. All calls run together, but
        the call at a position in `after` waits for those at the positions there, which must form no
        circle. Results have the order of the calls, executions that of their ends. Raises what an
        approval raised, and UPPError from a tool.
        """
        executions: list[ToolExecution] = []
        earlier = after or {}
        tasks: list[asyncio.Task[ToolResult]] = []

        async def execute(call: ToolCall, index: int) -> ToolResult:
            if index in earlier:
                await asyncio.wait([tasks[position] for position in earlier[index]])
            return await self._execute(call, index, executions, emit or _discard)

        try:
            async with asyncio.TaskGroup() as group:
                tasks += [
                    group.create_task(execute(call, index)) for index, call in enumerate(calls)
                ]
        except BaseExceptionGroup as failures:
            # Only an approval or a UPPError gets here, and the first one ends the generation.
            first = failures.exceptions[0]
            raise first from first.__cause__
        results = tuple(task.result() for task in tasks)
        return ToolResultMessage(results=results), tuple(executions)

    async def _execute(
        self, call: ToolCall, index: int, executions: list[ToolExecution], emit: Emit
    ) -> ToolResult:
        started = time.monotonic()
        await emit(_execution_event("tool_execution_start", call, index))
        result, is_error, approved = await self._result(call)
        executions.append(
            ToolExecution(
                tool_name=call.tool_name,
                tool_call_id=call.tool_call_id,
                arguments=call.arguments,
                result=result,
                is_error=is_error,
                duration=(time.monotonic() - started) * 1000,
                approved=approved,
            )
        )
        await emit(_execution_event("tool_execution_end", call, index, result, is_error=is_error))
        return ToolResult(tool_call_id=call.tool_call_id, result=result, is_error=is_error)

    async def _result(self, call: ToolCall) -> tuple[Any, bool, bool | None]:
        """Return the result, whether it is an error, and what the approval said."""
        tool = next((tool for tool in self.tools if tool.name == call.tool_name), None)
        if tool is None:
            return f"Tool '{call.tool_name}' not found", True, None
        if call.malformed is not None:
            return "The arguments are not a JSON object.", True, None
        approved: bool | None = None
        if tool.approval is not None:
            approved = bool(await _maybe_await(tool.approval(call.arguments)))
            if not approved:
                return "The call was not approved.", True, approved
        current_tool_call.set(call)
        try:
            if inspect.iscoroutinefunction(tool.run):
                return await tool.run(call.arguments), False, approved
            given = await asyncio.to_thread(tool.run, call.arguments)
            return await _maybe_await(given), False, approved
        except UPPError:
            raise
        except Exception as error:  # noqa: BLE001 the model gets it (UPP-1.3 §5.6)
            return str(error) or type(error).__name__, True, approved

    def _check_media(self, messages: Sequence[Message]) -> None:
        can = self.model.capabilities
        lacking = tuple(
            kind
            for kind, able in (
                (ImageBlock, can.image_input),
                (DocumentBlock, can.document_input),
                (AudioBlock, can.audio_input),
                (VideoBlock, can.video_input),
            )
            if not able
        )
        for message in messages:
            if isinstance(message, UserMessage):
                for block in message.content:
                    if isinstance(block, lacking):
                        kind = type(block).__name__
                        raise _refusal(self.model, f"The provider does not take a {kind}.")


def _refusal(model: Model, message: str) -> UPPError:
    return UPPError(message, code=ErrorCode.INVALID_REQUEST, provider=model.provider)


def _execution_event(
    kind: Any, call: ToolCall, index: int, result: Any = None, *, is_error: bool | None = None
) -> StreamEvent:
    delta = EventDelta(
        tool_call_id=call.tool_call_id,
        tool_name=call.tool_name,
        arguments_json=call.malformed or msgspec.json.encode(call.arguments).decode(),
        result=result,
        is_error=is_error,
        timestamp=time.time_ns() // 1_000_000,
    )
    return StreamEvent(type=kind, index=index, delta=delta)


async def _maybe_await(given: Any) -> Any:
    return await given if inspect.isawaitable(given) else given


async def _discard(event: StreamEvent) -> None:
    """Take an event that nobody follows."""


def structured_data(message: AssistantMessage, structure: Mapping[str, Any] | None) -> Any:
    """Return what an answer's text says as JSON, when a structure was asked for (UPP-1.3 §12).

    None without a structure, with tool calls, and for a text that is no JSON; nothing is validated.
    """
    if structure is None or message.tool_calls:
        return None
    try:
        return msgspec.json.decode(message.text)
    except msgspec.DecodeError:
        return None

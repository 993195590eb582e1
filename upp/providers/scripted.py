"""A provider without a model: a script determines the answer, step by step.

The stream shows exactly the steps that a script yields, in order. It serves the demo, agents that
need no model, and every test. Tokens are counted as words.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol
from uuid import uuid4

import msgspec

from upp.conversation.messages import (
    AssistantContent,
    AssistantMessage,
    ReasoningBlock,
    TextBlock,
    ToolResultMessage,
)
from upp.conversation.turn import TokenUsage
from upp.errors import ErrorCode, UPPError
from upp.model import EmittingModel, LLMCapabilities, LLMRequest, LLMResponse, structured_data
from upp.stream import Emit, EventDelta, StreamEvent, reasoning_delta, text_delta, tool_call_delta
from upp.tools import ToolCall, parse_call


class Text(msgspec.Struct, frozen=True):
    """A piece of the answer."""

    text: str


class Reasoning(msgspec.Struct, frozen=True):
    """A piece of thinking."""

    text: str


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call; str arguments are sent unchanged, so that they can be malformed JSON."""

    name: str
    arguments: dict[str, Any] | str
    call_id: str = msgspec.field(default_factory=lambda: f"call_{uuid4().hex}")


class Pause(msgspec.Struct, frozen=True):
    """Wait for a number of seconds."""

    seconds: float


class Stop(msgspec.Struct, frozen=True):
    """End the answer here, for a reason such as max_tokens."""

    reason: str


class Usage(msgspec.Struct, frozen=True):
    """The usage to report instead of counted words."""

    usage: TokenUsage


class Fail(msgspec.Struct, frozen=True):
    """Raise an error."""

    error: UPPError


Step = Text | Reasoning | Call | Pause | Stop | Usage | Fail
Script = Callable[[LLMRequest], AsyncIterator[Step]]


class Gate(Protocol):
    """Decides when the next step may happen."""

    async def wait(self) -> None:
        """Return once the next step may happen."""


class StepGate:
    """A gate that lets through as many steps as have been released."""

    def __init__(self) -> None:
        self._released = asyncio.Semaphore(0)

    def release(self, steps: int = 1) -> None:
        """Let this many more steps through."""
        for _ in range(steps):
            self._released.release()

    async def wait(self) -> None:
        """Return once a step has been released."""
        await self._released.acquire()


_CAPABILITIES = LLMCapabilities(
    image_input=True, document_input=True, video_input=True, audio_input=True
)


@dataclass(frozen=True, kw_only=True)
class ScriptedModel(EmittingModel):
    """A model that plays one script; `delay` is the pause before each text and reasoning step."""

    script: Script
    delay: float = 0.0
    gate: Gate | None = None
    model_id: str = "scripted"
    provider: str = "scripted"
    capabilities: LLMCapabilities = _CAPABILITIES

    async def infer(self, request: LLMRequest, emit: Emit) -> LLMResponse:
        """Play the script and await `emit` with each event; raises the error of a Fail step."""
        played = _Played()
        await emit(StreamEvent(type="message_start"))
        steps = self.script(request)
        try:
            async for step in steps:
                if self.gate is not None:
                    await self.gate.wait()
                if isinstance(step, Pause):
                    await asyncio.sleep(step.seconds)
                    continue
                if isinstance(step, Fail):
                    raise step.error
                if isinstance(step, Stop):
                    played.stop_reason = step.reason
                    break
                if isinstance(step, Usage):
                    played.usage = step.usage
                    continue
                if self.delay and not isinstance(step, Call):
                    await asyncio.sleep(self.delay)
                await emit(played.add(step))
        finally:
            if isinstance(steps, AsyncGenerator):
                await steps.aclose()
        response = played.response(request)
        await emit(StreamEvent(type="message_stop", delta=EventDelta(usage=response.usage)))
        return response


@dataclass(frozen=True, kw_only=True)
class ScriptedProvider:
    """Named scripts; call it with a name to get the model that plays that script."""

    scripts: Mapping[str, Script]
    delay: float = 0.0
    gate: Gate | None = None

    def __call__(self, model_id: str) -> ScriptedModel:
        """Return the model of a script; raises UPPError MODEL_NOT_FOUND for an unknown name."""
        script = self.scripts.get(model_id)
        if script is None:
            raise UPPError(
                f"There is no script named {model_id!r}.",
                code=ErrorCode.MODEL_NOT_FOUND,
                provider="scripted",
            )
        return ScriptedModel(script=script, delay=self.delay, gate=self.gate, model_id=model_id)


class _Played:
    """The content of a script's answer so far."""

    def __init__(self) -> None:
        self.usage: TokenUsage | None = None
        self.stop_reason: str | None = None
        self._pieces: list[Text | Reasoning] = []
        self._calls: list[ToolCall] = []

    def add(self, step: Text | Reasoning | Call) -> StreamEvent:
        """Add a step and return its event."""
        if isinstance(step, Text):
            self._pieces.append(step)
            return text_delta(step.text)
        if isinstance(step, Reasoning):
            self._pieces.append(step)
            return reasoning_delta(step.text)
        index = len(self._calls)
        text = step.arguments
        if not isinstance(text, str):
            text = msgspec.json.encode(text).decode()
        self._calls.append(parse_call(step.call_id, step.name, text))
        return tool_call_delta(
            call_id=step.call_id, name=step.name, arguments_json=text, index=index
        )

    def response(self, request: LLMRequest) -> LLMResponse:
        """Return the complete answer, counting words if the script reports no usage."""
        content: list[AssistantContent] = []
        for kind, pieces in groupby(self._pieces, key=type):
            text = "".join(piece.text for piece in pieces)
            content.append(TextBlock(text=text) if kind is Text else ReasoningBlock(text=text))
        message = AssistantMessage(content=tuple(content), tool_calls=tuple(self._calls))
        return LLMResponse(
            message=message,
            usage=self.usage or _word_usage(request, message),
            stop_reason=self.stop_reason or ("tool_use" if self._calls else "end_turn"),
            data=structured_data(message, request.structure),
        )


def _word_usage(request: LLMRequest, answer: AssistantMessage) -> TokenUsage:
    read = len((request.system or "").split())
    for message in request.messages:
        if isinstance(message, ToolResultMessage):
            read += sum(len(str(result.result).split()) for result in message.results)
        else:
            read += len(message.text.split())
    written = sum(
        len(block.text.split())
        for block in answer.content
        if isinstance(block, TextBlock | ReasoningBlock)
    )
    return TokenUsage(input_tokens=read, output_tokens=written, total_tokens=read + written)

"""The chunks streamed by an OpenAI-compatible server, and the answer assembled from them.

Pure: chunks in, events out, and the complete message at the end. Members that servers omit, send as
null or number in their own way are accepted.
"""

from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import msgspec

from upp.conversation.messages import AssistantContent, AssistantMessage, ReasoningBlock, TextBlock
from upp.conversation.turn import TokenUsage
from upp.model import LLMRequest, LLMResponse, structured_data
from upp.providers.http.failures import Failures
from upp.providers.openai_request import NAMESPACE
from upp.stream import StreamEvent, reasoning_delta, text_delta, tool_call_delta
from upp.tools import parse_call

_STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
}


class _Function(msgspec.Struct):
    name: str | None = None
    # Some servers send the object itself.
    arguments: str | dict[str, Any] | None = None

    @property
    def arguments_json(self) -> str:
        if isinstance(self.arguments, dict):
            return msgspec.json.encode(self.arguments).decode()
        return self.arguments or ""


class _CallPiece(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _ContentPart(msgspec.Struct):
    text: str | None = None
    thinking: "list[_ContentPart] | None" = None


class _OpenAIDelta(msgspec.Struct):
    # Mistral sends a list of parts when there are thoughts.
    content: str | list[_ContentPart] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[Any] | None = None
    tool_calls: list[_CallPiece] | None = None


class _Choice(msgspec.Struct):
    delta: _OpenAIDelta | None = None
    finish_reason: str | None = None


class _Details(msgspec.Struct):
    cached_tokens: int | None = None


class _OpenAIOutputDetails(msgspec.Struct):
    reasoning_tokens: int | None = None


class _OpenAIUsage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _OpenAIOutputDetails | None = None
    # DeepSeek and Moonshot report cached tokens here.
    prompt_cache_hit_tokens: int | None = None
    cached_tokens: int | None = None


class _Groq(msgspec.Struct):
    usage: _OpenAIUsage | None = None


class _Chunk(msgspec.Struct):
    """One chunk of a streamed completion, with the members that are used."""

    id: str | int | None = None
    choices: list[_Choice] | None = None
    usage: _OpenAIUsage | None = None
    error: Any = None
    x_groq: _Groq | None = None


_DECODER = msgspec.json.Decoder(_Chunk)


@dataclass
class _CallSoFar:
    call_id: str
    vendor_id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class CompletionAnswer:
    """The content of a stream so far."""

    def __init__(self, request: LLMRequest, failures: Failures) -> None:
        self.done = False
        self._request = request
        self._failures = failures
        self._stop_reason: str | None = None
        self._id: str | int | None = None
        self._usage: _OpenAIUsage | None = None
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._reasoning_details: list[Any] = []
        # Data for the message's metadata that only servers of this kind understand.
        self._kept: dict[str, Any] = {}
        self._calls: list[_CallSoFar] = []
        self._at_index: dict[int, int] = {}

    @property
    def complete(self) -> bool:
        """Whether the server has reported the end of the answer."""
        return self.done or self._stop_reason is not None

    def add(self, data: bytes) -> list[StreamEvent]:
        """Process a chunk and return its events; raises UPPError, msgspec.DecodeError."""
        if data == b"[DONE]":
            self.done = True
            return []
        chunk = _DECODER.decode(data)
        if chunk.error:
            raise self._failures.of_stream(chunk.error)
        self._id = self._id or chunk.id
        groq = chunk.x_groq.usage if chunk.x_groq is not None else None
        self._usage = chunk.usage or groq or self._usage
        events: list[StreamEvent] = []
        for choice in (chunk.choices or ())[:1]:
            if choice.finish_reason:
                self._stop_reason = _STOP_REASONS.get(choice.finish_reason, choice.finish_reason)
            if choice.delta is None:
                continue
            events.extend(self._thought(choice.delta))
            events.extend(self._answer_text(choice.delta))
            events.extend(self._call(piece) for piece in choice.delta.tool_calls or ())
        return events

    def _answer_text(self, delta: _OpenAIDelta) -> list[StreamEvent]:
        content = delta.content or delta.refusal
        if not content:
            return []
        if isinstance(content, str):
            self._text.append(content)
            return [text_delta(content)]
        events: list[StreamEvent] = []
        for part in content:
            if thought := "".join(inner.text or "" for inner in part.thinking or ()):
                self._reasoning.append(thought)
                events.append(reasoning_delta(thought))
            if part.text:
                self._text.append(part.text)
                events.append(text_delta(part.text))
        return events

    def _thought(self, delta: _OpenAIDelta) -> list[StreamEvent]:
        self._reasoning_details += delta.reasoning_details or ()
        for name, thought in (
            ("reasoning_content", delta.reasoning_content),
            ("reasoning", delta.reasoning),
        ):
            if thought:
                self._reasoning.append(thought)
                self._kept["reasoning_field"] = name
                return [reasoning_delta(thought)]
        return []

    def _call(self, piece: _CallPiece) -> StreamEvent:
        function = piece.function or _Function()
        place = self._place(piece, function)
        if place is None:
            place = len(self._calls)
            self._calls.append(_CallSoFar(self._call_id(piece.id or "")))
        if piece.index is not None:
            self._at_index[piece.index] = place
        call = self._calls[place]
        call.vendor_id = call.vendor_id or piece.id or ""
        call.name = call.name or function.name or ""
        call.arguments.append(function.arguments_json)
        return tool_call_delta(
            call_id=call.call_id,
            name=call.name,
            arguments_json=function.arguments_json,
            index=place,
        )

    def _place(self, piece: _CallPiece, function: _Function) -> int | None:
        """Return the position of the call that a piece continues; None for a new call."""
        if piece.index is not None:
            place = self._at_index.get(piece.index)
            # Some servers number every call 0 and distinguish them by id.
            vendor_id = "" if place is None else self._calls[place].vendor_id
            return None if piece.id and vendor_id and vendor_id != piece.id else place
        # Others do not number them: a piece that names nothing new belongs to the last call.
        if piece.id:
            ids = [call.vendor_id for call in self._calls]
            return ids.index(piece.id) if piece.id in ids else None
        return None if function.name or not self._calls else len(self._calls) - 1

    def _call_id(self, vendor_id: str) -> str:
        """Return a unique call id: some servers restart their numbering, or send no ids."""
        used_ids = {
            call.tool_call_id
            for message in self._request.messages
            if isinstance(message, AssistantMessage)
            for call in message.tool_calls
        } | {call.call_id for call in self._calls}
        return vendor_id if vendor_id and vendor_id not in used_ids else f"call_{uuid4().hex}"

    def response(self) -> LLMResponse:
        """Return the complete answer."""
        content: list[AssistantContent] = []
        if self._reasoning:
            content.append(ReasoningBlock(text="".join(self._reasoning)))
        if self._text:
            content.append(TextBlock(text="".join(self._text)))
        # Many servers report "stop" even if they stop for calls.
        stop = self._stop_reason or "end_turn"
        metadata = {"id": self._id, **self._kept, "reasoning_details": self._reasoning_details}
        metadata = {name: value for name, value in metadata.items() if value}
        message = AssistantMessage(
            content=tuple(content),
            tool_calls=tuple(
                parse_call(call.call_id, call.name, "".join(call.arguments)) for call in self._calls
            ),
            metadata={NAMESPACE: metadata} if metadata else {},
        )
        return LLMResponse(
            message=message,
            usage=_token_usage(self._usage),
            stop_reason="tool_use" if self._calls and stop == "end_turn" else stop,
            data=structured_data(message, self._request.structure),
        )


def _token_usage(usage: _OpenAIUsage | None) -> TokenUsage:
    if usage is None:
        return TokenUsage()
    read, written = usage.prompt_tokens or 0, usage.completion_tokens or 0
    details = usage.prompt_tokens_details or _Details()
    cached = details.cached_tokens or usage.prompt_cache_hit_tokens or usage.cached_tokens or 0
    reasoned = (usage.completion_tokens_details or _OpenAIOutputDetails()).reasoning_tokens or 0
    if (usage.total_tokens or 0) >= read + written + reasoned:
        # xAI bills reasoning on top of the completion; OpenAI and most others include it.
        written += reasoned
    return TokenUsage(
        input_tokens=read,
        output_tokens=written,
        total_tokens=read + written,
        cache_read_tokens=cached,
        reasoning_tokens=reasoned,
    )

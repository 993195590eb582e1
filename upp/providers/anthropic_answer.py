"""The stream of Anthropic's Messages API, and the message assembled from it.

Pure: events in, events out. Input tokens do not include cached ones (UAMP §8.7). The message's
metadata keeps the signatures of thinking and the data of redacted thinking, so that they can be
sent back. Unknown kinds of blocks and events are ignored.
"""

from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import msgspec

from upp.conversation.messages import AssistantContent, AssistantMessage, ReasoningBlock, TextBlock
from upp.conversation.turn import TokenUsage
from upp.model import LLMRequest, LLMResponse, structured_data
from upp.providers.anthropic_request import ANSWER_TOOL, NAMESPACE
from upp.providers.http.failures import Failures
from upp.stream import StreamEvent, reasoning_delta, text_delta, tool_call_delta
from upp.tools import ToolCall, parse_call

_STOP_REASONS = {
    "end_turn": "end_turn",
    "stop_sequence": "end_turn",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "tool_use": "tool_use",
    "refusal": "content_filter",
}


class _AnthropicOutputDetails(msgspec.Struct):
    thinking_tokens: int | None = None


class _AnthropicUsage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens_details: _AnthropicOutputDetails | None = None


class _Head(msgspec.Struct):
    id: str | None = None
    usage: _AnthropicUsage | None = None


class _Block(msgspec.Struct):
    type: str = ""
    data: str | None = None
    id: str | None = None
    name: str | None = None
    # Gateways may start a block with content that the vendor only sends in pieces.
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    input: Any = None


class _AnthropicDelta(msgspec.Struct):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class _Kind(msgspec.Struct):
    type: str = ""


class _Event(_Kind):
    index: int = 0
    message: _Head | None = None
    content_block: _Block | None = None
    delta: _AnthropicDelta | None = None
    usage: _AnthropicUsage | None = None
    error: Any = None


_DECODER = msgspec.json.Decoder(_Event)
_KIND = msgspec.json.Decoder(_Kind)
_KNOWN = frozenset(
    {
        "error",
        "message_start",
        "message_delta",
        "message_stop",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
    }
)


@dataclass
class _AnthropicBlockSoFar:
    start: _Block
    pieces: list[str] = field(default_factory=list)
    signature: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class MessageAnswer:
    """The content of a stream so far."""

    def __init__(self, request: LLMRequest, failures: Failures) -> None:
        self.done = False
        self._request = request
        self._failures = failures
        self._id: str | None = None
        self._usage: dict[str, int] = {}
        self._stop_reason: str | None = None
        self._blocks: dict[int, _AnthropicBlockSoFar] = {}

    @property
    def complete(self) -> bool:
        """Whether the server has reported the end of the answer."""
        return self.done or self._stop_reason is not None

    def add(self, data: bytes) -> list[StreamEvent]:
        """Process an event and return its stream events; raises UPPError, msgspec.DecodeError."""
        try:
            event = _DECODER.decode(data)
        except msgspec.ValidationError:
            if _KIND.decode(data).type in _KNOWN:
                raise
            return []
        if event.type == "error":
            raise self._failures.of_stream(event.error)
        if event.message is not None:
            self._id = event.message.id
            self._count(event.message.usage)
        self._count(event.usage)
        match event.type:
            case "message_stop":
                self.done = True
            case "message_delta" if event.delta is not None:
                self._stop_reason = event.delta.stop_reason or self._stop_reason
            case "content_block_start" if event.content_block is not None:
                start = StreamEvent(type="content_block_start", index=event.index)
                return [start, *self._begin(event.index, event.content_block)]
            case "content_block_delta" if event.delta is not None and event.index in self._blocks:
                return self._piece(event.index, event.delta)
            case "content_block_stop":
                stop = StreamEvent(type="content_block_stop", index=event.index)
                return [*self._end(event.index), stop]
        return []

    def _begin(self, index: int, start: _Block) -> list[StreamEvent]:
        if start.type == "tool_use" and not start.id:
            start.id = f"toolu_{uuid4().hex}"
        self._blocks[index] = _AnthropicBlockSoFar(start, signature=[start.signature or ""])
        if start.text:
            return self._piece(index, _AnthropicDelta(type="text_delta", text=start.text))
        if start.thinking:
            return self._piece(
                index, _AnthropicDelta(type="thinking_delta", thinking=start.thinking)
            )
        return []

    def _end(self, index: int) -> list[StreamEvent]:
        block = self._blocks.get(index)
        if block is None or not block.start.input or block.text:
            return []
        arguments = msgspec.json.encode(block.start.input).decode()
        return self._piece(index, _AnthropicDelta(type="input_json_delta", partial_json=arguments))

    def _piece(self, index: int, delta: _AnthropicDelta) -> list[StreamEvent]:
        block = self._blocks[index]
        block.signature.append(delta.signature or "")
        piece = delta.text or delta.thinking or delta.partial_json or ""
        block.pieces.append(piece)
        match delta.type:
            case "text_delta":
                return [text_delta(piece, index=index)]
            case "thinking_delta":
                return [reasoning_delta(piece, index=index)]
            case "input_json_delta" if block.start.name == ANSWER_TOOL:
                return [text_delta(piece, index=index)]
            case "input_json_delta" if block.start.type == "tool_use":
                start = block.start
                event = tool_call_delta(
                    call_id=start.id or "",
                    name=start.name or "",
                    arguments_json=piece,
                    index=index,
                )
                return [event]
        return []

    def _count(self, usage: _AnthropicUsage | None) -> None:
        # Counts in later events are totals that replace earlier ones.
        if usage is None:
            return
        details = usage.output_tokens_details or _AnthropicOutputDetails()
        for name, count in (
            ("input_tokens", usage.input_tokens),
            ("output_tokens", usage.output_tokens),
            ("cache_read_tokens", usage.cache_read_input_tokens),
            ("cache_write_tokens", usage.cache_creation_input_tokens),
            ("reasoning_tokens", details.thinking_tokens),
        ):
            if count is not None:
                self._usage[name] = count

    def response(self) -> LLMResponse:
        """Return the complete answer."""
        content: list[AssistantContent] = []
        calls: list[ToolCall] = []
        layout: list[dict[str, str]] = []
        answer: str | None = None
        for index in sorted(self._blocks):
            block = self._blocks[index]
            start = block.start
            match start.type:
                case "text":
                    content.append(TextBlock(text=block.text))
                    layout.append({"type": "text"})
                case "thinking":
                    content.append(ReasoningBlock(text=block.text))
                    layout.append({"type": "thinking", "signature": "".join(block.signature)})
                case "redacted_thinking":
                    layout.append({"type": start.type, "data": start.data or ""})
                case "tool_use" if start.name == ANSWER_TOOL:
                    answer = block.text or "{}"
                    content.append(TextBlock(text=answer))
                    layout.append({"type": "text"})
                case "tool_use":
                    calls.append(parse_call(start.id or "", start.name or "", block.text))
                    layout.append({"type": "tool_use"})
        message = AssistantMessage(
            content=tuple(content),
            tool_calls=tuple(calls),
            metadata={NAMESPACE: {"id": self._id, "layout": layout}},
        )
        stop = _STOP_REASONS.get(self._stop_reason or "end_turn", self._stop_reason or "")
        return LLMResponse(
            message=message,
            usage=self._token_usage(),
            stop_reason="end_turn" if answer and not calls and stop == "tool_use" else stop,
            data=self._data(message, answer),
        )

    def _data(self, message: AssistantMessage, answer: str | None) -> Any:
        # Text next to the answering call is not part of the object.
        alone = (TextBlock(text=message.text if answer is None else answer),)
        answer_only = msgspec.structs.replace(message, content=alone)
        return structured_data(answer_only, self._request.structure)

    def _token_usage(self) -> TokenUsage:
        usage = TokenUsage(**self._usage)
        total = usage.input_tokens + usage.output_tokens
        return msgspec.structs.replace(usage, total_tokens=total)

"""The stream of Google's Gemini API, and the message assembled from it.

Pure: chunks in, events out. Input tokens include cached ones, and thoughts count as output (UAMP
§8.7). A stream has no final event: a finish reason means that the answer is complete.
"""

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import msgspec

from upp.conversation.messages import AssistantContent, AssistantMessage, ReasoningBlock, TextBlock
from upp.conversation.turn import TokenUsage
from upp.errors import ErrorCode
from upp.model import LLMRequest, LLMResponse, structured_data
from upp.providers.google_request import NAMESPACE
from upp.providers.http.failures import Failures
from upp.stream import StreamEvent, reasoning_delta, text_delta, tool_call_delta
from upp.tools import ToolCall, parse_call

_FILTERED = frozenset(
    {
        "SAFETY",
        "RECITATION",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "LANGUAGE",
        "IMAGE_SAFETY",
    }
)
_MALFORMED = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"})


class _FunctionCall(msgspec.Struct):
    name: str = ""
    id: str | None = None
    args: dict[str, Any] | None = None


class _GeminiPart(msgspec.Struct, rename="camel"):
    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    function_call: _FunctionCall | None = None


class _Content(msgspec.Struct):
    parts: list[_GeminiPart] | None = None


class _Candidate(msgspec.Struct, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None


class _GeminiUsage(msgspec.Struct, rename="camel"):
    prompt_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None
    cached_content_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None


class _Feedback(msgspec.Struct, rename="camel"):
    block_reason: str | None = None


class _Piece(msgspec.Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    usage_metadata: _GeminiUsage | None = None
    prompt_feedback: _Feedback | None = None
    response_id: str | None = None
    error: Any = None


_DECODER = msgspec.json.Decoder(_Piece)


@dataclass
class _GeminiBlockSoFar:
    kind: type[TextBlock | ReasoningBlock]
    pieces: list[str]


class GeminiAnswer:
    """The content of a stream so far."""

    def __init__(self, request: LLMRequest, failures: Failures) -> None:
        self.done = False
        self._request = request
        self._failures = failures
        self._id: str | None = None
        self._finish_reason: str | None = None
        self._usage = _GeminiUsage()
        self._blocks: list[_GeminiBlockSoFar] = []
        self._calls: list[ToolCall] = []
        self._layout: list[dict[str, str]] = []

    @property
    def complete(self) -> bool:
        """Whether the server has reported the end of the answer."""
        return self._finish_reason is not None

    def add(self, data: bytes) -> list[StreamEvent]:
        """Process a chunk and return its events; raises UPPError, msgspec.DecodeError."""
        piece = _DECODER.decode(data)
        if piece.error:
            raise self._failures.of_stream(piece.error)
        if piece.prompt_feedback is not None and piece.prompt_feedback.block_reason:
            message = f"The prompt was blocked: {piece.prompt_feedback.block_reason}."
            raise self._failures.error(message, ErrorCode.CONTENT_FILTERED)
        self._id = piece.response_id or self._id
        self._usage = piece.usage_metadata or self._usage
        events: list[StreamEvent] = []
        for candidate in (piece.candidates or ())[:1]:
            parts = candidate.content.parts if candidate.content is not None else None
            for part in parts or ():
                events += self._part(part)
            self._finish_reason = candidate.finish_reason or self._finish_reason
        if self._finish_reason in _MALFORMED:
            message = f"The model's tool call was malformed: {self._finish_reason}."
            raise self._failures.error(message, ErrorCode.INVALID_RESPONSE)
        return events

    def _part(self, part: _GeminiPart) -> list[StreamEvent]:
        signature = {"signature": part.thought_signature} if part.thought_signature else {}
        if part.function_call is not None:
            return [self._call(part.function_call, signature)]
        events: list[StreamEvent] = []
        if part.thought and part.text:
            self._append(ReasoningBlock, part.text, goes_on=True)
            events.append(reasoning_delta(part.text, index=len(self._blocks) - 1))
        elif part.text:
            goes_on = self._layout[-1:] == [{"type": "text"}]
            if self._append(TextBlock, part.text, goes_on=goes_on):
                self._layout.append({"type": "text"})
            events.append(text_delta(part.text, index=len(self._blocks) - 1))
        if signature:
            self._layout.append({"type": "signature", **signature})
        return events

    def _append(self, kind: type[TextBlock | ReasoningBlock], piece: str, *, goes_on: bool) -> bool:
        """Append a piece, to the last block if possible; return whether it started a new block."""
        if goes_on and self._blocks and self._blocks[-1].kind is kind:
            self._blocks[-1].pieces.append(piece)
            return False
        self._blocks.append(_GeminiBlockSoFar(kind, [piece]))
        return True

    def _call(self, function: _FunctionCall, signature: dict[str, str]) -> StreamEvent:
        own_id = {"id": function.id} if function.id else {}
        call_id = function.id or f"call_{uuid4().hex}"
        arguments = msgspec.json.encode(function.args or {}).decode()
        self._calls.append(parse_call(call_id, function.name, arguments))
        self._layout.append({"type": "call", **own_id, **signature})
        return tool_call_delta(
            call_id=call_id,
            name=function.name,
            arguments_json=arguments,
            index=len(self._calls) - 1,
        )

    def response(self) -> LLMResponse:
        """Return the complete answer."""
        content: tuple[AssistantContent, ...] = tuple(
            block.kind(text="".join(block.pieces)) for block in self._blocks
        )
        message = AssistantMessage(
            content=content,
            tool_calls=tuple(self._calls),
            metadata={NAMESPACE: {"id": self._id, "layout": self._layout}},
        )
        return LLMResponse(
            message=message,
            usage=self._token_usage(),
            stop_reason=self._stop_reason(),
            data=structured_data(message, self._request.structure),
        )

    def _stop_reason(self) -> str:
        reason = self._finish_reason or ""
        if reason == "STOP":
            return "tool_use" if self._calls else "end_turn"
        if reason == "MAX_TOKENS":
            return "max_tokens"
        return "content_filter" if reason in _FILTERED else reason.lower()

    def _token_usage(self) -> TokenUsage:
        usage = self._usage
        read = (usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0)
        written = (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)
        return TokenUsage(
            input_tokens=read,
            output_tokens=written,
            total_tokens=read + written,
            cache_read_tokens=usage.cached_content_token_count or 0,
            reasoning_tokens=usage.thoughts_token_count or 0,
        )

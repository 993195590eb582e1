"""The events of a Realtime server, and the answer assembled from them. Pure.

The transcript of a spoken answer is its text. Its audio exists only in the events, so that it does
not become part of the conversation.
"""

import base64
import binascii
from typing import Any
from uuid import uuid4

import msgspec

from upp.conversation.messages import AssistantMessage, TextBlock
from upp.conversation.turn import TokenUsage
from upp.errors import ErrorCode
from upp.model import LLMRequest, LLMResponse, structured_data
from upp.providers.http.failures import Failures
from upp.stream import EventDelta, StreamEvent, text_delta, tool_call_delta
from upp.tools import ToolCall, parse_call

ANSWER_EVENTS = 200_000
"""The most events of one answer, including ignored ones."""
_STOP_REASONS = {"max_output_tokens": "max_tokens", "content_filter": "content_filter"}
_TEXT = frozenset({"response.output_text.delta", "response.output_audio_transcript.delta"})
_TRANSCRIPT = "conversation.item.input_audio_transcription."


class _CachedTokens(msgspec.Struct):
    audio_tokens: int | None = None


class _InputTokens(msgspec.Struct):
    cached_tokens: int | None = None
    audio_tokens: int | None = None
    cached_tokens_details: _CachedTokens | None = None


class _OutputTokens(msgspec.Struct):
    audio_tokens: int | None = None


class _RealtimeUsage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    input_token_details: _InputTokens | None = None
    output_token_details: _OutputTokens | None = None


class _OutputItem(msgspec.Struct):
    type: str = ""
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None


class _StatusDetails(msgspec.Struct):
    reason: str | None = None
    error: Any = None


class _RealtimeResponse(msgspec.Struct):
    status: str = ""
    status_details: _StatusDetails | None = None
    usage: _RealtimeUsage | None = None


class _ServerEvent(msgspec.Struct):
    """An event of the server, with the members that are used."""

    type: str
    delta: str | None = None
    transcript: str | None = None
    item: _OutputItem | None = None
    response: _RealtimeResponse | None = None
    usage: _RealtimeUsage | None = None
    error: Any = None


_DECODER = msgspec.json.Decoder(_ServerEvent)


class RealtimeAnswer:
    """The content of an answer so far; `transcripts` counts those still expected.

    `speaks` means that audio was requested. Unrequested data is ignored: audio of a text answer,
    unexpected transcripts, and anything but transcripts after the end.
    """

    def __init__(
        self,
        request: LLMRequest,
        failures: Failures,
        *,
        transcripts: int = 0,
        speaks: bool = False,
    ) -> None:
        self.transcripts = transcripts
        self._request = request
        self._speaks = speaks
        self._failures = failures
        self._text: list[str] = []
        self._calls: list[ToolCall] = []
        self._usage = TokenUsage()
        self._stop_reason: str | None = None
        self._events = 0

    @property
    def is_answered(self) -> bool:
        """Whether the response has ended; transcripts of the input may follow."""
        return self._stop_reason is not None

    def add(self, data: str) -> list[StreamEvent]:
        """Process an event and return its stream events; raises UPPError, msgspec.DecodeError."""
        event = _DECODER.decode(data)
        self._events += 1
        if self._events > ANSWER_EVENTS:
            message = f"The server sent more than {ANSWER_EVENTS} events in one answer."
            raise self._failures.error(message, ErrorCode.INVALID_RESPONSE)
        if event.type.startswith(_TRANSCRIPT):
            return self._transcript(event)
        if self.is_answered:
            return []
        match event.type:
            case "error":
                raise self._failures.of_stream(event.error)
            case kind if kind in _TEXT and event.delta:
                self._text.append(event.delta)
                return [text_delta(event.delta)]
            case "response.output_audio.delta" if event.delta and self._speaks:
                return [self._sound(event.delta)]
            case "response.output_item.done" if event.item is not None:
                return self._item(event.item)
            case "response.done" if event.response is not None:
                self._end(event.response)
        return []

    def _transcript(self, event: _ServerEvent) -> list[StreamEvent]:
        outcome = event.type.removeprefix(_TRANSCRIPT)
        if self.transcripts <= 0 or outcome not in {"completed", "failed"}:
            return []
        self.transcripts -= 1
        if outcome == "failed":
            return []
        self._usage += _token_usage(event.usage)
        delta = EventDelta(text=event.transcript or "")
        return [StreamEvent(type="input_transcript", delta=delta)]

    def _sound(self, text: str) -> StreamEvent:
        try:
            data = base64.b64decode(text, validate=True)
        except binascii.Error as error:
            message = "The server sent audio that is not base64."
            raise self._failures.error(message, ErrorCode.INVALID_RESPONSE) from error
        return StreamEvent(type="audio_delta", delta=EventDelta(data=data))

    def _item(self, item: _OutputItem) -> list[StreamEvent]:
        if item.type != "function_call":
            return []
        index = len(self._calls)
        call_id = item.call_id or f"call_{uuid4().hex}"
        name, arguments = item.name or "", item.arguments or ""
        self._calls.append(parse_call(call_id, name, arguments))
        return [tool_call_delta(call_id=call_id, name=name, arguments_json=arguments, index=index)]

    def _end(self, response: _RealtimeResponse) -> None:
        details = response.status_details or _StatusDetails()
        self._usage += _token_usage(response.usage)
        if response.status == "failed":
            raise self._failures.of_stream(details.error)
        if response.status == "completed":
            self._stop_reason = "tool_use" if self._calls else "end_turn"
        elif response.status == "incomplete":
            self._stop_reason = _STOP_REASONS.get(details.reason or "", "max_tokens")
        else:
            message = f"The server ended the answer as {response.status!r}: {details.reason}."
            raise self._failures.error(message, ErrorCode.PROVIDER_ERROR)

    def response(self) -> LLMResponse:
        """Return the complete answer."""
        text = "".join(self._text)
        message = AssistantMessage(
            content=(TextBlock(text=text),) if text else (), tool_calls=tuple(self._calls)
        )
        return LLMResponse(
            message=message,
            usage=self._usage,
            stop_reason=self._stop_reason or "end_turn",
            data=structured_data(message, self._request.structure),
        )


def _token_usage(usage: _RealtimeUsage | None) -> TokenUsage:
    """Return tokens as they are billed: cached audio counts as cached, not as audio."""
    if usage is None:
        return TokenUsage()
    read, written = usage.input_tokens or 0, usage.output_tokens or 0
    details = usage.input_token_details or _InputTokens()
    cached = (details.cached_tokens_details or _CachedTokens()).audio_tokens or 0
    return TokenUsage(
        input_tokens=read,
        output_tokens=written,
        total_tokens=usage.total_tokens or read + written,
        cache_read_tokens=details.cached_tokens or 0,
        audio_input_tokens=max((details.audio_tokens or 0) - cached, 0),
        audio_output_tokens=(usage.output_token_details or _OutputTokens()).audio_tokens or 0,
    )

"""Conversion of an agent's stream for a response: uap and upp events to UAMP events.

Calls and results of server tools are shown as deltas of the response. Client tools are requested by
the broker with `tool.call` and have no delta, because clients would run the tool for either (UAMP
§6.6, §6.10). A call is shown complete, when it is executed. Reasoning and planning texts are shown
as thinking, not as part of the answer (UAMP §6.13).
"""

import time
from base64 import b64encode
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

import msgspec

from uamp.content_labels import pure
from uamp.events import (
    Delta,
    Event,
    Progress,
    ResponseDelta,
    Thinking,
    ToolCallDone,
    ToolProgress,
    TranscriptDone,
    UsageDelta,
)
from uamp.output import medium_delta
from uamp.storable_text import storable
from uamp.types.content import ContentItem, ToolCallData, ToolResultData
from uamp.types.session import AudioUsage, UsageStats
from uap import AgentStreamEvent, PlanStep, UAPEvent
from upp import EventDelta, StreamEvent, TokenUsage

_STAGES = {"reasoning": "analyzing", "planning": "planning", "replanning": "planning"}
"""The stages of thinking, by the phase of a step."""
MAX_TOKENS = 10**12
"""The most tokens believed for one inference; keeps sums below the protocol's limit of 2**53 - 1.
"""


class CallOutcome(Protocol):
    """The result of a call, if it is more than the text sent to the model."""

    @property
    def result(self) -> str:
        """The text shown to people."""

    @property
    def content_items(self) -> tuple[ContentItem, ...]:
        """The accompanying media."""

    @property
    def is_presented(self) -> bool:
        """Whether the media are shown in the answer itself."""


class Translator:
    """Translates the events of one response.

    `client_tools` are the names of tools that the broker handles, `known_calls` the ids of calls
    already shown by an earlier part of this response, and `outcomes` is filled while tools run.
    `goes_on` means that the response ends in the text of a completed step; `sound_format` is the
    model's audio format. It is not thread-safe: its caller passes one event at a time.
    """

    def __init__(
        self,
        response_id: str,
        *,
        client_tools: frozenset[str] = frozenset(),
        known_calls: frozenset[str] = frozenset(),
        outcomes: Mapping[str, CallOutcome] = MappingProxyType({}),
        goes_on: bool = False,
        sound_format: str = "pcm16",
    ) -> None:
        # The characters written by the model, including thoughts and calls.
        self.written = 0
        # The bytes of audio spoken by the model.
        self.spoken = 0
        self._sound_format = sound_format
        self._response_id = response_id
        self._client_tools = client_tools
        self._known_calls = known_calls
        # When each call began, by the monotonic clock in seconds.
        self._began: dict[str, float] = {}
        self._outcomes = outcomes
        self._stage = ""
        self._spoke = goes_on
        self._break = ""
        self._doing: str | None = None

    def follow(self, event: AgentStreamEvent) -> tuple[Event | str, ...]:
        """Translate an event of an agent to answer text and UAMP events."""
        if event.upp is not None:
            return self.translate(event.upp)
        return () if event.uap is None else self._agent(event.uap)

    def translate(self, event: StreamEvent) -> tuple[Event | str, ...]:
        """Translate an event of the model to answer text and UAMP events; most yield nothing."""
        delta = event.delta
        self.written += len(delta.text or "")
        if event.type == "tool_call_delta":
            self.written += len(delta.tool_name or "") + len(delta.arguments_json or "")
        match event.type:
            case "text_delta" if delta.text:
                return self._text(storable(delta.text))
            case "reasoning_delta" if delta.text:
                return (self._thought(storable(delta.text), None),)
            case "audio_delta" | "input_transcript":
                return self._voice(event)
            case "message_stop" if delta.usage is not None:
                return (UsageDelta(response_id=self._response_id, delta=usage_stats(delta.usage)),)
            case "tool_execution_start" | "tool_execution_end" as kind if (
                delta.tool_name not in self._client_tools
            ):
                return self._call(delta) if kind.endswith("start") else self._result(delta)
        return ()

    def _text(self, text: str) -> tuple[Event | str, ...]:
        if not self._stage:
            self._spoke = True
            if self._break:
                text, self._break = f"{self._break}{text}", ""
            return (text,)
        # A plan arrives as JSON and is shown once it has been parsed.
        return () if self._stage == "planning" else (self._thought(text, self._stage),)

    def _voice(self, event: StreamEvent) -> tuple[Event, ...]:
        """Translate a piece of the model's speech, or a transcript of its input."""
        data, received = event.delta.data, storable(event.delta.text or "")
        if data:
            self.spoken += len(data)
            sound = b64encode(data).decode()
            return (self._delta(Delta(type="audio", audio=sound, format=self._sound_format)),)
        if received:
            transcript = TranscriptDone(
                response_id=self._response_id, transcript=received, role="user"
            )
            return (transcript,)
        return ()

    def _thought(self, text: str, stage: str | None) -> Thinking:
        return Thinking(content=text, stage=stage, is_delta=True, response_id=self._response_id)

    def _agent(self, event: UAPEvent) -> tuple[Event, ...]:
        data = event.data
        match event.type:
            case "step_start":
                self._stage = _STAGES.get(data.get("phase", ""), "")
                step: PlanStep | None = data.get("planStep")
                if step is not None and self._spoke and step.id != self._doing:
                    # The texts of two plan steps are separate paragraphs.
                    self._spoke, self._break = False, "\n\n"
                self._doing = None if step is None else step.id
                return () if step is None else (self._plan_step(step),)
            case "reasoning":
                self._stage = ""
            case "step_end" if self._stage == "planning":
                self._stage = ""
                return (self._thought(_plan_text(data["plan"]), "planning"),)
            case "subagent_start":
                return (self._delegated(data, stage="delegating"),)
            case "subagent_event":
                return self._inner(data["parentToolCallId"], data["innerEvent"])
            case "subagent_end":
                stage = "done" if data["success"] else "failed"
                return (self._delegated(data, stage=stage, percent=100),)
        return ()

    def _plan_step(self, step: PlanStep) -> Progress:
        return Progress(
            target="response",
            target_id=self._response_id,
            stage=step.status,
            message=storable(step.description),
            response_id=self._response_id,
        )

    def _delegated(
        self, data: Mapping[str, Any], *, stage: str, percent: int | None = None
    ) -> Progress:
        return Progress(
            target="tool",
            target_id=data["parentToolCallId"],
            stage=stage,
            percent=percent,
            response_id=self._response_id,
        )

    def _inner(self, call_id: str, event: AgentStreamEvent) -> tuple[Event, ...]:
        """Return the text of a sub-agent at any depth as progress of the call that started it."""
        while event.uap is not None and event.uap.type == "subagent_event":
            event = event.uap.data["innerEvent"]
        if event.upp is None or event.upp.type != "text_delta" or not event.upp.delta.text:
            return ()
        progress = ToolProgress(call_id=call_id, text=storable(event.upp.delta.text))
        return (self._delta(Delta(type="tool_progress", tool_progress=progress)),)

    def _call(self, delta: EventDelta) -> tuple[Event, ...]:
        call_id = delta.tool_call_id or ""
        if call_id in self._known_calls:
            return ()
        self._began[call_id] = time.monotonic()
        arguments = delta.arguments_json or "{}"
        call = ToolCallData(id=call_id, name=delta.tool_name or "", arguments=arguments)
        return (self._delta(Delta(type="tool_call", tool_call=call)),)

    def _result(self, delta: EventDelta) -> tuple[Event, ...]:
        call_id = delta.tool_call_id or ""
        outcome = self._outcomes.get(call_id)
        items = outcome.content_items if outcome else ()
        presented = items if outcome and outcome.is_presented else ()
        # People read the tool's own text, without the labels for the model.
        result = pure(outcome.result) if outcome else delta.result
        started_at = self._began.pop(call_id, None)
        data = ToolResultData(
            call_id=call_id,
            result=msgspec.json.encode(result).decode(),
            is_error=bool(delta.is_error),
            status="error" if delta.is_error else "success",
            duration_ms=None
            if started_at is None
            else round(1000 * (time.monotonic() - started_at)),
            content_items=None if presented else (items or None),
        )
        return (
            self._delta(Delta(type="tool_result", tool_result=data)),
            ToolCallDone(call_id=call_id, response_id=self._response_id),
            *(
                self._delta(medium)
                for item in presented
                if (medium := medium_delta(item)) is not None
            ),
        )

    def _delta(self, delta: Delta) -> ResponseDelta:
        return ResponseDelta(response_id=self._response_id, delta=delta)


def _plan_text(plan: Sequence[PlanStep]) -> str:
    return "".join(f"{n}. {storable(step.description)}\n" for n, step in enumerate(plan, 1))


def usage_stats(usage: TokenUsage) -> UsageStats:
    """Convert token usage to UAMP's format, with counts from 0 to MAX_TOKENS (UAMP §8.7).

    Cached tokens are the sum of reads and writes.
    """
    return UsageStats(
        input_tokens=_tokens(usage.input_tokens),
        output_tokens=_tokens(usage.output_tokens),
        total_tokens=_tokens(usage.total_tokens),
        cached_tokens=_tokens(usage.cache_read_tokens + usage.cache_write_tokens) or None,
        cache_write_tokens=_tokens(usage.cache_write_tokens) or None,
        audio=_audio_usage(usage.audio_input_tokens, usage.audio_output_tokens),
    )


def _tokens(count: int) -> int:
    return min(max(count, 0), MAX_TOKENS)


def _audio_usage(received: int, spoken: int) -> AudioUsage | None:
    """Return the audio part of the tokens, or None if there is none."""
    received, spoken = _tokens(received), _tokens(spoken)
    return AudioUsage(input_tokens=received, output_tokens=spoken) if received or spoken else None

"""The meter of a running answer: what its providers counted, and estimates for the rest."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

import uamp
from agents_app.conversation.text_weights import max_weight, weight
from sessions_app.billing.usage import added, bill, token_count
from sessions_app.billing.weights import result_weight, sound_tokens, tokens_of
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agents_app.selectors import AgentSpec
    from sessions_app.billing.usage import Bill


@dataclass(slots=True)
class Meter:
    """Meters a running answer: reported usage, plus an estimate for the current step."""

    spec: AgentSpec
    # Tools run by the client, which cost nothing whatever their names.
    client_tools: frozenset[str] = frozenset()
    # The tokens of prompts that a later step adds (`weights.later_prompts`).
    prompts: int = 0
    # The output tokens of an inference that its vendor does not exceed, if it is sent a limit.
    limit: int | None = None
    usage: uamp.UsageStats | None = None
    tools: Counter[str] = field(default_factory=Counter)
    first_input: int = 0
    # The part of it that is sound.
    first_sound: int = 0
    # The current step's output so far by weight, usual and at most: text, thinking and calls.
    written: int = 0
    max_written: int = 0
    # Milliseconds of sound spoken by the current step.
    spoken_ms: int = 0
    # The whole answer's output so far, by weight.
    _written: int = 0
    # Whether an inference was sent whose input is not counted yet.
    _is_sent: bool = False
    # The inferences sent since the last count.
    _uncounted: int = 0
    # The weight that the next step reserves and is not charged unless its provider counts it: the
    # ids of calls and results, and what results weigh at most beyond their usual weight.
    _uncharged: int = 0
    # The tokens of input, and of sound in it, that are reserved for the current step.
    _max_input: int = 0
    _max_sound: int = 0
    # The tokens of the longest result of a failed call, which a new plan quotes.
    _failure: int = 0
    # Calls without a result by id, and those of them admitted and running here.
    _names: dict[str, str] = field(default_factory=dict)
    _begun: set[str] = field(default_factory=set)

    def resume(self, usage: uamp.UsageStats | None, output: Iterable[uamp.ContentItem]) -> None:
        """Continue an answer that was started elsewhere."""
        self.usage = usage
        for item in output:
            match item:
                case uamp.TextContent(text=text) | uamp.ThinkingContent(thinking=text):
                    self._written += weight(text)
                case uamp.ToolCallContent(tool_call=call):
                    self._names[call.id] = call.name
                case uamp.ToolResultContent(tool_result=result):
                    self._ended(result.call_id, is_error=result.is_error)

    def expect_input(self, read: uamp.UsageStats, *, reserved: uamp.UsageStats) -> None:
        """Set the input of the first step, as estimated and as reserved.

        It counts until the provider has counted it.
        """
        self.reserve_input(reserved)
        if not self.first_input:
            self.first_input = token_count(read.input_tokens)
            self.first_sound = token_count(read.audio.input_tokens) if read.audio else 0

    def reserve_input(self, step: uamp.UsageStats) -> None:
        """Set the input that is reserved for a step, until its provider has counted it."""
        self._max_input = token_count(step.input_tokens)
        self._max_sound = token_count(step.audio.input_tokens) if step.audio else 0

    def add(self, event: ev.Event) -> None:
        """Count the usage in an event of the answer; `wrote` counts its text."""
        match event:
            case ev.UsageDelta(delta=reported):
                usage = self._counted(reported)
                self.usage = added(self.usage, usage)
                self.written = self.max_written = self.spoken_ms = self._uncharged = 0
                self._is_sent = False
                self._uncounted = 0
                self.first_input = token_count(usage.input_tokens) + token_count(
                    usage.output_tokens
                )
                self.first_sound = token_count(usage.audio.input_tokens) if usage.audio else 0
                if self.spec.provider == "anthropic":
                    self.first_input += token_count(usage.cached_tokens)
            case ev.Thinking(content=content):
                self.wrote(content)
            case ev.ResponseDelta(delta=ev.Delta(tool_call=uamp.ToolCallData() as call)):
                self._names[call.id] = call.name
            case ev.ResponseDelta(delta=ev.Delta(tool_result=uamp.ToolResultData() as result)):
                self._read(
                    result.call_id, result.result, result.content_items, is_error=result.is_error
                )
                self._ended(result.call_id, is_error=result.is_error)
            case ev.ToolResult(
                call_id=call_id, result=output, content_items=items, is_error=is_error
            ):
                self._read(call_id, output, items, is_error=is_error)

    def _counted(self, reported: uamp.UsageStats) -> uamp.UsageStats:
        """Return the usage of a step, with estimates where its provider's counts are missing.

        Daemons may report an inference in pieces, so its input is estimated only once.
        """
        read, wrote = token_count(reported.input_tokens), token_count(reported.output_tokens)
        cached = token_count(reported.cached_tokens)
        is_read = read or (cached and self.spec.provider == "anthropic")
        # Providers other than Anthropic count cached tokens as input.
        estimate = 0 if is_read else max(self.first_input if self._is_sent else 0, cached)
        unsaid = 0 if wrote else self._within_limit(self.written)
        if not estimate and not unsaid:
            return reported
        return msgspec.structs.replace(
            reported,
            input_tokens=read + estimate,
            output_tokens=wrote + unsaid,
            total_tokens=max(token_count(reported.total_tokens), read + estimate + wrote + unsaid),
        )

    def _read(
        self,
        call_id: str,
        result: str,
        items: Sequence[uamp.ContentItem] | None,
        *,
        is_error: bool,
    ) -> None:
        """Count a result as input of the next step."""
        usual, at_most = (result_weight(result, items, weigh) for weigh in (weight, max_weight))
        self.first_input += tokens_of(usual)
        self._uncharged += 2 * max_weight(call_id) + at_most - usual
        if is_error:
            self._failure = max(self._failure, tokens_of(at_most))

    def next_step(self, first: uamp.UsageStats) -> uamp.UsageStats:
        """Return the estimated usage of the next step, which reads everything since `first`."""
        read = self.first_input + self.prompts + tokens_of(self._uncharged)
        if self.spec.strategy == "plan":
            # Its prompts quote the steps that the model wrote, and why one has failed.
            read += self.tokens_written() + self._failure
        read = max(first.input_tokens or 0, read)
        return msgspec.structs.replace(first, input_tokens=read)

    def wrote(self, text: str) -> None:
        """Count output of the model, including the text of its calls."""
        weighs = weight(text)
        self.written += weighs
        self.max_written += max_weight(text)
        self._written += weighs

    def _ended(self, call_id: str, *, is_error: bool) -> None:
        name = self._names.pop(call_id, None)
        if name is not None and self.has_price(name) and not is_error:
            self.tools[name] += 1

    def began(self, call_id: str) -> None:
        """Record that a call was admitted and runs in this process."""
        self._begun.add(call_id)

    def has_row(self, call_id: str) -> None:
        """Record that a call has a row, which shows whether it has started."""
        self._begun.discard(call_id)

    def without_result(self) -> list[str]:
        """Return the ids of priced calls without a result."""
        return [call_id for call_id, name in self._names.items() if self.has_price(name)]

    def count_begun(self, rows: Mapping[str, bool]) -> None:
        """Count the started calls of a stopped answer, which are charged.

        `rows` maps the calls that have a row to whether they have started.
        """
        for call_id in self.without_result():
            self._ended(call_id, is_error=not rows.get(call_id, call_id in self._begun))

    def has_price(self, name: str) -> bool:
        """Return whether calls of a tool are charged; the client's own are not."""
        return name in self.spec.pricing.tools and name not in self.client_tools

    def mark_sent(self) -> None:
        """Count the input of an inference as sent, until its provider has counted it."""
        self._is_sent = True
        self._uncounted += 1

    def mark_unsent(self) -> None:
        """Do not count the input of an inference that failed without any output."""
        self._is_sent = self._is_sent and self._has_output()

    def used(self) -> uamp.UsageStats | None:
        """Return the usage so far, with an estimate for the current step."""
        if not self._has_output() and not (self._is_sent and self.first_input):
            return self.usage
        return added(self.usage, self._under_way())

    def uncounted_usage(self) -> uamp.UsageStats | None:
        """Return the estimated usage of a step that has output but has not been counted."""
        return self._under_way() if self._has_output() else None

    @property
    def has_spoken(self) -> bool:
        """Whether the answer contains speech."""
        audio = self.usage.audio if self.usage else None
        return bool(self.spoken_ms or (audio and audio.output_tokens))

    def _has_output(self) -> bool:
        return bool(self.written or self.spoken_ms)

    def _under_way(self) -> uamp.UsageStats:
        """Return the usual usage of the current step, which is charged if it is never counted."""
        # Output may follow the count of its inference.
        read, sound = (self.first_input, self.first_sound) if self._is_sent else (0, 0)
        return self._step_usage(read, sound, self.written)

    def _at_most(self, ahead: int) -> uamp.UsageStats:
        """Return the most that the current step may have used, with the next output."""
        read = max(self.first_input, self._max_input) if self._is_sent else 0
        sound = max(self.first_sound, self._max_sound) if self._is_sent else 0
        return self._step_usage(read, sound, self.max_written + ahead)

    def _step_usage(self, read: int, sound: int, written: int) -> uamp.UsageStats:
        spoken = sound_tokens(self.spoken_ms)
        output = self._within_limit(written) + spoken
        return uamp.UsageStats(
            input_tokens=read,
            output_tokens=output,
            total_tokens=read + output,
            audio=uamp.AudioUsage(input_tokens=sound or None, output_tokens=spoken or None)
            if spoken or sound
            else None,
        )

    def _within_limit(self, written: int) -> int:
        """Return the tokens of a weight of output, as far as its vendor can bill them."""
        tokens = tokens_of(written)
        return tokens if self.limit is None else min(tokens, self.limit * max(self._uncounted, 1))

    def tokens_written(self) -> int:
        """Return the number of output tokens, estimated if the provider counted none."""
        used = self.used()
        return token_count(used.output_tokens if used else None) or tokens_of(self._written)

    def bill(
        self,
        *,
        ahead: int = 0,
        more: uamp.UsageStats | None = None,
        tools: Counter[str] | None = None,
    ) -> Bill:
        """Return the most that the answer may cost so far, which has to be reserved.

        `ahead` is the maximum weight of the next output; `more` expected usage and additional calls
        of `tools` are added.
        """
        return bill(
            self.spec.pricing,
            self.usage,
            self.tools + (tools or Counter()),
            provider=self.spec.provider,
            expected=added(self._at_most(ahead), more),
        )

    def due(self) -> Bill:
        """Return the cost of the answer so far; what is not counted is plain input and output."""
        return bill(self.spec.pricing, self.used(), self.tools, provider=self.spec.provider)

"""The cost of an answer: usage times prices, in whole smallest units (UAMP §8.7).

Tokens are multiplied first and divided last, so that amounts are rounded only once. Nothing here
knows about accounts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec

import uamp
from agents_app.runtime.usage import added_audio
from payments_app.money import Money
from sessions_app.billing.weights import result_weight, sound_tokens, tokens_of, weight
from uamp import ErrorCode
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agents_app.pricing import Pricing
    from agents_app.selectors import AgentSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """The parts of an answer's cost; `answer` and `tools` are priced separately.

    `unfinished` is the part of the answer's price due for an uncompleted answer: whole, share or
    none.
    """

    input: Money
    output: Money
    tools: Money
    answer: Money
    unfinished: str | None = None

    @property
    def total(self) -> Money:
        """The sum of all parts."""
        return self.input + self.output + self.tools + self.answer

    @classmethod
    def of_output(cls, amount: Money) -> Bill:
        """Return a bill with a single amount, for output."""
        nothing = Money.zero(amount.asset)
        return cls(input=nothing, output=amount, tools=nothing, answer=nothing)

    def as_cost(self, total: Money) -> uamp.Cost:
        """Return the cost in the format of UAMP §8.7; `total_cost` includes answer and tools.

        `total` is the amount charged: the full cost, or as much of it as was held.
        """
        return uamp.Cost(
            input_cost=float(str(self.input)),
            output_cost=float(str(self.output)),
            total_cost=float(str(total)),
            answer_cost=float(str(self.answer)) if self.answer or self.unfinished else None,
            unfinished=self.unfinished,
            currency=self.input.asset,
        )


def bill(
    pricing: Pricing, usage: uamp.UsageStats | None, tools: Mapping[str, int], *, provider: str
) -> Bill:
    """Return the cost of usage and tool calls.

    Anthropic does not count cached tokens as input; other providers do (UAMP §8.7).
    """
    usage = usage or uamp.UsageStats()
    asset = pricing.currency
    cached, written = _count(usage.cached_tokens), _count(usage.cache_write_tokens)
    plain = _count(usage.input_tokens)
    if provider != "anthropic":
        plain = max(plain - cached, 0)
    read = max(cached - written, 0)
    base = pricing.input_per_1k
    counted = (
        (plain, base),
        (read, pricing.cache_read_per_1k or base),
        (written, pricing.cache_write_per_1k or base),
    )
    of_input = sum(number * _units(price, asset) for number, price in counted)
    of_output = _count(usage.output_tokens) * _units(pricing.output_per_1k, asset)
    if (sound := usage.audio) is not None:
        # Sound tokens are included in the others, but have their own price.
        received, spoken = _count(sound.input_tokens), _count(sound.output_tokens)
        extra = _extra(pricing.audio_input_per_1k, base, asset)
        of_input += min(received, plain) * extra
        extra = _extra(pricing.audio_output_per_1k, pricing.output_per_1k, asset)
        of_output += min(spoken, _count(usage.output_tokens)) * extra
    called = sum(_units(pricing.tools.get(name, "0"), asset) * n for name, n in tools.items())
    return Bill(
        input=Money(of_input, asset).share(1, 1000),
        output=Money(of_output, asset).share(1, 1000),
        tools=Money(called, asset),
        answer=Money.parse(pricing.per_answer, asset),
    )


def _extra(price: str | None, base: str, asset: str) -> int:
    """Return the surcharge of a sound token over a text token, which may be negative."""
    return 0 if price is None else _units(price, asset) - _units(base, asset)


def _count(tokens: int | None) -> int:
    """Return a provider's token count, at least 0."""
    return max(tokens or 0, 0)


def reservation(spec: AgentSpec, step: uamp.UsageStats) -> Money:
    """Return the amount to hold before an answer starts, never less than its price.

    Raises InvalidAmount beyond the ledger's range.
    """
    whole = bill(spec.pricing, step, {}, provider=spec.provider)
    return max(whole.total, whole.answer + whole.input, whole.answer)


class Cause(Enum):
    """The party that caused an end: decides whether to charge as stopped or as failed.

    OTHERS are people who neither asked nor pay: the price of the answer is then charged in part.
    """

    ASKER = auto()
    SERVER = auto()
    OTHERS = auto()


CAUSES: Final[Mapping[str, Cause]] = MappingProxyType(
    {
        # Errors in the request, the input or the payment.
        ErrorCode.VERSION_MISMATCH: Cause.ASKER,
        ErrorCode.PAYMENT_REQUIRED: Cause.ASKER,
        ErrorCode.PAYMENT_TIMEOUT: Cause.ASKER,
        ErrorCode.INVALID_OUTPUT: Cause.ASKER,
        ErrorCode.TOO_MANY_STEPS: Cause.ASKER,
        ErrorCode.TOO_MANY_HOPS: Cause.SERVER,
        ErrorCode.ANSWER_TOO_LONG: Cause.ASKER,
        ErrorCode.INVALID_TOOL_RESULT: Cause.ASKER,
        ErrorCode.REQUEST_REFUSED: Cause.ASKER,
        ErrorCode.STEP_REFUSED: Cause.ASKER,
        ErrorCode.UNAUTHORIZED: Cause.ASKER,
        ErrorCode.CONTEXT_LENGTH_EXCEEDED: Cause.ASKER,
        ErrorCode.CONTENT_FILTERED: Cause.ASKER,
        # Errors of the server, the agent or the provider.
        ErrorCode.AGENT_OFFLINE: Cause.SERVER,
        ErrorCode.AGENT_DISABLED: Cause.OTHERS,
        ErrorCode.PROVIDER_ERROR: Cause.SERVER,
        ErrorCode.RATE_LIMIT_EXCEEDED: Cause.SERVER,
        ErrorCode.INTERRUPTED: Cause.SERVER,
        ErrorCode.INTERNAL_ERROR: Cause.SERVER,
        # The provider's, unless the run was waiting for its client; `Ending.cause` then says so.
        ErrorCode.TIMEOUT: Cause.SERVER,
    }
)
"""The cause of every code that a `response.error` may have."""


@lru_cache(maxsize=1000)
def _units(price: str, asset: str) -> int:
    return Money.parse(price, asset).amount


def added(one: uamp.UsageStats | None, other: uamp.UsageStats | None) -> uamp.UsageStats | None:
    """Return the sum of two usages."""
    if one is None or other is None:
        return one or other
    return uamp.UsageStats(
        input_tokens=_sum(one.input_tokens, other.input_tokens),
        output_tokens=_sum(one.output_tokens, other.output_tokens),
        total_tokens=_sum(one.total_tokens, other.total_tokens),
        cached_tokens=_sum(one.cached_tokens, other.cached_tokens),
        cache_write_tokens=_sum(one.cache_write_tokens, other.cache_write_tokens),
        audio=added_audio(one.audio, other.audio),
    )


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None and other is None else (one or 0) + (other or 0)


@dataclass(slots=True)
class Meter:
    """Meters a running answer: reported usage, plus an estimate for the current step."""

    spec: AgentSpec
    # Tools run by the client, which cost nothing whatever their names.
    client_tools: frozenset[str] = frozenset()
    usage: uamp.UsageStats | None = None
    tools: Counter[str] = field(default_factory=Counter)
    first_input: int = 0
    # The part of it that is sound.
    first_sound: int = 0
    # The current step's output so far by weight: text, thinking and calls.
    written: int = 0
    # Milliseconds of sound spoken by the current step.
    spoken_ms: int = 0
    # The whole answer's output so far, by weight.
    _said: int = 0
    _is_sent: bool = False
    # Calls without a result by id, and those of them admitted and running here.
    _names: dict[str, str] = field(default_factory=dict)
    _begun: set[str] = field(default_factory=set)

    def resume(self, usage: uamp.UsageStats | None, output: Iterable[uamp.ContentItem]) -> None:
        """Continue an answer that was started elsewhere."""
        self.usage = usage
        for item in output:
            match item:
                case uamp.TextContent(text=text) | uamp.ThinkingContent(thinking=text):
                    self._said += weight(text)
                case uamp.ToolCallContent(tool_call=call):
                    self._names[call.id] = call.name
                case uamp.ToolResultContent(tool_result=result):
                    self._ended(result.call_id, is_error=result.is_error)

    def expect_input(self, read: uamp.UsageStats) -> None:
        """Set the estimated input of the first step, used until its provider has counted it."""
        if not self.first_input:
            self.first_input = _count(read.input_tokens)
            self.first_sound = _count(read.audio.input_tokens) if read.audio else 0

    def add(self, event: ev.Event) -> None:
        """Count the usage in an event of the answer; `wrote` counts its text."""
        match event:
            case ev.UsageDelta(delta=reported):
                usage = self._counted(reported)
                self.usage, self.written = added(self.usage, usage), 0
                self.spoken_ms = 0
                self._is_sent = False
                self.first_input = _count(usage.input_tokens) + _count(usage.output_tokens)
                self.first_sound = _count(usage.audio.input_tokens) if usage.audio else 0
                if self.spec.provider == "anthropic":
                    self.first_input += _count(usage.cached_tokens)
            case ev.Thinking(content=content):
                self.wrote(content)
            case ev.ResponseDelta(delta=ev.Delta(tool_call=uamp.ToolCallData() as call)):
                self._names[call.id] = call.name
            case ev.ResponseDelta(delta=ev.Delta(tool_result=uamp.ToolResultData() as result)):
                self._read(result.result, result.content_items)
                self._ended(result.call_id, is_error=result.is_error)
            case ev.ToolResult(result=found, content_items=items):
                self._read(found, items)

    def _counted(self, reported: uamp.UsageStats) -> uamp.UsageStats:
        """Return the usage of a step, with estimates where its provider's counts are missing."""
        read, wrote = _count(reported.input_tokens), _count(reported.output_tokens)
        cached = _count(reported.cached_tokens)
        is_read = read or (cached and self.spec.provider == "anthropic")
        # Providers other than Anthropic count cached tokens as input.
        estimate = 0 if is_read else max(self.first_input, cached)
        unsaid = 0 if wrote else tokens_of(self.written)
        if not estimate and not unsaid:
            return reported
        return msgspec.structs.replace(
            reported,
            input_tokens=read + estimate,
            output_tokens=wrote + unsaid,
            total_tokens=max(_count(reported.total_tokens), read + estimate + wrote + unsaid),
        )

    def _read(self, result: str, items: Sequence[uamp.ContentItem] | None) -> None:
        """Count a result as input of the next step."""
        self.first_input += tokens_of(result_weight(result, items))

    def next_step(self, first: uamp.UsageStats) -> uamp.UsageStats:
        """Return the estimated usage of the next step, which reads everything since `first`."""
        read = max(first.input_tokens or 0, self.first_input)
        return msgspec.structs.replace(first, input_tokens=read)

    def wrote(self, text: str) -> None:
        """Count output of the model, including the text of its calls."""
        weighs = weight(text)
        self.written += weighs
        self._said += weighs

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

    def sent(self) -> None:
        """Count the input of an inference as sent, until its provider has counted it."""
        self._is_sent = True

    def unsent(self) -> None:
        """Do not count the input of an inference that failed without any output."""
        self._is_sent = False

    def used(self, ahead: int = 0) -> uamp.UsageStats | None:
        """Return the usage so far, with an estimate for the current step.

        `ahead` is the weight of the next output.
        """
        if not self._has_output(ahead) and not (self._is_sent and self.first_input):
            return self.usage
        return added(self.usage, self._under_way(ahead))

    def under_way(self) -> uamp.UsageStats | None:
        """Return the estimated usage of a step that has output but has not been counted."""
        return self._under_way() if self._has_output() else None

    @property
    def has_spoken(self) -> bool:
        """Whether the answer contains speech."""
        audio = self.usage.audio if self.usage else None
        return bool(self.spoken_ms or (audio and audio.output_tokens))

    def _has_output(self, ahead: int = 0) -> bool:
        return bool(self.written + ahead or self.spoken_ms)

    def _under_way(self, ahead: int = 0) -> uamp.UsageStats:
        spoken = sound_tokens(self.spoken_ms)
        output = tokens_of(self.written + ahead) + spoken
        return uamp.UsageStats(
            input_tokens=self.first_input,
            output_tokens=output,
            total_tokens=self.first_input + output,
            audio=uamp.AudioUsage(
                input_tokens=self.first_sound or None, output_tokens=spoken or None
            )
            if spoken or self.first_sound
            else None,
        )

    def tokens_written(self) -> int:
        """Return the number of output tokens, estimated if the provider counted none."""
        used = self.used()
        return _count(used.output_tokens if used else None) or tokens_of(self._said)

    def bill(
        self,
        *,
        ahead: int = 0,
        more: uamp.UsageStats | None = None,
        tools: Counter[str] | None = None,
    ) -> Bill:
        """Return the cost of the answer so far.

        `ahead` is the weight of the next output; `more` usage and additional calls of `tools` are
        added.
        """
        return bill(
            self.spec.pricing,
            added(self.used(ahead), more),
            self.tools + (tools or Counter()),
            provider=self.spec.provider,
        )

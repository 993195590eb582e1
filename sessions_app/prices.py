"""What an answer costs: usage times prices, in whole smallest units (DESIGN D7, UAMP §8.7).

The law: tokens are multiplied first and divided last, so that money is rounded once. Nothing here
knows an account.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import uamp
from payments_app.money import Money
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agents_app.pricing import Pricing
    from agents_app.runtime import RunRequest
    from agents_app.selectors import AgentSpec

CHARS_PER_TOKEN: Final = 4
"""An estimate for what no provider has counted yet; what it counts takes the place of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """The parts of what an answer costs; `answer` and `tools` have prices of their own."""

    input: Money
    output: Money
    tools: Money
    answer: Money

    @property
    def total(self) -> Money:
        """The sum of all parts."""
        return self.input + self.output + self.tools + self.answer

    def told(self) -> uamp.Cost:
        """Return the cost as UAMP §8.7 shows it; `total_cost` has the answer's price and tools."""
        return uamp.Cost(
            input_cost=float(str(self.input)),
            output_cost=float(str(self.output)),
            total_cost=float(str(self.total)),
            currency=self.input.asset,
        )


def bill(
    pricing: Pricing, usage: uamp.UsageStats | None, tools: Mapping[str, int], *, provider: str
) -> Bill:
    """Return what usage and calls of tools cost.

    Anthropic does not count cached tokens as input, the others do (UAMP §8.7).
    """
    usage = usage or uamp.UsageStats()
    asset = pricing.currency
    cached = usage.cached_tokens or 0
    written = usage.cache_write_tokens or 0
    plain = usage.input_tokens or 0
    if provider != "anthropic":
        plain = max(plain - cached, 0)
    base = pricing.input_per_1k
    counted = (
        (plain, base),
        (cached - written, pricing.cache_read_per_1k or base),
        (written, pricing.cache_write_per_1k or base),
    )
    of_input = sum(number * _units(price, asset) for number, price in counted)
    of_output = (usage.output_tokens or 0) * _units(pricing.output_per_1k, asset)
    called = sum(_units(pricing.tools.get(name, "0"), asset) * n for name, n in tools.items())
    return Bill(
        input=Money(of_input, asset).share(1, 1000),
        output=Money(of_output, asset).share(1, 1000),
        tools=Money(called, asset),
        answer=Money.parse(pricing.per_answer, asset),
    )


def of_unfinished(whole: Bill, policy: str) -> Bill:
    """Return what is due for an answer that failed or was stopped.

    `usage`: tokens and tools, but not the price of an answer; `none` and `full` say it themselves.
    """
    nothing = Money.zero(whole.answer.asset)
    if policy == "full":
        return whole
    if policy == "none":
        return Bill(input=nothing, output=nothing, tools=nothing, answer=nothing)
    return replace(whole, answer=nothing)


@lru_cache(maxsize=1000)
def _units(price: str, asset: str) -> int:
    return Money.parse(price, asset).amount


def tokens_in(text: str) -> int:
    """Return about how many tokens a text has."""
    return math.ceil(len(text) / CHARS_PER_TOKEN)


def step_usage(spec: AgentSpec, request: RunRequest, *, most: int) -> uamp.UsageStats:
    """Return about what one step of an answer uses at most; `most` when nobody set max_tokens."""
    said = [spec.instructions, request.instructions or ""]
    said += [
        message.content or uamp.text_of(message.content_items or ()) for message in request.history
    ]
    said += [function.name for tool in request.tools if (function := tool.function) is not None]
    return uamp.UsageStats(
        input_tokens=sum(tokens_in(text) for text in said),
        output_tokens=request.params.get("max_tokens") or spec.max_output_tokens or most,
    )


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
    )


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None and other is None else (one or 0) + (other or 0)


@dataclass(slots=True)
class Meter:
    """Counts what a running answer uses: told usage, and the step that is under way by estimate.

    Text is not counted delta by delta: `offset` is where the answer's text is, in code points.
    """

    spec: AgentSpec
    usage: uamp.UsageStats | None = None
    tools: Counter[str] = field(default_factory=Counter)
    first_input: int = 0
    _told_at: int = 0
    _thought: int = 0
    _names: dict[str, str] = field(default_factory=dict)

    def resume(
        self, usage: uamp.UsageStats | None, output: Iterable[uamp.ContentItem], *, offset: int
    ) -> None:
        """Go on with an answer that was begun elsewhere."""
        self.usage, self._told_at = usage, offset
        for item in output:
            match item:
                case uamp.ToolCallContent(tool_call=call):
                    self._names[call.id] = call.name
                case uamp.ToolResultContent(tool_result=result) if not result.is_error:
                    self._called(result.call_id)

    def add(self, event: ev.Event, *, offset: int) -> None:
        """Count what an event of the answer says; text counts by the offset alone."""
        match event:
            case ev.UsageDelta(delta=usage):
                self.usage, self._told_at, self._thought = added(self.usage, usage), offset, 0
                self.first_input = (usage.input_tokens or 0) + (usage.output_tokens or 0)
            case ev.Thinking(content=content):
                self._thought += len(content)
            case ev.ResponseDelta(delta=ev.Delta(tool_call=uamp.ToolCallData() as call)):
                self._names[call.id] = call.name
            case ev.ResponseDelta(delta=ev.Delta(tool_result=uamp.ToolResultData() as result)):
                if not result.is_error:
                    self._called(result.call_id)

    def _called(self, call_id: str) -> None:
        name = self._names.pop(call_id, None)
        if name in self.spec.pricing.tools:
            self.tools[name] += 1

    def used(self, offset: int) -> uamp.UsageStats | None:
        """Return what was used so far; of a step that is under way, about that."""
        chars = offset - self._told_at + self._thought
        if chars <= 0:
            return self.usage
        output = math.ceil(chars / CHARS_PER_TOKEN)
        begun = uamp.UsageStats(
            input_tokens=self.first_input,
            output_tokens=output,
            total_tokens=self.first_input + output,
        )
        return added(self.usage, begun)

    def bill(
        self, offset: int, *, more: uamp.UsageStats | None = None, tools: Counter[str] | None = None
    ) -> Bill:
        """Return what the answer costs so far, with `more` usage and further calls of tools."""
        return bill(
            self.spec.pricing,
            added(self.used(offset), more),
            self.tools + (tools or Counter()),
            provider=self.spec.provider,
        )

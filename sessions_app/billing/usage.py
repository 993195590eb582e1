"""The cost of an answer: usage times prices, in whole smallest units (UAMP §8.7).

Tokens are multiplied first and divided last, so that amounts are rounded only once. Nothing here
knows about accounts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import uamp
from agents_app.runtime.usage import added_audio
from payments_app.money import Money
from uamp import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

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

    def within(self, amount: Money) -> Bill:
        """Return the parts that an amount pays: answer, tools and input first, then output."""
        remaining, paid = amount, {}
        for name in ("answer", "tools", "input", "output"):
            paid[name] = min(getattr(self, name), remaining)
            remaining -= paid[name]
        return replace(self, **paid)

    def as_cost(self, total: Money) -> uamp.Cost:
        """Return the cost in the format of UAMP §8.7; `total_cost` includes answer and tools.

        `total` is the amount charged: the full cost, or as much of it as was held. The parts are
        those that it paid.
        """
        paid = self.within(total)
        return uamp.Cost(
            input_cost=float(str(paid.input)),
            output_cost=float(str(paid.output)),
            total_cost=float(str(total)),
            answer_cost=float(str(paid.answer)) if self.answer or self.unfinished else None,
            unfinished=self.unfinished,
            currency=self.input.asset,
        )


def bill(
    pricing: Pricing,
    usage: uamp.UsageStats | None,
    tools: Mapping[str, int],
    *,
    provider: str,
    expected: uamp.UsageStats | None = None,
) -> Bill:
    """Return the cost of usage and tool calls.

    Anthropic does not count cached tokens as input; other providers do (UAMP §8.7). `expected` is
    usage that no provider has counted yet: how it will be counted is not known, so it costs the
    most that it may.
    """
    usage = usage or uamp.UsageStats()
    asset = pricing.currency
    cached, written = token_count(usage.cached_tokens), token_count(usage.cache_write_tokens)
    plain = token_count(usage.input_tokens)
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
    of_output = token_count(usage.output_tokens) * _units(pricing.output_per_1k, asset)
    if (sound := usage.audio) is not None:
        # Sound tokens are included in the others, but have their own price.
        received, spoken = token_count(sound.input_tokens), token_count(sound.output_tokens)
        extra = _extra(pricing.audio_input_per_1k, base, asset)
        of_input += min(received, plain) * extra
        extra = _extra(pricing.audio_output_per_1k, pricing.output_per_1k, asset)
        of_output += min(spoken, token_count(usage.output_tokens)) * extra
    if expected is not None:
        of_input += _most_of_input(pricing, expected)
        of_output += _most_of_output(pricing, expected)
    called = sum(_units(pricing.tools.get(name, "0"), asset) * n for name, n in tools.items())
    return Bill(
        input=Money(of_input, asset).share(1, 1000),
        output=Money(of_output, asset).share(1, 1000),
        tools=Money(called, asset),
        answer=Money.parse(pricing.per_answer, asset),
    )


def _most_of_input(pricing: Pricing, expected: uamp.UsageStats) -> int:
    """Return the cost of input that may be read from a cache, written to it, or neither."""
    base, asset = pricing.input_per_1k, pricing.currency
    of_text = max(
        _units(price or base, asset)
        for price in (base, pricing.cache_read_per_1k, pricing.cache_write_per_1k)
    )
    of_sound = max(of_text, _units(pricing.audio_input_per_1k or base, asset))
    read = token_count(expected.input_tokens)
    sound = min(token_count(expected.audio.input_tokens), read) if expected.audio else 0
    return (read - sound) * of_text + sound * of_sound


def _most_of_output(pricing: Pricing, expected: uamp.UsageStats) -> int:
    """Return the cost of output whose sound may be counted as sound or as text."""
    base, asset = pricing.output_per_1k, pricing.currency
    of_text = _units(base, asset)
    of_sound = max(of_text, _units(pricing.audio_output_per_1k or base, asset))
    wrote = token_count(expected.output_tokens)
    spoke = min(token_count(expected.audio.output_tokens), wrote) if expected.audio else 0
    return (wrote - spoke) * of_text + spoke * of_sound


def _extra(price: str | None, base: str, asset: str) -> int:
    """Return the surcharge of a sound token over a text token, which may be negative."""
    return 0 if price is None else _units(price, asset) - _units(base, asset)


def token_count(tokens: int | None) -> int:
    """Return a provider's token count, at least 0."""
    return max(tokens or 0, 0)


def reservation(spec: AgentSpec, step: uamp.UsageStats) -> Money:
    """Return the amount to hold before an answer starts, never less than its price.

    Raises InvalidAmount beyond the ledger's range.
    """
    whole = bill(spec.pricing, None, {}, provider=spec.provider, expected=step)
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


def added(usage: uamp.UsageStats | None, other: uamp.UsageStats | None) -> uamp.UsageStats | None:
    """Return the sum of two usages."""
    if usage is None or other is None:
        return usage or other
    return uamp.UsageStats(
        input_tokens=_sum(usage.input_tokens, other.input_tokens),
        output_tokens=_sum(usage.output_tokens, other.output_tokens),
        total_tokens=_sum(usage.total_tokens, other.total_tokens),
        cached_tokens=_sum(usage.cached_tokens, other.cached_tokens),
        cache_write_tokens=_sum(usage.cache_write_tokens, other.cache_write_tokens),
        audio=added_audio(usage.audio, other.audio),
    )


def _sum(count: int | None, other: int | None) -> int | None:
    return None if count is None and other is None else (count or 0) + (other or 0)

"""What an answer costs: usage times prices, in whole smallest units (UAMP §8.7).

Tokens are multiplied first and divided last, so that money is rounded once. Nothing here
knows an account.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec
from django.conf import settings

import uamp
from agents_app.history import DOCUMENT_CHARS
from agents_app.providers import output_bound
from agents_app.runtime import offered
from payments_app.money import Money
from uamp import ErrorCode
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agents_app.pricing import Pricing
    from agents_app.runtime import RunRequest
    from agents_app.selectors import AgentSpec

CHARS_PER_TOKEN: Final = 4
"""An estimate for what no provider has counted yet; what it counts takes the place of it."""
LABEL_CHARS: Final = 200
"""The name under which a model is told of a medium."""
MEDIUM_TOKENS: Final = 1_600
"""An estimate of a picture or a sound; what vendors count of one depends on its size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """The parts of what an answer costs; `answer` and `tools` have prices of their own.

    `unfinished` says how much of the price of an answer is due for one that was not completed:
    whole, share or none.
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
        """Return a bill of one amount, for output."""
        nothing = Money.zero(amount.asset)
        return cls(input=nothing, output=amount, tools=nothing, answer=nothing)

    def told(self, total: Money) -> uamp.Cost:
        """Return the cost as UAMP §8.7 shows it; `total_cost` has the answer's price and tools.

        `total` is what is charged: all of it, or what was held for it.
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
    """Return what usage and calls of tools cost.

    Anthropic does not count cached tokens as input, the others do (UAMP §8.7).
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
    called = sum(_units(pricing.tools.get(name, "0"), asset) * n for name, n in tools.items())
    return Bill(
        input=Money(of_input, asset).share(1, 1000),
        output=Money(of_output, asset).share(1, 1000),
        tools=Money(called, asset),
        answer=Money.parse(pricing.per_answer, asset),
    )


def _count(tokens: int | None) -> int:
    """Return a number of tokens that somebody else counted: never less than none."""
    return max(tokens or 0, 0)


def reservation(spec: AgentSpec, step: uamp.UsageStats) -> Money:
    """Return what has to be held before an answer begins: never less than its price.

    Raises InvalidAmount for more than the ledger counts.
    """
    whole = bill(spec.pricing, step, {}, provider=spec.provider)
    return max(whole.total, whole.answer + whole.input, whole.answer)


def of_failed(whole: Bill, policy: str) -> Bill:
    """Return what is due for an answer that failed by no fault of its payer.

    `usage`: tokens and tools, but not the price of an answer; `none` and `full` say it themselves.
    """
    if policy == "full":
        return replace(whole, unfinished="whole")
    if policy == "none":
        nothing = Money.zero(whole.answer.asset)
        return Bill(input=nothing, output=nothing, tools=nothing, answer=nothing, unfinished="none")
    return _without_answer(whole)


def of_stopped(whole: Bill, pricing: Pricing, *, has_begun: bool, tokens: int) -> Bill:
    """Return what is due for an answer that was stopped, or whose payer let it wait.

    Tokens and tools, and of the price of an answer what the agent's owner chose: the whole once the
    output has begun, or the share of the expected tokens that were written.
    """
    if not has_begun:
        return _without_answer(whole)
    if pricing.unfinished == "share" and pricing.expected_tokens is not None:
        most = pricing.expected_tokens
        share = whole.answer.share(min(_count(tokens), most), most)
        return replace(whole, answer=share, unfinished="share")
    return replace(whole, unfinished="whole")


class Cause(Enum):
    """What caused an answer to end with an error: a stopped answer is due, or a failed one."""

    ASKER = auto()
    SERVER = auto()


CAUSES: Final[Mapping[str, Cause]] = MappingProxyType(
    {
        # What was asked, sent or not paid.
        ErrorCode.VERSION_MISMATCH: Cause.ASKER,
        ErrorCode.PAYMENT_REQUIRED: Cause.ASKER,
        ErrorCode.PAYMENT_TIMEOUT: Cause.ASKER,
        ErrorCode.INVALID_OUTPUT: Cause.ASKER,
        ErrorCode.TOO_MANY_STEPS: Cause.ASKER,
        ErrorCode.CONTEXT_LENGTH_EXCEEDED: Cause.ASKER,
        ErrorCode.CONTENT_FILTERED: Cause.ASKER,
        # The server, the agent or the provider.
        ErrorCode.AGENT_OFFLINE: Cause.SERVER,
        ErrorCode.PROVIDER_ERROR: Cause.SERVER,
        ErrorCode.RATE_LIMIT_EXCEEDED: Cause.SERVER,
        ErrorCode.INTERRUPTED: Cause.SERVER,
        ErrorCode.INTERNAL_ERROR: Cause.SERVER,
        # The provider's, unless the run waited for its client: then `Ending.cause` says so.
        ErrorCode.TIMEOUT: Cause.SERVER,
    }
)
"""The cause of every code that a `response.error` may have."""


def _without_answer(whole: Bill) -> Bill:
    return replace(whole, answer=Money.zero(whole.answer.asset), unfinished="none")


@lru_cache(maxsize=1000)
def _units(price: str, asset: str) -> int:
    return Money.parse(price, asset).amount


def tokens_in(text: str) -> int:
    """Return about how many tokens a text has."""
    return math.ceil(len(text) / CHARS_PER_TOKEN)


def step_usage(spec: AgentSpec, request: RunRequest) -> uamp.UsageStats:
    """Return about what one step of an answer uses at most, reasoning that is not shown too."""
    return uamp.UsageStats(
        input_tokens=math.ceil(_read_chars(spec, request) / CHARS_PER_TOKEN),
        output_tokens=max(
            1,
            output_bound(
                spec,
                request.params,
                most=settings.UAMP_RESERVE_TOKENS,
                hidden=settings.UAMP_RESERVE_REASONING_TOKENS,
            ),
        ),
    )


def _read_chars(spec: AgentSpec, request: RunRequest) -> int:
    """Return about how many characters the provider is sent for the first step of a request."""
    chars = len(spec.instructions) + len(request.instructions or "")
    chars += sum(map(_message_chars, request.history))
    chars += sum(map(_item_chars, request.resume))
    for name, about, parameters in offered(spec, request):
        chars += len(name) + len(about) + len(msgspec.json.encode(parameters))
    if request.response_format is not None:
        chars += len(msgspec.json.encode(request.response_format))
    return chars


def _message_chars(message: uamp.Message) -> int:
    # A message with media is sent as its items, another one as its content.
    items = sum(map(_item_chars, message.content_items or ()))
    calls = sum(map(_call_chars, message.tool_calls or ()))
    return max(len(message.content or ""), items) + calls + len(message.name or "")


def _call_chars(call: uamp.ToolCallData) -> int:
    return len(call.id) + len(call.name) + len(call.arguments)


def result_chars(result: str, items: Sequence[uamp.ContentItem] | None) -> int:
    """Return about how many characters a model reads of a result: media are named in it only."""
    return len(result) + LABEL_CHARS * len(items or ())


def _item_chars(item: uamp.ContentItem) -> int:
    match item:
        case uamp.TextContent(text=text) | uamp.ThinkingContent(thinking=text):
            return len(text)
        case uamp.ToolCallContent(tool_call=call):
            return _call_chars(call)
        case uamp.ToolResultContent(tool_result=told):
            return len(told.call_id) + result_chars(told.result, told.content_items)
        case uamp.FileContent(file=str() as data):
            return LABEL_CHARS + min(len(data), DOCUMENT_CHARS)
        case uamp.FileContent(size_bytes=size):
            # Its text is read from the storage when the answer runs.
            return LABEL_CHARS + min(DOCUMENT_CHARS if size is None else size, DOCUMENT_CHARS)
    return LABEL_CHARS + MEDIUM_TOKENS * CHARS_PER_TOKEN


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
    _is_sent: bool = False
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
                self._is_sent = False
                self.first_input = _count(usage.input_tokens) + _count(usage.output_tokens)
                if self.spec.provider == "anthropic":
                    self.first_input += _count(usage.cached_tokens)
            case ev.Thinking(content=content):
                self._thought += len(content)
            case ev.ResponseDelta(delta=ev.Delta(tool_call=uamp.ToolCallData() as call)):
                self._names[call.id] = call.name
            case ev.ResponseDelta(delta=ev.Delta(tool_result=uamp.ToolResultData() as result)):
                self._read(result.result, result.content_items)
                if not result.is_error:
                    self._called(result.call_id)
            case ev.ToolResult(result=told, content_items=items):
                self._read(told, items)

    def _read(self, result: str, items: Sequence[uamp.ContentItem] | None) -> None:
        """Count a result as what the next step reads."""
        self.first_input += math.ceil(result_chars(result, items) / CHARS_PER_TOKEN)

    def next_step(self, first: uamp.UsageStats) -> uamp.UsageStats:
        """Return about what the next step uses: it reads what was said and found since `first`."""
        read = max(first.input_tokens or 0, self.first_input)
        return msgspec.structs.replace(first, input_tokens=read)

    def wrote(self, chars: int) -> None:
        """Count characters that the model wrote into its calls: they are output like its text."""
        self._thought += chars

    def _called(self, call_id: str) -> None:
        name = self._names.pop(call_id, None)
        if name in self.spec.pricing.tools:
            self.tools[name] += 1

    def sent(self) -> None:
        """Count the input of an inference that is sent now, until its provider has counted it."""
        self._is_sent = True

    def unsent(self) -> None:
        """Do not count the input of an inference that failed before it wrote anything."""
        self._is_sent = False

    def begun(self, offset: int) -> int:
        """Return the characters of the step that is under way."""
        return offset - self._told_at + self._thought

    def used(self, offset: int) -> uamp.UsageStats | None:
        """Return what was used so far; of a step that is under way, about that."""
        chars = max(self.begun(offset), 0)
        if not chars and not (self._is_sent and self.first_input):
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

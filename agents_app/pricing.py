"""The prices of an agent's work, as its row keeps them.

A price is a decimal string of at most nine places and is never a float; it becomes money
where it is charged.
"""

import re
from typing import Annotated, Any, Literal

import msgspec

_AMOUNT = re.compile(r"(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,9})?")


class Pricing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The prices of one agent, in `currency`.

    `per_answer` is due for every answer, `tools` for every call of a tool, by its name, and the
    rest for a thousand tokens (UAMP §8.7: without a price of their own, cached tokens cost as much
    as other input, and those of sound as much as those of text). `unfinished` says what of
    `per_answer` is due for an answer that was stopped after its output began: the `whole`, or the
    `share` of `expected_tokens` that it wrote.
    """

    currency: str = "USD"
    per_answer: str = "0"
    input_per_1k: str = "0"
    output_per_1k: str = "0"
    cache_read_per_1k: str | None = None
    cache_write_per_1k: str | None = None
    audio_input_per_1k: str | None = None
    audio_output_per_1k: str | None = None
    tools: dict[str, str] = {}
    unfinished: Literal["whole", "share"] = "whole"
    expected_tokens: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None

    @property
    def is_free(self) -> bool:
        """Whether nothing has a price."""
        return not any(map(_is_something, self.amounts))

    @property
    def reads_free(self) -> bool:
        """Whether nothing that a model reads has a price."""
        of_input = (
            self.input_per_1k,
            self.cache_read_per_1k,
            self.cache_write_per_1k,
            self.audio_input_per_1k,
        )
        return not any(price is not None and _is_something(price) for price in of_input)

    @property
    def amounts(self) -> list[str]:
        """Every price that was given."""
        single = (
            self.per_answer,
            self.input_per_1k,
            self.output_per_1k,
            self.cache_read_per_1k,
            self.cache_write_per_1k,
            self.audio_input_per_1k,
            self.audio_output_per_1k,
        )
        return [*(price for price in single if price is not None), *self.tools.values()]


FREE = Pricing()
_ZERO_IS_NONE = ("per_answer", "input_per_1k", "output_per_1k")


def _is_something(price: str) -> bool:
    return any(digit in "123456789" for digit in price)


def without_zeros(value: dict[str, Any]) -> dict[str, Any]:
    """Return prices that `read_pricing` took without those of nothing, which mean the same.

    A price of nothing for cached tokens stays: without one they cost as much as other input.
    """
    kept = {
        name: price
        for name, price in value.items()
        if name not in _ZERO_IS_NONE or _is_something(price)
    }
    if "tools" in kept:
        priced = {name: price for name, price in kept["tools"].items() if _is_something(price)}
        kept = {**kept, "tools": priced} if priced else {k: kept[k] for k in kept if k != "tools"}
    return kept


def read_pricing(value: Any) -> Pricing:
    """Return the prices in a row's JSON; raises ValueError in words for an operator."""
    if not value:
        return FREE
    try:
        pricing = msgspec.convert(value, Pricing)
    except msgspec.ValidationError as error:
        raise ValueError(f"{error}.") from error
    for price in pricing.amounts:
        if not _AMOUNT.fullmatch(price):
            raise ValueError(
                f'{price!r} is no price. Write it as "0.01", with nine places at most.'
            )
    if (pricing.unfinished == "share") != (pricing.expected_tokens is not None):
        raise ValueError(
            'With "unfinished": "share", and only then, say how many tokens an answer is expected'
            ' to have: "expected_tokens": 400.'
        )
    if pricing.currency != "USD":
        raise ValueError("Prices are in USD.")
    return FREE if pricing.is_free else pricing

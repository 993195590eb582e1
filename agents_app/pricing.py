"""The prices of an agent's work, as stored in its row.

A price is a decimal string with at most nine decimal places, never a float. It becomes money only
when it is charged.
"""

import re
from decimal import Decimal
from typing import Annotated, Any, Literal

import msgspec

_AMOUNT = re.compile(r"(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,9})?")


class Pricing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The prices of one agent, in `currency`.

    `per_answer` is charged for every answer, `tools` for every call of a tool by name, and the
    others per thousand tokens (UAMP §8.7). Cached tokens without a price cost as much as other
    input, audio tokens as much as text tokens. `unfinished` says how much of `per_answer` is
    charged for an answer that was stopped after its output began: the `whole` price, or the `share`
    of `expected_tokens` that it wrote.
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
        """Whether everything is free."""
        return not any(map(_is_something, self.amounts))

    def is_within(self, agreed: "Pricing") -> bool:
        """Return whether no answer at these prices costs more than at the agreed ones."""
        names = {*self.tools, *agreed.tools}
        mine = [*self.by_kind, *(self.tools.get(name, "0") for name in names)]
        limits = [*agreed.by_kind, *(agreed.tools.get(name, "0") for name in names)]
        is_fair = self.unfinished == agreed.unfinished == "whole" or (
            self.unfinished == "share"
            and (agreed.expected_tokens or 0) <= (self.expected_tokens or 0)
        )
        return (
            self.currency == agreed.currency
            and is_fair
            and all(
                Decimal(price) <= Decimal(limit) for price, limit in zip(mine, limits, strict=True)
            )
        )

    @property
    def by_kind(self) -> tuple[str, ...]:
        """The prices of an answer and of each kind of token, also those that are not set."""
        base, output = self.input_per_1k, self.output_per_1k
        return (
            self.per_answer,
            base,
            output,
            self.cache_read_per_1k or base,
            self.cache_write_per_1k or base,
            self.audio_input_per_1k or base,
            self.audio_output_per_1k or output,
        )

    @property
    def reads_free(self) -> bool:
        """Whether all input of a model is free."""
        of_input = (
            self.input_per_1k,
            self.cache_read_per_1k,
            self.cache_write_per_1k,
            self.audio_input_per_1k,
        )
        return not any(price is not None and _is_something(price) for price in of_input)

    @property
    def writes_free(self) -> bool:
        """Whether all output of a model is free."""
        of_output = (self.output_per_1k, self.audio_output_per_1k)
        return not any(price is not None and _is_something(price) for price in of_output)

    @property
    def amounts(self) -> list[str]:
        """All prices that are set."""
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
    """Return validated prices without the zeros that mean the same as no price.

    A zero price for cached tokens stays: without it, they cost as much as other input.
    """
    nonzero = {
        name: price
        for name, price in value.items()
        if name not in _ZERO_IS_NONE or _is_something(price)
    }
    if "tools" in nonzero:
        priced = {name: price for name, price in nonzero["tools"].items() if _is_something(price)}
        nonzero = (
            {**nonzero, "tools": priced}
            if priced
            else {k: nonzero[k] for k in nonzero if k != "tools"}
        )
    return nonzero


def read_pricing(value: Any) -> Pricing:
    """Return the prices in a row's JSON; raises ValueError with a message for operators."""
    if not value:
        return FREE
    try:
        pricing = msgspec.convert(value, Pricing)
    except msgspec.ValidationError as error:
        raise ValueError(f"{error}.") from error
    for price in pricing.amounts:
        if not _AMOUNT.fullmatch(price):
            raise ValueError(
                f'{price!r} is not a price. Write it as "0.01", with nine places at most.'
            )
    if (pricing.unfinished == "share") != (pricing.expected_tokens is not None):
        raise ValueError(
            'Set "expected_tokens", such as 400, if "unfinished" is "share", and only then.'
        )
    if pricing.currency != "USD":
        raise ValueError("Prices must be in USD.")
    return FREE if pricing.is_free else pricing

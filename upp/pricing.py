"""Prices of tokens (UAMP §8.7).

Money is Decimal, and prices are per 1,000 tokens. Cached tokens without a price cost as much as
other input, and no token is charged twice, whether input counts include cached tokens (OpenAI,
Google) or not (Anthropic).
"""

from decimal import Decimal

import msgspec

from upp.conversation.turn import TokenUsage


class Prices(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The prices of 1,000 tokens of a model."""

    input_per_1k: Decimal = msgspec.field(name="inputPer1k")
    output_per_1k: Decimal = msgspec.field(name="outputPer1k")
    cache_read_per_1k: Decimal | None = msgspec.field(name="cacheReadPer1k", default=None)
    cache_write_per_1k: Decimal | None = msgspec.field(name="cacheWritePer1k", default=None)


class TokenCost(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of a usage in the currency of the prices, without rounding."""

    input_cost: Decimal
    output_cost: Decimal

    @property
    def total_cost(self) -> Decimal:
        """The sum of both."""
        return self.input_cost + self.output_cost


def cost(usage: TokenUsage, prices: Prices, *, cached_in_input: bool) -> TokenCost:
    """Return the cost of a usage; `cached_in_input` is the provider's capability of that name."""
    read, written = usage.cache_read_tokens, usage.cache_write_tokens
    fresh = usage.input_tokens - (read + written if cached_in_input else 0)
    per_read = _price_or(prices.cache_read_per_1k, prices.input_per_1k)
    per_write = _price_or(prices.cache_write_per_1k, prices.input_per_1k)
    input_total = max(fresh, 0) * prices.input_per_1k + read * per_read + written * per_write
    return TokenCost(
        input_cost=input_total / 1000, output_cost=usage.output_tokens * prices.output_per_1k / 1000
    )


def _price_or(price: Decimal | None, otherwise: Decimal) -> Decimal:
    return otherwise if price is None else price

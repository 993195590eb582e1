"""The price of tokens."""

from decimal import Decimal

import msgspec
import pytest

from upp import Prices, TokenCost, TokenUsage, cost
from upp.providers.anthropic import AnthropicProvider
from upp.providers.google import GoogleProvider
from upp.providers.openai_compat import OpenAICompatProvider

PRICES = Prices(
    input_per_1k=Decimal("0.003"),
    output_per_1k=Decimal("0.015"),
    cache_read_per_1k=Decimal("0.0003"),
    cache_write_per_1k=Decimal("0.00375"),
)
PLAIN = Prices(input_per_1k=Decimal("0.003"), output_per_1k=Decimal("0.015"))


@pytest.mark.parametrize(
    ("provider", "usage"),
    [
        # The same 1,000 tokens of a prompt, 600 of them from the cache, as each API counts them.
        (AnthropicProvider, TokenUsage(input_tokens=400, cache_read_tokens=600)),
        (OpenAICompatProvider, TokenUsage(input_tokens=1000, cache_read_tokens=600)),
        (GoogleProvider, TokenUsage(input_tokens=1000, cache_read_tokens=600)),
    ],
)
def test_a_cached_prompt_costs_the_same_however_it_is_counted(
    provider: type[AnthropicProvider], usage: TokenUsage
) -> None:
    included = provider.capabilities.cached_in_input
    assert cost(usage, PRICES, cached_in_input=included).input_cost == Decimal("0.00138")
    assert cost(usage, PLAIN, cached_in_input=included).input_cost == Decimal("0.003")


def test_writes_to_the_cache_have_their_price() -> None:
    usage = TokenUsage(input_tokens=100, output_tokens=200, cache_write_tokens=1000)
    assert cost(usage, PRICES, cached_in_input=False) == TokenCost(
        input_cost=Decimal("0.00405"), output_cost=Decimal("0.003")
    )
    assert cost(usage, PRICES, cached_in_input=False).total_cost == Decimal("0.00705")


def test_a_price_of_nothing_is_a_price() -> None:
    free = msgspec.structs.replace(PRICES, cache_read_per_1k=Decimal(0))
    usage = TokenUsage(input_tokens=100, cache_read_tokens=600)
    # More cached tokens than input tokens: the provider counts in its own way, and never below 0.
    assert cost(usage, free, cached_in_input=True).input_cost == 0


def test_prices_are_json_under_the_names_of_the_specification() -> None:
    assert msgspec.json.decode(msgspec.json.encode(PRICES)) == {
        "inputPer1k": "0.003",
        "outputPer1k": "0.015",
        "cacheReadPer1k": "0.0003",
        "cacheWritePer1k": "0.00375",
    }
    assert msgspec.json.decode(msgspec.json.encode(PLAIN), type=Prices) == PLAIN

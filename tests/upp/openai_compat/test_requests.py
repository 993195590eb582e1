"""OpenAI-compatible requests: addresses, keys, headers and retries."""

import logging
from contextlib import suppress
from typing import Any

import pytest

from tests.upp.openai_compat.answers import KEY, failure
from tests.upp.wire_server import STREAM_HEAD, Exchange, serve
from upp import (
    ErrorCode,
    LinearBackoff,
    LLMRequest,
    ProviderConfig,
    RetryAfterStrategy,
    RoundRobinKeys,
    UPPError,
    llm,
)
from upp.providers.openai_compat import OpenAICompatProvider


async def connection(**options: Any) -> tuple[str | None, str | None]:
    """Return the address and the key of a request."""
    config, key = await OpenAICompatProvider(**options).connection(None)
    return config.base_url, key


async def test_without_an_address_the_environment_says_where(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "from-env")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert await connection() == ("https://api.openai.com/v1", "from-env")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1/")
    assert await connection() == ("http://localhost:1/v1", "from-env")
    monkeypatch.delenv("OPENAI_API_KEY")
    assert await connection() == ("http://localhost:1/v1", None)


async def test_a_key_stays_with_its_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "from-env")
    assert await connection(base_url="http://x/v1") == ("http://x/v1", None)
    assert await connection(base_url="http://x/v1", api_key="k") == ("http://x/v1", "k")
    provider = OpenAICompatProvider(api_key="own")
    elsewhere = ProviderConfig(base_url="http://y/v1")
    config, key = await provider.connection(elsewhere)
    assert (config.base_url, key) == ("http://y/v1", None)
    config, key = await provider.connection(ProviderConfig(base_url="http://y/v1", api_key="y"))
    assert (config.base_url, key) == ("http://y/v1", "y")
    config, key = await provider.connection(ProviderConfig(api_key="other"))
    assert key == "other"


async def test_headers_of_the_caller_win_and_a_connector_takes_the_place_of_the_network() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD + b"data: [DONE]\n\n")

    async with serve(answer) as wire:
        provider = OpenAICompatProvider(
            base_url="http://nowhere/v1",
            api_key="k",
            config=ProviderConfig(headers={"X-Mine": "1", "accept": "all"}),
        )
        over = ProviderConfig(connector=wire.connector, headers={"authorization": "Mine"})
        await llm(model=provider("m1"), config=over).generate("hi")
        await provider.aclose()
    request, *lines = wire.exchanges[0].head.split("\r\n")
    assert request == "POST /v1/chat/completions HTTP/1.1"
    headers = [line.partition(": ")[::2] for line in lines]
    names = {"host", "x-mine", "accept", "authorization"}
    assert {(name.lower(), value) for name, value in headers if name.lower() in names} == {
        ("host", "nowhere"),
        ("x-mine", "1"),
        ("accept", "all"),
        ("authorization", "Mine"),
    }


@pytest.mark.parametrize(
    ("failing", "events"),
    [(0, 1), (2, 1), (3, 0)],
)
async def test_what_fails_before_its_first_event_is_sent_again(failing: int, events: int) -> None:
    async def answer(exchange: Exchange) -> None:
        if len(wire.exchanges) <= failing:
            await exchange.refuse("429 Slow", b"{}", "Retry-After: 0")
            return
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="a")
        await exchange.finish()

    keys = RoundRobinKeys(["k1", "k2"])
    async with serve(answer) as wire:
        config = ProviderConfig(retry=RetryAfterStrategy(max_attempts=2), api_key=keys)
        provider = OpenAICompatProvider(base_url=wire.url, config=config)
        result = llm(model=provider("m1")).stream("hi")
        seen = []
        with suppress(UPPError):
            async for event in result:
                seen.append(event.type)  # noqa: PERF401 what came before the error counts
        await provider.aclose()
    used_keys = [exchange.head.split("Bearer ")[1][:2] for exchange in wire.exchanges]
    assert used_keys == ["k1", "k2", "k1"][: min(failing, 2) + 1]
    assert seen.count("message_start") == events


async def test_an_answer_that_is_cut_after_its_first_event_is_not_asked_for_again() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="half")

    async with serve(answer) as wire:
        config = ProviderConfig(retry=LinearBackoff(delay=0))
        provider = OpenAICompatProvider(base_url=wire.url, config=config)
        with pytest.raises(UPPError) as caught:
            await llm(model=provider("m1")).generate("hi")
        await provider.aclose()
    assert caught.value.code == ErrorCode.NETWORK_ERROR
    assert len(wire.exchanges) == 1


async def test_the_key_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.refuse("500 Oops", b"sk-secret")

    with caplog.at_level(logging.DEBUG):
        await failure(answer)
    assert KEY not in caplog.text


def test_a_request_is_a_value() -> None:
    assert LLMRequest(messages=()).tools == ()

"""Ends of an OpenAI-compatible stream, and what stopping closes."""

import asyncio

import pytest

from tests.upp.openai_compat.answers import ask
from tests.upp.wire_server import STREAM_HEAD, Exchange, serve
from upp import LLMRequest, StreamEvent, TokenUsage, llm
from upp.providers.http import transport
from upp.providers.openai_compat import OpenAICompatProvider


async def test_an_end_without_done_or_empty_line_is_an_end() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.send(
            b'data: {"choices":[{"delta":{"content":"a"},"finish_reason":"length"}]}'
        )

    turn = await ask(answer)
    assert (turn.response.text, turn.stop_reason) == ("a", "max_tokens")
    assert turn.response.metadata == {}
    assert turn.usage == TokenUsage()


async def test_done_without_a_reason_is_an_end() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD + b'data: {"usage": {}}\n\ndata: [DONE]\n\n')

    turn = await ask(answer)
    assert (turn.response.content, turn.stop_reason) == ((), "end_turn")


async def test_what_comes_after_done_is_not_read_as_an_answer() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="a")
        await exchange.finish()
        await asyncio.sleep(0.02)
        await exchange.delta(content="b")

    assert (await ask(answer)).response.text == "a"


async def test_a_server_that_never_hangs_up_is_not_awaited_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transport, "DRAIN_SECONDS", 0.05)

    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="a")
        await exchange.finish()
        await asyncio.wait_for(exchange.gone.wait(), 60)

    assert (await ask(answer)).response.text == "a"


@pytest.mark.parametrize("how", ["abort", "cancel", "leave"])
async def test_stopping_closes_the_request(how: str) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="a")
        await asyncio.wait_for(exchange.gone.wait(), 60)

    async with serve(answer) as wire:
        provider = OpenAICompatProvider(base_url=wire.url)
        result = llm(model=provider("m1")).stream([], "hi")
        began = asyncio.Event()

        async def follow() -> None:
            async for event in result:
                if event.type == "text_delta":
                    began.set()
                    if how == "leave":
                        break

        reader = asyncio.create_task(follow())
        await asyncio.wait_for(began.wait(), 60)
        if how == "abort":
            result.abort()
        elif how == "cancel":
            reader.cancel()
        await asyncio.wait({reader}, timeout=60)
        await asyncio.wait_for(wire.exchanges[0].gone.wait(), 2)
        assert reader.cancelled() is (how == "cancel")
        assert reader.exception() is not None if how == "abort" else True
        await provider.aclose()


async def test_a_stream_that_is_closed_has_closed_its_connection() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="a")
        await asyncio.wait_for(exchange.gone.wait(), 60)

    async with serve(answer) as wire:
        provider = OpenAICompatProvider(base_url=wire.url)
        stream = provider("m1").stream(LLMRequest(messages=()))
        assert isinstance(await anext(stream), StreamEvent)
        assert not wire.exchanges[0].gone.is_set()
        await stream.aclose()
        await asyncio.wait_for(wire.exchanges[0].gone.wait(), 5)
        await provider.aclose()


async def test_an_error_of_the_receiver_is_not_a_failure_of_the_server() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="a")
        await asyncio.wait_for(exchange.gone.wait(), 60)

    async def emit(event: StreamEvent) -> None:
        if event.type == "text_delta":
            raise TimeoutError("of the receiver")

    async with serve(answer) as wire:
        provider = OpenAICompatProvider(base_url=wire.url)
        with pytest.raises(TimeoutError, match="of the receiver"):
            await provider("m1").infer(LLMRequest(messages=()), emit)
        await asyncio.wait_for(wire.exchanges[0].gone.wait(), 5)
        assert len(wire.exchanges) == 1
        await provider.aclose()

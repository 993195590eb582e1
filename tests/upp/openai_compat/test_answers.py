"""Text, reasoning and token counts in OpenAI-compatible answers."""

import asyncio
from typing import Any

import pytest

from tests.upp.openai_compat.answers import KEY, TOOLS, ask
from tests.upp.wire_server import STREAM_HEAD, Exchange, serve
from upp import ReasoningBlock, TextBlock, TokenUsage, llm
from upp.providers.openai_compat import OpenAICompatProvider


async def test_text_and_usage_are_streamed() -> None:
    async def answer(exchange: Exchange) -> None:
        assert exchange.head.startswith("POST /v1/chat/completions HTTP/1.1")
        assert f"Authorization: Bearer {KEY}" in exchange.head
        assert exchange.body == {
            "model": "m1",
            "messages": [{"role": "user", "content": "hi"}],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        await exchange.send(STREAM_HEAD)
        await exchange.delta(role="assistant", content="")
        await exchange.delta(content="Hel")
        await exchange.delta(content="lo\u2028.")
        await exchange.chunk(
            choices=[],
            usage={
                "prompt_tokens": 9,
                "completion_tokens": 2,
                "total_tokens": 11,
                "prompt_tokens_details": {"cached_tokens": 4},
            },
        )
        await exchange.finish()

    turn = await ask(answer)
    assert turn.response.text == "Hello\u2028."
    assert turn.response.metadata == {"openai": {"id": "chatcmpl-1"}}
    assert turn.stop_reason == "end_turn"
    assert turn.usage == TokenUsage(
        input_tokens=9, output_tokens=2, total_tokens=11, cache_read_tokens=4
    )


async def test_each_piece_comes_when_the_server_sends_it() -> None:
    goes_on = asyncio.Event()

    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="one")
        await asyncio.wait_for(goes_on.wait(), 60)
        await exchange.delta(content="two")
        await exchange.finish()

    async with serve(answer) as wire:
        provider = OpenAICompatProvider(base_url=wire.url)
        seen = []
        async for event in llm(model=provider("m1")).stream([], "hi"):
            if event.type == "text_delta":
                seen.append(event.delta.text)
                goes_on.set()
        assert "Authorization" not in wire.exchanges[0].head
        await provider.aclose()
    assert seen == ["one", "two"]


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
async def test_thinking_is_kept_apart(name: str) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(**{name: "let me"})
        await exchange.delta(**{name: " see"})
        await exchange.delta(content="yes")
        await exchange.finish()

    turn = await ask(answer)
    assert turn.response.content == (ReasoningBlock(text="let me see"), TextBlock(text="yes"))


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
async def test_thoughts_before_a_call_go_back_until_the_question_is_answered(name: str) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        if len(exchange.body["messages"]) == 1:
            detail = {"type": "reasoning.encrypted", "data": "x=="}
            await exchange.delta(**{name: "let me", "reasoning_details": [detail]})
            await exchange.delta(**{name: " see"})
            call = {"index": 0, "id": "c1", "function": {"name": "search", "arguments": '{"q":1}'}}
            await exchange.delta(tool_calls=[call])
            await exchange.finish("tool_calls")
            return
        await exchange.delta(content="yes")
        await exchange.finish()

    async with serve(answer) as wire:
        provider = OpenAICompatProvider(base_url=wire.url)
        model = llm(model=provider("m1"), tools=TOOLS)
        turn = await model.generate("hi")
        await model.generate(turn.messages, "and now?")
        await provider.aclose()
    earlier, later = (exchange.body["messages"][1] for exchange in wire.exchanges[1:])
    thoughts = {
        name: "let me see",
        "reasoning_details": [{"type": "reasoning.encrypted", "data": "x=="}],
    }
    assert earlier == later | thoughts
    assert not thoughts.keys() & later.keys()


@pytest.mark.parametrize(
    "usage",
    [
        {"usage": {"prompt_tokens": 9, "prompt_cache_hit_tokens": 4}},
        {"usage": {"prompt_tokens": 9, "cached_tokens": 4, "prompt_tokens_details": {}}},
        {"x_groq": {"usage": {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}}}},
    ],
)
async def test_cached_tokens_are_found_where_servers_count_them(usage: dict[str, Any]) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.chunk(choices=[], x_groq={"id": "r"})
        await exchange.chunk(**usage)
        await exchange.finish()

    turn = await ask(answer)
    assert turn.usage == TokenUsage(input_tokens=9, total_tokens=9, cache_read_tokens=4)


@pytest.mark.parametrize(
    ("completion", "total", "output"),
    [
        (40, 50, 40),  # OpenAI: the completion holds the reasoning
        (40, None, 40),
        (8, 50, 40),  # xAI: the reasoning stands beside the completion, and is billed
    ],
)
async def test_reasoning_tokens_are_output_and_counted_once(
    completion: int, total: int | None, output: int
) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.chunk(
            usage={
                "prompt_tokens": 10,
                "completion_tokens": completion,
                "total_tokens": total,
                "completion_tokens_details": {"reasoning_tokens": 32},
            }
        )
        await exchange.finish()

    turn = await ask(answer)
    assert turn.usage == TokenUsage(
        input_tokens=10, output_tokens=output, total_tokens=10 + output, reasoning_tokens=32
    )


@pytest.mark.parametrize(("hidden", "media"), [(None, 0), (0, None), (500, 40_000)])
async def test_a_server_that_is_not_trusted_counts_at_most_its_bytes_and_its_media(
    hidden: int | None, media: int | None
) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="Hi")
        await exchange.chunk(
            usage={
                "prompt_tokens": 10**9,
                "completion_tokens": 10**9,
                "total_tokens": 2 * 10**9,
                "prompt_tokens_details": {"cached_tokens": 10**9},
                "completion_tokens_details": {"reasoning_tokens": 10**9},
            }
        )
        await exchange.finish()

    usage = (await ask(answer, hidden_tokens=hidden, media_tokens=media)).usage
    if hidden is None:
        assert usage.total_tokens == 2 * 10**9
        return
    assert (media or 0) < usage.input_tokens < (media or 0) + 500
    assert hidden < usage.output_tokens < hidden + 1500
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens
    assert usage.cache_read_tokens <= usage.input_tokens
    assert usage.reasoning_tokens <= usage.output_tokens


async def test_a_refusal_is_what_the_model_said() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(refusal="I will not.")
        await exchange.finish()

    assert (await ask(answer)).response.text == "I will not."

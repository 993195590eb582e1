"""Runs of agents with a model, whose provider is a server of the test."""

import asyncio

import pytest
from pytest_django import Settings

from agents_app.runtime.agent_run import RunRequest, run_agent
from agents_app.selectors import AgentSpec
from tests.agents_app.run_context import CSV_ID, Broker, Media
from tests.agents_app.runtime.runs.model_agents import aclosing_providers, model_agent
from tests.agents_app.runtime.runs.scripted_runs import output, request_of, run
from tests.upp.wire_server import STREAM_HEAD, Exchange, serve
from uamp.events import Event, ResponseDelta, Thinking, UsageDelta
from uamp.types.content import ImageContent, MediaUrl, Message, TextContent
from uamp.types.session import JsonSchemaFormat, ResponseFormat, UsageStats


async def test_cancelling_a_run_closes_the_providers_request() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="a")
        await asyncio.wait_for(exchange.gone.wait(), 60)

    async with serve(answer) as wire, aclosing_providers():
        spec = model_agent(wire.url)
        began = asyncio.Event()

        def receive(_shown: Event | str) -> None:
            began.set()

        task = asyncio.create_task(
            run_agent(spec, request_of(), receive, broker=Broker(), media=Media())
        )
        await asyncio.wait_for(began.wait(), 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(wire.exchanges[0].gone.wait(), 2)
        assert task.cancelled()


async def test_a_server_at_an_address_of_the_agents_own_counts_at_most_its_bytes(
    settings: Settings,
) -> None:
    settings.UAMP_RESERVE_REASONING_TOKENS = 0

    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="Hi")
        await exchange.chunk(usage={"prompt_tokens": 10**9, "completion_tokens": 10**9})
        await exchange.finish()

    async with serve(answer) as wire, aclosing_providers():
        _, end = await run(model_agent(wire.url), request_of("Hello"))
    assert end.usage is not None
    assert (end.usage.input_tokens or 0) + (end.usage.output_tokens or 0) < 2000


async def test_an_agent_with_a_model_sends_its_media_and_streams_its_answer() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(reasoning_content="hm")
        await exchange.delta(content="a cat")
        await exchange.chunk(choices=[], usage={"prompt_tokens": 5, "completion_tokens": 2})
        await exchange.finish()

    png = b"\x89PNG\r\n\x1a\n"
    picture = ImageContent(image=MediaUrl(url=f"/api/content/{CSV_ID}"), format="png")
    async with serve(answer) as wire, aclosing_providers():
        events, end = await run(
            model_agent(wire.url),
            request_of("what is it?", TextContent(text="what is it?"), picture),
            media=Media({CSV_ID: (png, "image/png")}),
        )
    assert wire.exchanges[0].body["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "what is it?"},
                {
                    "type": "text",
                    "text": f"[attachment: content_id={CSV_ID}, kind=image, mime_type=image/png]",
                },
                {
                    "type": "image_url",
                    "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="},
                },
            ],
        }
    ]
    assert [type(event) for event in events] == [Thinking, ResponseDelta, UsageDelta]
    assert end.usage.total_tokens == 7
    assert end.model == "m1"


async def test_an_agent_that_is_asked_again_after_its_own_answer_is_prompted_so() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.chunk(choices=[{"delta": {"content": "more"}, "finish_reason": "stop"}])
        await exchange.finish()

    history = [Message(role="user", content="hi"), Message(role="assistant", content="hello")]
    async with serve(answer) as wire, aclosing_providers():
        events, _ = await run(model_agent(wire.url), RunRequest(response_id="r1", history=history))
    # Vendors refuse a conversation that ends in the model's own words.
    assert [message["role"] for message in wire.exchanges[0].body["messages"]] == [
        *("user", "assistant", "user"),
    ]
    assert output(events) == [TextContent(text="more")]


async def test_an_anthropic_agent_answers_in_a_schema_and_counts_cached_tokens_apart() -> None:
    async def answer(exchange: Exchange) -> None:
        assert exchange.body["tool_choice"] == {"type": "tool", "name": "json_answer"}
        assert "response_format" not in exchange.body
        await exchange.send(STREAM_HEAD)
        usage = {"input_tokens": 5, "cache_read_input_tokens": 100, "output_tokens": 1}
        await exchange.event(
            "message_start",
            message={"id": "msg_1", "usage": {**usage, "cache_creation_input_tokens": 20}},
        )
        thinking = {"type": "thinking_delta", "thinking": "hm"}
        await exchange.event("content_block_start", index=0, content_block={"type": "thinking"})
        await exchange.event("content_block_delta", index=0, delta=thinking)
        call = {"type": "tool_use", "id": "t1", "name": "json_answer"}
        await exchange.event("content_block_start", index=1, content_block=call)
        piece = {"type": "input_json_delta", "partial_json": '{"a": 1}'}
        await exchange.event("content_block_delta", index=1, delta=piece)
        await exchange.event(
            "message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 9}
        )
        await exchange.event("message_stop")

    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    response_format = ResponseFormat(
        type="json_schema", json_schema=JsonSchemaFormat(name="n", schema=schema)
    )
    async with serve(answer) as wire, aclosing_providers():
        options = {"base_url": wire.url}
        spec = AgentSpec(id="a", name="claude", provider="anthropic", model="m", options=options)
        events, end = await run(spec, request_of(response_format=response_format))
    assert [type(event) for event in events] == [Thinking, ResponseDelta, UsageDelta]
    assert (end.finish_reason, end.steps) == ("stop", 1)
    assert end.usage == UsageStats(
        input_tokens=5,
        output_tokens=9,
        total_tokens=14,
        cached_tokens=120,
        cache_write_tokens=20,
    )

"""Tool calls in OpenAI-compatible answers."""

from tests.upp.openai_compat.answers import TOOLS, ask
from tests.upp.wire_server import STREAM_HEAD, Exchange, serve
from upp import ToolResultMessage, llm
from upp.providers.openai_compat import OpenAICompatProvider


async def test_calls_are_put_together_from_pieces_and_answered() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        if len(exchange.body["messages"]) > 1:
            await exchange.delta(content="done")
            await exchange.finish()
            return
        first = {"index": 0, "id": "c1", "function": {"name": "search", "arguments": ""}}
        second = {"index": 1, "id": "c2", "function": {"name": "search", "arguments": '{"q":2}'}}
        await exchange.delta(tool_calls=[first])
        await exchange.delta(tool_calls=[{"index": 0, "function": {"arguments": '{"q"'}}])
        await exchange.delta(tool_calls=[second])
        await exchange.delta(tool_calls=[{"index": 0, "function": {"arguments": ":1}"}}])
        await exchange.finish("tool_calls")

    async with serve(answer) as wire:
        provider = OpenAICompatProvider(base_url=wire.url)
        turn = await llm(model=provider("m1"), tools=TOOLS).generate([], "hi")
        await provider.aclose()
    assert turn.response.text == "done"
    assert isinstance(turn.messages[2], ToolResultMessage)
    assert wire.exchanges[0].body["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "search",
                "description": "Searches",
                "parameters": {"type": "object"},
            },
        }
    ]
    assert wire.exchanges[1].body["messages"][1:] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "search", "arguments": '{"q":1}'},
                },
                {
                    "id": "c2",
                    "type": "function",
                    "function": {"name": "search", "arguments": '{"q":2}'},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": '{"found":1}'},
        {"role": "tool", "tool_call_id": "c2", "content": '{"found":2}'},
    ]


async def test_calls_that_a_server_numbers_alike_or_not_at_all_are_distinguished() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        for piece in (
            {"index": 0, "id": "c1", "function": {"name": "a", "arguments": "{}"}},
            {"index": 0, "id": "c2", "function": {"name": "b", "arguments": "{}"}},
            {"index": None, "function": {"name": "c"}},
            {"index": 7},
        ):
            await exchange.delta(tool_calls=[piece])
        await exchange.finish("tool_calls")

    calls = (await ask(answer)).response.tool_calls
    assert [call.tool_name for call in calls] == ["a", "b", "c", ""]
    assert len({call.tool_call_id for call in calls}) == 4


async def test_an_id_that_a_server_uses_again_in_the_next_answer_becomes_another() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        if len(exchange.body["messages"]) < 5:
            call = {"index": 0, "id": "c1", "function": {"name": "search", "arguments": '{"q":1}'}}
            await exchange.delta(tool_calls=[call])
            await exchange.finish("tool_calls")
            return
        await exchange.delta(content="yes")
        await exchange.finish()

    async with serve(answer) as wire:
        provider = OpenAICompatProvider(base_url=wire.url)
        turn = await llm(model=provider("m1"), tools=TOOLS).generate("hi")
        await provider.aclose()
    first, second = (execution.tool_call_id for execution in turn.tool_executions)
    assert first == "c1"
    assert second != "c1"


async def test_malformed_arguments_are_reported_to_the_model() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        messages = exchange.body["messages"]
        if len(messages) > 1:
            await exchange.delta(content=messages[-1]["content"])
            await exchange.finish()
            return
        call = {"index": 0, "id": "c1", "function": {"name": "search", "arguments": '{"q": '}}
        await exchange.delta(tool_calls=[call])
        await exchange.finish("tool_calls")

    turn = await ask(answer, tools=TOOLS)
    assert turn.response.text == "The arguments are not a JSON object."

"""Structured output of the Messages API: a forced call, or a system prompt."""

from typing import Any

import pytest

from tests.upp.anthropic.events import ask, begin, block, end, json_piece, text
from tests.upp.wire_server import Exchange
from upp import Tool

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


async def test_a_schema_is_answered_by_a_forced_call_that_becomes_text() -> None:
    async def answer(exchange: Exchange) -> None:
        assert exchange.body["tool_choice"] == {"type": "tool", "name": "json_answer"}
        assert exchange.body["tools"][0]["input_schema"] == SCHEMA
        await begin(exchange)
        await block(exchange, 0, {"type": "text"}, text("Here it is:"))
        call = {"type": "tool_use", "id": "toolu_1", "name": "json_answer"}
        await block(exchange, 1, call, json_piece('{"a"'), json_piece(": 1}"))
        await end(exchange, "tool_use")

    turn, events = await ask(answer, structure=SCHEMA)
    assert turn.data == {"a": 1}
    assert turn.stop_reason == "end_turn"
    assert turn.response.tool_calls == ()
    assert turn.response.text == 'Here it is:\n\n{"a": 1}'
    pieces = [event.delta.text for event in events if event.type == "object_delta"]
    assert pieces == ["Here it is:", '{"a"', ": 1}"]


async def test_tools_may_run_before_the_structured_answer() -> None:
    tool_choices: list[Any] = []

    async def answer(exchange: Exchange) -> None:
        tool_choices.append(exchange.body["tool_choice"])
        await begin(exchange)
        if len(tool_choices) == 1:
            await block(exchange, 0, {"type": "tool_use", "id": "t1", "name": "look"})
            # An answer beside a call is too early: the model has not seen the result.
            await block(exchange, 1, {"type": "tool_use", "id": "t2", "name": "json_answer"})
        else:
            call = {"type": "tool_use", "id": "t3", "name": "json_answer"}
            await block(exchange, 0, call, json_piece('{"a": 2}'))
        await end(exchange, "tool_use")

    look = Tool(name="look", description="", parameters={"type": "object"}, run=lambda _: "seen")
    turn, _ = await ask(answer, structure=SCHEMA, tools=[look])
    assert tool_choices == [{"type": "any"}, {"type": "any"}]
    assert (turn.data, turn.cycles, len(turn.tool_executions)) == ({"a": 2}, 2, 1)
    assert turn.messages[1].text == "{}"


@pytest.mark.parametrize(
    ("params", "choice"),
    [
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, {"type": "auto"}),
        ({"thinking": {"type": "disabled"}}, {"type": "tool", "name": "json_answer"}),
        ({"tool_choice": {"type": "none"}}, {"type": "none"}),
    ],
)
async def test_thinking_and_the_caller_keep_a_call_from_being_forced(
    params: dict[str, Any], choice: dict[str, str]
) -> None:
    async def answer(exchange: Exchange) -> None:
        assert exchange.body["tool_choice"] == choice
        await begin(exchange)
        await block(exchange, 0, {"type": "text"}, text('{"a": 3}'))
        await end(exchange)

    turn, _ = await ask(answer, structure=SCHEMA, params=params)
    assert turn.data == {"a": 3}


@pytest.mark.parametrize(
    ("options", "begins"),
    [
        ({}, "Answer with one valid JSON object"),
        ({"system": "be kind"}, "be kind\n\nAnswer with one valid JSON object"),
    ],
)
async def test_any_object_is_asked_for_in_the_system_prompt(
    options: dict[str, Any], begins: str
) -> None:
    async def answer(exchange: Exchange) -> None:
        assert exchange.body["system"].startswith(begins)
        assert "tools" not in exchange.body
        await begin(exchange)
        await block(exchange, 0, {"type": "text"}, text('{"b": []}'))
        await end(exchange)

    turn, _ = await ask(answer, structure={"type": "object"}, **options)
    assert turn.data == {"b": []}

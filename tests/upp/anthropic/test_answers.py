"""Text, reasoning, system prompts and stop reasons of the Messages API."""

from typing import Any

import pytest

from tests.upp.anthropic.events import KEY, ask, begin, block, end, json_piece, text
from tests.upp.wire_server import Exchange
from upp import ErrorCode, ReasoningBlock, TextBlock, TokenUsage, Tool, UPPError


async def test_text_is_streamed_and_cached_tokens_are_counted_beside_the_input() -> None:
    async def answer(exchange: Exchange) -> None:
        assert exchange.head.startswith("POST /v1/messages HTTP/1.1")
        assert f"x-api-key: {KEY}" in exchange.head
        assert "anthropic-version: 2023-06-01" in exchange.head
        assert exchange.body == {
            "model": "claude",
            "max_tokens": 8192,
            "system": "be kind",
            "temperature": 1,
            "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
            "stream": True,
        }
        await begin(
            exchange,
            input_tokens=9,
            output_tokens=1,
            cache_read_input_tokens=100,
            cache_creation_input_tokens=20,
        )
        await block(exchange, 0, {"type": "text", "text": ""}, text("Hel"), text("lo"))
        await end(exchange, output_tokens=5, output_tokens_details={"thinking_tokens": 2})

    turn, events = await ask(answer, system="be kind", params={"temperature": 1})
    assert [(event.type, event.delta.text) for event in events] == [
        ("message_start", None),
        ("content_block_start", None),
        ("text_delta", "Hel"),
        ("text_delta", "lo"),
        ("content_block_stop", None),
        ("message_stop", None),
    ]
    assert turn.response.text == "Hello"
    assert turn.stop_reason == "end_turn"
    assert turn.response.metadata["anthropic"]["id"] == "msg_1"
    assert turn.usage == TokenUsage(
        input_tokens=9,
        output_tokens=5,
        total_tokens=14,
        cache_read_tokens=100,
        cache_write_tokens=20,
        reasoning_tokens=2,
    )


async def test_thoughts_go_back_in_their_places_with_their_signatures() -> None:
    async def answer(exchange: Exchange) -> None:
        if len(exchange.body["messages"]) > 1:
            await begin(exchange)
            await block(exchange, 0, {"type": "text"}, text("done"))
            await end(exchange)
            return
        await begin(exchange)
        thinking = {"type": "thinking", "thinking": "", "signature": ""}
        thought = {"type": "thinking_delta", "thinking": "let me see"}
        signature = {"type": "signature_delta", "signature": "sig=="}
        await block(exchange, 0, thinking, thought, signature)
        await block(exchange, 1, {"type": "redacted_thinking", "data": "secret=="})
        await block(exchange, 2, {"type": "text", "text": ""}, text("I look."))
        call = {"type": "tool_use", "id": "toolu_1", "name": "search", "input": {}}
        await block(exchange, 3, call, json_piece(""), json_piece('{"q":'), json_piece(" 1}"))
        await block(exchange, 4, {"type": "tool_use", "id": "toolu_2", "name": "search"})
        await end(exchange, "tool_use")

    bodies: list[Any] = []

    async def keeping(exchange: Exchange) -> None:
        bodies.append(exchange.body)
        await answer(exchange)

    def search(arguments: dict[str, Any]) -> dict[str, Any]:
        if not arguments:
            raise ValueError("nothing to look for")
        return {"found": arguments["q"]}

    tool = Tool(
        name="search",
        description="Searches",
        parameters={"type": "object"},
        run=search,
        metadata={"anthropic": {"cache_control": {"type": "ephemeral"}}},
    )
    native = {"type": "web_search_20250305", "name": "web_search"}
    params = {"thinking": {"type": "enabled", "budget_tokens": 2000}, "tools": [native]}
    turn, events = await ask(keeping, tools=[tool], params=params)
    assert bodies[0]["max_tokens"] == 10192
    assert bodies[0]["tools"] == [
        native,
        {
            "name": "search",
            "description": "Searches",
            "input_schema": {"type": "object"},
            "cache_control": {"type": "ephemeral"},
        },
    ]
    assert bodies[1]["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "let me see", "signature": "sig=="},
                {"type": "redacted_thinking", "data": "secret=="},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "toolu_1", "name": "search", "input": {"q": 1}},
                {"type": "tool_use", "id": "toolu_2", "name": "search", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": '{"found":1}'},
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_2",
                    "content": "nothing to look for",
                    "is_error": True,
                },
            ],
        },
    ]
    first = turn.messages[1]
    assert first.content == (ReasoningBlock(text="let me see"), TextBlock(text="I look."))
    calls = [event.delta for event in events if event.type == "tool_call_delta"]
    assert [(call.tool_call_id, call.arguments_json) for call in calls] == [
        ("toolu_1", ""),
        ("toolu_1", '{"q":'),
        ("toolu_1", " 1}"),
    ]
    assert [event.delta.text for event in events if event.type == "reasoning_delta"] == [
        "let me see"
    ]
    assert turn.response.text == "done"


async def test_a_system_prompt_in_blocks_keeps_its_blocks() -> None:
    blocks = [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}]

    async def answer(exchange: Exchange) -> None:
        assert exchange.body["system"][0] == blocks[0]
        assert exchange.body["system"][1]["text"].startswith("Answer with one valid JSON object")
        await begin(exchange)
        await end(exchange)

    turn, _ = await ask(answer, structure={"type": "object"}, params={"system": blocks})
    assert turn.data is None


@pytest.mark.parametrize(
    ("vendor_reason", "reason"),
    [
        ("max_tokens", "max_tokens"),
        ("stop_sequence", "end_turn"),
        ("model_context_window_exceeded", "max_tokens"),
        ("pause_turn", "pause_turn"),
        ("refusal", "content_filter"),
    ],
)
async def test_reasons_to_stop_have_common_names(vendor_reason: str, reason: str) -> None:
    async def answer(exchange: Exchange) -> None:
        await begin(exchange)
        await block(exchange, 0, {"type": "text"}, text("a"))
        await end(exchange, vendor_reason)

    turn, _ = await ask(answer)
    assert turn.stop_reason == reason


async def test_a_refusal_without_words_is_filtered_content() -> None:
    async def answer(exchange: Exchange) -> None:
        await begin(exchange)
        await end(exchange, "refusal")

    with pytest.raises(UPPError) as caught:
        await ask(answer)
    assert caught.value.code == ErrorCode.CONTENT_FILTERED


async def test_unknown_events_are_ignored() -> None:
    async def answer(exchange: Exchange) -> None:
        await begin(exchange)
        await exchange.event("something_new", index=7)
        await exchange.event("content_block_delta", index=9, delta=text("nowhere"))
        server_tool = {"type": "server_tool_use", "id": "s1", "name": "web_search"}
        await block(exchange, 0, server_tool, json_piece('{"query": "x"}'))
        citation = {"type": "citations_delta", "citation": {"cited_text": "x"}}
        await block(exchange, 1, {"type": "text"}, citation, text("a"))
        await exchange.event("message_delta", usage={"output_tokens": 2})
        await exchange.event("message_stop")

    turn, _ = await ask(answer)
    assert (turn.response.text, turn.response.tool_calls) == ("a", ())
    assert (turn.stop_reason, turn.usage.output_tokens) == ("end_turn", 2)

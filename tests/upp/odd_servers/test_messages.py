"""Servers with their own variant of Anthropic's dialect."""

from typing import Any

import pytest

from tests.upp.odd_servers.pieces import TOOL, data, events, received
from upp import ErrorCode, ReasoningBlock, StreamEvent, TokenUsage, Turn, UPPError
from upp.providers.anthropic import AnthropicProvider
from upp.providers.google import GoogleProvider


def block(start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": 0, "content_block": start},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
    ]


BEGIN = {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 3}}}
REASON = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
STOP = {"type": "message_stop"}


async def claude(*between: dict[str, Any], **options: Any) -> tuple[Turn, list[StreamEvent]]:
    return await received(AnthropicProvider, events(BEGIN, *between, REASON, STOP), **options)


async def test_a_block_may_begin_with_its_text() -> None:
    more = {"type": "text_delta", "text": "lo"}
    turn, streamed = await claude(*block({"type": "text", "text": "Hel"}, more))

    assert turn.response.text == "Hello"
    assert "".join(event.delta.text or "" for event in streamed) == "Hello"


async def test_a_block_may_begin_with_its_thought_and_signature() -> None:
    start = {"type": "thinking", "thinking": "hm", "signature": "s=="}
    turn, streamed = await claude(*block(start))

    assert turn.response.reasoning == (ReasoningBlock(text="hm"),)
    assert turn.response.metadata["anthropic"]["layout"] == [
        {"type": "thinking", "signature": "s=="}
    ]
    assert [event.type for event in streamed if event.delta.text] == ["reasoning_delta"]


async def test_a_call_may_come_whole_and_without_an_id() -> None:
    start = {"type": "tool_use", "name": "t", "input": {"a": 1}}
    second = [event | {"index": 1} for event in block(start)]
    turn, streamed = await claude(*block(start), *second, tools=[TOOL])

    calls = turn.response.tool_calls
    assert [call.arguments for call in calls] == [{"a": 1}] * 2
    assert len({call.tool_call_id for call in calls}) == 2
    assert all(call.tool_call_id for call in calls)
    argument_texts = [
        event.delta.arguments_json for event in streamed if event.type == "tool_call_delta"
    ]
    assert argument_texts == ['{"a":1}'] * 2


async def test_the_pieces_of_a_call_count_more_than_its_beginning() -> None:
    start = {"type": "tool_use", "id": "c1", "name": "t", "input": {"a": 1}}
    piece = {"type": "input_json_delta", "partial_json": '{"a": 2}'}
    turn, _ = await claude(*block(start, piece), tools=[TOOL])

    assert turn.response.tool_calls[0].arguments == {"a": 2}


async def test_unknown_events_are_passed_over() -> None:
    notice = {"type": "notice", "message": "hello", "delta": "x", "usage": 7}
    stop_of_nothing = {"type": "content_block_stop", "index": 5}
    turn, _ = await claude(notice, stop_of_nothing, *block({"type": "text", "text": "ok"}))

    assert turn.response.text == "ok"


async def test_an_event_that_is_known_and_makes_no_sense_is_an_error() -> None:
    with pytest.raises(UPPError, match="invalid piece of an answer") as caught:
        await claude({"type": "message_delta", "delta": 7})

    assert caught.value.code == ErrorCode.INVALID_RESPONSE


async def test_the_reason_to_stop_says_that_a_message_is_whole() -> None:
    body = events(BEGIN, *block({"type": "text", "text": "ok"}), REASON)
    turn, _ = await received(AnthropicProvider, body)

    assert (turn.response.text, turn.usage.input_tokens) == ("ok", 3)


async def test_an_overload_in_the_middle_is_a_provider_error() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    with pytest.raises(UPPError, match="Overloaded") as caught:
        await claude(*block({"type": "text", "text": "ok"}), error)

    assert caught.value.code == ErrorCode.PROVIDER_ERROR


async def test_counts_and_members_may_be_null() -> None:
    usage = {"promptTokenCount": 3, "candidatesTokenCount": None, "thoughtsTokenCount": 2}
    part = {"text": "a", "thought": None}
    candidate = {"content": {"parts": [part]}, "finishReason": "STOP"}
    piece = data({"candidates": [candidate], "usageMetadata": usage})
    turn, _ = await received(GoogleProvider, piece)

    assert turn.response.text == "a"
    assert turn.usage == TokenUsage(
        input_tokens=3, output_tokens=2, total_tokens=5, reasoning_tokens=2
    )

"""A conversation that one keeps."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from tests.upp.text_scripts import three_words
from upp import (
    AssistantMessage,
    BytesSource,
    ImageBlock,
    TextBlock,
    Thread,
    TokenUsage,
    ToolResult,
    ToolResultMessage,
    Turn,
    UserMessage,
    llm,
)
from upp.providers.scripted import ScriptedModel

AT = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)


def test_a_thread_keeps_messages_in_order() -> None:
    thread = Thread(updated_at=AT).user("hi").assistant("ho").user((TextBlock(text="on"),))
    assert [message.text for message in thread] == ["hi", "ho", "on"]
    assert len(thread) == 3
    assert isinstance(thread.messages[1], AssistantMessage)
    assert thread.updated_at > AT
    assert len(thread.clear()) == 0


def test_two_threads_share_nothing() -> None:
    one, two = Thread().user("a"), Thread()
    assert (len(one), len(two)) == (1, 0)
    assert one.id != two.id


async def test_a_thread_is_a_history_and_takes_turns() -> None:
    thread = Thread().user("before").assistant((TextBlock(text="yes"),))
    turn = await llm(model=ScriptedModel(script=three_words)).generate(thread, "now")
    assert [message.text for message in thread.append(turn)] == ["before", "yes", "now", "abc"]


def test_a_thread_survives_json_with_times_ids_and_bytes() -> None:
    thread = Thread(id="t1", created_at=AT, updated_at=AT)
    image = ImageBlock(source=BytesSource(data=b"\x00\xff"), mime_type="image/png")
    message = UserMessage(id="m1", timestamp=AT, content=(image,), metadata={"other": {"a": 1}})
    results = ToolResultMessage(
        id="m2", timestamp=AT, results=(ToolResult(tool_call_id="c", result=[1]),)
    )
    thread.messages += [message, results]
    shape = thread.to_json()
    assert shape == {
        "id": "t1",
        "createdAt": "2026-01-02T03:04:05.678000Z",
        "updatedAt": "2026-01-02T03:04:05.678000Z",
        "messages": [
            {
                "type": "user",
                "id": "m1",
                "timestamp": "2026-01-02T03:04:05.678000Z",
                "metadata": {"other": {"a": 1}},
                "content": [
                    {
                        "type": "image",
                        "source": {"type": "bytes", "data": "AP8="},
                        "mimeType": "image/png",
                    }
                ],
            },
            {
                "type": "tool_result",
                "id": "m2",
                "timestamp": "2026-01-02T03:04:05.678000Z",
                "content": [],
                "results": [{"toolCallId": "c", "result": [1]}],
            },
        ],
    }
    assert Thread.from_json(shape) == thread
    del shape["messages"][1]["content"]
    assert Thread.from_json(shape) == thread


def test_an_invalid_thread_is_refused_with_the_place_of_the_error() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"\$\.messages\[0\]"):
        Thread.from_json({"messages": [{"type": "user", "content": 1}]})


def test_a_turn_without_response_has_its_last_answer() -> None:
    first, last = (AssistantMessage(content=(TextBlock(text=text),)) for text in "ab")
    turn = Turn(
        messages=(first, UserMessage(content=()), last),
        response=last,
        tool_executions=(),
        usage=TokenUsage(input_tokens=1),
        cycles=2,
        stop_reason="",
    )
    shape = turn.to_json()
    assert Turn.from_json(shape) == turn
    assert shape.pop("response")["content"] == [{"type": "text", "text": "b"}]
    del shape["stopReason"]
    assert Turn.from_json(shape) == turn


def test_a_turn_of_others_has_no_reason_to_stop() -> None:
    shape = {
        "messages": [],
        "response": {"id": "a", "type": "assistant", "timestamp": "2026-01-02T03:04:05Z"}
        | {"content": []},
        "toolExecutions": [],
        "usage": {},
        "cycles": 1,
    }
    turn = Turn.from_json(shape)
    assert (turn.response.id, turn.stop_reason) == ("a", "")


@pytest.mark.parametrize("shape", [{}, {"messages": []}, {"messages": 1}, {"messages": [1]}, [], 7])
def test_an_invalid_turn_is_refused(shape: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        Turn.from_json(shape)

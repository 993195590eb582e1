"""The table of events in docs/ag-ui.md: what it says is sent is sent, and the rest never is."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

import uamp
from gateway_app.ag_ui.messages import messages_snapshot
from gateway_app.ag_ui.read import RunInput
from gateway_app.ag_ui.write import RunWriter
from gateway_app.types.appended_text import TextReplacedError
from tests.gateway_app.ag_ui.runs import check_order
from uamp import events as ev
from uamp.digital_source import AI_MADE
from uamp.shared_state import VersionedState

PAGE = Path(__file__).parents[3] / "docs" / "ag-ui.md"
RUN = RunInput(thread_id="t1", run_id="r1")
# AG-UI 1.0 has these event types, and no others.
TYPES = {
    *("RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "STEP_STARTED", "STEP_FINISHED"),
    *(f"TEXT_MESSAGE_{part}" for part in ("START", "CONTENT", "END", "CHUNK")),
    *(f"TOOL_CALL_{part}" for part in ("START", "ARGS", "END", "CHUNK", "RESULT")),
    *("STATE_SNAPSHOT", "STATE_DELTA", "MESSAGES_SNAPSHOT"),
    *("ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA", "RAW", "CUSTOM"),
    *("REASONING_START", "REASONING_END", "REASONING_ENCRYPTED_VALUE"),
    *(f"REASONING_MESSAGE_{part}" for part in ("START", "CONTENT", "END", "CHUNK")),
    *("SUBAGENT_STARTED", "SUBAGENT_FINISHED", "SUBAGENT_ERROR"),
}


def rows() -> dict[str, bool]:
    """Return the event types of the page, and whether they are sent."""
    table = PAGE.read_text().partition("## Events")[2].partition("\n## ")[0]
    sent_by_name: dict[str, bool] = {}
    for names, note in re.findall(r"^\| (`.*?) \| (.*) \|$", table, re.MULTILINE):
        for name in re.findall(r"`(\w+)`", names):
            assert name not in sent_by_name
            sent_by_name[name] = not note.startswith("never: ")
    return sent_by_name


def text(piece: str, offset: int | None = None) -> ev.ResponseDelta:
    return uamp.text_delta("resp_1", piece, offset)


def delta_event(**delta: Any) -> ev.ResponseDelta:
    (kind,) = delta
    return ev.ResponseDelta(response_id="resp_1", delta=ev.Delta(type=kind, **delta))


def call(id_: str, name: str = "search", arguments: str = "{}") -> ev.ResponseDelta:
    return delta_event(tool_call=uamp.ToolCallData(id=id_, name=name, arguments=arguments))


def result(id_: str, *, is_error: bool = False) -> ev.ResponseDelta:
    return delta_event(
        tool_result=uamp.ToolResultData(call_id=id_, result="found", is_error=is_error)
    )


def step(stage: str) -> ev.Progress:
    return ev.Progress(target="response", message="look", stage=stage, response_id="resp_1")


def done(**members: Any) -> ev.ResponseDone:
    output = ev.ResponseOutput(id="resp_1", status="completed", **members)
    return ev.ResponseDone(response_id="resp_1", response=output, signature="a.b.c")


def events_of_run(*events: uamp.Event, state: VersionedState | None = None) -> list[dict[str, Any]]:
    """Return the events of a run of these events, whose order is checked."""
    writer = RunWriter(RUN)
    frames = list(writer.begin(state or VersionedState()))
    frames += [frame for event in events for frame in writer.feed(event)]
    check_order(frames)
    return frames


ANSWER = (
    ev.Thinking(response_id="resp_1", content="Let me ", is_delta=True),
    ev.Thinking(response_id="resp_1", content="see.", is_delta=True),
    step("in_progress"),
    text("I look. ", 0),
    call("call_1"),
    ev.Progress(target="tool", target_id="call_1", percent=50, response_id="resp_1"),
    delta_event(tool_progress=ev.ToolProgress(call_id="call_1", text="half")),
    result("call_1"),
    ev.StateUpdated(chat_id="c", version=4, patch=({"op": "remove", "path": "/a"},)),
    call("call_2", "delegate", '{"agent": "darkroom"}'),
    result("call_2"),
    call("call_3", "delegate", "{"),
    result("call_3", is_error=True),
    step("completed"),
    delta_event(image=uamp.MediaUrl(url="/api/content/1")),
    text("There it is.", 8),
)
FAILED = ev.ResponseError(
    response_id="resp_1", error=ev.ErrorDetail(code="provider_error", message="No.")
)


def test_the_page_has_each_event_of_the_protocol_once() -> None:
    assert set(rows()) == TYPES


def test_what_the_page_says_is_sent_is_sent_and_nothing_else() -> None:
    state = VersionedState(value={"a": 1}, version=3)
    frames = [*events_of_run(*ANSWER, done(), state=state), *events_of_run(*ANSWER[:5], FAILED)]
    frames.append(messages_snapshot([], RUN, link=str))

    assert {event["type"] for event in frames} == {
        name for name, is_sent in rows().items() if is_sent
    }


def test_the_end_has_the_signature_the_cost_and_the_tokens() -> None:
    used = uamp.UsageStats(
        input_tokens=10,
        output_tokens=5,
        total_tokens=15,
        cached_tokens=4,
        cache_write_tokens=1,
        cost=uamp.Cost(total_cost=0.25, currency="USD"),
    )
    end = events_of_run(text("hello"), done(usage=used))[-1]

    assert end["metadata"] == {
        "responseId": "resp_1",
        "digitalSourceType": AI_MADE,
        "signature": "a.b.c",
        "cost": {"total_cost": 0.25, "currency": "USD"},
    }
    assert end["usage"] == [
        {
            "inputTokens": 10,
            "outputTokens": 5,
            "totalTokens": 15,
            "cachedInputTokens": 4,
            "cacheWriteInputTokens": 1,
        }
    ]


def test_calls_that_were_not_sent_come_with_the_end() -> None:
    output = (
        uamp.ToolCallContent(tool_call=uamp.ToolCallData(id="call_1", name="a", arguments="{}")),
        uamp.ToolResultContent(tool_result=uamp.ToolResultData(call_id="call_1", result="x")),
    )
    frames = events_of_run(text("hello"), done(output=output))
    again = events_of_run(call("call_1"), result("call_1"), done(output=output))

    for events in (frames, again):
        kinds = [event["type"] for event in events]
        assert kinds.count("TOOL_CALL_START") == kinds.count("TOOL_CALL_RESULT") == 1


def test_a_state_that_was_already_sent_is_not_a_change() -> None:
    state = VersionedState(value={"a": 1}, version=4)
    frames = events_of_run(*ANSWER, done(), state=state)

    assert "STATE_DELTA" not in {event["type"] for event in frames}


def test_text_that_was_sent_cannot_be_replaced_by_other_text() -> None:
    writer = RunWriter(RUN)
    list(writer.feed(text("hello", 0)))

    assert [event["delta"] for event in writer.feed(text("hello you", 0))] == [" you"]
    with pytest.raises(TextReplacedError):
        list(writer.feed(text("other", 0)))


def test_all_thoughts_so_far_are_only_sent_as_far_as_they_are_new() -> None:
    def all_thoughts(thought: str) -> ev.Thinking:
        return ev.Thinking(response_id="resp_1", content=thought)

    frames = events_of_run(
        ev.Thinking(response_id="resp_1", content="one", is_delta=True),
        text("a"),
        all_thoughts("one\n\ntwo"),
        all_thoughts("one\n\ntwo"),
        done(),
    )

    thoughts = [frame["delta"] for frame in frames if frame["type"] == "REASONING_MESSAGE_CONTENT"]
    assert thoughts == ["one", "two"]


def test_a_snapshot_has_the_messages_that_a_client_makes_of_the_events() -> None:
    builder = uamp.OutputBuilder()
    for event in ANSWER:
        builder.add(event)
    message = ev.ChatMessage(
        id="msg_1",
        role="assistant",
        content_items=tuple(builder.output),
        created_at=0,
        response_id="resp_1",
        name="worker",
    )
    question = ev.ChatMessage(
        id="msg_0",
        role="user",
        content="look",
        created_at=0,
        content_items=(
            uamp.TextContent(text="look"),
            uamp.ImageContent(image=uamp.MediaUrl(url="/api/content/1")),
            uamp.ImageContent(image="AAAA"),
        ),
    )

    snapshot = messages_snapshot([question, message], RUN, link=lambda url: f"https://here{url}")

    first, *answer = snapshot["messages"]
    assert first["content"][1]["source"] == {"type": "url", "value": "https://here/api/content/1"}
    assert first["content"][2]["type"] == "text"
    live = [
        e["messageId"]
        for e in events_of_run(*ANSWER, done())
        if e["type"].endswith("MESSAGE_START")
    ]
    assert [entry["id"] for entry in answer if entry["role"] in {"reasoning", "assistant"}] == [
        *live[:2],
        "call_2",
        "call_3",
        live[2],
    ]
    assert answer[1]["toolCalls"][0]["function"] == {"name": "search", "arguments": "{}"}
    assert [entry["toolCallId"] for entry in answer if entry["role"] == "tool"] == [
        "call_1",
        "call_2",
        "call_3",
    ]
    assert msgspec.json.encode(snapshot)

"""Results of client tools."""

import json

import pytest
from pytest_django import Settings

from sessions_app.models import ToolCall
from tests.client import Frame, output_text
from tests.live_server import Dial, Person, counted_rows
from tests.sessions_app.turn.searching import SEARCH


def test_calls_at_once_are_answered_in_any_order(dial: Dial, alice: Person) -> None:
    """Two sessions wait at once, and each answer finds its own call."""
    client = dial(alice)
    ids = [
        client.create_session(agent="tool-user", session={"tools": [SEARCH]})["session_id"]
        for _ in range(2)
    ]
    calls: list[Frame] = []
    for session_id in ids:
        client.ask(f"for {session_id}", session_id=session_id)
    while len(calls) < 2:
        frame = client.receive()
        if frame["type"] == "tool.call":
            calls.append(frame)
    for call in reversed(calls):
        client.send(
            "tool.result",
            session_id=call["session_id"],
            call_id=call["call_id"],
            result=call["arguments"],
        )
    frames = [*client.until("response.done"), *client.until("response.done")]
    for done in (f for f in frames if f["type"] == "response.done"):
        assert f"for {done['session_id']}" in output_text(done)


def test_a_tool_that_failed_is_reported_to_the_agent(dial: Dial) -> None:
    client = dial()
    client.create_session(agent="tool-user", session={"tools": [SEARCH]})
    client.ask("Hello")
    call = client.expect("response.created", "tool.call")
    client.send("tool.result", call_id=call["call_id"], result="no network", is_error=True)
    done = client.until("response.done")[-1]
    assert output_text(done) == "The tool failed: no network"
    row = ToolCall.objects.get()
    assert (row.status, row.is_error, row.result) == ("failed", True, "no network")


def test_a_tool_result_counts_once(dial: Dial) -> None:
    client = dial()
    client.create_session(agent="tool-user", session={"tools": [SEARCH]})
    client.ask("Hello")
    call = client.expect("response.created", "tool.call")
    client.send("tool.result", call_id=call["call_id"], result="1")
    client.until("response.done")
    before = counted_rows()
    client.send("tool.result", call_id=call["call_id"], result="1")
    assert client.settle() == []
    client.send("tool.result", call_id=call["call_id"], result="2")
    assert client.expect("session.error")["error"]["code"] == "unknown_call"
    assert counted_rows() == before
    assert ToolCall.objects.get().result == "1"


def test_a_call_of_another_person_cannot_be_answered(dial: Dial, mallory: Person) -> None:
    client, stranger = dial(), dial(mallory)
    client.create_session(agent="tool-user", session={"tools": [SEARCH]})
    client.ask("Hello")
    call = client.expect("response.created", "tool.call")
    stranger.create_session(agent="tool-user", session={"tools": [SEARCH]})
    stranger.send("tool.result", call_id=call["call_id"], result="forged")
    assert stranger.expect("session.error")["error"]["code"] == "unknown_call"
    assert ToolCall.objects.get().status == "waiting"


@pytest.fixture
def impatient(settings: Settings) -> None:
    """Let tools answer at once, or not at all; the sweeper looks often."""
    settings.UAMP_TOOL_WAIT_SECONDS = 0.1
    settings.UAMP_SWEEP_SECONDS = 0.1


def test_a_tool_that_never_answers_ends_at_its_deadline(impatient: None, dial: Dial) -> None:
    client = dial()
    client.create_session(agent="tool-user", session={"tools": [SEARCH]})
    client.ask("Hello")
    client.expect("response.created", "tool.call")
    done = client.until("response.done")[-1]
    assert output_text(done) == "The tool failed: The tool did not answer in time."


def test_a_waiting_response_can_be_cancelled(dial: Dial) -> None:
    client = dial()
    client.create_session(agent="tool-user", session={"tools": [SEARCH]})
    client.ask("Hello")
    call = client.expect("response.created", "tool.call")
    client.send("response.cancel")
    client.until("response.cancelled")
    assert ToolCall.objects.get().status == "cancelled"
    client.send("tool.result", call_id=call["call_id"], result="late")
    assert client.expect("session.error")["error"]["code"] == "unknown_call"


def test_a_structured_tool_result_keeps_its_content_items(dial: Dial, alice: Person) -> None:
    client = dial(alice)
    client.create_session(agent="tool-user", session={"tools": [SEARCH]})
    client.ask("Hello")
    call = client.expect("response.created", "tool.call")
    items = [{"type": "text", "text": "seen"}]
    client.send(
        "tool.result", call_id=call["call_id"], result=json.dumps({"a": 1}), content_items=items
    )
    output = client.until("response.done")[-1]["response"]["output"]
    assert [item["type"] for item in output] == ["tool_call", "tool_result", "text"]
    assert output[0]["tool_call"]["id"] == output[1]["tool_result"]["call_id"] == call["call_id"]
    assert output[1]["tool_result"]["content_items"] == items

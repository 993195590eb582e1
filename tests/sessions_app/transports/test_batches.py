"""Batches: UAMP in one request (§13.2)."""

import json

import httpx
import pytest

from sessions_app.models import Response
from tests.client import new_event, open_stream, output_text, text_of
from tests.sessions_app.transports.http_requests import post
from tests.sessions_app.transports.turns import SEARCH, WORDS, batch, turn


def test_a_batch_is_answered_by_a_batch(web: httpx.Client) -> None:
    frames = batch(web, *turn(WORDS, agent="echo"))
    types = [frame["type"] for frame in frames]
    assert types[:3] == ["session.created", "capabilities", "response.created"]
    assert types[-1] == "response.done"
    assert text_of(frames) == output_text(frames[-1]) == WORDS


def test_an_error_in_a_batch_is_an_event_of_it(web: httpx.Client) -> None:
    frames = batch(
        web,
        new_event("input.text", text="too early"),
        *turn(WORDS, agent="echo"),
        new_event("response.cancel", response_id="resp_unknown"),
    )
    errors = [frame["error"]["code"] for frame in frames if frame["type"] == "session.error"]
    assert errors == ["session_required", "nothing_to_cancel"]
    assert text_of(frames) == WORDS


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"[{]", "invalid_json"),
        (b'"ping"', "invalid_event"),
        (b"[1]", "invalid_event"),
        (json.dumps([{"type": "ping"}] * 101).encode(), "too_many_items"),
        (b'[{"type": "ping", "type": "ping"}]', "duplicate_key"),
        (b'[{"type": "input.text", "session_id": "sess_x", "text": "x"}]', "unknown_session"),
    ],
)
def test_a_batch_that_cannot_be_read_is_a_problem(
    web: httpx.Client, body: bytes, code: str
) -> None:
    answer = web.post("/uamp", content=body)
    assert answer.json()["code"] == code
    assert answer.status_code == (404 if code == "unknown_session" else 400)


def test_a_client_tool_is_answered_by_a_second_batch(web: httpx.Client) -> None:
    first = batch(web, *turn("Paris", agent="tool-user", session={"tools": [SEARCH]}))
    call = first[-1]
    assert call["type"] == "tool.call"
    second = batch(
        web,
        new_event(
            "tool.result", session_id=call["session_id"], call_id=call["call_id"], result="22"
        ),
    )
    assert second[-1]["response_id"] == call["response_id"]
    assert output_text(second[-1]) == "The tool answered: 22"
    assert Response.objects.count() == 1


def test_a_streamed_batch_ends_with_done(web: httpx.Client) -> None:
    with open_stream(web, "POST", "/uamp/stream", json=turn(WORDS, agent="echo")) as stream:
        events = [event.data for event in stream]
        assert stream.response.headers["X-Accel-Buffering"] == "no"
    assert events[-1] == "[DONE]"
    assert events[-2]["type"] == "response.done"
    assert text_of(events[:-1]) == WORDS


def test_the_paths_of_an_agent_name_it(web: httpx.Client) -> None:
    frames = batch(web, *turn(WORDS), path="/agents/echo/uamp")
    assert frames[0]["agent"] == "echo"
    assert text_of(frames) == WORDS
    answer = post(web, "session.create", path="/agents/echo/events", session={})
    assert answer.json()["events"][0]["agent"] == "echo"
    with open_stream(web, "POST", "/agents/echo/uamp/stream", json=turn(WORDS)) as stream:
        assert next(iter(stream)).data["agent"] == "echo"

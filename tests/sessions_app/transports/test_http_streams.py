"""HTTP + SSE: UAMP without a socket (§13.2)."""

from typing import Any

import httpx
import pytest
from pytest_django import Settings

from sessions_app.models import PendingInput
from sessions_app.transports import http_exchange as lines
from tests.client import SseEvent, new_event, output_text, text_of
from tests.live_server import Person, counted_rows, quick_agent
from tests.sessions_app.transports.http_requests import opened, post, stream_of
from tests.sessions_app.transports.turns import WORDS


def test_a_turn_by_http_and_sse(web: httpx.Client) -> None:
    answer = post(web, "session.create", session={}, agent="echo")
    assert answer.status_code == 202
    session_id = answer.headers["X-Session-ID"]
    created, capabilities = answer.json()["events"]
    assert answer.json()["session_id"] == created["session_id"] == session_id
    assert (created["type"], capabilities["type"]) == ("session.created", "capabilities")
    with stream_of(web, session_id) as stream:
        events = iter(stream)
        assert [next(events).data["type"] for _ in range(2)] == ["session.created", "capabilities"]
        for type_, fields in (("input.text", {"text": WORDS}), ("response.create", {})):
            response = post(web, type_, session_id, **fields)
            assert (response.status_code, response.json()["events"]) == (202, [])
        frames: list[SseEvent] = []
        while not frames or frames[-1].data["type"] != "response.done":
            frames.append(next(events))
    data = [frame.data for frame in frames]
    assert data[0]["type"] == "response.created"
    assert text_of(data) == output_text(data[-1]) == WORDS
    assert {frame["session_id"] for frame in data} == {session_id}
    ids_by_type = {frame.data["type"]: frame.id for frame in frames if frame.id}
    epoch, seq = created["epoch"], data[-1]["seq"]
    assert ids_by_type == {
        "response.created": f"{epoch}:{seq - 1}",
        "response.done": f"{epoch}:{seq}",
    }


def test_a_stream_may_not_be_held_back(web: httpx.Client) -> None:
    with stream_of(web, opened(web, agent="echo")) as stream:
        headers = stream.response.headers
        assert headers["Content-Type"] == "text/event-stream"
        assert headers["Cache-Control"] == "no-cache, no-transform"
        assert headers["X-Accel-Buffering"] == "no"
        assert "Content-Length" not in headers


def test_a_quiet_stream_shows_that_it_lives(
    web: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "HEARTBEAT_SECONDS", 0.05)
    quick_agent("pausing", "echo", delay=0.15)
    session_id = opened(web, agent="pausing")
    with stream_of(web, session_id) as stream:
        post(web, "input.text", session_id, text="one two three")
        post(web, "response.create", session_id)
        stream.until("response.done")
        assert stream.comments[0] == "stream open"
        assert stream.comments.count("keep-alive") >= 3


def test_a_stream_resumes_after_the_last_event_id(web: httpx.Client) -> None:
    session_id = opened(web, agent="echo")
    post(web, "input.text", session_id, text=WORDS)
    post(web, "response.create", session_id)
    with stream_of(web, session_id) as stream:
        events = stream.until("response.done")
    ids = {event.data["type"]: event.id for event in events}
    with stream_of(web, session_id, **{"Last-Event-ID": ids["response.created"]}) as stream:
        again = stream.until("response.done")
    assert "response.created" not in {event.data["type"] for event in again}
    assert again[-1].data == events[-1].data
    epoch = ids["response.created"].partition(":")[0]
    invalid = ("nonsense", epoch, ":5", f"{epoch}:", f"{epoch}:abc", f"{epoch}:-1")
    for unknown in ("00000000:1", f"{epoch}:{'9' * 5000}", *invalid):
        with stream_of(web, session_id, **{"Last-Event-ID": unknown}) as stream:
            assert stream.until("session.error")[-1].data["error"]["code"] == "resync"


def test_answers_are_received_on_the_stream_too(web: httpx.Client) -> None:
    session_id = opened(web, agent="echo")
    with stream_of(web, session_id) as stream:
        stream.until("capabilities")
        answer = post(web, "capabilities.query", session_id).json()["events"]
        assert stream.until("capabilities")[-1].data == answer[0]


PROBLEMS = [
    (401, "unauthorized", "session.create", {"session": {}, "token": "uak_wrong"}),
    (404, "agent_not_found", "session.create", {"session": {}, "agent": "missing"}),
    (404, "chat_not_found", "session.create", {"session": {}, "chat": "chat_unknown"}),
    (400, "invalid_event", "input.text", {}),
    (400, "session_required", "input.text", {"text": "x"}),
    (400, "version_mismatch", "session.create", {"uamp_version": "2.0", "session": {}}),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("status", "code", "type_", "fields"), PROBLEMS)
def test_an_error_is_a_problem_document(
    web: httpx.Client, status: int, code: str, type_: str, fields: dict[str, Any]
) -> None:
    before = counted_rows()
    answer = post(web, type_, **fields)
    problem = answer.json()
    assert answer.status_code == problem["status"] == status
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert problem["code"] == problem["event"]["error"]["code"] == code
    assert problem["type"] == f"/docs/problems#{code}"
    assert problem["detail"] == problem["event"]["error"]["message"]
    assert counted_rows() == before


def test_errors_of_a_session_by_http(web: httpx.Client, settings: Settings) -> None:
    session_id = opened(web, agent="echo")
    cancel = post(web, "response.cancel", session_id)
    assert (cancel.status_code, cancel.json()["code"]) == (409, "nothing_to_cancel")
    result = post(web, "tool.result", session_id, call_id="c", result="1")
    assert (result.status_code, result.json()["code"]) == (404, "unknown_call")
    settings.UAMP_ANONYMOUS_RESPONSES_PER_MINUTE = 1
    post(web, "input.text", session_id, text="x")
    post(web, "response.create", session_id)
    limited = post(web, "response.create", session_id)
    assert (limited.status_code, limited.json()["code"]) == (429, "rate_limited")
    assert 1 <= int(limited.headers["Retry-After"]) <= 61


def test_a_session_of_another_person_is_not_found_by_http(
    web: httpx.Client, alice: Person, mallory: Person
) -> None:
    created = web.post(
        "/events", json=new_event("session.create", session={}), headers=alice.headers
    )
    ids = [created.headers["X-Session-ID"], "sess_unknown"]
    for headers in (mallory.headers, {}):
        reported = []
        for session_id in ids:
            all_headers = {**headers, "X-Session-ID": session_id}
            event = new_event("input.text", text="x")
            answer = web.post("/events", json=event, headers=all_headers)
            streamed = web.get("/events/stream", headers=all_headers)
            assert (answer.status_code, streamed.status_code) == (404, 404)
            reported.append(answer.json()["detail"] + streamed.json()["detail"])
        assert reported[0] == reported[1]


def test_an_input_that_is_sent_twice_counts_once(web: httpx.Client) -> None:
    session_id = opened(web, agent="echo")
    headers = {"X-Session-ID": session_id}
    event = new_event("input.text", text="Hello")
    for _ in range(2):
        assert web.post("/events", json=event, headers=headers).status_code == 202
    other = web.post("/events", json={**event, "text": "Other"}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (409, "event_id_conflict")
    post(web, "response.create", session_id)
    with stream_of(web, session_id) as stream:
        assert output_text(stream.until("response.done")[-1].data) == "Hello"


def test_an_input_of_a_turn_is_not_repeated_in_the_next_one(web: httpx.Client) -> None:
    session_id = opened(web, agent="echo")
    headers = {"X-Session-ID": session_id}
    event = new_event("input.text", text="Hello", timestamp=1)
    create_event = new_event("response.create")

    def send(client_event: dict[str, Any]) -> httpx.Response:
        return web.post("/events", json=client_event, headers=headers)

    # A client that was cut off sends the same again, at another time.
    for at in (1, 2):
        assert send({**event, "timestamp": at}).status_code == 202
    assert send(create_event).status_code == 202
    assert send({**event, "timestamp": 3}).status_code == 202
    other = send({**event, "text": "Other"})
    assert (other.status_code, other.json()["code"]) == (409, "event_id_conflict")
    assert not PendingInput.objects.exists()
    # Its turn is not sent again: the client saw that it began.
    send(new_event("input.text", text="Bye"))
    assert send(new_event("response.create")).status_code == 202
    with stream_of(web, session_id) as stream:
        answers = [output_text(stream.until("response.done")[-1].data) for _ in range(2)]
    assert answers == ["Hello", "Bye"]


def test_a_wrong_method_is_reported(web: httpx.Client) -> None:
    for method, path in (("GET", "/events"), ("POST", "/events/stream"), ("GET", "/uamp/stream")):
        answer = web.request(method, path)
        assert answer.status_code == 405
        takes = "POST" if method == "GET" else "GET"
        assert answer.headers["Allow"] == takes
        problem = answer.json()
        assert (problem["code"], problem["status"]) == ("method_not_allowed", 405)
        assert problem["detail"].startswith(f"This path takes {takes}, not {method}.")
        assert problem["instance"] == path
    for path in ("/uamp", "/agents/echo/uamp"):
        assert "WebSocket" in web.get(path).json()["detail"]

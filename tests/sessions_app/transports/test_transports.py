"""UAMP without a socket (§13.2, batches), and which clients each transport admits."""

import json
import threading
from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.conf import settings as django_settings
from django.test import Client
from django.utils import timezone
from pytest_django import Settings
from websockets.exceptions import InvalidStatus

from sessions_app.models import ApiKey, PendingInput, Response, Session
from sessions_app.transports import http_exchange as lines
from tests.client import (
    Frame,
    SseEvent,
    new_event,
    open_stream,
    output_text,
    text_of,
)
from tests.conftest import ServerAddress
from tests.live_server import Dial, Person, counted_rows, quick_agent
from tests.sessions_app.transports.http_requests import opened, post, stream_of
from tests.threads import join_threads

WORDS = "one two three four five"
SEARCH = {"type": "function", "function": {"name": "search"}}


# --- HTTP + SSE ---


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
            sent = post(web, type_, session_id, **fields)
            assert (sent.status_code, sent.json()["events"]) == (202, [])
        frames: list[SseEvent] = []
        while not frames or frames[-1].data["type"] != "response.done":
            frames.append(next(events))
    data = [frame.data for frame in frames]
    assert data[0]["type"] == "response.created"
    assert text_of(data) == output_text(data[-1]) == WORDS
    assert {frame["session_id"] for frame in data} == {session_id}
    numbered = {frame.data["type"]: frame.id for frame in frames if frame.id}
    epoch, seq = created["epoch"], data[-1]["seq"]
    assert numbered == {"response.created": f"{epoch}:{seq - 1}", "response.done": f"{epoch}:{seq}"}


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


def test_a_stream_goes_on_from_the_last_event_id(web: httpx.Client) -> None:
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
            shown = {**headers, "X-Session-ID": session_id}
            event = new_event("input.text", text="x")
            sent = web.post("/events", json=event, headers=shown)
            streamed = web.get("/events/stream", headers=shown)
            assert (sent.status_code, streamed.status_code) == (404, 404)
            reported.append(sent.json()["detail"] + streamed.json()["detail"])
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


def test_an_input_that_a_turn_took_is_not_said_in_the_next_one(web: httpx.Client) -> None:
    session_id = opened(web, agent="echo")
    headers = {"X-Session-ID": session_id}
    event = new_event("input.text", text="Hello", timestamp=1)
    asked = new_event("response.create")

    def send(one: dict[str, Any]) -> httpx.Response:
        return web.post("/events", json=one, headers=headers)

    # A client that was cut off sends the same again, at another time.
    for at in (1, 2):
        assert send({**event, "timestamp": at}).status_code == 202
    assert send(asked).status_code == 202
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


def test_the_wrong_method_is_said(web: httpx.Client) -> None:
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


# --- Batches ---


def batch(web: httpx.Client, *events: Frame, path: str = "/uamp", **options: Any) -> list[Frame]:
    """Send an array of events and return the array that answers."""
    answer = web.post(path, json=events, **options)
    assert answer.status_code == 200, answer.text
    frames: list[Frame] = answer.json()
    return frames


def turn(text: str, **session: Any) -> tuple[Frame, Frame, Frame]:
    """Return the events of a session with one turn."""
    return (
        new_event("session.create", uamp_version="1.0", **{"session": {}, **session}),
        new_event("input.text", text=text),
        new_event("response.create"),
    )


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


# --- Who enters ---


@pytest.mark.parametrize(
    "place",
    [
        "Authorization",
        "X-API-Key",
        "?token=",
        "session.create.token",
        "session.token",
        "extensions",
    ],
)
def test_a_key_is_taken_in_each_place(dial: Dial, alice: Person, place: str) -> None:
    headers: dict[str, str] = {}
    path, fields = "/uamp", {}
    session: dict[str, Any] = {}
    match place:
        case "Authorization":
            headers = {"Authorization": f"Bearer {alice.key}"}
        case "X-API-Key":
            headers = {"X-API-Key": alice.key}
        case "?token=":
            path = f"/uamp?token={alice.key}"
        case "session.create.token":
            fields = {"token": alice.key}
        case "session.token":
            session = {"token": alice.key}
        case _:
            session = {"extensions": {"Authorization": f"Bearer {alice.key}"}}
    client = dial(path=path, headers=headers)
    created = client.create_session(agent="echo", session=session, **fields)
    row = Session.objects.get()
    assert row.user == alice.user
    # A key is not sent again, and not kept.
    assert alice.key not in json.dumps(created) + json.dumps(row.config)


@pytest.mark.parametrize("path", ["/uamp", "/ws", "/agents/echo/uamp"])
def test_a_bad_key_does_not_open_a_socket(demo: ServerAddress, dial: Dial, path: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        dial(path=path, headers={"Authorization": "Bearer uak_00000000_guessed"})
    assert refused.value.response.status_code == 403


def test_a_bad_key_is_401_by_http(web: httpx.Client) -> None:
    for path, body in (("/events", {"type": "ping"}), ("/uamp", [{"type": "ping"}])):
        answer = web.post(path, json=body, headers={"Authorization": "Bearer guessed"})
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")


@pytest.mark.parametrize("end", ["expired", "revoked", "disabled"])
def test_a_key_that_has_ended_is_not_taken(web: httpx.Client, alice: Person, end: str) -> None:
    match end:
        case "expired":
            ApiKey.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        case "revoked":
            ApiKey.objects.update(revoked_at=timezone.now())
        case _:
            alice.user.is_active = False
            alice.user.save()
    answer = web.post("/uamp", json=[{"type": "ping"}], headers=alice.headers)
    assert answer.status_code == 401
    assert answer.json()["code"] == ("token_expired" if end == "expired" else "unauthorized")
    reported = "has expired" if end == "expired" else "or was revoked"
    assert reported in answer.json()["detail"]


def cookie_of(who: Person) -> str:
    """Sign in and return the cookie's value."""
    browser = Client()
    browser.force_login(who.user)
    value: str = browser.cookies[django_settings.SESSION_COOKIE_NAME].value
    return value


ORIGINS = {
    "http://{host}": "alice",
    None: "anonymous",
    "https://{host}": "refused",
    "http://{host}.evil.example": "refused",
    "http://evil.example": "refused",
    "http://127.0.0.1": "refused",
    "null": "refused",
}


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_cookie_counts_with_our_own_origin_only(
    demo: ServerAddress, dial: Dial, alice: Person, web: httpx.Client, origin: str | None
) -> None:
    headers = {"Cookie": f"{django_settings.SESSION_COOKIE_NAME}={cookie_of(alice)}"}
    if origin is not None:
        headers["Origin"] = origin.format(host=f"{demo.host}:{demo.port}")
    expected = ORIGINS[origin]
    by_http = web.post("/uamp", json=turn("x", agent="echo"), headers=headers)
    if expected == "refused":
        assert (by_http.status_code, by_http.json()["code"]) == (403, "forbidden")
        with pytest.raises(InvalidStatus) as refused:
            dial(headers=headers)
        assert refused.value.response.status_code == 403
        assert Session.objects.count() == 0
        return
    assert by_http.status_code == 200
    dial(headers=headers).create_session(agent="echo")
    users = {row.user for row in Session.objects.select_related("user")}
    assert users == {alice.user if expected == "alice" else None}


def test_a_trusted_origin_is_ours_too(dial: Dial, alice: Person, settings: Settings) -> None:
    settings.CSRF_TRUSTED_ORIGINS = ["https://app.example"]
    cookie = f"{django_settings.SESSION_COOKIE_NAME}={cookie_of(alice)}"
    dial(headers={"Cookie": cookie, "Origin": "https://app.example"}).create_session(agent="echo")
    assert Session.objects.get().user == alice.user


def test_a_host_that_is_not_ours_is_refused_with_its_own_origin(dial: Dial, alice: Person) -> None:
    """DNS rebinding: the page and the Host agree, but neither is this server."""
    cookie = f"{django_settings.SESSION_COOKIE_NAME}={cookie_of(alice)}"
    headers = {"Cookie": cookie, "Origin": "http://evil.example", "Host": "evil.example"}
    with pytest.raises(InvalidStatus):
        dial(headers=headers)


def test_a_visitor_may_send_less_at_once(dial: Dial, alice: Person) -> None:
    small = json.dumps(new_event("ping", filler="x" * (15 * 1024)))
    large = json.dumps(new_event("ping", filler="x" * (16 * 1024)))
    visitor, member = dial(), dial(alice)
    for client, frame in ((visitor, small), (member, small), (member, large)):
        client.send_raw(frame)
        client.expect("pong")
    visitor.send_raw(large)
    assert visitor.expect("session.error")["error"]["code"] == "frame_too_large"
    assert visitor.close_code() == 1009


def test_a_path_without_a_socket_refuses_one(dial: Dial) -> None:
    with pytest.raises(InvalidStatus):
        dial(path="/nothing/here")


def test_a_revoked_key_ends_its_open_sessions(dial: Dial, alice: Person) -> None:
    client = dial(alice)
    client.create_session(agent="echo")
    ApiKey.objects.update(revoked_at=timezone.now())
    assert client.until("session.error")[-1]["error"]["code"] == "unauthorized"
    assert client.close_code() == 4401


def test_many_sockets_at_once_each_get_their_own_answer(dial: Dial) -> None:
    clients = [dial() for _ in range(8)]
    for number, client in enumerate(clients):
        client.create_session(agent="echo")
        client.ask(f"number {number}")
    answers: dict[int, str] = {}

    def read(number: int) -> None:
        answers[number] = text_of(clients[number].until("response.done"))

    threads = [threading.Thread(target=read, args=(n,)) for n in range(len(clients))]
    for thread in threads:
        thread.start()
    join_threads(threads)
    assert answers == {number: f"number {number}" for number in range(len(clients))}

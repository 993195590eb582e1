"""Rate limits for each kind of request, on every transport, in one table of counters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from chat_app.models import SharedState
from tests import factories
from tests.client import new_event
from tests.sessions_app.access.counted_requests import HEADERS, WINDOW_SECONDS, read
from tests.sessions_app.transports.http_requests import opened, post, stream_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_django import Settings

    from chat_app.models import Chat
    from tests.live_server import Dial, Person


def write(web: httpx.Client, who: Person) -> httpx.Response:
    return web.post("/api/v1/chats", json={"title": "A"}, headers=who.headers)


def upload(web: httpx.Client, who: Person) -> httpx.Response:
    return web.post("/api/v1/contents", files={"file": ("a.txt", b"text")}, headers=who.headers)


def set_picture(web: httpx.Client, who: Person) -> httpx.Response:
    picture = {"file": ("a.png", factories.png(), "image/png")}
    return web.put("/api/v1/me/picture", files=picture, headers=who.headers)


def render(web: httpx.Client, who: Person) -> httpx.Response:
    return web.post("/api/v1/render", json={"text": "*a*"}, headers=who.headers)


def discover(web: httpx.Client, who: Person) -> httpx.Response:
    return web.get("/capabilities", headers=who.headers)


def say(web: httpx.Client, who: Person) -> httpx.Response:
    return web.post("/events", json=new_event("ping"), headers=who.headers)


def say_in_a_batch(web: httpx.Client, who: Person) -> httpx.Response:
    return web.post("/uamp", json=[new_event("ping")], headers=who.headers)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("setting", "call", "code"),
    [
        ("READS", read, "rate_limit_exceeded"),
        ("WRITES", write, "rate_limit_exceeded"),
        ("UPLOADS", upload, "rate_limit_exceeded"),
        ("PICTURES", set_picture, "rate_limit_exceeded"),
        ("RENDERS", render, "rate_limit_exceeded"),
        ("DISCOVERY", discover, "rate_limit_exceeded"),
        ("REQUESTS", read, "rate_limit_exceeded"),
        ("REQUESTS", say, "rate_limited"),
        ("HTTP_EVENTS", say, "rate_limited"),
        ("HTTP_EVENTS", say_in_a_batch, "rate_limited"),
    ],
)
def test_each_kind_of_request_has_its_limit(
    web: httpx.Client,
    alice: Person,
    settings: Settings,
    setting: str,
    call: Callable[[httpx.Client, Person], httpx.Response],
    code: str,
) -> None:
    setattr(settings, f"UAMP_{setting}_PER_MINUTE", 2)
    passed = [call(web, alice) for _ in range(2)]
    refused = call(web, alice)

    assert all(answer.status_code < httpx.codes.BAD_REQUEST for answer in passed)
    assert (refused.status_code, refused.json()["code"]) == (429, code)
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert set(refused.headers) >= {name.lower() for name in HEADERS}
    assert (refused.headers["RateLimit-Limit"], refused.headers["RateLimit-Remaining"]) == (
        "2",
        "0",
    )
    assert 1 <= int(refused.headers["Retry-After"]) <= WINDOW_SECONDS
    assert refused.json()["retry_after"] == int(refused.headers["Retry-After"])
    if setting != "REQUESTS":
        left = [int(answer.headers["RateLimit-Remaining"]) for answer in passed]
        assert left == [1, 0]
    if code == "rate_limited":
        assert refused.json()["event"]["error"]["code"] == code


def test_limits_are_each_persons_own(
    web: httpx.Client, alice: Person, bob: Person, settings: Settings
) -> None:
    settings.UAMP_READS_PER_MINUTE = 1
    statuses = [read(web, who).status_code for who in (alice, alice, bob)]
    assert statuses == [200, 429, 200]


def test_a_batch_counts_as_many_events_as_it_has(web: httpx.Client, settings: Settings) -> None:
    settings.UAMP_ANONYMOUS_HTTP_EVENTS_PER_MINUTE = 5
    batch = [new_event("ping") for _ in range(6)]
    assert web.post("/uamp", json=batch).status_code == httpx.codes.TOO_MANY_REQUESTS
    assert web.post("/uamp", json=batch[:5]).status_code == httpx.codes.OK


def test_payments_are_counted(dial: Dial, alice: Person, settings: Settings) -> None:
    settings.UAMP_PAYMENTS_PER_MINUTE = 1
    client = dial(alice)
    client.create_session(agent="echo")
    payment = {"scheme": "token", "token": "ptok_unknown"}
    codes = []
    for _ in range(2):
        client.send("payment.submit", payment=payment)
        codes.append(client.until("response.error", "session.error", "error")[-1]["error"]["code"])

    assert codes == ["payment_not_due", "rate_limited"]

    # A token for the session pays a waiting response, so that it is a payment too.
    client.send("session.update", payment_token="ptok_unknown")
    assert client.until("session.error")[-1]["error"]["code"] == "rate_limited"


def test_call_events_are_counted(dial: Dial, alice: Person, settings: Settings) -> None:
    settings.UAMP_CALL_EVENTS_PER_MINUTE = 1
    client = dial(alice)
    client.create_session(agent="echo")
    client.send("voice.invite", call_id="call-1")
    assert client.until("voice.decline")[-1]["reason"] == "unsupported"
    client.send("voice.invite", call_id="call-2")
    assert client.until("session.error")[-1]["error"]["code"] == "rate_limited"


def test_changes_of_a_shared_state_are_counted(
    dial: Dial, alice: Person, settings: Settings
) -> None:
    settings.UAMP_WRITES_PER_MINUTE = 1
    client = dial(alice)
    client.create_session(agent="echo")
    client.send("state.update", state={"n": 1})
    assert client.until("state.updated")[-1]["version"] == 1
    client.send("state.update", state={"n": 2})
    assert client.until("session.error")[-1]["error"]["code"] == "rate_limited"
    assert list(SharedState.objects.values_list("version", flat=True)) == [1]


def test_every_transport_draws_on_the_same_limit(
    dial: Dial, web: httpx.Client, alice: Person, settings: Settings
) -> None:
    settings.UAMP_RESPONSES_PER_MINUTE = 2
    client = dial(alice)
    session_id = client.create_session(agent="echo")["session_id"]
    client.answer("one")
    by_http = {**alice.headers, "X-Session-ID": session_id}
    for event in (new_event("input.text", text="two"), new_event("response.create")):
        answer = web.post("/events", json=event, headers=by_http)
        assert answer.status_code == httpx.codes.ACCEPTED

    batch = [
        new_event("session.create", uamp_version="1.0", session={}, agent="echo"),
        new_event("input.text", text="three"),
        new_event("response.create"),
    ]
    answer = web.post("/uamp", json=batch, headers=alice.headers)
    reported = answer.json()
    assert answer.headers["Retry-After"] == str(reported[-1]["error"]["details"]["retry_after"])
    streamed = web.post("/uamp/stream", json=batch, headers=alice.headers)
    assert 1 <= int(streamed.headers["Retry-After"]) <= WINDOW_SECONDS

    by_type = {frame["type"]: frame for frame in reported}
    assert by_type["rate_limit"]["remaining"] == 0
    assert by_type["session.error"]["error"]["code"] == "rate_limited"
    assert "response.created" not in by_type
    client.until("response.done")  # what came by HTTP
    client.ask("four")
    assert client.until("session.error")[-1]["error"]["code"] == "rate_limited"


def test_messages_that_start_no_answer_count_as_none(
    web: httpx.Client, alice: Person, settings: Settings
) -> None:
    settings.UAMP_RESPONSES_PER_MINUTE = 2
    among_people = factories.chat(alice.user)
    with_agent = factories.chat(alice.user, factories.agent("answering"))

    def say(chat: Chat, **body: Any) -> httpx.Response:
        address = f"/api/v1/chats/{chat.pk}/messages"
        return web.post(address, json={"content": "Hello", **body}, headers=alice.headers)

    uncounted = [say(among_people) for _ in range(5)]
    uncounted += [say(with_agent, agents=[]) for _ in range(5)]
    counted = [say(with_agent) for _ in range(3)]
    uncounted.append(say(among_people))

    assert {answer.status_code for answer in uncounted} == {201}
    assert [answer.status_code for answer in counted] == [201, 201, 429]


def test_a_stream_receives_the_limit_that_a_request_met(
    web: httpx.Client, settings: Settings
) -> None:
    settings.UAMP_ANONYMOUS_RESPONSES_PER_MINUTE = 0
    session_id = opened(web, agent="echo")
    with stream_of(web, session_id) as stream:
        post(web, "input.text", session_id, text="x")
        refused = post(web, "response.create", session_id)
        reported = next(event.data for event in stream if event.data["type"] == "rate_limit")

    assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
    assert (reported["limit"], reported["remaining"]) == (0, 0)
    assert refused.headers["RateLimit-Limit"] == "0"


def test_a_handshake_above_the_limit_is_refused_by_http(dial: Dial, settings: Settings) -> None:
    settings.UAMP_REQUESTS_PER_MINUTE = 1
    dial().create_session(agent="echo")
    with pytest.raises(InvalidStatus) as refused:
        dial()

    response = refused.value.response
    assert response.status_code == httpx.codes.TOO_MANY_REQUESTS
    assert response.headers["Retry-After"]
    assert json.loads(response.body or b"")["code"] == "rate_limited"

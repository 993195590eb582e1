"""Stored data counts by its bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

from sessions_app.models import Session
from tests.client import new_event
from tests.sessions_app.access.counted_requests import DAY_SECONDS
from tests.sessions_app.transports.http_requests import opened, post

if TYPE_CHECKING:
    from pytest_django import Settings

    from tests.live_server import Dial, Person


def test_what_is_stored_as_text_is_counted_by_its_bytes(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, settings: Settings
) -> None:
    settings.UAMP_TEXT_BYTES_PER_DAY = 10_000
    client = dial(alice)
    client.create_session(agent="echo")
    client.answer("x" * 6000)
    client.ask("y" * 6000)
    *_, reported, refused = client.until("session.error")
    assert (reported["type"], reported["limit"]) == ("rate_limit", 10_000)
    assert refused["error"]["code"] == "rate_limited"
    assert refused["error"]["message"].startswith("At most 10000 bytes of text a day.")
    assert 1 <= refused["error"]["details"]["retry_after"] <= 2 * DAY_SECONDS
    # A history, a session's options and other transports draw on the same bytes.
    client.send("input.text", text="a")
    history = [{"role": "user", "content": "z" * 6000}]
    client.send("response.create", response={"messages": history})
    assert client.until("session.error")[-1]["error"]["code"] == "rate_limited"
    options = {"instructions": "i" * 6000}
    batch = [new_event("session.create", uamp_version="1.0", session=options, agent="echo")]
    answer = web.post("/uamp", json=batch, headers=alice.headers)
    assert answer.json()[-1]["error"]["code"] == "rate_limited"
    assert answer.headers["RateLimit-Policy"] == f"10000;w={DAY_SECONDS}"
    # A message that has room is taken, and others are not concerned.
    client.answer("v" * 500)
    other = dial(bob)
    other.create_session(agent="echo")
    other.answer("w" * 6000)


def test_changed_options_are_counted_for_each_session_that_stores_them(
    dial: Dial, alice: Person, settings: Settings
) -> None:
    settings.UAMP_TEXT_BYTES_PER_DAY = 10_000
    client = dial(alice)
    sessions = [client.create_session(agent="echo")["session_id"] for _ in range(2)]
    # Without a session_id it changes both: twice 6,000 bytes.
    client.send("session.update", session={"instructions": "i" * 6000})
    assert client.until("session.error")[-1]["error"]["code"] == "rate_limited"
    rows = Session.objects.filter(pk__in=sessions)
    assert [row.config.get("instructions") for row in rows] == [None, None]


def test_options_are_counted_each_time_that_they_are_stored(
    dial: Dial, alice: Person, settings: Settings
) -> None:
    settings.UAMP_TEXT_BYTES_PER_DAY = 10_000
    client = dial(alice)
    client.create_session(agent="echo")
    client.send("session.update", session={"instructions": "i" * 6000})
    client.until("session.updated")
    # The whole row is written again, however little of it changes.
    client.send("session.update", session={"modalities": ["text"]})
    assert client.until("session.error")[-1]["error"]["code"] == "rate_limited"
    # A token is no text.
    client.send("session.update", token=alice.key)
    client.until("session.updated")


def test_the_capabilities_of_a_client_are_counted_by_their_bytes(
    dial: Dial, alice: Person, settings: Settings
) -> None:
    settings.UAMP_TEXT_BYTES_PER_DAY = 10_000
    client = dial(alice)
    client.create_session(agent="echo")
    codes = []
    for letter in "ab":
        capabilities = {"extensions": {"x": letter * 6000}}
        client.send("client.capabilities", capabilities=capabilities)
        client.send("ping")
        codes.append(client.until("session.error", "pong")[-1]["type"])
    assert codes == ["pong", "session.error"]


def test_the_inputs_of_visitors_that_wait_over_http_are_counted(
    web: httpx.Client, settings: Settings
) -> None:
    settings.UAMP_ANONYMOUS_TEXT_BYTES_PER_DAY = 10_000
    codes = []
    for _ in range(3):
        session_id = opened(web, agent="echo")
        codes.append(post(web, "input.text", session_id, text="x" * 4000).status_code)
    assert codes == [202, 202, 429]


def test_a_body_counts_by_its_size_unless_it_is_stored_as_it_is(
    web: httpx.Client, alice: Person, settings: Settings
) -> None:
    settings.UAMP_REQUESTS_PER_MINUTE = 12
    large = b"[" + b"0," * 100_000 + b"0]"
    headers = {**alice.headers, "Content-Type": "application/json"}
    for content in (large, iter([large[:50_000], large[50_000:]])):
        refused = web.post("/v1/chat/completions", content=content, headers=headers)
        assert refused.status_code == httpx.codes.TOO_MANY_REQUESTS
        assert refused.headers["Retry-After"]
    small = web.post("/v1/chat/completions", content=large[:20_000], headers=headers)
    assert small.status_code == httpx.codes.BAD_REQUEST
    file = {"file": ("a.txt", large, "text/plain")}
    upload = web.post("/api/v1/contents", files=file, headers=alice.headers)
    assert upload.status_code == httpx.codes.CREATED

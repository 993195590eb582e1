"""Rate limits: one table of counters for sockets, HTTP transports, REST and discovery."""

from __future__ import annotations

import asyncio
import json
import socket
import uuid
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import redis
from websockets.exceptions import InvalidStatus

from sessions_app.access import rate_counters, rates
from sessions_app.access.rate_counters import CounterStorage
from sessions_app.models import Session
from tests import factories
from tests.client import new_event
from tests.sessions_app.transports.http_requests import opened, post, stream_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_django import Settings

    from chat_app.models import Chat
    from tests.client import UampClient
    from tests.live_server import Dial, Person

WINDOW_SECONDS = 60
DAY_SECONDS = 24 * 3600
HEADERS = {"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "X-RateLimit-Remaining"}


Call = "Callable[[httpx.Client, Person], httpx.Response]"


def read(web: httpx.Client, who: Person) -> httpx.Response:
    return web.get("/api/v1/me", headers=who.headers)


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

    said = [say(among_people) for _ in range(5)]
    said += [say(with_agent, agents=[]) for _ in range(5)]
    asked = [say(with_agent) for _ in range(3)]
    said.append(say(among_people))

    assert {one.status_code for one in said} == {201}
    assert [one.status_code for one in asked] == [201, 201, 429]


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


def test_visitors_of_one_address_open_few_sessions(
    dial: Dial, web: httpx.Client, settings: Settings
) -> None:
    most = settings.UAMP_ANONYMOUS_SESSIONS_PER_MINUTE
    # One after another, on sockets, over SSE and in batches.
    created = 0
    client: UampClient = dial()
    for number in range(most // 3):
        if number % 10 == 9:
            client.close()
            client = dial()
        client.send("session.create", uamp_version="1.0", session={}, agent="echo")
        created += client.until("session.created", "session.error")[-1]["type"] == "session.created"
        created += post(web, "session.create", session={}, agent="echo").is_success
        batch = [new_event("session.create", uamp_version="1.0", session={}, agent="echo")]
        reported = web.post("/uamp", json=batch).json()
        created += any(frame["type"] == "session.created" for frame in reported)
    assert created == most
    over_http = post(web, "session.create", session={}, agent="echo")
    client.send("session.create", uamp_version="1.0", session={}, agent="echo")
    reported = client.until("session.error")

    assert (over_http.status_code, over_http.json()["code"]) == (429, "rate_limited")
    assert int(over_http.headers["RateLimit-Limit"]) == most
    assert reported[-1]["error"]["code"] == "rate_limited"
    assert reported[-1]["error"]["details"]["retry_after"] >= 1
    assert "rate_limit" in {frame["type"] for frame in reported}


def test_a_handshake_above_the_limit_is_refused_by_http(dial: Dial, settings: Settings) -> None:
    settings.UAMP_REQUESTS_PER_MINUTE = 1
    dial().create_session(agent="echo")
    with pytest.raises(InvalidStatus) as refused:
        dial()

    response = refused.value.response
    assert response.status_code == httpx.codes.TOO_MANY_REQUESTS
    assert response.headers["Retry-After"]
    assert json.loads(response.body or b"")["code"] == "rate_limited"


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
    sent = web.post("/api/v1/contents", files=file, headers=alice.headers)
    assert sent.status_code == httpx.codes.CREATED


def statuses_from(web: httpx.Client, *addresses: str) -> list[int]:
    """Return the answers to requests that say they come from these addresses."""
    reported: list[dict[str, Any]] = [{"X-Forwarded-For": address} for address in addresses]
    return [web.get("/capabilities", headers=headers).status_code for headers in reported]


def test_a_forwarded_address_counts_only_from_a_known_proxy(
    web: httpx.Client, settings: Settings
) -> None:
    settings.UAMP_DISCOVERY_PER_MINUTE = 1
    assert statuses_from(web, "203.0.113.1", "203.0.113.2") == [200, 429]

    settings.UAMP_TRUSTED_PROXIES = ["127.0.0.0/8", "10.0.0.1"]
    # The client may write what it likes before the address that the proxies saw.
    assert statuses_from(
        web, "203.0.113.1", "203.0.113.2", "198.51.100.1, 203.0.113.2, 10.0.0.1"
    ) == [200, 200, 429]
    # What is no address ends the search: the proxy itself is counted, which was before.
    assert statuses_from(web, "nonsense") == [429]


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("192.0.2.7", "address:192.0.2.7"),
        ("::ffff:192.0.2.7", "address:192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "address:2001:db8:1:2::"),
        ("fe80::1%eth0", "address:fe80::"),
        ("", "address:"),
    ],
)
def test_a_network_of_ipv6_is_one_address(address: str, name: str) -> None:
    assert rates.visitors(address) == name


def test_the_counters_of_many_addresses_are_bounded() -> None:
    counters = CounterStorage(size=100)
    for number in range(1000):
        assert counters.acquire_sliding_window_entry(f"address:{number}", 1, WINDOW_SECONDS)
        counters.acquire_sliding_window_entry("the one who asks all the time", 10, WINDOW_SECONDS)

    assert len(counters) == 100
    # The one that is used is not the one that is dropped.
    assert not counters.acquire_sliding_window_entry("the one who asks all the time", 10, 60)


def test_a_window_weighs_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [600.0]
    monkeypatch.setattr(rate_counters, "time", SimpleNamespace(monotonic=lambda: now[0]))
    counters = CounterStorage()

    def asked() -> bool:
        return counters.acquire_sliding_window_entry("k", 4, WINDOW_SECONDS)

    assert [asked() for _ in range(5)] == [True] * 4 + [False]
    now[0] = 600 + 90  # half of the window before still counts
    assert [asked() for _ in range(3)] == [True, True, False]
    now[0] = 600 + 300
    assert [asked() for _ in range(5)] == [True] * 4 + [False]


@pytest.mark.redis
def test_processes_with_one_redis_count_together(redis_url: str, settings: Settings) -> None:
    settings.UAMP_RESPONSES_PER_MINUTE = 3
    prefix = f"uamp-test-{uuid.uuid4().hex}"
    first, second = (rates.RateLimiter(redis_url, prefix=prefix) for _ in range(2))
    taken = [
        limiter.hit("responses", "user:1").allowed for limiter in (first, second, first, second)
    ]

    assert taken == [True, True, True, False]
    assert len(first.counters) == len(second.counters) == 0


@pytest.mark.redis
async def test_requests_that_come_at_once_are_counted_together_and_in_order(
    redis_url: str, settings: Settings
) -> None:
    settings.UAMP_RESPONSES_PER_MINUTE = 3
    limiter = rates.RateLimiter(redis_url, prefix=f"uamp-test-{uuid.uuid4().hex}")
    with redis.Redis.from_url(redis_url) as client:
        # As after a restart of Redis.
        client.script_flush()
    asked = [limiter.take("responses", f"user:{number % 2}") for number in range(100)]
    quotas = await asyncio.gather(*asked)

    assert [quota.allowed for quota in quotas] == [True] * 6 + [False] * 94
    assert [quota.remaining for quota in quotas[:7]] == [2, 2, 1, 1, 0, 0, 0]
    assert all(0 < quota.retry_after <= 2 * WINDOW_SECONDS for quota in quotas)
    assert len(limiter.counters) == 0


async def test_a_request_that_was_given_up_leaves_the_others_counted(settings: Settings) -> None:
    settings.UAMP_RESPONSES_PER_MINUTE = 10
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        limiter = rates.RateLimiter(f"redis://127.0.0.1:{silent.getsockname()[1]}")
        first, second = (
            asyncio.ensure_future(limiter.take("responses", "user:1")) for _ in range(2)
        )
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).allowed


async def test_a_limit_that_is_no_number_is_an_error_of_each_request(settings: Settings) -> None:
    settings.UAMP_RESPONSES_PER_MINUTE = "many"
    limiter = rates.RateLimiter("redis://127.0.0.1:1")
    for _ in range(2):
        with pytest.raises(ValueError, match="many"):
            await asyncio.wait_for(limiter.take("responses", "user:1"), 10)


def test_without_its_redis_a_process_counts_alone(settings: Settings) -> None:
    settings.UAMP_RESPONSES_PER_MINUTE = 1
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        limiter = rates.RateLimiter(f"redis://127.0.0.1:{closed.getsockname()[1]}")
        assert [limiter.hit("responses", "user:1").allowed for _ in range(2)] == [True, False]


async def test_a_redis_that_hangs_does_not_hold_up_the_loop() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        limiter = rates.RateLimiter(f"redis://127.0.0.1:{silent.getsockname()[1]}")
        taking = asyncio.ensure_future(limiter.take("responses", "user:1"))
        turns = 0
        while not taking.done():
            await asyncio.sleep(0.01)
            turns += 1

    assert taking.result().allowed
    assert turns >= 10  # REDIS_SECONDS went by, and the loop went on

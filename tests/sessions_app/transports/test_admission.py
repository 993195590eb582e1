"""The clients that each transport admits."""

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

from sessions_app.models import ApiKey, Session
from tests.client import new_event, text_of
from tests.conftest import ServerAddress
from tests.live_server import Dial, Person
from tests.sessions_app.transports.turns import turn
from tests.threads import join_threads


@pytest.mark.sampled(2)
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


@pytest.mark.sampled(3)
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

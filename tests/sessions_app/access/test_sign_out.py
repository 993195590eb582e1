"""A client that lost its access is disconnected within five seconds, on every transport."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session as WebSession
from django.utils import timezone
from websockets.exceptions import ConnectionClosed

from agents_app.demo import prepare_agents
from sessions_app import lifespan
from sessions_app.access.auth import of_user
from sessions_app.connection.client_connection import ClientConnection
from sessions_app.handlers import table
from sessions_app.models import ApiKey
from sessions_app.process import registry as runner_process
from tests.client import EventStream, new_event, open_stream, output_text
from tests.live_server import alice, bob, dial, web
from tests.sessions_app.access.web_sign_in import WebSignIn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_django import Settings

    from tests.conftest import ServerAddress
    from tests.live_server import Dial, Person

__all__ = ["alice", "bob", "dial", "web"]

PARTED_SECONDS = 5.0


@pytest.fixture
def demo(settings: Settings, server: ServerAddress) -> ServerAddress:
    """Run the server with its demo agents and with the beats that it has in production."""
    settings.UAMP_GRACE_SECONDS = 0
    prepare_agents()
    return server


class Connections:
    """Connections of one person: by two sign-ins, a key, and tickets that both of them got."""

    def __init__(self, opened: ExitStack, dial: Dial, server: ServerAddress, who: Person) -> None:
        self.first = opened.enter_context(WebSignIn(server))
        self.second = opened.enter_context(WebSignIn(server))
        for browser in (self.first, self.second):
            assert browser.try_to_sign_in(who.user.username).status_code == httpx.codes.FOUND
        headers_by_name = {
            "first": self.first.headers,
            "second": self.second.headers,
            "key": who.headers,
        }
        self.sockets = {name: dial(headers=headers) for name, headers in headers_by_name.items()}
        for name, headers in headers_by_name.items():
            ticket = self._ticket(headers)
            self.sockets[f"{name}/ticket"] = dial(path=f"/uamp?ticket={ticket}")
        self.streams: dict[str, EventStream] = {}
        for name, socket in self.sockets.items():
            created = socket.create_session(agent="echo")
            if name in headers_by_name:
                stream = open_stream(
                    self.first.web if name == "first" else self.second.web,
                    "GET",
                    "/events/stream",
                    headers={**headers_by_name[name], "X-Session-ID": created["session_id"]},
                    timeout=90,
                )
                self.streams[name] = opened.enter_context(stream)

    def _ticket(self, headers: dict[str, str]) -> str:
        if "Cookie" in headers:
            token = headers["Cookie"].partition("csrftoken=")[2].partition(";")[0]
            headers = {**headers, "X-CSRFToken": token}
        base = str(self.first.web.base_url)
        answer = httpx.post(f"{base}/api/v1/tickets", json={}, headers=headers, trust_env=False)
        assert answer.status_code == httpx.codes.CREATED, answer.text
        ticket: str = answer.json()["ticket"]
        return ticket

    def parted(self, names: set[str]) -> dict[str, int]:
        """Return the close codes of the sockets that end within PARTED_SECONDS."""
        deadline = time.monotonic() + PARTED_SECONDS
        codes: dict[str, int] = {}
        for name in names:
            try:
                while True:
                    self.sockets[name].receive(timeout=max(0.01, deadline - time.monotonic()))
            except ConnectionClosed as closed:
                codes[name] = closed.rcvd.code if closed.rcvd else 1006
            except TimeoutError:
                continue
        return codes

    def said_last(self, name: str) -> dict[str, Any]:
        """Return the last event of a stream that ends."""
        last: dict[str, Any] = {}
        for event in self.streams[name]:
            last = event.data
        return last


@pytest.fixture
def connections(dial: Dial, demo: ServerAddress, alice: Person) -> Iterator[Connections]:
    """Open connections of alice in every way."""
    with ExitStack() as opened:
        yield Connections(opened, dial, demo, alice)


def sign_out(connections: Connections) -> None:
    assert connections.first.post("/logout").status_code == httpx.codes.FOUND


def delete_the_session(connections: Connections) -> None:
    WebSession.objects.filter(session_key=connections.first.session_key).delete()


def let_the_session_grow_old(connections: Connections) -> None:
    WebSession.objects.filter(session_key=connections.first.session_key).update(
        expire_date=timezone.now()
    )


def change_the_password(_: Connections) -> None:
    User.objects.filter(username="alice").update(password=make_password("another"))


def deactivate(_: Connections) -> None:
    User.objects.filter(username="alice").update(is_active=False)


def revoke_the_key(_: Connections) -> None:
    ApiKey.objects.filter(user__username="alice").update(revoked_at=timezone.now())


def delete_the_person(_: Connections) -> None:
    User.objects.get(username="alice").delete()


EVERYTHING = {"first", "second", "key"}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("act", "ended"),
    [
        (sign_out, {"first"}),
        (delete_the_session, {"first"}),
        (let_the_session_grow_old, {"first"}),
        (change_the_password, {"first", "second"}),
        (deactivate, EVERYTHING),
        (revoke_the_key, {"key"}),
        (delete_the_person, EVERYTHING),
    ],
)
def test_ended_sessions_are_detached_and_the_others_stay(
    connections: Connections,
    dial: Dial,
    bob: Person,
    act: Callable[[Connections], None],
    ended: set[str],
) -> None:
    stranger = dial(bob)
    stranger.create_session(agent="echo")
    act(connections)
    names = ended | {f"{name}/ticket" for name in ended}
    assert connections.parted(names) == dict.fromkeys(names, 4401)
    for name in ended:
        assert connections.said_last(name)["error"]["code"] == "unauthorized"
    for name, socket in [*connections.sockets.items(), ("bob", stranger)]:
        if name not in names:
            assert output_text(socket.answer("Still here")[-1]) == "Still here"


async def test_a_connection_that_is_being_closed_takes_nothing(alice: Person) -> None:
    process = lifespan.start()
    connection = ClientConnection(
        principal=of_user(alice.user),
        transport="websocket",
        reader=process,
        groups=process.groups,
    )
    connection.dismiss(connection.principal)
    await table.receive(
        connection, json.dumps(new_event("session.create", session={}, agent="echo"))
    )
    assert (connection.session_ids, connection.outgoing.take_replies()) == ([], [])
    await process.stop()
    runner_process.forget()

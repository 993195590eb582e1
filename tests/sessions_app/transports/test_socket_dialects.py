"""Common behaviour of sockets in every dialect: admission, limits, a heartbeat, an end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from django.urls import re_path
from django.utils import timezone
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection as Socket
from websockets.sync.client import connect

from sessions_app.connection.outgoing_queue import DialectFrame, Outgoing
from sessions_app.handlers import table
from sessions_app.models import ApiKey, Session, SessionTransport
from sessions_app.process import registry
from sessions_app.transports.socket import (
    WEIGHED_BYTES,
    HandshakeRefused,
    SocketApplication,
    SocketDialect,
)
from tests.client import new_event
from uamp_project import asgi

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from channels.routing import URLRouter
    from pytest_django import Settings

    from tests.conftest import ServerAddress
    from tests.live_server import Dial, Person

pytestmark = pytest.mark.any_database

WAIT_SECONDS = 60
MANY_BYTES = 20 * 1024


class WordsDialect(SocketDialect):
    """A protocol of plain words: a frame asks, the words of the answer come, then a full stop."""

    transport = SessionTransport.REALTIME.value
    process: ClassVar[registry.Process]

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        if self.connection.defaults.agent == "unknown":
            raise HandshakeRefused(4404)

    @property
    def subprotocol(self) -> str | None:
        """Speak words where the client offers them."""
        return "words" if "words" in self.handshake.dialects else None

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """Name the connection, as ACP does."""
        return [(b"words-connection", self.connection.origin.encode())]

    async def opened(self) -> None:
        """Open the session of the socket."""
        type(self).process = registry.current()
        await self._take("session.create", uamp_version="1.0", session={})

    async def receive(self, frame: str | bytes) -> None:
        """Ask what the frame has; an empty one is answered by the dialect itself."""
        if not frame:
            self.connection.send_dialect_frame("(nothing was asked)")
            return
        await self._take("input.text", text=str(frame)[:40])
        await self._take("response.create")

    def encode(self, batch: Sequence[Outgoing]) -> Iterator[str]:
        """Return words of deltas; the rest is nothing to this protocol."""
        for outgoing in batch:
            if isinstance(outgoing, DialectFrame):
                yield outgoing.text
                continue
            event = json.loads(outgoing.text)
            if event["type"] == "response.delta":
                yield event["delta"]["text"]
            elif event["type"] == "response.done":
                yield "."

    def heartbeat(self) -> str:
        """Return a frame without a word."""
        return "~"

    async def _take(self, kind: str, **fields: Any) -> None:
        await table.receive(self.connection, json.dumps(new_event(kind, **fields)))


@pytest.fixture
def words(demo: ServerAddress, monkeypatch: pytest.MonkeyPatch) -> str:
    """Give the address of the sockets that speak words, on the server."""
    routed: Any = asgi._edge._application
    router: URLRouter = routed._application.application_mapping["websocket"]
    served: Any = SocketApplication(WordsDialect)
    monkeypatch.setattr(
        router, "routes", [re_path(r"^words/(?P<agent>\w+)$", served), *router.routes]
    )
    return f"{demo.ws}/words"


def dialled(url: str, who: Person | None = None, **options: Any) -> Socket:
    """Open a socket."""
    headers = who.headers if who else {}
    socket: Socket = connect(url, additional_headers=headers, proxy=None, **options)
    return socket


def answer_to(socket: Socket, text: str) -> str:
    """Ask, and return the words of the answer, joined."""
    socket.send(text)
    words: list[str] = []
    while not words or words[-1] != ".":
        words.append(str(socket.recv(timeout=WAIT_SECONDS)))
    return "".join(words)


def close_code(socket: Socket) -> int | None:
    """Read until the socket is closed; return the code."""
    try:
        while True:
            socket.recv(timeout=WAIT_SECONDS)
    except ConnectionClosed as closed:
        return None if closed.rcvd is None else closed.rcvd.code


def test_a_large_frame_counts_as_several_events(
    words: str, alice: Person, settings: Settings
) -> None:
    settings.UAMP_EVENTS_PER_MINUTE, settings.UAMP_EVENTS_BURST = 1, 3
    with dialled(f"{words}/echo", alice) as socket:
        answer_to(socket, "x" * 4 * WEIGHED_BYTES)
        socket.send("")
        with pytest.raises(TimeoutError):
            socket.recv(timeout=0.5)


def test_a_dialect_has_the_turns_of_uamp_under_its_own_name(words: str, alice: Person) -> None:
    offered: Any = ["openai-insecure-api-key." + alice.key, "words"]
    with dialled(f"{words}/echo", subprotocols=offered) as socket:
        assert socket.subprotocol == "words"
        assert socket.response is not None
        assert len(socket.response.headers["words-connection"]) == 32
        assert answer_to(socket, "one two three") == "one two three."
        assert answer_to(socket, "four") == "four."
        session = Session.objects.get()
        assert (session.user, session.transport, session.status) == (
            alice.user,
            "realtime",
            "active",
        )
        # The end of the process closes what is in this set.
        assert [connection.transport for connection in WordsDialect.process.connections] == [
            "realtime"
        ]


def test_what_a_dialect_sends_itself_keeps_its_place(words: str) -> None:
    with dialled(f"{words}/echo") as socket:
        assert answer_to(socket, "one") == "one."
        socket.send("")
        assert socket.recv(timeout=WAIT_SECONDS) == "(nothing was asked)"


@pytest.mark.parametrize("reason", ["key", "agent", "origin", "many"])
def test_a_handshake_is_refused_before_the_socket_is_accepted(
    words: str, dial: Dial, alice: Person, settings: Settings, reason: str
) -> None:
    path, headers = "echo", dict(alice.headers)
    match reason:
        case "key":
            headers["Authorization"] = "Bearer guessed"
        case "agent":
            path = "unknown"
        case "origin":
            headers = {"Origin": "https://elsewhere.example"}
        case _:
            settings.UAMP_CONNECTIONS_PER_USER = 1
            dial(alice).create_session(agent="echo")
    with pytest.raises(InvalidStatus) as refused:
        connect(f"{words}/{path}", additional_headers=headers, proxy=None)
    assert refused.value.response.status_code == 403
    assert Session.objects.filter(transport="realtime").count() == 0


def test_a_frame_of_a_visitor_has_less_bytes_than_one_of_a_person(
    words: str, alice: Person
) -> None:
    with dialled(f"{words}/echo", alice) as socket:
        assert answer_to(socket, "x" * MANY_BYTES).endswith(".")
    with dialled(f"{words}/echo") as socket:
        socket.send("x" * MANY_BYTES)
        assert close_code(socket) == 1009


def test_a_quiet_socket_beats_and_a_socket_that_sends_does_not(
    words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WordsDialect, "heartbeat_seconds", 0.1)
    with dialled(f"{words}/echo") as socket:
        assert [socket.recv(timeout=WAIT_SECONDS) for _ in range(2)] == ["~", "~"]
    monkeypatch.setattr(WordsDialect, "heartbeat_seconds", None)
    with dialled(f"{words}/echo") as socket, pytest.raises(TimeoutError):
        socket.recv(timeout=0.5)


def test_a_socket_ends_with_its_key(words: str, alice: Person) -> None:
    with dialled(f"{words}/echo", alice) as socket:
        answer_to(socket, "one")
        ApiKey.objects.update(revoked_at=timezone.now())
        assert close_code(socket) == 4401


def test_a_defect_of_a_dialect_ends_its_socket(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: WordsDialect, batch: Sequence[Outgoing]) -> list[str]:
        raise KeyError(len(batch))

    monkeypatch.setattr(WordsDialect, "encode", fail)
    with dialled(f"{words}/echo") as socket:
        assert close_code(socket) == 1011

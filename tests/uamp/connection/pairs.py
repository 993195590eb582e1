"""Both ends of a connection, and shorthands for what they exchange."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

import uamp
from uamp import Connection, RemoteProtocolError


@dataclass
class Pair:
    """Both ends of one connection; each sends what the other then receives."""

    client: Connection = field(default_factory=lambda: Connection("client"))
    server: Connection = field(default_factory=lambda: Connection("server"))
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def ask(self, event: uamp.Event, **options: Any) -> uamp.Event:
        """Send from the client; return what the server receives."""
        return self._pass(self.client, self.server, event, **options)

    def answer(self, event: uamp.Event, **options: Any) -> uamp.Event:
        """Send from the server; return what the client receives."""
        return self._pass(self.server, self.client, event, **options)

    def _pass(
        self, sender: Connection, receiver: Connection, event: uamp.Event, **options: Any
    ) -> uamp.Event:
        frame = sender.send(event, event_id=f"e{next(self.ids)}", timestamp=1, **options)
        [received] = receiver.receive(frame, now=0.0)
        return received

    def open(self, session_id: str, **create: Any) -> None:
        """Open a session from the client."""
        self.ask(uamp.SessionCreate(**create))
        self.answer(created(session_id))


def created(session_id: str) -> uamp.SessionCreated:
    return uamp.SessionCreated(session_id=session_id, session=uamp.Session(id=session_id))


def hear(server: Connection, *, now: float = 0.0, **frame: object) -> uamp.Event:
    [event] = server.receive(json.dumps(frame), now=now)
    return event


def refuse(server: Connection, *, now: float = 0.0, **frame: object) -> RemoteProtocolError:
    with pytest.raises(RemoteProtocolError) as caught:
        server.receive(json.dumps(frame), now=now)
    return caught.value


def serving(*sessions: str, **options: Any) -> Connection:
    server = Connection("server", **options)
    for session in sessions:
        server.attach(session)
    return server

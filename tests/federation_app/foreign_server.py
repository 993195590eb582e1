"""A server of a peer that is not ours: it answers on a WebSocket of `websockets`, well or badly."""

from __future__ import annotations

import json
import threading
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from federation_app.envelope.members.reading import envelope_of
from federation_app.envelope.signatures.keys import EnvelopeKey
from federation_app.envelope.signatures.signature import signed
from federation_app.envelope.streams.framing import framed, read_records
from tests.agents_app.remote.remote_agents import remote_agent
from tests.federation_app.peer import add_peer
from tests.threads import join_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import ServerAddress

HOST = "worker.example"
SAGE = f"did:web:{HOST}:agents:sage"


def now() -> str:
    """Return the time as envelopes have it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


@dataclass
class Call:
    """One socket of a client: what it sends, and what it is sent."""

    socket: ServerConnection
    server: ForeignServer

    def receive(self) -> Any:
        """Return the next record of the client, and keep it."""
        message = self.socket.recv()
        assert isinstance(message, bytes)
        (record,) = read_records(message)
        self.server.received.append(json.loads(record))
        return self.server.received[-1]

    def send(self, value: Any) -> None:
        """Send a record."""
        self.socket.send(framed(json.dumps(value).encode()))

    def delta(self, stream_id: str, number: int, type_: str, **payload: Any) -> None:
        """Send a delta."""
        head = {"delta_seq": number, "stream_id": stream_id, "ts": now(), "type": type_}
        self.send({**head, "payload": payload})


@dataclass
class ForeignServer:
    """A peer with an agent `sage`; `calls` answer its sockets, one after the other."""

    key: EnvelopeKey
    calls: list[Callable[[Call], None]] = field(default_factory=list)
    received: list[Any] = field(default_factory=list)
    url: str = ""

    def signed(self, ask: Any, text: str, **changes: Any) -> Any:
        """Return the signed answer to an `ask`."""
        value = {
            "id": f"urn:uuid:{uuid.uuid4()}",
            "ts": now(),
            "from": SAGE,
            "to": [ask["from"]],
            "intent": "inform",
            "reply_to": ask["id"],
            "context": [{"id": ask["id"], "hash": f"sha256:{envelope_of(ask).sha256}"}],
            "body": {"type": "text/markdown", "content": text},
            **changes,
        }
        return signed(value, self.key)

    def received_of(self, name: str) -> list[Any]:
        """Return the envelopes of an intent, or the deltas of a type, that were received."""
        return [
            envelope
            for envelope in self.received
            if name in {envelope.get("intent"), envelope.get("type")}
        ]

    def _answer(self, socket: ServerConnection) -> None:
        try:
            self.calls.pop(0)(Call(socket, self))
        except ConnectionClosed:
            return
        socket.close()


@contextmanager
def foreign_server() -> Iterator[ForeignServer]:
    """Run a server whose peer is trusted by the keys of its host."""
    peer = add_peer(HOST)
    server = ForeignServer(EnvelopeKey(f"{SAGE}#1", peer.key.key))
    with serve(server._answer, "127.0.0.1", 0) as running:
        server.url = f"http://127.0.0.1:{running.socket.getsockname()[1]}"
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            running.shutdown()
            join_threads([thread])


@pytest.fixture
def sage(federated: ServerAddress) -> Iterator[ForeignServer]:
    """Run the server of another peer, whose agent is `sage` here."""
    with foreign_server() as server:
        remote_agent(server.url, protocol="envelope", name="sage", model=SAGE)
        yield server

"""A peer that is not ours: it signs with cryptography, and speaks by httpx and `websockets`."""

from __future__ import annotations

import asyncio
import json
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from websockets.sync.client import ClientConnection, connect

from federation_app.envelope.names.tokens import signed_token
from federation_app.envelope.signatures.keys import EnvelopeKey
from federation_app.envelope.signatures.signature import signed
from federation_app.envelope.streams.framing import framed, read_records
from federation_app.models import Peer, PeerKey, PeerTrust
from federation_app.rpc.server import EnvelopeServer
from sessions_app.process import registry

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

    import httpx
    from django.contrib.auth.models import User

    from tests.conftest import ServerAddress

HOST = "chat.example"
SERVER = f"did:web:{HOST}"
ECHO = f"{SERVER}:agents:echo"
WAIT_SECONDS = 60


@dataclass
class ForeignPeer:
    """A peer with its key; it may differ from what it says."""

    did: str
    key: EnvelopeKey
    row: Peer
    skew: timedelta = field(default_factory=timedelta)

    def envelope(self, intent: str = "ask", content: str = "hello", **members: Any) -> Any:
        """Return a signed envelope to the agent `echo`."""
        unsigned = {
            "id": f"urn:uuid:{uuid.uuid4()}",
            "ts": (datetime.now(UTC) + self.skew).isoformat(timespec="milliseconds")[:-6] + "Z",
            "from": self.did,
            "to": [ECHO],
            "intent": intent,
            "body": {"type": "text/plain", "content": content},
            **members,
        }
        return signed({k: v for k, v in unsigned.items() if v is not None}, self.key)

    def bearer(self, **changes: Any) -> dict[str, str]:
        """Return the header of a request that reads a stream."""
        claims = {
            "issuer": self.did,
            "subject": self.did,
            "audience": SERVER,
            "scope": "uamp:subscribe",
            "now": datetime.now(UTC),
            **changes,
        }
        return {"Authorization": f"Bearer {signed_token(self.key, **claims)}"}


def add_peer(name: str = "client.example", user: User | None = None) -> ForeignPeer:
    """Make a peer whose key an operator entered."""
    did = f"did:web:{name}"
    row = Peer.objects.create(did=did, name=name, trust=PeerTrust.OPERATOR, user=user)
    key = EnvelopeKey(f"{did}#1", Ed25519PrivateKey.generate())
    public = key.public()
    PeerKey.objects.create(peer=row, kid=public.kid, algorithm=public.algorithm, jwk=public.jwk())
    return ForeignPeer(did, key, row)


class Records:
    """A WebSocket of records, open for the length of a block."""

    def __init__(
        self,
        url: str,
        *,
        headers: dict[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._opening: Any = connect(
            f"{url}/uamp/1/ws",
            ssl=tls,
            additional_headers=headers,
            subprotocols=["uamp.v1"],  # type: ignore[list-item]
            max_size=None,
            proxy=None,
        )

    def __enter__(self) -> Self:
        self.socket: ClientConnection = self._opening.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self._opening.__exit__(*raised)

    def send(self, value: Any) -> None:
        """Send one record."""
        self.socket.send(framed(json.dumps(value).encode()))

    def receive(self, timeout: float = WAIT_SECONDS) -> Any:
        """Return the next record."""
        message = self.socket.recv(timeout)
        assert isinstance(message, bytes)
        (record,) = read_records(message)
        return json.loads(record)

    def until(self, *types: str) -> list[Any]:
        """Return the deltas up to one of these types."""
        records = [self.receive()]
        while records[-1].get("type") not in types:
            records.append(self.receive())
        return records


def sse(response: httpx.Response) -> Iterator[tuple[str, Any]]:
    """Yield the event (its id, or its name) and the data of each frame."""
    lines: list[str] = []
    for line in response.iter_lines():
        if line:
            lines.append(line)
            continue
        fields = dict(row.split(": ", 1) for row in lines if not row.startswith(":"))
        lines = []
        if "data" in fields:
            yield fields.get("id", fields.get("event", "")), json.loads(fields["data"])


def text_of(deltas: list[Any]) -> str:
    """Return the text that deltas carry."""
    text = ""
    for delta in deltas:
        if delta["type"] == "patch":
            text = delta["payload"]["text"]
        elif delta["type"] == "chunk":
            text = text[: delta["payload"]["offset"]] + delta["payload"]["text"]
    return text


@pytest.fixture
def federated(demo: ServerAddress, settings: Any) -> ServerAddress:
    """Run the server under its name of envelopes."""
    settings.UAMP_FEDERATION_HOST = HOST
    return demo


@pytest.fixture
def peer(federated: ServerAddress) -> ForeignPeer:
    """Return a peer that the server trusts."""
    return add_peer()


@pytest.fixture
def rpc_place(federated: ServerAddress, web: Any) -> Iterator[str]:
    """Run a gRPC server in the process of the running server, and give its host and port."""
    assert web.get("/healthz").status_code < 500  # the process has begun
    (loop,) = registry._processes

    async def begin() -> EnvelopeServer:
        server = EnvelopeServer("127.0.0.1:0")
        await server.start()
        return server

    server = asyncio.run_coroutine_threadsafe(begin(), loop).result(WAIT_SECONDS)
    yield f"{federated.host}:{server.port}"
    asyncio.run_coroutine_threadsafe(server.stop(0), loop).result(WAIT_SECONDS)

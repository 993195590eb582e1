"""A peer that asks with signed envelopes over each transport, for `benchmarks envelopes`."""

from __future__ import annotations

import json
import ssl
import time
import uuid
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Protocol

import grpc
import httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from websockets.asyncio.client import connect

from federation_app.envelope.names.tokens import signed_token
from federation_app.envelope.signatures.keys import EnvelopeKey
from federation_app.envelope.signatures.signature import signed
from federation_app.envelope.streams.framing import framed, read_records
from federation_app.rpc import agent_pb2, agent_pb2_grpc
from tests.federation_app.http3_client import connected

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence
    from pathlib import Path

HOST: Final = "bench.example"
SERVER: Final = f"did:web:{HOST}"
PEER: Final = "did:web:peer.example"
ECHO: Final = f"{SERVER}:agents:echo"
TRANSPORTS: Final = ("http1", "http2", "http3", "websocket", "grpc")
_JSON: Final = {"Content-Type": "application/uamp+json"}


@dataclass
class AskingPeer:
    """A peer with its key, which signs questions of one text."""

    text: str
    key: EnvelopeKey = field(
        default_factory=lambda: EnvelopeKey(f"{PEER}#1", Ed25519PrivateKey.generate())
    )

    def ask(self, reply_to: str = "", **members: Any) -> dict[str, Any]:
        """Return a signed `ask`, which continues the conversation of an earlier one."""
        unsigned = {
            "id": f"urn:uuid:{uuid.uuid4()}",
            "ts": datetime.now(UTC).isoformat(timespec="milliseconds")[:-6] + "Z",
            "from": PEER,
            "to": [ECHO],
            "intent": "ask",
            "body": {"type": "text/plain", "content": self.text},
            **({"reply_to": reply_to} if reply_to else {}),
            **members,
        }
        return signed(unsigned, self.key)

    def bearer(self) -> dict[str, str]:
        """Return the header of a request that reads a stream."""
        token = signed_token(
            self.key,
            issuer=PEER,
            subject=PEER,
            audience=SERVER,
            scope="uamp:subscribe",
            now=datetime.now(UTC),
        )
        return {"authorization": f"Bearer {token}"}


@dataclass(frozen=True, kw_only=True)
class ListeningPlace:
    """The address at which a server listens; `certificate` is None without TLS."""

    port: int
    rpc_port: int = 0
    certificate: Path | None = None


class AskingLine(Protocol):
    """A connection over which questions are asked, one after the other."""

    async def ask(self, envelope: dict[str, Any]) -> None:
        """Ask, and read the deltas to the end; raises RuntimeError without an answer."""


@dataclass
class AskingWeb:
    """HTTP/1.1 or HTTP/2: the envelope is posted, and its stream is read as SSE."""

    client: httpx.AsyncClient
    peer: AskingPeer

    async def ask(self, envelope: dict[str, Any]) -> None:
        """See AskingLine."""
        posted = await self.client.post("/v1/messages", json=envelope, headers=_JSON)
        if posted.status_code != httpx.codes.ACCEPTED:
            raise RuntimeError(posted.text)
        path, last = posted.headers["Location"], ""
        async with self.client.stream("GET", path, headers=self.peer.bearer()) as stream:
            async for line in stream.aiter_lines():
                last = line if line.startswith("data: ") else last
        _check(last.removeprefix("data: "))


@dataclass
class QuicLine:
    """HTTP/3: as AskingWeb."""

    client: Any
    peer: AskingPeer

    async def ask(self, envelope: dict[str, Any]) -> None:
        """See AskingLine."""
        headers = {"content-type": "application/uamp+json"}
        raw = json.dumps(envelope).encode()
        posted = await self.client.request("POST", "/v1/messages", headers, raw)
        if posted.headers[":status"] != "202":
            raise RuntimeError(posted.body.decode())
        stream = await self.client.request("GET", posted.headers["location"], self.peer.bearer())
        lines = stream.body.decode().splitlines()
        _check([line[6:] for line in lines if line.startswith("data: ")][-1])


@dataclass
class AskingSocket:
    """A WebSocket of records."""

    socket: Any

    async def ask(self, envelope: dict[str, Any]) -> None:
        """See AskingLine."""
        await self.socket.send(framed(json.dumps(envelope).encode()))
        while True:
            for record in read_records(await self.socket.recv()):
                if _is_end(record):
                    return


@dataclass
class AskingRpc:
    """A call of gRPC in both directions."""

    call: Any

    async def ask(self, envelope: dict[str, Any]) -> None:
        """See AskingLine."""
        await self.call.write(agent_pb2.Record(json=json.dumps(envelope).encode()))
        while not _is_end((await self.call.read()).json):
            pass


def _is_end(record: bytes) -> bool:
    value = json.loads(record)
    kind = value.get("type")
    if kind is None or kind in {"error", "cancel"}:
        raise RuntimeError(record.decode())
    return bool(kind == "done")


def _check(delta: str) -> None:
    if not delta or not _is_end(delta.encode()):
        raise RuntimeError(delta or "The stream had no delta.")


async def open_line(
    transport: str, place: ListeningPlace, peer: AskingPeer, stack: AsyncExitStack
) -> AskingLine:
    """Open a connection of its own over a transport, until the stack is closed."""
    if transport in {"http1", "http2"}:
        is_plain = place.certificate is None
        context = None if is_plain else ssl.create_default_context(cafile=str(place.certificate))
        client = httpx.AsyncClient(
            base_url=f"{'http' if is_plain else 'https'}://localhost:{place.port}",
            http1=transport == "http1",
            http2=transport == "http2",
            verify=context or False,
            timeout=60,
            trust_env=False,
        )
        return AskingWeb(await stack.enter_async_context(client), peer)
    if transport == "http3":
        if place.certificate is None:
            raise RuntimeError("HTTP/3 needs a certificate.")
        quic = connected(place.port, place.certificate.parent)
        return QuicLine(await stack.enter_async_context(quic), peer)
    if transport == "grpc":
        channel = grpc.aio.insecure_channel(f"127.0.0.1:{place.rpc_port}")
        await stack.enter_async_context(channel)
        return AskingRpc(agent_pb2_grpc.AgentStub(channel).Stream())
    return AskingSocket(await stack.enter_async_context(_socket(place)))


def _socket(place: ListeningPlace) -> Any:
    url = f"ws://127.0.0.1:{place.port}/uamp/1/ws"
    return connect(url, subprotocols=["uamp.v1"], max_size=None, proxy=None)  # type: ignore[list-item]


async def run_line(
    line: AskingLine, peer: AskingPeer, begins: asyncio.Barrier, seconds: float
) -> int:
    """Ask once, wait for the others, ask for some seconds; return the number of questions."""
    first = peer.ask()
    await line.ask(first)
    await begins.wait()
    ends_at, count = time.monotonic() + seconds, 0
    while time.monotonic() < ends_at:
        await line.ask(peer.ask(first["id"]))
        count += 1
    return count


async def open_streams(
    place: ListeningPlace, peer: AskingPeer, counts: Sequence[int]
) -> AsyncExitStack:
    """Open as many streams on each socket, with a window of 1 and nothing acknowledged.

    Each has its first delta. They are open until the returned stack is closed.
    """
    stack = AsyncExitStack()
    for count in counts:
        socket = await stack.enter_async_context(_socket(place))
        for number in range(count):
            ask = peer.ask(stream_id=f"held-{number}-{uuid.uuid4()}", delta_window=1)
            await socket.send(framed(json.dumps(ask).encode()))
            for record in read_records(await socket.recv()):
                if "delta_seq" not in json.loads(record):
                    raise RuntimeError(record.decode())
    return stack

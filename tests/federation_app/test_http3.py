"""Envelopes over HTTP/3: the client of aioquic against Hypercorn."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, ErrorCode, H3Connection
from aioquic.h3.events import DataReceived, H3Event, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from asgiref.sync import async_to_sync

from federation_app.exchange import windowed
from tests.client import wait_until
from tests.federation_app.lossy_line import lossy_line
from tests.federation_app.peer import SERVER, add_peer, text_of
from tests.live_server import quick_agent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import httpx
    from aioquic.quic.events import QuicEvent

pytestmark = pytest.mark.django_db(transaction=True)
SECONDS = 60


@dataclass
class Answer:
    """What came on one stream of QUIC."""

    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class Http3(QuicConnectionProtocol):
    """One connection, with a stream for each request."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._http = H3Connection(self._quic)
        self._answers: dict[int, Answer] = {}

    async def request(
        self, method: str, path: str, headers: dict[str, str], body: bytes = b""
    ) -> Answer:
        """Send a request and return its whole answer."""
        stream = self._quic.get_next_available_stream_id()
        answer = self._answers[stream] = Answer()
        first = {":method": method, ":scheme": "https", ":authority": "localhost", ":path": path}
        lines = [(k.encode(), v.encode()) for k, v in {**first, **headers}.items()]
        self._http.send_headers(stream, lines, end_stream=not body)
        if body:
            self._http.send_data(stream, body, end_stream=True)
        self.transmit()
        await asyncio.wait_for(answer.ended.wait(), SECONDS)
        return answer

    async def leave(self, path: str, headers: dict[str, str]) -> None:
        """Send a GET, and leave its stream once its answer begins."""
        stream = self._quic.get_next_available_stream_id()
        answer = self._answers[stream] = Answer()
        first = {":method": "GET", ":scheme": "https", ":authority": "localhost", ":path": path}
        lines = [(k.encode(), v.encode()) for k, v in {**first, **headers}.items()]
        self._http.send_headers(stream, lines, end_stream=True)
        self.transmit()
        await asyncio.wait_for(answer.begun.wait(), SECONDS)
        self._quic.stop_stream(stream, ErrorCode.H3_REQUEST_CANCELLED)
        self.transmit()

    def quic_event_received(self, event: QuicEvent) -> None:
        """Take what came on the connection."""
        for one in self._http.handle_event(event):
            self._take(one)

    def _take(self, event: H3Event) -> None:
        if not isinstance(event, (HeadersReceived, DataReceived)):
            return
        answer = self._answers[event.stream_id]
        if isinstance(event, HeadersReceived):
            answer.headers.update({k.decode(): v.decode() for k, v in event.headers})
        else:
            answer.body += event.data
        answer.begun.set()
        if event.stream_ended:
            answer.ended.set()


@asynccontextmanager
async def connected(port: int, folder: Path) -> AsyncIterator[Http3]:
    """Connect to the server."""
    configuration = QuicConfiguration(
        alpn_protocols=H3_ALPN, is_client=True, server_name="localhost"
    )
    configuration.load_verify_locations(str(folder / "certificate.pem"))
    async with connect(
        "127.0.0.1", port, configuration=configuration, create_protocol=Http3
    ) as client:
        assert isinstance(client, Http3)
        yield client


def test_an_ask_and_its_stream_over_http3(hypercorn: httpx.Client, tmp_path: Path) -> None:
    assert hypercorn.get("/healthz").headers["alt-svc"].startswith('h3=":')
    peer = add_peer()
    ask = json.dumps(peer.envelope(content="hello there", stream_id="str-1")).encode()
    port = hypercorn.base_url.port
    assert port is not None

    @async_to_sync
    async def ask_and_read() -> tuple[Answer, Answer, Answer]:
        async with connected(port, tmp_path) as client:
            headers = {"content-type": "application/uamp+json"}
            accepted = await client.request("POST", "/v1/messages", headers, ask)
            refused = await client.request("POST", "/v1/messages", headers, ask[:-1])
            path = accepted.headers["location"]
            return accepted, refused, await client.request("GET", path, bearer)

    bearer = {name.lower(): value for name, value in peer.bearer().items()}
    accepted, refused, stream = ask_and_read()
    assert accepted.headers[":status"] == "202"
    assert (refused.headers[":status"], json.loads(refused.body)["code"]) == ("400", "4.00")
    assert stream.headers["content-type"] == "text/event-stream"
    lines = stream.body.decode().splitlines()
    deltas = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    assert "hello there" in text_of(deltas)
    assert deltas[-1]["type"] == "done"


def test_a_client_that_leaves_a_stream_is_sent_nothing_more(
    hypercorn: httpx.Client, tmp_path: Path
) -> None:
    quick_agent("talker", "echo", delay=0.5)
    peer = add_peer()
    words = " ".join(["word"] * 200)
    to = [f"{SERVER}:agents:talker"]
    ask = json.dumps(peer.envelope(content=words, to=to, stream_id="str-1")).encode()
    bearer = {name.lower(): value for name, value in peer.bearer().items()}
    port = hypercorn.base_url.port
    assert port is not None

    @async_to_sync
    async def ask_and_leave() -> None:
        async with connected(port, tmp_path) as client:
            headers = {"content-type": "application/uamp+json"}
            await client.request("POST", "/v1/messages", headers, ask)
            await client.leave("/v1/stream/str-1", bearer)
            # The connection stays open: only the stream was left.
            await asyncio.to_thread(wait_until, lambda: not windowed._open)

    ask_and_leave()


def test_a_stream_survives_lost_datagrams(hypercorn: httpx.Client, tmp_path: Path) -> None:
    quick_agent("talker", "echo", delay=0.02)
    peer = add_peer()
    words = " ".join(f"word{number}" for number in range(100))
    to = [f"{SERVER}:agents:talker"]
    ask = json.dumps(
        peer.envelope(content=words, to=to, stream_id="str-1", delta_window=1000)
    ).encode()
    bearer = {name.lower(): value for name, value in peer.bearer().items()}
    port = hypercorn.base_url.port
    assert port is not None

    @async_to_sync
    async def ask_and_read_all() -> tuple[Answer, int]:
        async with lossy_line(port, every=7) as line, connected(line.port, tmp_path) as client:
            headers = {"content-type": "application/uamp+json"}
            await client.request("POST", "/v1/messages", headers, ask)
            return await client.request("GET", "/v1/stream/str-1", bearer), line.lost

    stream, lost = ask_and_read_all()
    lines = stream.body.decode().splitlines()
    deltas = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    assert text_of(deltas) == words
    assert [one["delta_seq"] for one in deltas] == list(range(len(deltas)))
    assert deltas[-1]["type"] == "done"
    assert lost > 3

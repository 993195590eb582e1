"""A client of HTTP/3 that is not ours: that of aioquic, with a stream for each request."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, ErrorCode, H3Connection
from aioquic.h3.events import DataReceived, H3Event, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, StreamReset

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from aioquic.quic.connection import QuicConnection
    from aioquic.quic.events import QuicEvent

SECONDS = 60
PING_SECONDS = 1


@dataclass
class Answer:
    """The frames of one QUIC stream."""

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
        self.resets: dict[int, int] = {}
        self.closed_with: int | None = None
        self._closed_by_server = asyncio.Event()

    @property
    def quic(self) -> QuicConnection:
        """The connection below HTTP, for a client that breaks rules."""
        return self._quic

    def begin(
        self, method: str, path: str, headers: dict[str, str], *, is_whole: bool = True
    ) -> tuple[int, Answer]:
        """Send the head of a request; return its stream and its answer to come."""
        stream = self._quic.get_next_available_stream_id()
        answer = self._answers[stream] = Answer()
        first = {":method": method, ":scheme": "https", ":authority": "localhost", ":path": path}
        lines = [(k.encode(), v.encode()) for k, v in {**first, **headers}.items()]
        self._http.send_headers(stream, lines, end_stream=is_whole)
        self.transmit()
        return stream, answer

    def send(self, stream: int, body: bytes, *, is_last: bool = False) -> None:
        """Send a part of the body of a request."""
        self._http.send_data(stream, body, end_stream=is_last)
        self.transmit()

    def send_trailers(self, stream: int) -> None:
        """End a request with a trailer."""
        self._http.send_headers(stream, [(b"x-checksum", b"1")], end_stream=True)
        self.transmit()

    async def closing_code(self) -> int | None:
        """Wait until the server closes the connection, and return its code."""
        await asyncio.wait_for(self._closed_by_server.wait(), SECONDS)
        return self.closed_with

    async def request(
        self, method: str, path: str, headers: dict[str, str], body: bytes = b""
    ) -> Answer:
        """Send a request and return its whole answer."""
        stream, answer = self.begin(method, path, headers, is_whole=not body)
        if body:
            self.send(stream, body, is_last=True)
        keep_alive = asyncio.create_task(self._keep_alive())
        try:
            await asyncio.wait_for(answer.ended.wait(), SECONDS)
        finally:
            keep_alive.cancel()
        return answer

    async def _keep_alive(self) -> None:
        """Ping while an answer is awaited, as browsers do, only sooner.

        A server may send three times what came from an address that is not yet validated. If its
        challenge is lost there, it may be left with nothing that it may send: the client has to
        speak first.
        """
        while True:
            await asyncio.sleep(PING_SECONDS)
            self._quic.send_ping(uid=0)
            self.transmit()

    async def leave(self, path: str, headers: dict[str, str]) -> None:
        """Send a GET, and leave its stream once its answer begins."""
        stream, answer = self.begin("GET", path, headers)
        await asyncio.wait_for(answer.begun.wait(), SECONDS)
        self._quic.stop_stream(stream, ErrorCode.H3_REQUEST_CANCELLED)
        self.transmit()

    def quic_event_received(self, event: QuicEvent) -> None:
        """Take what came on the connection."""
        if isinstance(event, StreamReset):
            self.resets[event.stream_id] = event.error_code
            self._answers[event.stream_id].ended.set()
        elif isinstance(event, ConnectionTerminated):
            self.closed_with = event.error_code
            self._closed_by_server.set()
        for http_event in self._http.handle_event(event):
            self._take(http_event)

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
async def connected(
    port: int, folder: Path, authority: str = "certificate.pem", window: int | None = None
) -> AsyncIterator[Http3]:
    """Connect to the server; `authority` is the file of the folder with its trusted certificate.

    With a `window`, the client takes so many bytes on each stream, and opens it no further.
    """
    configuration = QuicConfiguration(
        alpn_protocols=H3_ALPN, is_client=True, server_name="localhost"
    )
    if window is not None:
        configuration.max_stream_data = window
    configuration.load_verify_locations(str(folder / authority))
    async with connect(
        "127.0.0.1", port, configuration=configuration, create_protocol=Http3
    ) as client:
        assert isinstance(client, Http3)
        if window is not None:
            quic: Any = client.quic
            quic._write_stream_limits = lambda **_: None
        yield client

"""Clients of HTTP/3 that open too many connections, read nothing, or break the protocol."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest
from aioquic.h3.connection import H3_ALPN, ErrorCode, encode_frame
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from asgiref.sync import async_to_sync

from federation_app.exchange import windowed
from tests.client import wait_until
from tests.federation_app.http3_client import SECONDS, Http3, connected
from tests.federation_app.peer import SERVER, add_peer
from tests.federation_app.test_stalled_clients import LARGE, STALL_SECONDS
from tests.live_server import quick_agent
from uamp_project.edge import bodies
from uamp_project.servers.peer_ports import (
    hypercorn_connections,
    hypercorn_http3,
    hypercorn_quic_connections,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    import httpx

pytestmark = pytest.mark.django_db(transaction=True)
DATA_FRAME, HEADERS_FRAME = 0, 1


@pytest.fixture
def port(hypercorn: httpx.Client) -> int:
    """Return the port of a server that no client is connected to."""
    hypercorn.close()
    wait_until(lambda: not hypercorn_connections._connections)
    assert hypercorn.base_url.port is not None
    return hypercorn.base_url.port


@pytest.fixture
def accepted(monkeypatch: pytest.MonkeyPatch) -> list[hypercorn_http3.BoundedHttp3]:
    """Return the connections that the server begins from now on."""
    begun: list[hypercorn_http3.BoundedHttp3] = []
    begin = hypercorn_quic_connections.QuicServerConnection._begin

    def note(
        connection: hypercorn_quic_connections.QuicServerConnection,
    ) -> hypercorn_http3.BoundedHttp3:
        begun.append(begin(connection))
        return begun[-1]

    monkeypatch.setattr(hypercorn_quic_connections.QuicServerConnection, "_begin", note)
    return begun


def status_of(port: int, folder: Path) -> str:
    """Return the status of /healthz for a new client."""

    @async_to_sync
    async def get() -> str:
        async with connected(port, folder) as client:
            return (await client.request("GET", "/healthz", {})).headers[":status"]

    return get()


async def later(condition: Callable[[], bool]) -> None:
    """Wait for something in the server, while the client continues."""
    await asyncio.to_thread(wait_until, condition)


def run(port: int, folder: Path, use: Callable[[Http3], Awaitable[None]], **options: Any) -> None:
    """Use a connection to the server."""

    @async_to_sync
    async def connect_and_use() -> None:
        async with connected(port, folder, **options) as client:
            await use(client)

    connect_and_use()


@pytest.mark.parametrize("limit", ["UAMP_CONNECTIONS_PER_ADDRESS", "UAMP_QUIC_CONNECTIONS"])
def test_connections_are_limited(port: int, tmp_path: Path, settings: Any, limit: str) -> None:
    setattr(settings, limit, 1)

    async def connect_another(_first: Http3) -> None:
        await later(lambda: hypercorn_connections._connections.total() == 1)
        with pytest.raises(ConnectionError):
            async with connected(port, tmp_path):
                pass
        assert hypercorn_connections._connections.total() == 1
        # A proxy has many clients, and one process has only so many.
        settings.UAMP_TRUSTED_PROXIES = ["127.0.0.0/8"]
        async with AsyncExitStack() as second:
            if limit == "UAMP_QUIC_CONNECTIONS":
                with pytest.raises(ConnectionError):
                    await second.enter_async_context(connected(port, tmp_path))
            else:
                await second.enter_async_context(connected(port, tmp_path))

    run(port, tmp_path, connect_another)
    wait_until(lambda: not hypercorn_connections._connections)
    assert status_of(port, tmp_path) == "200"


def test_an_address_proves_itself_while_a_handshake_is_unfinished(
    port: int, tmp_path: Path, settings: Any
) -> None:
    settings.UAMP_CONNECTIONS_PER_ADDRESS = 1
    configuration = QuicConfiguration(alpn_protocols=H3_ALPN, server_name="localhost")
    silent = QuicConnection(configuration=configuration)
    silent.connect(("127.0.0.1", port), now=0.0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.settimeout(SECONDS)
        for datagram, place in silent.datagrams_to_send(now=0.0):
            sender.sendto(datagram, place)
        # The server continues the handshake, and the client does not.
        assert sender.recv(65536)
        retries: list[int] = []

        async def note(client: Http3) -> None:
            retries.append(client.quic._retry_count)

        run(port, tmp_path, note)
    assert retries == [1]
    # The unfinished handshake did not count as a connection of the address.
    wait_until(lambda: not hypercorn_connections._connections)
    run(port, tmp_path, note)
    assert retries == [1, 1]


def test_a_reader_that_stops_loses_its_stream_alone(
    port: int, tmp_path: Path, settings: Any
) -> None:
    settings.UAMP_STALL_SECONDS = STALL_SECONDS

    async def read_nothing(client: Http3) -> None:
        stream, answer = client.begin("GET", LARGE, {})
        await asyncio.wait_for(answer.ended.wait(), SECONDS)
        assert client.resets == {stream: ErrorCode.H3_INTERNAL_ERROR}
        assert (await client.request("GET", "/healthz", {})).headers[":status"] == "200"

    run(port, tmp_path, read_nothing, window=4096)


def test_applications_wait_while_a_connection_holds_too_much(
    port: int,
    tmp_path: Path,
    accepted: list[hypercorn_http3.BoundedHttp3],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hypercorn_http3, "_WRITE_BYTES", 8 * 1024)
    monkeypatch.setattr(hypercorn_http3, "STREAM_BYTES", 32 * 1024)
    monkeypatch.setattr(hypercorn_http3, "SENT_BYTES", 64 * 1024)

    async def open_streams(client: Http3) -> None:
        _, first = client.begin("GET", LARGE, {})
        await asyncio.wait_for(first.begun.wait(), SECONDS)
        await later(lambda: accepted[0].sent_bytes > 24 * 1024)
        assert accepted[0].sent_bytes < 48 * 1024
        answers = [client.begin("GET", LARGE, {})[1] for _ in range(5)]
        for answer in answers:
            await asyncio.wait_for(answer.begun.wait(), SECONDS)
        await later(lambda: accepted[0].sent_bytes > 56 * 1024)
        # Each stream has a first piece beyond the limit; without one, they would hold 192 KiB.
        assert accepted[0].sent_bytes < 120 * 1024
        assert len(accepted[0].streams) == 6

    run(port, tmp_path, open_streams, window=4096)
    wait_until(lambda: not accepted[0].streams)


def test_an_answer_larger_than_the_limits_is_read_whole(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hypercorn_http3, "_WRITE_BYTES", 4 * 1024)
    monkeypatch.setattr(hypercorn_http3, "STREAM_BYTES", 8 * 1024)

    async def read(client: Http3) -> None:
        answer = await client.request("GET", LARGE, {"accept": "application/json"})
        assert len(answer.body) > 2**17
        json.loads(answer.body)

    run(port, tmp_path, read)


def test_data_behind_a_gap_is_limited(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hypercorn_http3, "RECEIVED_BYTES", 512 * 1024)

    async def leave_a_gap(client: Http3) -> None:
        stream, _ = client.begin("POST", "/v1/messages", {}, is_whole=False)
        sender = client.quic._streams[stream].sender
        sender._buffer_start = sender._buffer_stop = 900 * 1024
        client.quic.send_stream_data(stream, b"x")
        client.transmit()
        assert await client.closing_code() == ErrorCode.H3_EXCESSIVE_LOAD

    run(port, tmp_path, leave_a_gap)


def test_header_fields_are_limited(port: int, tmp_path: Path) -> None:
    async def send_fields(client: Http3) -> None:
        stream = client.quic.get_next_available_stream_id()
        frame = encode_frame(HEADERS_FRAME, bytes(2**17))
        client.quic.send_stream_data(stream, frame[: 80 * 1024])
        client.transmit()
        assert await client.closing_code() == ErrorCode.H3_EXCESSIVE_LOAD

    run(port, tmp_path, send_fields)


@pytest.mark.parametrize(
    "frame",
    [
        # One-byte references to the static table, each a field of 42 bytes and more.
        b"\0\0" + b"\xd1" * 8000,
        b"\0\0" + b"\xd1" * 32_000,
    ],
)
def test_header_fields_are_limited_when_they_are_decoded(
    port: int, tmp_path: Path, frame: bytes
) -> None:
    async def send_fields(client: Http3) -> None:
        stream = client.quic.get_next_available_stream_id()
        client.quic.send_stream_data(stream, encode_frame(HEADERS_FRAME, frame))
        client.transmit()
        assert await client.closing_code() == ErrorCode.H3_EXCESSIVE_LOAD

    run(port, tmp_path, send_fields)


def test_pieces_behind_a_gap_are_limited(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hypercorn_quic_connections, "PIECES_MAX", 20)

    async def leave_gaps(client: Http3) -> None:
        stream, _ = client.begin("POST", "/v1/messages", {}, is_whole=False)
        sender = client.quic._streams[stream].sender
        for place in range(30):
            sender._buffer_start = sender._buffer_stop = 1000 + 2 * place
            client.quic.send_stream_data(stream, b"x")
            client.transmit()
        assert await client.closing_code() == ErrorCode.H3_EXCESSIVE_LOAD

    run(port, tmp_path, leave_gaps)


def test_header_fields_have_no_dynamic_table(port: int, tmp_path: Path) -> None:
    async def read_settings(client: Http3) -> None:
        await client.request("GET", "/healthz", {})
        received = client._http.received_settings
        assert received is not None
        assert (received[0x1], received[0x7]) == (0, 0)

    run(port, tmp_path, read_settings)


def test_odd_requests_end_no_other_ones(
    port: int,
    tmp_path: Path,
    accepted: list[hypercorn_http3.BoundedHttp3],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bodies, "DISCARD_SECONDS", 0.1)

    async def send_odd_requests(client: Http3) -> None:
        # More of a request after its answer.
        length = {"content-length": str(2**40)}
        stream, answer = client.begin("POST", "/v1/messages", length, is_whole=False)
        # This client continues when the server stops reading.
        monkeypatch.setattr(client.quic._streams[stream].sender, "reset", lambda **_: None)
        await asyncio.wait_for(answer.ended.wait(), SECONDS)
        assert answer.headers[":status"] == "413"
        await later(lambda: not accepted[0].streams)
        client.quic.send_stream_data(stream, encode_frame(DATA_FRAME, b"more"))
        client.transmit()
        # Trailers.
        stream, answer = client.begin("GET", "/healthz", {}, is_whole=False)
        client.send_trailers(stream)
        await asyncio.wait_for(answer.ended.wait(), SECONDS)
        assert answer.headers[":status"] == "200"
        # No path, and one that is not ASCII.
        for fields in (
            [(b":method", b"CONNECT"), (b":authority", b"localhost")],
            [
                (b":method", b"CONNECT"),
                (b":protocol", b"websocket"),
                (b":scheme", b"https"),
                (b":authority", b"localhost"),
                (b":path", b"/uamp/1/ws"),
                (b"sec-websocket-version", b"13"),
                (b"sec-websocket-protocol", b"\xff"),
            ],
            [
                (b":method", b"GET"),
                (b":scheme", b"https"),
                (b":authority", b"localhost"),
                (b":path", b"/\xff"),
            ],
        ):
            stream = client.quic.get_next_available_stream_id()
            client._answers[stream] = answer
            client._http.send_headers(stream, fields, end_stream=True)
            client.transmit()
            await later(lambda stream=stream: stream in client.resets)  # type: ignore[misc]
        assert set(client.resets.values()) == {ErrorCode.H3_MESSAGE_ERROR}
        assert (await client.request("GET", "/healthz", {})).headers[":status"] == "200"
        assert len(accepted) == 1

    run(port, tmp_path, send_odd_requests)
    assert status_of(port, tmp_path) == "200"


def test_a_client_that_disconnects_is_sent_nothing_more(port: int, tmp_path: Path) -> None:
    quick_agent("talker", "echo", delay=0.5)
    peer = add_peer()
    words = " ".join(["word"] * 200)
    to = [f"{SERVER}:agents:talker"]
    ask = json.dumps(peer.envelope(content=words, to=to, stream_id="str-1")).encode()
    bearer = {name.lower(): value for name, value in peer.bearer().items()}

    async def ask_and_disconnect(client: Http3) -> None:
        await client.request("POST", "/v1/messages", {"content-type": "application/uamp+json"}, ask)
        _, answer = client.begin("GET", "/v1/stream/str-1", bearer)
        await asyncio.wait_for(answer.begun.wait(), SECONDS)
        await later(lambda: bool(windowed._open))

    run(port, tmp_path, ask_and_disconnect)
    wait_until(lambda: not windowed._open)

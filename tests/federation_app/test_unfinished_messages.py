"""WebSockets on the port for peers whose clients do not finish a message, or send odd frames."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import h2.connection
import h2.events
import pytest
from asgiref.sync import async_to_sync
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, CloseConnection, Ping, Request

from federation_app.edges import websocket
from tests.client import wait_until
from tests.federation_app.http3_client import connected as connected_over_quic
from tests.federation_app.peer import Records, add_peer, text_of
from tests.federation_app.test_http2 import answers, tls
from tests.federation_app.test_stalled_clients import (
    connected,
    event_of,
    headers_of,
    server,
)
from uamp_project.edge.arrivals import FRAMES_BURST
from uamp_project.edge.bodies import in_flight
from uamp_project.servers.peer_ports import hypercorn_sockets

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

__all__ = ["server"]

pytestmark = pytest.mark.django_db(transaction=True)
KIB = 1024
PATH = "/uamp/1/ws"
# Masked with zeros: the status 1000.
CLOSE_FRAME = b"\x88\x82\0\0\0\0\x03\xe8"
HANDSHAKE = [("sec-websocket-version", "13"), ("sec-websocket-protocol", "uamp.v1")]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sockets of strangers stay open: only the limits of the server end them."""
    monkeypatch.setattr(websocket, "SILENT_SECONDS", 600.0)


def unfinished(size: int, sent: int) -> bytes:
    """Return the beginning of a masked binary frame."""
    return b"\x82\xff" + size.to_bytes(8, "big") + bytes(4) + bytes(sent)


def open_socket(secured: ssl.SSLSocket) -> WSConnection:
    """Open a WebSocket over HTTP/1.1 that offers compression."""
    client = WSConnection(ConnectionType.CLIENT)
    request = Request(
        host="localhost",
        target=PATH,
        subprotocols=["uamp.v1"],
        extra_headers=[(b"Sec-WebSocket-Extensions", b"permessage-deflate")],
    )
    secured.sendall(client.send(request))
    while True:
        client.receive_data(secured.recv(65536))
        for event in client.events():
            assert isinstance(event, AcceptConnection)
            assert not event.extensions
            return client


def ends(secured: ssl.SSLSocket) -> bool:
    """Return whether the connection ends without a close frame."""
    with suppress(ConnectionError, ssl.SSLError):
        return secured.recv(65536) == b""
    return True


def extended_connect() -> list[tuple[str, str]]:
    """Return the headers that open a WebSocket over HTTP/2."""
    headers = [*headers_of("CONNECT", PATH), (":protocol", "websocket"), *HANDSHAKE]
    return sorted(headers, key=lambda header: header[0][0] != ":")


def test_an_unfinished_message_ends_its_connection(server: httpx.Client, tmp_path: Path) -> None:
    with connected(server, tmp_path, "http/1.1") as secured:
        open_socket(secured)
        secured.sendall(unfinished(8 * KIB * KIB, 100 * KIB))
        wait_until(lambda: in_flight.total > 0)
        assert ends(secured)
    wait_until(lambda: in_flight.total == 0)


def test_an_unfinished_message_over_http2_ends_its_stream(
    server: httpx.Client, tmp_path: Path
) -> None:
    with tls(server, tmp_path, ssl.TLSVersion.TLSv1_3) as secured:
        connection = h2.connection.H2Connection()
        connection.initiate_connection()
        connection.send_headers(1, extended_connect())
        secured.sendall(connection.data_to_send())
        event_of(secured, connection, h2.events.ResponseReceived)
        connection.send_data(1, unfinished(KIB * KIB, 8 * KIB))
        secured.sendall(connection.data_to_send())
        assert event_of(secured, connection, h2.events.StreamReset).stream_id == 1
        connection.send_headers(3, headers_of("GET", "/healthz"), end_stream=True)
        secured.sendall(connection.data_to_send())
        assert answers(secured, connection, 3)


def test_an_unfinished_message_over_http3_ends_its_stream(
    server: httpx.Client, tmp_path: Path
) -> None:
    port = server.base_url.port
    assert port is not None

    @async_to_sync
    async def leave_unfinished() -> None:
        async with connected_over_quic(port, tmp_path) as client:
            headers = {":protocol": "websocket", **dict(HANDSHAKE)}
            stream, answer = client.begin("CONNECT", PATH, headers, is_whole=False)
            await asyncio.wait_for(answer.begun.wait(), 60)
            assert answer.headers[":status"] == "200"
            client.send(stream, unfinished(KIB * KIB, 8 * KIB))
            await asyncio.wait_for(answer.ended.wait(), 60)
            assert set(client.resets) == {stream}
            assert (await client.request("GET", "/healthz", {})).headers[":status"] == "200"

    leave_unfinished()


def test_a_socket_that_its_client_closes_over_http3_is_closed_here(
    server: httpx.Client, tmp_path: Path
) -> None:
    port = server.base_url.port
    assert port is not None

    @async_to_sync
    async def close() -> None:
        async with connected_over_quic(port, tmp_path) as client:
            headers = {":protocol": "websocket", **dict(HANDSHAKE)}
            stream, answer = client.begin("CONNECT", PATH, headers, is_whole=False)
            await asyncio.wait_for(answer.begun.wait(), 60)
            assert websocket._sockets.total() == 1
            client.send(stream, CLOSE_FRAME)
            await asyncio.wait_for(answer.ended.wait(), 60)
            await asyncio.to_thread(wait_until, lambda: not websocket._sockets)
            # The connection stays open.
            assert (await client.request("GET", "/healthz", {})).headers[":status"] == "200"

    close()


def test_messages_count_for_their_address(
    server: httpx.Client, tmp_path: Path, settings: Any
) -> None:
    settings.UAMP_STALL_SECONDS = 600
    settings.UAMP_BODY_BYTES_PER_ADDRESS = 256 * KIB
    with connected(server, tmp_path, "http/1.1") as secured:
        open_socket(secured)
        secured.sendall(unfinished(8 * KIB * KIB, 200 * KIB))
        wait_until(lambda: in_flight.total > 100 * KIB)
        secured.sendall(bytes(200 * KIB))
        assert ends(secured)
    wait_until(lambda: in_flight.total == 0)


def test_a_message_that_was_taken_counts_no_longer(
    server: httpx.Client, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.UAMP_BODY_BYTES_PER_ADDRESS = 256 * KIB
    opened: list[hypercorn_sockets.LimitedSocket] = []
    begin = hypercorn_sockets.LimitedSocket.__init__

    def note(socket: hypercorn_sockets.LimitedSocket, *args: Any, **options: Any) -> None:
        begin(socket, *args, **options)
        opened.append(socket)

    monkeypatch.setattr(hypercorn_sockets.LimitedSocket, "__init__", note)
    peer = add_peer()
    context = ssl.create_default_context(cafile=str(tmp_path / "certificate.pem"))
    with Records(f"wss://localhost:{server.base_url.port}", tls=context) as records:
        for _ in range(5):
            records.send(peer.envelope(content="word " * (16 * KIB)))
            assert text_of(records.until("done", "error")).startswith("word")
        (socket,) = opened
        assert socket.arrival._held == 0


def test_too_many_pings_close_a_socket(server: httpx.Client, tmp_path: Path) -> None:
    with connected(server, tmp_path, "http/1.1") as secured:
        client = open_socket(secured)
        with suppress(ConnectionError, ssl.SSLError):
            secured.sendall(b"".join(client.send(Ping()) for _ in range(FRAMES_BURST + 100)))
        closed: list[CloseConnection] = []
        with suppress(ConnectionError, ssl.SSLError):
            while not closed and (data := secured.recv(65536)):
                client.receive_data(data)
                closed += [e for e in client.events() if isinstance(e, CloseConnection)]
    assert [event.code for event in closed] == [1008]

"""Clients of the port for peers that stop in the middle, or open too many connections."""

from __future__ import annotations

import socket
import ssl
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import h2.connection
import h2.events
import h2.settings
import pytest

from federation_app.edges import websocket
from tests.client import wait_until
from tests.federation_app.test_http2 import answers, tls
from uamp_project.edge import bodies
from uamp_project.servers.peer_ports import hypercorn_connections

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx

pytestmark = pytest.mark.django_db(transaction=True)
STALL_SECONDS = 2
LARGE = "/api/schema"
"""A public document that is larger than the window of a stream."""


@pytest.fixture
def server(hypercorn: httpx.Client, settings: Any) -> httpx.Client:
    """Return a client of a server that soon loses its patience."""
    settings.UAMP_STALL_SECONDS = STALL_SECONDS
    assert len(hypercorn.get(LARGE).content) > 2**17
    return hypercorn


@contextmanager
def connected(client: httpx.Client, folder: Path, *protocols: str) -> Iterator[ssl.SSLSocket]:
    """Connect to the server with TLS, for a client that takes little at once."""
    context = ssl.create_default_context(cafile=str(folder / "certificate.pem"))
    context.set_alpn_protocols(list(protocols))
    with socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.settimeout(60)
        raw.connect(("127.0.0.1", client.base_url.port or 0))
        with context.wrap_socket(raw, server_hostname="localhost") as secured:
            yield secured


def headers_of(method: str, path: str) -> list[tuple[str, str]]:
    """Return the headers of a request over HTTP/2."""
    return [
        (":method", method), (":scheme", "https"), (":authority", "localhost"), (":path", path),
        ("content-type", "application/uamp+json"),
    ]  # fmt: skip


def is_served(secured: ssl.SSLSocket) -> bool:
    """Return whether the server begins to speak HTTP/2."""
    with suppress(ConnectionError, ssl.SSLError):
        return bool(secured.recv(9))
    return False


def event_of(
    secured: ssl.SSLSocket, connection: h2.connection.H2Connection, kind: type[Any]
) -> Any:
    """Return the next event of a kind, while the client opens no window."""
    while data := secured.recv(65536):
        events = connection.receive_data(data)
        secured.sendall(connection.data_to_send())
        for event in events:
            if isinstance(event, kind):
                return event
    raise AssertionError("the connection has ended")


def test_a_body_that_stops_ends_its_stream_alone(server: httpx.Client, tmp_path: Path) -> None:
    with tls(server, tmp_path, ssl.TLSVersion.TLSv1_3) as secured:
        connection = h2.connection.H2Connection()
        connection.initiate_connection()
        connection.send_headers(1, headers_of("POST", "/v1/messages"))
        connection.send_data(1, b"{")
        secured.sendall(connection.data_to_send())
        assert event_of(secured, connection, h2.events.StreamEnded).stream_id == 1
        connection.send_headers(3, headers_of("GET", "/healthz"), end_stream=True)
        secured.sendall(connection.data_to_send())
        assert answers(secured, connection, 3)


def test_a_body_that_stops_ends_its_connection(server: httpx.Client, tmp_path: Path) -> None:
    with connected(server, tmp_path, "http/1.1") as secured:
        secured.sendall(
            b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
        )
        received = b""
        while data := secured.recv(65536):
            received += data
    assert received.startswith(b"HTTP/1.1 500 ")


def test_a_reader_that_stops_loses_its_stream_alone(server: httpx.Client, tmp_path: Path) -> None:
    with tls(server, tmp_path, ssl.TLSVersion.TLSv1_3) as secured:
        connection = h2.connection.H2Connection()
        connection.initiate_connection()
        connection.send_headers(1, headers_of("GET", LARGE), end_stream=True)
        secured.sendall(connection.data_to_send())
        # Its window stays full.
        assert event_of(secured, connection, h2.events.StreamReset).stream_id == 1
        connection.increment_flow_control_window(2**20)
        connection.send_headers(3, headers_of("GET", "/healthz"), end_stream=True)
        secured.sendall(connection.data_to_send())
        assert answers(secured, connection, 3)


def test_a_socket_whose_window_stays_full_is_reset(
    server: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "SILENT_SECONDS", 0.5)
    with tls(server, tmp_path, ssl.TLSVersion.TLSv1_3) as secured:
        connection = h2.connection.H2Connection()
        connection.initiate_connection()
        connection.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 0})
        handshake = [
            *headers_of("CONNECT", "/uamp/1/ws"),
            (":protocol", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-protocol", "uamp.v1"),
        ]
        connection.send_headers(1, sorted(handshake, key=lambda header: header[0][0] != ":"))
        # It is closed because it sends nothing, and has no window for the close frame.
        secured.sendall(connection.data_to_send())
        assert event_of(secured, connection, h2.events.StreamReset).stream_id == 1


def test_an_unread_body_holds_no_connection(
    server: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "DISCARD_SECONDS", 0.1)
    server.close()
    wait_until(lambda: not hypercorn_connections._connections)
    with connected(server, tmp_path, "http/1.1") as secured:
        with suppress(OSError):
            secured.sendall(
                b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Length: 1000000000\r\n\r\n"
            )
            for _ in range(1000):
                secured.sendall(bytes(65536))
        wait_until(lambda: not hypercorn_connections._connections)


@pytest.mark.parametrize("protocol", ["h2", "http/1.1"])
def test_a_client_that_reads_nothing_is_disconnected(
    server: httpx.Client, tmp_path: Path, protocol: str
) -> None:
    server.close()
    wait_until(lambda: not hypercorn_connections._connections)
    with connected(server, tmp_path, protocol) as secured:
        if protocol == "h2":
            connection = h2.connection.H2Connection()
            connection.initiate_connection()
            connection.increment_flow_control_window(2**30)
            for stream_id in range(1, 101, 2):
                connection.send_headers(stream_id, headers_of("GET", LARGE), end_stream=True)
                connection.increment_flow_control_window(2**30, stream_id)
            secured.sendall(connection.data_to_send())
        else:
            secured.sendall(f"GET {LARGE} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * 50)
        wait_until(lambda: hypercorn_connections._connections.total() == 1)
        wait_until(lambda: not hypercorn_connections._connections)
        assert not hypercorn_connections._watches


def test_an_address_has_a_number_of_connections(
    server: httpx.Client, settings: Any, tmp_path: Path
) -> None:
    server.close()
    wait_until(lambda: not hypercorn_connections._connections)
    settings.UAMP_CONNECTIONS_PER_ADDRESS = 1
    with connected(server, tmp_path, "h2") as first:
        assert is_served(first)
        for is_refused in (True, False):
            with connected(server, tmp_path, "h2") as second:
                assert is_served(second) is not is_refused
            # A proxy has many clients.
            settings.UAMP_TRUSTED_PROXIES = ["127.0.0.0/8"]

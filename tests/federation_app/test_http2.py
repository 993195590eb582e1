"""Envelopes over HTTP/2 and TLS 1.3: httpx with h2 against Hypercorn."""

from __future__ import annotations

import importlib.metadata
import json
import socket
import ssl
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import h2.connection
import h2.events
import pytest

from tests.federation_app.peer import Records, add_peer, sse, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_ask_and_its_stream_over_http2(hypercorn: httpx.Client) -> None:
    peer = add_peer()
    ask = peer.envelope(content="hello there", stream_id="str-1")
    headers = {"Content-Type": "application/uamp+json"}
    accepted = hypercorn.post("/v1/messages", content=json.dumps(ask), headers=headers)
    assert (accepted.http_version, accepted.status_code) == ("HTTP/2", 202)
    with hypercorn.stream("GET", accepted.headers["Location"], headers=peer.bearer()) as response:
        assert response.http_version == "HTTP/2"
        deltas = [delta for _, delta in sse(response)]
    assert "hello there" in text_of(deltas)
    assert deltas[-1]["type"] == "done"
    forged = {**ask, "intent": "cancel"}
    refused = hypercorn.post("/v1/messages", content=json.dumps(forged), headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (401, "4.01")


def test_an_ask_over_a_websocket_with_tls_1_3(hypercorn: httpx.Client, tmp_path: Path) -> None:
    peer = add_peer()
    context = ssl.create_default_context(cafile=str(tmp_path / "certificate.pem"))
    with Records(f"wss://localhost:{hypercorn.base_url.port}", tls=context) as records:
        secured: Any = records.socket.socket
        assert (secured.version(), records.socket.subprotocol) == ("TLSv1.3", "uamp.v1")
        records.send(peer.envelope(content="hello there"))
        assert text_of(records.until("done", "error")) == "hello there"


@contextmanager
def tls(client: httpx.Client, folder: Path, version: ssl.TLSVersion) -> Iterator[ssl.SSLSocket]:
    """Connect to the server with one version of TLS."""
    context = ssl.create_default_context(cafile=str(folder / "certificate.pem"))
    context.minimum_version = context.maximum_version = version
    context.set_alpn_protocols(["h2"])
    with (
        socket.create_connection(("127.0.0.1", client.base_url.port or 0), 30) as raw,
        context.wrap_socket(raw, server_hostname="localhost") as secured,
    ):
        yield secured


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_tls_1_2_is_refused(hypercorn: httpx.Client, tmp_path: Path) -> None:
    with tls(hypercorn, tmp_path, ssl.TLSVersion.TLSv1_3) as secured:
        assert (secured.version(), secured.selected_alpn_protocol()) == ("TLSv1.3", "h2")
    with (
        pytest.raises((ssl.SSLError, ConnectionError)),
        tls(hypercorn, tmp_path, ssl.TLSVersion.TLSv1_2),
    ):
        pass


def answers(secured: ssl.SSLSocket, connection: h2.connection.H2Connection, stream: int) -> bool:
    """Return whether a stream is answered before the connection ends."""
    while data := secured.recv(65536):
        events = connection.receive_data(data)
        secured.sendall(connection.data_to_send())
        for event in events:
            if isinstance(event, h2.events.ConnectionTerminated):
                return False
            if isinstance(event, h2.events.StreamEnded) and event.stream_id == stream:
                return True
    return False


def test_data_after_its_answer_does_not_end_the_connection(
    hypercorn: httpx.Client, tmp_path: Path
) -> None:
    """Hypercorn issue 329; look whether `repair` is still needed when the version changes."""
    assert importlib.metadata.version("hypercorn") == "0.18.0"
    with tls(hypercorn, tmp_path, ssl.TLSVersion.TLSv1_3) as secured:
        connection = h2.connection.H2Connection()
        connection.initiate_connection()
        first: list[Any] = [
            (":method", "POST"), (":scheme", "https"), (":authority", "localhost"),
            (":path", "/v1/messages"), ("content-length", str(2**40)),
        ]  # fmt: skip
        connection.send_headers(1, first)
        secured.sendall(connection.data_to_send())
        assert answers(secured, connection, 1), "it is too large, which its headers say"
        connection.send_data(1, b"x" * 1000)
        health = [(":method", "GET"), *first[1:3], (":path", "/healthz")]
        connection.send_headers(3, health, end_stream=True)
        secured.sendall(connection.data_to_send())
        assert answers(secured, connection, 3)

"""Asking over HTTP/2 a server that answers what no server may, or nothing."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import h2.config
import h2.connection
import h2.events
import httpcore2
import pytest
from asgiref.sync import async_to_sync

from federation_app import own_names
from federation_app.models import Peer, PeerKey, PeerTrust
from federation_app.remote_agents import conversation, questions
from federation_app.remote_agents.transports import web
from federation_app.remote_agents.transports.connection import ConnectionLost
from federation_app.remote_agents.transports.web import HttpPeerConnection
from sessions_app import database
from tests.federation_app.peer import HOST, SERVER
from tests.federation_app.test_asking_http2 import question, trusting
from tests.threads import join_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["trusting"]

pytestmark = pytest.mark.django_db(transaction=True)
ACCEPTED = [(":status", "202"), ("content-length", "0")]


@pytest.fixture(autouse=True)
def peer_here(settings: Any) -> None:
    """Make this server its own peer."""
    settings.UAMP_FEDERATION_HOST = HOST
    peer = Peer.objects.create(did=SERVER, name="here", trust=PeerTrust.OPERATOR)
    for key in own_names.own_keys(SERVER):
        PeerKey.objects.create(peer=peer, kid=key.kid, algorithm=key.algorithm, jwk=key.jwk())


@contextmanager
def lying(folder: Path, answer: Callable[[h2.connection.H2Connection, int], None]) -> Iterator[int]:
    """Answer each request on each connection this way; give the port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    context.set_alpn_protocols(["h2"])
    ends = threading.Event()

    def serve(raw: socket.socket) -> None:
        config = h2.config.H2Configuration(client_side=False, validate_outbound_headers=False)
        connection = h2.connection.H2Connection(config=config)
        connection.initiate_connection()
        with suppress(OSError), raw, context.wrap_socket(raw, server_side=True) as secured:
            secured.settimeout(0.2)
            while not ends.is_set():
                secured.sendall(connection.data_to_send())
                try:
                    data = secured.recv(65536)
                except TimeoutError:
                    continue
                if not data:
                    return
                for event in connection.receive_data(data):
                    if isinstance(event, h2.events.StreamEnded):
                        answer(connection, event.stream_id)

    def accept(listener: socket.socket) -> None:
        while not ends.is_set():
            with suppress(TimeoutError):
                serve(listener.accept()[0])

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        thread = threading.Thread(target=accept, args=(listener,))
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            ends.set()
            join_threads([thread])


def bad_status(connection: h2.connection.H2Connection, stream_id: int) -> None:
    """Answer with a status that is not a number."""
    connection.send_headers(stream_id, [(":status", "x")], end_stream=True)


def left(connection: h2.connection.H2Connection, stream_id: int) -> None:
    """Accept the first request, and leave in the middle of the answer to the second."""
    connection.send_headers(stream_id, ACCEPTED, end_stream=stream_id == 1)
    if stream_id > 1:
        connection.close_connection(last_stream_id=1)


@async_to_sync
async def tell_twice(port: int) -> None:
    """Post a question two times over one connection."""
    asked = question(port)
    signed = await database.run(questions.signed_question, asked.receiver, asked.text, hops=1)
    async with HttpPeerConnection(asked, signed) as connection:
        await connection.tell(signed.raw)
        await connection.tell(signed.raw)


@pytest.mark.parametrize(
    ("answer", "cause"),
    [(bad_status, ValueError), (left, httpcore2.ConnectionNotAvailable)],
)
def test_an_impossible_answer_is_a_lost_connection(
    trusting: Path, answer: Callable[[Any, int], None], cause: type[Exception]
) -> None:
    with lying(trusting, answer) as port, pytest.raises(ConnectionLost) as lost:
        tell_twice(port)
    assert isinstance(lost.value.__cause__, cause)


@pytest.mark.parametrize("answer", [bad_status, left])
def test_a_cancellation_at_such_a_server_gives_up(
    trusting: Path, answer: Callable[[Any, int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "PAUSE_SECONDS", 0.001)

    @async_to_sync
    async def cancel(port: int) -> None:
        asked = question(port)
        signed = await database.run(questions.signed_question, asked.receiver, asked.text, hops=1)
        await conversation._cancel(asked, signed)

    with lying(trusting, answer) as port:
        cancel(port)


def test_an_acknowledgement_waits_for_a_limited_time(
    trusting: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "ACKNOWLEDGED_SECONDS", 0.5)

    @async_to_sync
    async def acknowledge(port: int) -> None:
        asked = question(port)
        signed = await database.run(questions.signed_question, asked.receiver, asked.text, hops=1)
        async with HttpPeerConnection(asked, signed) as connection:
            await connection.acknowledge(0)

    with lying(trusting, lambda _connection, _stream: None) as port:
        with pytest.raises(ConnectionLost) as lost:
            acknowledge(port)
        assert isinstance(lost.value.__cause__, TimeoutError)

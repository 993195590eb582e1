"""Asking agents of peers over HTTP/2: one connection, cut lines, abandoned answers, the guard."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from contextlib import aclosing, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import async_to_sync

from agents_app.outbound.backends import GuardedBackend
from agents_app.outbound.rules import Policy, check_url
from agents_app.remote.protocols.peers import PeerQuestion
from federation_app import own_names
from federation_app.exchange import windowed
from federation_app.models import Peer, PeerKey, PeerTrust, ReceivedEnvelope
from federation_app.remote_agents import conversation, questions
from federation_app.remote_agents.transports.connection import ConnectionLost
from federation_app.remote_agents.transports.web import HttpPeerConnection
from sessions_app import database
from sessions_app.models import Response
from tests.client import wait_until
from tests.faults.cut_line import CutLine
from tests.federation_app.local_certificate import certificate
from tests.federation_app.peer import SERVER
from tests.federation_app.secure_server import requests, trust_certificate
from tests.live_server import quick_agent
from tests.threads import join_threads
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx

__all__ = ["requests"]

pytestmark = pytest.mark.django_db(transaction=True)
TALKER = f"{SERVER}:agents:talker"
# Its deltas need acknowledgements: the window has 64.
WORDS = " ".join(f"word{number}" for number in range(100))
CUTS = 5
BETWEEN = 8


def question(port: int, text: str = WORDS, *, is_allowed: bool = True) -> PeerQuestion:
    """Return a question to `talker` at a port of this machine, over TLS."""
    allowed = frozenset({f"localhost:{port}"} if is_allowed else ())
    return PeerQuestion(
        protocol="envelope_http",
        target=check_url(f"https://localhost:{port}", Policy(allowed=allowed)),
        receiver=TALKER,
        text=text,
        hops=1,
        silent=60,
    )


@pytest.fixture
def trusting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Trust a certificate of localhost; return its folder."""
    if not (tmp_path / "certificate.pem").exists():
        certificate(tmp_path)
    trust_certificate(tmp_path, monkeypatch)
    return tmp_path


@pytest.fixture
def port(hypercorn: httpx.Client, trusting: Path) -> int:
    """Return the port of this server, which is its own peer, and has an agent that talks."""
    peer = Peer.objects.create(did=SERVER, name="here", trust=PeerTrust.OPERATOR)
    for key in own_names.own_keys(SERVER):
        PeerKey.objects.create(peer=peer, kid=key.kid, algorithm=key.algorithm, jwk=key.jwk())
    quick_agent("talker", "echo", delay=0.02)
    return hypercorn.base_url.port or 0


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the connections that are made from now on."""
    made: list[Any] = []
    connect_tcp = GuardedBackend.connect_tcp

    async def note(backend: GuardedBackend, *args: Any, **options: Any) -> Any:
        made.append(await connect_tcp(backend, *args, **options))
        return made[-1]

    monkeypatch.setattr(GuardedBackend, "connect_tcp", note)
    return made


def text_of(events: list[Any]) -> str:
    """Return the text of an answer."""
    text = ""
    for event in events:
        if isinstance(event, ev.ResponseDelta):
            text = text[: event.offset] + (event.delta.text or "")
    return text


@async_to_sync
async def tell(asked: PeerQuestion) -> None:
    """Send a question, without its stream."""
    signed = await database.run(questions.signed_question, asked.receiver, asked.text, hops=1)
    async with HttpPeerConnection(asked, signed) as connection:
        await connection.tell(signed.raw)


@contextmanager
def listening(context: ssl.SSLContext) -> Iterator[int]:
    """Accept one connection, for a handshake of TLS; give its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)

        def accept() -> None:
            with suppress(OSError), listener.accept()[0] as raw:
                raw.settimeout(60)
                context.wrap_socket(raw, server_side=True).close()

        thread = threading.Thread(target=accept)
        thread.start()
        yield listener.getsockname()[1]
        join_threads([thread])


def test_a_question_takes_one_connection(
    port: int, connections: list[Any], requests: list[tuple[str, bytes]]
) -> None:
    @async_to_sync
    async def events() -> list[Any]:
        return [event async for event in conversation.ask(question(port))]

    answer = events()
    assert (text_of(answer), type(answer[-1])) == (WORDS, ev.ResponseDone)
    assert {version for _, version in requests} == {b"HTTP/2"}
    # The question, its stream and at least one acknowledgement.
    methods = [method for method, _ in requests]
    assert methods[:2] == ["POST", "GET"]
    assert methods.count("POST") > 1
    assert len(connections) == 1


def test_an_answer_is_whole_and_single_after_its_connections_were_cut(port: int) -> None:
    line = CutLine("127.0.0.1", port)

    @async_to_sync
    async def ask() -> tuple[list[Any], int]:
        events: list[Any] = []
        cuts = deltas = 0
        async with aclosing(conversation.ask(question(line.port))) as answer:
            async for event in answer:
                events.append(event)
                deltas += isinstance(event, ev.ResponseDelta)
                if deltas > BETWEEN * (cuts + 1) and cuts < CUTS:
                    cuts += line.cut() > 0
        return events, cuts

    events, cuts = ask()
    line.close()
    assert (text_of(events), type(events[-1])) == (WORDS, ev.ResponseDone)
    assert cuts == CUTS
    assert ReceivedEnvelope.objects.filter(intent="ask").count() == 1
    assert list(Response.objects.values_list("status", flat=True)) == ["completed"]


def test_an_abandoned_answer_ends_its_stream(port: int) -> None:
    quick_agent("slow-talker", "echo", delay=0.5)

    @async_to_sync
    async def ask_and_leave() -> None:
        asked = replace(question(port), receiver=f"{SERVER}:agents:slow-talker")
        signed = await database.run(questions.signed_question, asked.receiver, asked.text, hops=1)
        async with HttpPeerConnection(asked, signed) as connection:
            await connection.begin(-1)
            await connection.receive()
            assert windowed._open
        # The loop runs on, and would keep a connection open.
        await asyncio.to_thread(wait_until, lambda: not windowed._open)

    ask_and_leave()
    assert Response.objects.get().status == "in_progress"


def test_a_server_without_tls_1_3_is_not_asked(port: int, trusting: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(trusting / "certificate.pem", trusting / "key.pem")
    with listening(context) as old_port:
        with pytest.raises(ConnectionLost) as lost:
            tell(question(old_port))
        assert "PROTOCOL_VERSION" in str(lost.value.__cause__).upper().replace(" ", "_")


def test_an_address_that_the_rules_forbid_is_not_asked(port: int, connections: list[Any]) -> None:
    del port
    with pytest.raises(ConnectionLost) as lost:
        tell(question(8443, is_allowed=False))
    assert "leads to" in str(lost.value.__cause__)
    assert connections == []

"""Peers that do not answer posts or requests for documents: they hold up only themselves."""

from __future__ import annotations

import asyncio
import json
import threading
import uuid
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from chat_app.log import fanout
from federation_app.guests import delivery, typing_signs
from federation_app.models import ChatFollower, Peer, PeerTrust
from federation_app.peers import documents, reading
from federation_app.peers import registry as peers
from sessions_app.access import rates
from sessions_app.frames import frame
from sessions_app.process import registry
from tests.client import text_of, wait_until
from tests.federation_app.foreign_guests import invited
from tests.federation_app.peer import add_peer
from tests.http_server import LocalServer, QuietHandler, serving
from tests.live_server import shared_chat
from tests.threads import thread_pool
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chat_app.models import Chat
    from tests.conftest import ServerAddress
    from tests.federation_app.peer import ForeignPeer
    from tests.live_server import Dial, Person

pytestmark = pytest.mark.django_db(transaction=True)
WAIT_SECONDS = 60


class PostServer(LocalServer):
    """Counts posts and requests for documents, and answers them once `may_answer` is set."""

    def __init__(self) -> None:
        self.posts: list[bytes] = []
        self.requested_paths: list[str] = []
        self.may_answer = threading.Event()
        server = self

        class Handler(QuietHandler):
            def do_GET(self) -> None:  # noqa: N802 as below
                server.requested_paths.append(self.path)
                server.may_answer.wait(WAIT_SECONDS)
                self.send_error(404)

            def do_POST(self) -> None:  # noqa: N802 the name is the interface of http.server
                server.posts.append(self.rfile.read(int(self.headers["Content-Length"])))
                server.may_answer.wait(WAIT_SECONDS)
                self.send_response(202)
                self.end_headers()

        super().__init__(Handler)


@contextmanager
def post_server(*, answers: bool) -> Iterator[PostServer]:
    """Run a server for posts, which answers at once or at the end of the block."""
    with serving(PostServer()) as server:
        if answers:
            server.may_answer.set()
        try:
            yield server
        finally:
            server.may_answer.set()


@pytest.fixture
def loop(
    federated: ServerAddress, web: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[asyncio.AbstractEventLoop]:
    """Return the loop of the server, which has one thread for everything without its own."""
    settings.UAMP_REMOTE_ALLOW_HOSTS = ["127.0.0.1:*"]
    monkeypatch.setattr(delivery, "POST_SECONDS", 2.0 * WAIT_SECONDS)
    monkeypatch.setattr(typing_signs, "SECONDS", 0.0)
    assert web.get("/healthz").status_code < 500  # the process has begun
    (process_loop,) = registry._processes
    threads: Any = getattr(process_loop, "_default_executor")  # noqa: B009 asyncio has no way to read it
    with thread_pool(1) as pool:
        process_loop.call_soon_threadsafe(process_loop.set_default_executor, pool)
        try:
            yield process_loop
        finally:
            process_loop.call_soon_threadsafe(process_loop.set_default_executor, threads)


def rate_decision(loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether a request is allowed by a limiter that counts on a thread of the loop."""
    limiter = rates.RateLimiter("redis://127.0.0.1:1")
    future = asyncio.run_coroutine_threadsafe(limiter.take("reads", "address:192.0.2.1"), loop)
    return future.result(WAIT_SECONDS / 2).allowed


def follower(name: str, chat: Chat, server: PostServer) -> Peer:
    """Return a peer that follows a chat, and has all of its log."""
    peer = add_peer(name).row
    Peer.objects.filter(pk=peer.pk).update(address=server.origin)
    ChatFollower.objects.create(peer=peer, chat_id=chat.pk, first_seq=10**6, sent_seq=10**6)
    return peer


def type_in(chat: Chat, who: Person) -> None:
    """Let this process learn that a person types."""
    event = ev.PresenceTyping(
        user_id=str(who.user.pk), username="alice", is_typing=True, chat_id=chat.pk
    )
    group = fanout.chat_group(chat.pk)
    sign = fanout.signal_message(chat_id=chat.pk, frame=frame(event), user_id=who.user.pk)
    delivery.hear(group, sign)


def awaits_signs(chat: Chat) -> bool:
    """Return whether the delivery knows that the chat has followers."""
    return any(chat.pk in bell.chats for bell in delivery._doorbells.values())


def test_peers_that_do_not_answer_posts_hold_up_no_rate_limit(
    loop: asyncio.AbstractEventLoop, alice: Person
) -> None:
    chat = shared_chat(alice)
    with post_server(answers=False) as slow:
        for n in range(3):
            peer = add_peer(f"slow{n}.example").row
            Peer.objects.filter(pk=peer.pk).update(address=slow.origin)
            invited(chat, alice, f"gwen@slow{n}.example")
        wait_until(lambda: len(slow.posts) == 3)
        assert rate_decision(loop)


def test_a_peer_that_does_not_answer_signs_of_typing_gets_one_at_a_time(
    loop: asyncio.AbstractEventLoop, alice: Person
) -> None:
    chat = shared_chat(alice)
    with post_server(answers=False) as slow, post_server(answers=True) as quick:
        follower("slow.example", chat, slow)
        follower("quick.example", chat, quick)
        wait_until(lambda: awaits_signs(chat))

        def is_typed_to(server: PostServer, times: int) -> bool:
            type_in(chat, alice)
            return len(server.posts) >= times

        wait_until(lambda: is_typed_to(quick, 3))
        assert len(slow.posts) == 1
        assert rate_decision(loop)
        # Once it answers, it gets the next one.
        slow.may_answer.set()
        wait_until(lambda: is_typed_to(slow, 2))


def test_document_servers_that_do_not_answer_hold_up_no_turn(
    federated: ServerAddress,
    dial: Dial,
    alice: Person,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.UAMP_REMOTE_ALLOW_HOSTS = ["127.0.0.1:*"]
    monkeypatch.setattr(documents, "FETCH_SECONDS", 2.0 * WAIT_SECONDS)
    chat = dial(alice)
    chat.create_session(agent="echo")
    count = settings.DB_THREADS
    with post_server(answers=False) as silent, thread_pool(count) as pool:
        peers = [add_peer(f"silent{n}.example") for n in range(count)]
        Peer.objects.update(trust=PeerTrust.MANIFEST, documents_address=silent.origin)

        def post_forged(peer: ForeignPeer) -> int:
            forged = {**peer.envelope(), "id": f"urn:uuid:{uuid.uuid4()}"}
            return httpx.post(
                f"{federated.http}/v1/messages",
                content=json.dumps(forged),
                headers={"Content-Type": "application/uamp+json"},
                timeout=WAIT_SECONDS,
                trust_env=False,
            ).status_code

        statuses = [pool.submit(post_forged, peer) for peer in peers]
        wait_until(lambda: len(silent.requested_paths) == count)
        assert text_of(chat.answer("hello there")) == "hello there"
        assert not any(status.done() for status in statuses)
        silent.may_answer.set()
        assert {status.result(WAIT_SECONDS) for status in statuses} == {401}
    # The keys that are stored stay valid while the documents are away.
    assert not Peer.objects.filter(failing_since=None).exists()


def test_a_client_that_hangs_up_does_not_stop_the_reading_of_keys(
    loop: asyncio.AbstractEventLoop,
) -> None:
    with post_server(answers=False) as silent:
        peer = add_peer("slow.example").row
        peer.trust, peer.documents_address = PeerTrust.MANIFEST, silent.origin
        peer.save()
        has_ended = threading.Event()

        async def request() -> None:
            try:
                await reading.with_keys(peers.stored_keys, peer, "")
            finally:
                has_ended.set()

        future = asyncio.run_coroutine_threadsafe(request(), loop)
        wait_until(lambda: bool(silent.requested_paths))
        future.cancel()
        assert has_ended.wait(WAIT_SECONDS)
        with pytest.raises(CancelledError):
            future.result(WAIT_SECONDS)
        assert Peer.objects.filter(failing_since=None).exists()
        silent.may_answer.set()
        wait_until(lambda: not Peer.objects.filter(failing_since=None).exists())

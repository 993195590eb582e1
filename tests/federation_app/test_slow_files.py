"""Files that come slowly, or count too much: what else goes to and from their server meanwhile."""

from __future__ import annotations

import asyncio
import json
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from django.utils import timezone

from chat_app.models import Chat, Message
from federation_app.envelope.errors import EnvelopeError
from federation_app.guests import fetching
from federation_app.guests.contents import FileQuery, SharedFile
from federation_app.models import ChatFollower, Peer
from federation_app.peers import quotas
from sessions_app.process import registry
from tests.client import wait_until
from tests.federation_app.foreign_guests import GUEST, accept, invited, message
from tests.federation_app.peer import HOST, add_peer
from tests.federation_app.test_lying_files import (
    FILE,
    TABLE,
    FileServer,
    created,
    described,
    mirror,
    sends,
    serve,
)
from tests.http_server import LocalServer, QuietHandler, serving
from tests.live_server import shared_chat
from tests.threads import thread_pool

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.federation_app.peer import ForeignPeer
    from tests.live_server import Person

__all__ = ["mirror"]
pytestmark = pytest.mark.django_db(transaction=True)
WAIT_SECONDS = 120


class FetchingPeer(LocalServer):
    """A server that is busy with each envelope with files until a test says that they are there."""

    def __init__(self) -> None:
        self.is_there = threading.Event()
        self.tries = 0
        self.taken: list[tuple[str, str]] = []

        class Handler(QuietHandler):
            def do_POST(handler) -> None:  # noqa: N802, N805 the interface of http.server
                raw = handler.rfile.read(int(handler.headers["Content-Length"]))
                content = json.loads(json.loads(raw)["body"]["content"])
                if content.get("files") and not self.is_there.is_set():
                    self.tries += 1
                    handler.send_response(503)
                    handler.send_header("Retry-After", "1")
                else:
                    text = content.get("event", {}).get("message", {}).get("content", "")
                    self.taken.append((content.get("chat", ""), text))
                    handler.send_response(202)
                handler.end_headers()

        super().__init__(Handler)

    def texts(self, chat: Chat) -> list[str]:
        """Return the texts of the messages of a chat that were taken."""
        return [text for chat_id, text in self.taken if chat_id == chat.pk and text]


def test_a_slow_file_holds_up_its_chat_alone(
    peer: ForeignPeer,
    tell: Callable[..., tuple[int, str]],
    web: httpx.Client,
    alice: Person,
    settings: Any,
) -> None:
    settings.UAMP_REMOTE_ALLOW_HOSTS = ["127.0.0.1:*"]
    web.headers.update(alice.headers)
    chats = [shared_chat(alice, agents=()) for _ in range(2)]
    slow, quick = chats

    def say(chat: Chat, text: str, **members: Any) -> None:
        path = f"/api/v1/chats/{chat.pk}/messages"
        web.post(path, json={"content": text, **members}).raise_for_status()

    with serving(FetchingPeer()) as server:
        Peer.objects.filter(pk=peer.row.pk).update(address=server.origin)
        for chat in chats:
            accept(peer, tell, invited(chat, alice))
        files = {"file": ("t.csv", TABLE, "text/csv")}
        content = web.post("/api/v1/contents", files=files).json()["content_id"]
        say(slow, "with a file", attachments=[content])
        wait_until(lambda: server.tries > 0)
        say(slow, "after it")
        for number in range(3):
            say(quick, f"quick {number}")
        wait_until(lambda: server.texts(quick) == ["quick 0", "quick 1", "quick 2"])
        # It is tried again, and the order within its chat holds.
        wait_until(lambda: server.tries > 1)
        assert server.texts(slow) == []
        assert ChatFollower.objects.get(chat_id=slow.pk).held_until is not None
        assert Peer.objects.get(pk=peer.row.pk).failures == 0
        server.is_there.set()
        wait_until(lambda: server.texts(slow) == ["with a file", "after it"])


def test_a_repeat_does_not_wait_for_the_file(
    mirror: Chat,
    peer: ForeignPeer,
    tell: Callable[..., tuple[int, str]],
    alice: Person,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Longer than the client of `tell` would wait.
    monkeypatch.setattr(fetching, "PATIENCE_SECONDS", 3600.0)
    may_send = threading.Event()

    def slowly(handler: QuietHandler) -> None:
        may_send.wait(WAIT_SECONDS)
        sends(TABLE)(handler)

    content = created(alice, described())
    with serving(FileServer(slowly)) as server, thread_pool(1) as pool:
        serve(peer, server)
        first = pool.submit(tell, peer, "notify", content)
        wait_until(lambda: bool(server.paths))
        assert tell(peer, "notify", content)[1] == "5.04"
        may_send.set()
        assert first.result(WAIT_SECONDS) == (202, "")
    assert Message.objects.filter(chat=mirror).count() == 1


def test_the_files_of_a_slow_server_do_not_hold_up_those_of_another(
    peer: ForeignPeer,
    web: httpx.Client,
    alice: Person,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetching, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(fetching, "MIN_SECONDS", float(WAIT_SECONDS))
    settings.UAMP_REMOTE_ALLOW_HOSTS = ["127.0.0.1:*"]
    assert web.get("/healthz").status_code == 200  # the process has begun
    (loop,) = registry._processes
    chat = shared_chat(alice, agents=())
    other = add_peer("quick.example")
    may_send = threading.Event()

    def slowly(handler: QuietHandler) -> None:
        may_send.wait(WAIT_SECONDS)
        sends(TABLE)(handler)

    def fetch(who: ForeignPeer, number: int) -> Any:
        row = Peer.objects.get(pk=who.row.pk)
        file = SharedFile(**described(file=f"{FILE[:-2]}{number:02}"))
        query = FileQuery(chat="chat_theirs", message=f"msg_{number}", by="1")
        fetched = fetching.fetch_files(row, [file], query, chat_id=chat.pk)
        return asyncio.run_coroutine_threadsafe(fetched, loop).result(WAIT_SECONDS)

    with serving(FileServer(slowly)) as slow, serving(FileServer(sends(TABLE))) as quick:
        serve(peer, slow)
        serve(other, quick)
        # As many as the process would fetch at a time, and one too many of one server.
        for number in range(fetching.WAITING_OF_PEER):
            with pytest.raises(EnvelopeError):
                fetch(peer, number)
        wait_until(lambda: len(slow.paths) == fetching.AT_ONCE_OF_PEER)
        with pytest.raises(EnvelopeError):
            fetch(peer, 90)
        fetches = fetching._fetches[loop]
        assert len(fetches.tasks) == fetching.WAITING_OF_PEER
        with pytest.raises(EnvelopeError):
            fetch(other, 91)
        task = list(fetches.tasks.values())[-1]
        wait_until(task.done)
        assert task.exception() is None
        assert (len(quick.paths), len(slow.paths)) == (1, fetching.AT_ONCE_OF_PEER)
        may_send.set()
        wait_until(lambda: all(task.done() for task in list(fetches.tasks.values())))
    assert len(slow.paths) == fetching.WAITING_OF_PEER


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_wants_to_be_left_alone_is_asked_again(
    status: int,
    mirror: Chat,
    peer: ForeignPeer,
    tell: Callable[..., tuple[int, str]],
    alice: Person,
) -> None:
    content = created(alice, described())
    with serving(FileServer(sends(b"", status))) as server:
        serve(peer, server)
        tries = [tell(peer, "notify", content)[1] for _ in range(fetching.ATTEMPTS + 1)]
        assert tries == ["5.04"] * len(tries)
    with serving(FileServer(sends(TABLE))) as server:
        serve(peer, server)
        wait_until(lambda: tell(peer, "notify", content) == (202, ""))
    assert Message.objects.get(chat=mirror).content == "words"


def test_served_files_count_against_the_kib_of_an_hour(
    peer: ForeignPeer, tell: Callable[..., tuple[int, str]], web: httpx.Client, alice: Person
) -> None:
    chat = shared_chat(alice, agents=())
    web.headers.update(alice.headers)
    accept(peer, tell, invited(chat, alice))
    data = b"name,number\n" + b"alpha,1\n" * 256
    content = web.post("/api/v1/contents", files={"file": ("t.csv", data, "text/csv")}).json()
    path = f"/api/v1/chats/{chat.pk}/messages"
    body = {"content": "look", "attachments": [content["content_id"]]}
    web.post(path, json=body).raise_for_status()
    query = {"chat": chat.pk, "message": Message.objects.get(content="look").pk, "by": GUEST["id"]}
    # Room for two of them, besides the envelopes that gwen's server has sent.
    Peer.objects.filter(pk=peer.row.pk).update(kb_per_hour=6)
    url = f"{str(web.base_url).rstrip('/')}/v1/files/{content['content_id']}"

    def get() -> httpx.Response:
        return httpx.get(url, params=query, headers=peer.bearer(), trust_env=False)

    assert [get().status_code for _ in range(2)] == [200, 200]
    refused = get()
    assert (refused.status_code, refused.json()["code"]) == (429, "4.29")
    assert refused.headers["Retry-After"] == str(quotas.RETRY_SECONDS)
    assert Peer.objects.get(pk=peer.row.pk).served_bytes == 2 * len(data)
    # The envelopes of the peer have the same limit.
    assert tell(peer, "inform", message(chat, "x" * 1500))[1] == "4.29"
    hour_ago = timezone.now() - timedelta(minutes=61)
    Peer.objects.filter(pk=peer.row.pk).update(served_since=hour_ago)
    assert get().status_code == 200
    assert Peer.objects.get(pk=peer.row.pk).served_bytes == len(data)


def test_files_that_are_served_at_once_are_counted_one_by_one(settings: Any) -> None:
    settings.UAMP_FEDERATION_HOST = HOST
    peer = add_peer().row
    Peer.objects.filter(pk=peer.pk).update(kb_per_hour=3)
    peer.refresh_from_db()

    def count(_number: int) -> bool:
        try:
            quotas.count_file(peer, 1024)
        except EnvelopeError:
            return False
        return True

    with thread_pool(4) as pool:
        assert sum(pool.map(count, range(8))) == 3
    assert Peer.objects.get(pk=peer.pk).served_bytes == 3 * 1024

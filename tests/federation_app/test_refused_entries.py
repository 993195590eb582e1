"""Entries of shared chats that a peer refuses: the chat waits, or ends for the peer."""

from __future__ import annotations

import json
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from chat_app.models import Chat
from federation_app.models import ChatFollower, Peer
from federation_app.peers import registry
from tests import factories
from tests.client import wait_until
from tests.federation_app.foreign_guests import accept, invited
from tests.http_server import LocalServer, QuietHandler, serving
from tests.live_server import shared_chat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.test import Client

    from tests.federation_app.peer import ForeignPeer
    from tests.live_server import Person

pytestmark = pytest.mark.django_db(transaction=True)


class StatusServer(LocalServer):
    """Answers envelopes with `status`, and with 413 those of more than `limit` bytes."""

    def __init__(self, status: int, limit: int) -> None:
        super().__init__(StatusHandler)
        self.status, self.limit = status, limit
        self.accepted: list[bytes] = []


class StatusHandler(QuietHandler):
    """Answers with the status of its server."""

    server: StatusServer

    def do_POST(self) -> None:  # noqa: N802 the name is the interface of http.server
        """Read the envelope."""
        content = self.rfile.read(int(self.headers["Content-Length"]))
        is_small = len(content) <= self.server.limit
        if is_small:
            self.server.accepted.append(content)
        self.send_response(self.server.status if is_small else 413)
        self.send_header("Content-Length", "0")
        self.end_headers()


@pytest.fixture(autouse=True)
def _followed(
    peer: ForeignPeer, tell: Callable[..., tuple[int, str]], alice: Person, settings: Any
) -> None:
    """Have a chat of alice that a guest of the peer has joined."""
    settings.UAMP_REMOTE_ALLOW_HOSTS = ["127.0.0.1:*"]
    accept(peer, tell, invited(shared_chat(alice, agents=()), alice))


@contextmanager
def answering(peer: ForeignPeer, status: int, *, limit: int = 2**20) -> Iterator[StatusServer]:
    """Run the peer's server, which answers envelopes with a status."""
    with serving(StatusServer(status, limit)) as server:
        Peer.objects.filter(pk=peer.row.pk).update(address=server.origin, deliver_at=timezone.now())
        yield server


@pytest.mark.parametrize("status", [400, 402, 413, 415])
def test_a_chat_whose_entry_is_refused_waits_and_an_operator_sees_why(
    status: int, peer: ForeignPeer, admin_client: Client
) -> None:
    first = ChatFollower.objects.get().sent_seq
    with answering(peer, status) as server:
        wait_until(lambda: ChatFollower.objects.filter(held_until__gt=timezone.now()).exists())
        assert ChatFollower.objects.get().sent_seq == first
        page = admin_client.get("/admin/federation_app/peer/").content.decode()
        assert f"An entry of a shared chat was refused with {status}." in page
        assert Peer.objects.get(pk=peer.row.pk).failures == 0, "other chats go on"
        # Later the same entry is accepted.
        server.status = 202
        ChatFollower.objects.update(held_until=timezone.now())
        wait_until(lambda: ChatFollower.objects.get().sent_seq > first)
        wait_until(lambda: Peer.objects.get(pk=peer.row.pk).problem == "")


@pytest.mark.parametrize("status", [403, 404])
def test_a_peer_that_refuses_a_chat_is_no_longer_sent_it(status: int, peer: ForeignPeer) -> None:
    with answering(peer, status):
        wait_until(lambda: not ChatFollower.objects.exists())
    assert Peer.objects.get(pk=peer.row.pk).problem == ""


def test_a_text_is_shortened_until_a_peer_accepts_it(peer: ForeignPeer, alice: Person) -> None:
    # The peer's operator allows less than its manifest says.
    chat = Chat.objects.get(pk=ChatFollower.objects.get().chat_id)
    factories.message(chat, alice.user, "long " * 4000)
    factories.message(chat, alice.user, "after")
    chat.refresh_from_db()
    with answering(peer, 202, limit=9000) as server:
        wait_until(lambda: ChatFollower.objects.get().sent_seq >= chat.last_seq)
    assert ChatFollower.objects.get().held_until is None
    contents = [json.loads(raw)["body"]["content"] for raw in server.accepted]
    long, after = [content for content in contents if "message.created" in content]
    assert "long long" in long
    assert "[Shortened; the full text is on" in long
    assert '"after"' in after


def test_a_problem_is_shown_while_a_chat_is_held_and_hides_no_other(peer: ForeignPeer) -> None:
    (follower,) = ChatFollower.objects.all()

    def problem() -> str:
        return Peer.objects.get(pk=peer.row.pk).problem

    registry.note_refused_entry(peer.row.pk, 400)
    ChatFollower.objects.update(held_until=timezone.now() + timedelta(minutes=1))
    registry.clear_refused_entry(peer.row.pk)
    assert problem() == "An entry of a shared chat was refused with 400."
    follower.delete()
    registry.clear_refused_entry(peer.row.pk)
    assert problem() == ""
    Peer.objects.update(problem="Its keys cannot be fetched.")
    registry.note_refused_entry(peer.row.pk, 400)
    registry.clear_refused_entry(peer.row.pk)
    assert problem() == "Its keys cannot be fetched."


def test_current_keys_do_not_hide_that_an_entry_was_refused(peer: ForeignPeer) -> None:
    for problem, shown_problem in (
        ("Its keys cannot be fetched.", ""),
        ("An entry of a shared chat was refused with 400.",) * 2,
    ):
        row = Peer.objects.get(pk=peer.row.pk)
        Peer.objects.filter(pk=row.pk).update(problem=problem)
        registry._keep_keys(row, registry.keys_of(row, ""), timezone.now())
        assert Peer.objects.get(pk=row.pk).problem == shown_problem

"""Envelopes about shared chats that are refused: nothing of them is stored."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents_app.models import Agent
from chat_app.log.history import events_after
from chat_app.models import Chat, ChatEvent, Message, Participant
from federation_app.guests import entries, outgoing
from federation_app.models import ChatFollower, Guest, Peer
from federation_app.peers import registry
from sessions_app.models import Response
from tests.client import wait_until
from tests.federation_app.foreign_guests import GUEST, accept, invited, message
from tests.federation_app.peer import SERVER, ForeignPeer, add_peer
from tests.federation_app.shared_chats import counts
from tests.http_server import LocalServer, QuietHandler, serving
from tests.live_server import shared_chat
from tests.sessions_app.billing.paid_agents import priced

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from tests.live_server import Person

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def chat(peer: ForeignPeer, tell: Callable[..., tuple[int, str]], alice: Person) -> Chat:
    """Return a chat of alice that gwen, a guest, has joined."""
    chat_row = shared_chat(alice, agents=("echo",))
    accept(peer, tell, invited(chat_row, alice))
    return chat_row


def test_words_of_a_guest_are_stored_once(
    chat: Chat, peer: ForeignPeer, tell: Callable[..., tuple[int, str]]
) -> None:
    content = message(chat, "once")
    assert tell(peer, "inform", content) == (202, "")
    # Another envelope, because the answer to the first one was lost; and another message.
    assert tell(peer, "inform", content) == (202, "")
    assert tell(peer, "inform", message(chat, "twice")) == (202, "")
    assert tell(peer, "inform", content) == (202, "")
    rows = Message.objects.filter(chat=chat).order_by("seq")
    assert list(rows.values_list("name", "content")) == [
        (GUEST["name"], "once"),
        (GUEST["name"], "twice"),
    ]


def refusals(chat: Chat, alice: Person) -> list[tuple[str, str, Any]]:
    """Return the code, the intent and the content of envelopes that are refused."""
    mine = Message.objects.create(
        chat=chat, seq=999, role="user", sender_user=alice.user, content="mine"
    )
    other = shared_chat(alice, agents=())
    forged = {"id": "7", "name": "gwen@other.example"}
    local = {"id": str(alice.user.pk), "name": "alice@chat.example"}
    unknown = {"id": "8", "name": "greg@client.example"}
    act = {"chat": chat.pk, "by": GUEST, "message": mine.pk}
    entry = {
        "chat": chat.pk,
        "start": 0,
        "after": 0,
        "seq": 1,
        "title": "",
        "members": [GUEST],
        "event": {},
    }
    invitation = {"invitation": str(uuid.uuid4()), "chat": "chat_1", "title": "", "by": GUEST}
    to = "alice@chat.example"
    return [
        ("4.03", "inform", message(chat, by=forged)),
        ("4.03", "inform", message(chat, by=local)),
        ("4.04", "inform", message(chat, by=unknown)),
        ("4.04", "inform", message(other)),
        ("4.00", "inform", message(chat, "")),
        ("4.00", "inform", message(chat, "x" * 300_000)),
        ("4.00", "inform", message(chat, by={"id": "7", "name": f"{'g' * 10**5}@client.example"})),
        ("4.00", "inform", message(chat, ref="a b")),
        ("4.00", "inform", {"act": "other", "chat": chat.pk, "by": GUEST}),
        ("4.00", "inform", ["message"]),
        ("4.03", "inform", {"act": "edit", "text": "yours", **act}),
        ("4.03", "inform", {"act": "delete", **act}),
        ("4.04", "inform", {"act": "read", **act, "message": "msg_none"}),
        ("4.00", "inform", {"act": "react", "emoji": "words", **act}),
        ("4.00", "inform", {"act": "react", "emoji": "👍" * 10**4, **act}),
        ("4.03", "inform", {"act": "react", "emoji": "👍", **act, "by": local}),
        ("4.04", "inform", {"act": "react", "emoji": "👍", **act, "message": "msg_none"}),
        ("4.04", "inform", {"act": "react", "emoji": "👍", **act, "chat": other.pk}),
        ("4.04", "inform", {"act": "pin", **act, "message": "msg_none"}),
        ("4.04", "inform", {"act": "unpin", **act, "chat": other.pk}),
        ("4.04", "inform", {"act": "leave", "chat": chat.pk, "by": unknown}),
        ("4.03", "inform", {"act": "typing", "chat": chat.pk, "by": forged, "is_typing": True}),
        ("4.04", "inform", {"act": "typing", "chat": other.pk, "by": GUEST, "is_typing": True}),
        ("4.03", "inform", {"act": "erase", "by": forged}),
        ("4.03", "inform", {"act": "erase", "by": local}),
        ("4.04", "notify", entry),
        ("4.00", "notify", {**entry, "seq": -1}),
        ("4.04", "subscribe", {"chat": other.pk, "after": 0}),
        ("4.04", "propose", {**invitation, "to": "none@chat.example"}),
        ("4.04", "propose", {**invitation, "to": "alice@other.example"}),
        ("4.00", "propose", {**invitation, "to": "alice@ch\u0430t.example"}),
        ("4.00", "propose", {**invitation, "to": to, "title": "t" * 10**6}),
        ("4.03", "propose", {**invitation, "to": to, "by": forged}),
        ("4.04", "confirm", {"invitation": str(uuid.uuid4()), "by": GUEST}),
        ("4.00", "confirm", {"invitation": "1", "by": GUEST}),
        ("4.04", "cancel", {"invitation": str(uuid.uuid4())}),
        ("4.15", "ask", {}),
    ]


def test_what_is_refused_leaves_nothing(
    chat: Chat, peer: ForeignPeer, tell: Callable[..., tuple[int, str]], alice: Person
) -> None:
    cases = refusals(chat, alice)
    before = counts()
    for code, intent, content in cases:
        assert (tell(peer, intent, content)[1], intent, content) == (code, intent, content)
        assert counts() == before, content
    # An agent's name is no server's, and another peer speaks for its own people alone.
    to_agent = {"to": [f"{SERVER}:agents:echo"]}
    assert tell(peer, "inform", message(chat), **to_agent)[1] == "4.03"
    below = add_peer("client.example:agents:gwen")
    assert tell(below, "inform", message(chat))[1] == "4.03"
    stranger = add_peer("stranger.example")
    assert tell(stranger, "inform", message(chat))[1] == "4.03"
    theirs = {"id": "7", "name": "gwen@stranger.example"}
    assert tell(stranger, "inform", message(chat, by=theirs))[1] == "4.04"
    assert counts() == before


def test_a_blocked_guest_and_a_suspended_peer_are_refused(
    chat: Chat, peer: ForeignPeer, tell: Callable[..., tuple[int, str]]
) -> None:
    guest = Guest.objects.get().user
    assert not guest.has_usable_password()
    User.objects.filter(pk=guest.pk).update(is_active=False)
    assert tell(peer, "inform", message(chat))[1] == "4.03"
    User.objects.filter(pk=guest.pk).update(is_active=True)
    registry.suspend(peer.row)
    assert tell(peer, "inform", message(chat))[1] == "4.01"
    assert outgoing.claim(peer.row.pk) is None
    registry.resume(peer.row)
    assert tell(peer, "inform", message(chat)) == (202, "")
    assert Message.objects.filter(chat=chat).count() == 1


def test_no_one_pays_for_a_guest_without_having_agreed(
    chat: Chat, peer: ForeignPeer, tell: Callable[..., tuple[int, str]]
) -> None:
    seller = priced("seller", per_answer="0.25")
    Participant.objects.create(chat=chat, agent=seller)
    before = counts()
    assert tell(peer, "inform", message(chat, "@seller hello"))[1] == "4.02"
    assert counts() == before
    assert tell(peer, "inform", message(chat, "@echo hello")) == (202, "")
    wait_until(lambda: Message.objects.filter(chat=chat, role="assistant").exists())


def test_a_peer_is_not_sent_what_was_written_before_its_guests_joined(
    chat: Chat, peer: ForeignPeer, tell: Callable[..., tuple[int, str]]
) -> None:
    row = ChatFollower.objects.get()
    first = row.first_seq
    assert first == ChatEvent.objects.get(type="participant.joined").seq - 1
    ChatFollower.objects.update(sent_seq=first + 1)
    assert tell(peer, "subscribe", {"chat": chat.pk, "after": 0}) == (202, "")
    assert ChatFollower.objects.get().sent_seq == first


@pytest.mark.parametrize(("after", "least"), [("300", 290), ("999999", 590), ("soon", 0)])
def test_a_peer_is_left_alone_as_long_as_it_wants(
    after: str, least: int, peer: ForeignPeer, web: httpx.Client, alice: Person, settings: Any
) -> None:
    settings.UAMP_REMOTE_ALLOW_HOSTS = ["127.0.0.1:*"]

    class Busy(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802 the name is the interface of http.server
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(503)
            self.send_header("Retry-After", after)
            self.end_headers()

    assert web.get("/healthz").status_code == 200  # the process has begun
    with serving(LocalServer(Busy)) as server:
        Peer.objects.filter(pk=peer.row.pk).update(address=server.origin)
        invited(shared_chat(alice, agents=()), alice)
        wait_until(lambda: Peer.objects.get(pk=peer.row.pk).failures > 0)
        row = Peer.objects.get(pk=peer.row.pk)
        assert (row.deliver_at - timezone.now()).total_seconds() > least - 10
        assert (row.deliver_at - timezone.now()).total_seconds() <= 600


def test_a_guest_learns_that_an_agent_is_switched_off(
    chat: Chat, peer: ForeignPeer, tell: Callable[..., tuple[int, str]]
) -> None:
    agent = Agent.objects.get(name="echo")
    agent.is_enabled = False
    agent.save()
    assert tell(peer, "inform", message(chat, "@echo hello")) == (202, "")
    # The other members read the message, as that of a member.
    written = Message.objects.get(chat=chat)
    assert not Response.objects.exists()
    (stopped,) = [entry for entry in events_after(chat.pk, 0) if entry.type == "agent.stopped"]
    assert "agent.stopped" in entries.RELAYED
    assert entries.relayed(stopped) == (
        {
            "type": "agent.stopped",
            "message_id": written.pk,
            "agent": "echo",
            "reason": "disabled",
            "message": "echo does not answer: it is switched off.",
        },
        [],
    )

"""Envelopes about shared chats that are refused: nothing of them is stored."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from chat_app.log.history import events_after
from chat_app.models import Chat, ChatEvent, Message, Participant, Pin, Reaction
from federation_app.guests import entries, invitations, outgoing
from federation_app.models import (
    ChatFollower,
    ChatMirror,
    Guest,
    GuestInvitation,
    Peer,
    ReceivedEnvelope,
)
from federation_app.peers import registry
from tests.client import wait_until
from tests.federation_app.foreign_guests import GUEST, accept, invited, message
from tests.federation_app.peer import SERVER, ForeignPeer, add_peer
from tests.http_server import LocalServer, QuietHandler, serving
from tests.live_server import shared_chat
from tests.sessions_app.billing.paid_agents import priced

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from tests.live_server import Person

pytestmark = pytest.mark.django_db(transaction=True)
WORDS: dict[str, Any] = {"content": "words", "name": "gwen", "created_at": 1}
STORED = (
    Chat,
    ChatEvent,
    ChatFollower,
    ChatMirror,
    Guest,
    GuestInvitation,
    Message,
    Participant,
    Pin,
    Reaction,
)


@pytest.fixture
def chat(peer: ForeignPeer, tell: Callable[..., tuple[int, str]], alice: Person) -> Chat:
    """Return a chat of alice that gwen, a guest, has joined."""
    found = shared_chat(alice, agents=("echo",))
    accept(peer, tell, invited(found, alice))
    return found


def counts() -> list[int]:
    """Return the number of rows that a refused envelope must not change."""
    return [model._default_manager.count() for model in (*STORED, ReceivedEnvelope, User)]


def test_words_of_a_guest_are_stored_once(
    chat: Chat, peer: ForeignPeer, tell: Callable[..., tuple[int, str]]
) -> None:
    said = message(chat, "once")
    assert tell(peer, "inform", said) == (202, "")
    # Another envelope, because the answer to the first one was lost; and another message.
    assert tell(peer, "inform", said) == (202, "")
    assert tell(peer, "inform", message(chat, "twice")) == (202, "")
    assert tell(peer, "inform", said) == (202, "")
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


def test_an_invitation_is_accepted_once_and_by_the_invited_person(
    peer: ForeignPeer, tell: Callable[..., tuple[int, str]], alice: Person
) -> None:
    chat = shared_chat(alice, agents=())
    one = invited(chat, alice)
    assert invited(chat, alice) == one, "it is open already"
    other = {"id": "8", "name": "greg@client.example"}
    assert tell(peer, "confirm", {"invitation": one, "by": other})[1] == "4.03"
    stranger = add_peer("stranger.example")
    assert tell(stranger, "confirm", {"invitation": one, "by": GUEST})[1] == "4.04"
    assert not Guest.objects.exists()
    accept(peer, tell, one)
    accept(peer, tell, one)
    assert Participant.objects.filter(chat=chat, user__username=GUEST["name"]).count() == 1
    # The same name of another person cannot take over the account.
    two = invited(shared_chat(alice, agents=()), alice)
    thief = {"id": "9", "name": GUEST["name"]}
    assert tell(peer, "confirm", {"invitation": two, "by": thief})[1] == "4.09"
    invitations.answer(user=alice.user, invitation_id=two, answer="withdraw")
    assert tell(peer, "confirm", {"invitation": two, "by": GUEST})[1] == "4.09"
    assert Participant.objects.filter(user__username=GUEST["name"]).count() == 1


@pytest.mark.parametrize(
    "name",
    [
        "gwen@nowhere.example",
        "gwen@client.ex\u0430mple",
        "gwen@client.example:0",
        "g" * 10**6 + "@client.example",
        "@client.example",
        "gwen@",
        "gw en@client.example",
    ],
)
def test_a_name_that_cannot_be_invited_is_refused(
    name: str, peer: ForeignPeer, web: httpx.Client, alice: Person
) -> None:
    chat = shared_chat(alice, agents=())
    path = f"/api/v1/chats/{chat.pk}/participants"
    response = web.post(path, headers=alice.headers, json={"user": name})
    assert response.status_code == 400
    assert not GuestInvitation.objects.exists()


def test_a_chat_begins_with_the_invitation_of_a_person_of_a_peer(
    peer: ForeignPeer,
    tell: Callable[..., tuple[int, str]],
    web: httpx.Client,
    alice: Person,
    bob: Person,
) -> None:
    body: dict[str, Any] = {"users": [GUEST["name"], "bob", GUEST["name"]], "agents": ["echo"]}
    response = web.post("/api/v1/chats", headers=alice.headers, json=body)
    assert response.status_code == 201, response.text
    row = GuestInvitation.objects.get()
    assert (row.name, row.chat_id, row.user) == (GUEST["name"], response.json()["id"], alice.user)
    accept(peer, tell, row.invitation_id)
    members = Participant.objects.filter(chat=row.chat_id)
    names = {str(member.user or member.agent) for member in members}
    assert names == {"alice", "bob", "echo", GUEST["name"]}
    # A guest is another person: the only agent answers when it is mentioned.
    body = {"users": [GUEST["name"]], "agents": ["echo"]}
    made = web.post("/api/v1/chats", headers=alice.headers, json=body).json()["id"]
    assert Participant.objects.get(chat=made, agent__isnull=False).trigger == "mention"
    # Either everyone is invited or there is no chat.
    before = counts()
    for users in (["gwen@nowhere.example"], [GUEST["name"], "@client.example"], ["none"]):
        response = web.post("/api/v1/chats", headers=alice.headers, json={"users": users})
        assert response.status_code == 400, users
        assert "users" in response.text or "/users" in response.text
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


def test_a_person_is_invited_answers_and_blocks(
    peer: ForeignPeer, tell: Callable[..., tuple[int, str]], web: httpx.Client, alice: Person
) -> None:
    def propose(number: int) -> tuple[int, str]:
        content = {
            "invitation": str(uuid.UUID(int=number)),
            "chat": "chat_theirs",
            "title": "Theirs",
            "by": GUEST,
            "to": "alice@chat.example",
        }
        return tell(peer, "propose", content)

    assert propose(1) == propose(1) == propose(2) == (202, "")
    path = "/api/v1/invitations"
    shown = web.get(path, headers=alice.headers).json()["data"]
    assert [(one["person"], one["title"], one["direction"]) for one in shown] == [
        (GUEST["name"], "Theirs", "received")
    ] * 2
    one, two = (f"{path}/{row['id']}" for row in shown)
    assert web.post(one, headers=alice.headers, json={"answer": "block"}).status_code == 200
    assert propose(3)[1] == "4.04"
    assert web.post(one, headers=alice.headers, json={"answer": "accept"}).status_code == 400
    # An entry of a chat that she has not joined is refused, and makes no chat.
    here = {"id": str(alice.user.pk), "name": "alice@chat.example"}
    entry = {
        "chat": "chat_theirs",
        "start": 4,
        "after": 4,
        "seq": 5,
        "title": "Theirs",
        "members": [GUEST, here],
        "event": {"type": "participant.joined"},
    }
    assert tell(peer, "notify", entry)[1] == "4.04"
    assert web.post(two, headers=alice.headers, json={"answer": "accept"}).status_code == 200
    assert tell(peer, "notify", entry) == (202, "")
    mirror = Chat.objects.get(home="client.example")
    # A repeated entry changes nothing; after a gap the home is asked to go on.
    assert tell(peer, "notify", entry) == (202, "")
    late = {**entry, "after": 8, "seq": 9}
    assert tell(peer, "notify", late)[1] == "4.09"
    assert ChatMirror.objects.get(chat_id=mirror.pk).is_behind
    # The home cannot put words into the mouths of people here.
    forged = {"type": "message.created", "message": {**WORDS, "id": "msg_forged"}}
    said = {**entry, "after": 5, "seq": 6, "event": forged, "author": here}
    assert tell(peer, "notify", said) == (202, "")
    shown = Message.objects.get(pk="msg_forged")
    assert (shown.name, shown.sender_user) == ("gwen@client.example", None)
    # A message with the id of one in another chat is not taken.
    foreign = Message.objects.create(chat=shared_chat(alice), seq=1, role="user", content="own")
    created = {"type": "message.created", "message": {**WORDS, "id": foreign.pk}}
    taken = {**entry, "after": 6, "seq": 7, "event": created, "author": GUEST}
    assert tell(peer, "notify", taken) == (202, "")
    foreign.refresh_from_db()
    assert foreign.content == "own"
    assert Message.objects.filter(chat=mirror).count() == 1
    # Nor can anyone but the author edit.
    edited = {"type": "message.edited", "message_id": "msg_forged", "content": "other"}
    change = {**entry, "after": 7, "seq": 8, "event": edited, "author": GUEST}
    assert tell(peer, "notify", change) == (202, "")
    assert Message.objects.get(chat=mirror).content == WORDS["content"]
    # It says what its own people gave and pinned, but nothing of that about people here.
    seq = 8
    for author, given in (
        (here, {"type": "reaction.added", "emoji": "👍"}),
        (GUEST, {"type": "reaction.added", "emoji": "words"}),
        (GUEST, {"type": "reaction.added", "emoji": "🎉"}),
        (GUEST, {"type": "reaction.added", "emoji": "🎉"}),
        (here, {"type": "message.pinned"}),
    ):
        event = {**given, "message_id": "msg_forged"}
        place = {"after": seq, "seq": seq + 1, "author": author, "event": event}
        assert tell(peer, "notify", {**entry, **place}) == (202, "")
        seq += 1
    reactions = Reaction.objects.values_list("user__username", "emoji")
    assert list(reactions) == [(GUEST["name"], "🎉")]
    assert Pin.objects.get().pinned_by is None
    of_home = ChatEvent.objects.filter(chat=mirror, type__regex="reaction|pinned")
    assert [row.type for row in of_home.order_by("seq")] == ["reaction.added", "message.pinned"]
    sent_back = [entries.own_act(peer.row, row) for row in events_after(mirror.pk, 0)]
    assert sent_back == [None] * 4


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


def test_a_person_has_at_most_so_many_open_invitations(
    peer: ForeignPeer,
    tell: Callable[..., tuple[int, str]],
    alice: Person,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(invitations, "OPEN_MOST", 2)
    codes = []
    for _ in range(3):
        content = {
            "invitation": str(uuid.uuid4()),
            "chat": "chat_theirs",
            "title": "",
            "by": GUEST,
            "to": "alice@chat.example",
        }
        codes.append(tell(peer, "propose", content)[1])
    assert codes == ["", "", "4.29"]
    assert GuestInvitation.objects.count() == 2

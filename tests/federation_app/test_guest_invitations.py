"""Invitations to shared chats: accepted once, by the invited person, and bounded."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from chat_app.log.history import events_after
from chat_app.members.participants import add_participant
from chat_app.members.rights import NotAllowed
from chat_app.models import Chat, ChatEvent, Message, Participant, Pin, Reaction
from federation_app.guests import entries, invitations
from federation_app.models import ChatFollower, ChatMirror, Guest, GuestInvitation
from tests.federation_app.foreign_guests import GUEST, accept, invited
from tests.federation_app.peer import ForeignPeer, add_peer
from tests.federation_app.shared_chats import counts
from tests.live_server import shared_chat

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from tests.live_server import Dial, Person

pytestmark = pytest.mark.django_db(transaction=True)
WORDS: dict[str, Any] = {"content": "words", "name": "gwen", "created_at": 1}


def test_an_invitation_is_accepted_once_and_by_the_invited_person(
    peer: ForeignPeer, tell: Callable[..., tuple[int, str]], alice: Person
) -> None:
    chat = shared_chat(alice, agents=())
    invitation = invited(chat, alice)
    assert invited(chat, alice) == invitation, "it is open already"
    other = {"id": "8", "name": "greg@client.example"}
    assert tell(peer, "confirm", {"invitation": invitation, "by": other})[1] == "4.03"
    stranger = add_peer("stranger.example")
    assert tell(stranger, "confirm", {"invitation": invitation, "by": GUEST})[1] == "4.04"
    assert not Guest.objects.exists()
    accept(peer, tell, invitation)
    accept(peer, tell, invitation)
    assert Participant.objects.filter(chat=chat, user__username=GUEST["name"]).count() == 1
    # The same name of another person cannot take over the account.
    second_invitation = invited(shared_chat(alice, agents=()), alice)
    thief = {"id": "9", "name": GUEST["name"]}
    assert tell(peer, "confirm", {"invitation": second_invitation, "by": thief})[1] == "4.09"
    invitations.answer(user=alice.user, invitation_id=second_invitation, answer="withdraw")
    assert tell(peer, "confirm", {"invitation": second_invitation, "by": GUEST})[1] == "4.09"
    assert Participant.objects.filter(user__username=GUEST["name"]).count() == 1


@pytest.mark.sampled(3)
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
    chat_id = web.post("/api/v1/chats", headers=alice.headers, json=body).json()["id"]
    assert Participant.objects.get(chat=chat_id, agent__isnull=False).trigger == "mention"
    # Either everyone is invited or there is no chat.
    before = counts()
    for users in (["gwen@nowhere.example"], [GUEST["name"], "@client.example"], ["none"]):
        response = web.post("/api/v1/chats", headers=alice.headers, json={"users": users})
        assert response.status_code == 400, users
        assert "users" in response.text or "/users" in response.text
        assert counts() == before


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
    invitation_rows = web.get(path, headers=alice.headers).json()["data"]
    assert [
        (invitation["person"], invitation["title"], invitation["direction"])
        for invitation in invitation_rows
    ] == [(GUEST["name"], "Theirs", "received")] * 2
    blocked_url, accepted_url = (f"{path}/{row['id']}" for row in invitation_rows)
    assert web.post(blocked_url, headers=alice.headers, json={"answer": "block"}).status_code == 200
    assert propose(3)[1] == "4.04"
    assert (
        web.post(blocked_url, headers=alice.headers, json={"answer": "accept"}).status_code == 400
    )
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
    assert (
        web.post(accepted_url, headers=alice.headers, json={"answer": "accept"}).status_code == 200
    )
    assert tell(peer, "notify", entry) == (202, "")
    mirror = Chat.objects.get(home="client.example")
    # A repeated entry changes nothing; after a gap the home is asked to go on.
    assert tell(peer, "notify", entry) == (202, "")
    late = {**entry, "after": 8, "seq": 9}
    assert tell(peer, "notify", late)[1] == "4.09"
    assert ChatMirror.objects.get(chat_id=mirror.pk).is_behind
    # The home cannot put words into the mouths of people here.
    forged = {"type": "message.created", "message": {**WORDS, "id": "msg_forged"}}
    local_entry = {**entry, "after": 5, "seq": 6, "event": forged, "author": here}
    assert tell(peer, "notify", local_entry) == (202, "")
    invitation_rows = Message.objects.get(pk="msg_forged")
    assert (invitation_rows.name, invitation_rows.sender_user) == ("gwen@client.example", None)
    # A message with the id of one in another chat is not taken.
    foreign = Message.objects.create(chat=shared_chat(alice), seq=1, role="user", content="own")
    created = {"type": "message.created", "message": {**WORDS, "id": foreign.pk}}
    guest_entry = {**entry, "after": 6, "seq": 7, "event": created, "author": GUEST}
    assert tell(peer, "notify", guest_entry) == (202, "")
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
    for author, fields in (
        (here, {"type": "reaction.added", "emoji": "👍"}),
        (GUEST, {"type": "reaction.added", "emoji": "words"}),
        (GUEST, {"type": "reaction.added", "emoji": "🎉"}),
        (GUEST, {"type": "reaction.added", "emoji": "🎉"}),
        (here, {"type": "message.pinned"}),
    ):
        event = {**fields, "message_id": "msg_forged"}
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


def test_a_person_has_at_most_so_many_open_invitations(
    peer: ForeignPeer,
    tell: Callable[..., tuple[int, str]],
    alice: Person,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(invitations, "MAX_OPEN_INVITATIONS", 2)
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


def test_a_guest_is_invited_over_uamp_as_over_rest(
    peer: ForeignPeer, tell: Callable[..., tuple[int, str]], dial: Dial, alice: Person
) -> None:
    accept(peer, tell, invited(shared_chat(alice, agents=()), alice))
    chat = shared_chat(alice, agents=())
    guests = Participant.objects.filter(chat=chat, user__username=GUEST["name"])
    client = dial(alice)
    client.create_session(chat=chat.pk)
    client.send("participant.add", user="gwen@nowhere.example")
    assert client.expect("session.error")["error"]["code"] == "invalid_event"

    client.send("participant.add", user=GUEST["name"])
    client.settle()

    row = GuestInvitation.objects.get(chat_id=chat.pk)
    assert (row.name, row.state) == (GUEST["name"], "open")
    assert not guests.exists()
    assert not ChatFollower.objects.filter(chat_id=chat.pk).exists()
    accept(peer, tell, row.invitation_id)
    assert guests.exists()
    assert ChatFollower.objects.filter(chat_id=chat.pk).exists()


def test_a_guest_who_has_not_accepted_is_not_added(
    peer: ForeignPeer, tell: Callable[..., tuple[int, str]], alice: Person
) -> None:
    accept(peer, tell, invited(shared_chat(alice, agents=()), alice))
    chat, guest = shared_chat(alice, agents=()), Guest.objects.get().user
    before = counts()
    with pytest.raises(NotAllowed, match="by invitation"):
        add_participant(chat_id=chat.pk, added_by=alice.user, user=guest)
    assert counts() == before


def test_a_server_that_does_not_follow_a_chat_follows_it_with_its_next_guest(
    peer: ForeignPeer, tell: Callable[..., tuple[int, str]], alice: Person
) -> None:
    chat = shared_chat(alice, agents=())
    accept(peer, tell, invited(chat, alice))
    # It refused an entry.
    ChatFollower.objects.all().delete()
    other = {"id": "8", "name": "greg@client.example"}
    invitation = invited(chat, alice, other["name"])
    chat.refresh_from_db()

    assert tell(peer, "confirm", {"invitation": invitation, "by": other}) == (202, "")

    assert ChatFollower.objects.get().first_seq == chat.last_seq
    assert Participant.objects.filter(chat=chat, user__username=other["name"]).exists()

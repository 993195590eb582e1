"""A mirror, a chat that belongs to another server: what its members here cannot do, and see."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from chat_app.conversation import mirrors
from chat_app.conversation.pins import pin_message
from chat_app.conversation.reactions import add_reaction
from chat_app.log.entries import NewMessage
from chat_app.log.history import events_after
from chat_app.members.participants import remove_participant
from chat_app.models import Chat, Participant, Pin, Reaction
from federation_app.guests import entries
from sessions_app.models import QueuedTurn
from sessions_app.queue import rows
from tests import factories
from tests.live_server import counted_rows, shared_chat

if TYPE_CHECKING:
    import httpx

    from tests.federation_app.peer import ForeignPeer
    from tests.live_server import Dial, Person

pytestmark = pytest.mark.django_db(transaction=True)
HOME = "client.example"
MESSAGE = "msg_of_home"


@pytest.fixture
def mirror(alice: Person, bob: Person) -> Chat:
    """Return a mirror with alice and bob, and a message of someone at home."""
    chat_id = mirrors.make_mirror(home=HOME, title="Theirs", member=alice.user)
    new = NewMessage(
        id=MESSAGE,
        role="user",
        at=datetime.now(UTC),
        name=f"gwen@{HOME}",
        content="hello",
        transport="envelope",
    )
    with transaction.atomic():
        mirrors.set_chat(
            chat_id, title="Theirs", only_owners_pin=False, users=[alice.user, bob.user]
        )
        mirrors.add_message(chat_id, new)
    return Chat.objects.get(pk=chat_id)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("type_", "members"),
    [
        ("voice.invite", {"media": ["audio"]}),
        ("state.update", {"state": {"here": 1}}),
        ("chat.update", {"title": "Ours"}),
        ("participant.add", {"user": "mallory"}),
        ("participant.add", {"agent": "echo"}),
    ],
)
def test_what_only_people_here_would_see_is_refused(
    type_: str, members: dict[str, Any], mirror: Chat, dial: Dial, alice: Person, mallory: Person
) -> None:
    client = dial(alice)
    client.create_session(chat=mirror.pk)
    before = counted_rows()
    client.send(type_, **members)
    error = client.expect("session.error")["error"]
    assert error["code"] == "forbidden", error
    assert "hosted on another server" in error["message"]
    assert counted_rows() == before
    assert Chat.objects.get(pk=mirror.pk).last_seq == mirror.last_seq


def test_rest_refuses_the_same(
    mirror: Chat, web: httpx.Client, alice: Person, mallory: Person
) -> None:
    member = Participant.objects.get(chat=mirror, user__username="bob")
    before = counted_rows()
    for method, path, body in (
        ("PATCH", f"/chats/{mirror.pk}", {"title": "Ours"}),
        ("DELETE", f"/chats/{mirror.pk}", None),
        ("DELETE", f"/chats/{mirror.pk}/participants/{member.pk}", None),
        ("POST", f"/chats/{mirror.pk}/participants", {"user": "mallory"}),
    ):
        answer = web.request(method, f"/api/v1{path}", headers=alice.headers, json=body)
        assert answer.status_code == 403, (path, answer.text)
        assert "another server" in answer.text
    # To a stranger it looks like a message that does not exist.
    path = f"/api/v1/messages/{MESSAGE}/pin"
    assert web.put(path, headers=mallory.headers).status_code == 404
    assert counted_rows() == before


def test_rest_names_the_home_and_gives_no_rights(
    mirror: Chat, web: httpx.Client, alice: Person
) -> None:
    local_chat = shared_chat(alice)
    chat_rows = web.get("/api/v1/chats", headers=alice.headers).json()["data"]
    chats = {row["id"]: (row["home"], bool(row["rights"])) for row in chat_rows}
    assert chats == {mirror.pk: (HOME, False), local_chat.pk: (None, True)}


def test_what_the_home_refuses_is_undone_and_not_sent_again(
    mirror: Chat, peer: ForeignPeer, alice: Person
) -> None:
    message: dict[str, Any] = {
        "chat_id": mirror.pk,
        "message_id": MESSAGE,
        "user_id": alice.user.pk,
    }
    before = mirror.last_seq
    add_reaction(**message, emoji="👍")
    pin_message(**message)
    acts = events_after(mirror.pk, before)
    own_acts = [entries.own_act(peer.row, local_act) for local_act in acts]
    assert [entry["act"] for entry in own_acts if entry is not None] == ["react", "pin"]
    for act in acts:
        mirrors.take_back(mirror.pk, act)
        mirrors.take_back(mirror.pk, act)
    assert not Reaction.objects.exists()
    assert not Pin.objects.exists()
    undone = events_after(mirror.pk, acts[-1].seq)
    assert [event.type for event in undone] == ["reaction.removed", "message.unpinned"]
    assert [entries.own_act(peer.row, event) for event in undone] == [None, None]
    # A pin that someone of the home has set meanwhile stays.
    pin_message(**message)
    with transaction.atomic():
        mirrors.pin(mirror.pk, MESSAGE, user_id=User.objects.create(username="gwen").pk, given=True)
    mirrors.take_back(mirror.pk, acts[-1])
    assert Pin.objects.get().pinned_by_id != alice.user.pk


@pytest.mark.parametrize("how", ["deactivated", "removed", "left"])
def test_nothing_is_sent_for_a_person_who_may_no_longer_act(
    mirror: Chat, alice: Person, bob: Person, how: str
) -> None:
    row = factories.queued_turn(bob.user, factories.session(bob.user, mirror))
    assert rows.waiting_elsewhere([mirror.pk]) == {mirror.pk: row}
    after_it = factories.queued_turn(alice.user, factories.session(alice.user, mirror))
    if how == "deactivated":
        User.objects.filter(pk=bob.user.pk).update(is_active=False)
    elif how == "removed":
        with transaction.atomic():
            mirrors.set_chat(mirror.pk, title="Theirs", only_owners_pin=False, users=[alice.user])
    else:
        member = Participant.objects.get(chat=mirror, user=bob.user)
        remove_participant(chat_id=mirror.pk, participant_id=member.pk, removed_by=bob.user)

    assert rows.waiting_elsewhere([mirror.pk]) == {}

    ended = QueuedTurn.objects.filter(pk=row.pk).values_list("status", "code").first()
    assert ended == (None if how == "left" else ("failed", "unauthorized"))
    assert rows.waiting_elsewhere([mirror.pk]) == {mirror.pk: after_it}

"""Reactions and pins: who may, how many, what members receive and read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chat_app.conversation import pins, reactions
from chat_app.conversation.errors import TooManyPins
from chat_app.conversation.threads import count_reply
from chat_app.emoji import is_emoji
from chat_app.log.entries import NewMessage
from chat_app.models import ChatEvent, Participant, Pin, Reaction
from chat_app.rest.messages.message_serializers import messages_data
from tests import factories
from tests.chat_app.conversation.joining import joined, refusal, send_message
from tests.live_server import Dial, Person, shared_chat

if TYPE_CHECKING:
    import httpx
    from django.contrib.auth.models import User
    from pytest_django import Settings

    from chat_app.models import Message

PARTY, SPARKLES = "\N{PARTY POPPER}", "\N{SPARKLES}"


@pytest.mark.parametrize(
    "text",
    [
        PARTY,
        "\u2764\ufe0f",
        "\U0001f44d\U0001f3fd",
        "\U0001f1e9\U0001f1ea",
        "1\ufe0f\u20e3",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466",
        "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
        "\U0001f3f3\ufe0f\u200d\U0001f308",
    ],
)
def test_sequences_of_unicode_are_emoji(text: str) -> None:
    assert is_emoji(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "a", "1", "ok", ":+1:", f"{PARTY}{PARTY}", f"{PARTY} ", "\u200d", "\ufe0f",
        f"{PARTY}\u200d", "\U0001f1e9", "\u202e", "<b>", "\U0001fafd" * 2, "\U0001f0ff",
        "\u200d".join([PARTY] * 17),
    ],
)  # fmt: skip
def test_other_texts_are_not(text: str) -> None:
    assert not is_emoji(text)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("first", "others"),
    [
        ("\u2764\ufe0f", ["\u2764", "\u2764\ufe0e"]),
        ("\u2764", ["\u2764\ufe0f", "\u2764\ufe0e"]),
        ("\u2764\ufe0e", ["\u2764", "\u2764\ufe0f"]),
        ("\U0001f44d", ["\U0001f44d\ufe0f", "\U0001f44d\ufe0e"]),
        ("\U0001f44d\U0001f3fd", ["\U0001f44d\U0001f3fd\ufe0f"]),
        ("1\ufe0f\u20e3", ["1\u20e3", "1\ufe0e\u20e3"]),
        ("#\u20e3", ["#\ufe0f\u20e3"]),
        ("\U0001f3f3\ufe0f\u200d\U0001f308", ["\U0001f3f3\u200d\U0001f308"]),
        (
            "\U0001f469\u200d\u2764\u200d\U0001f468",
            ["\U0001f469\u200d\u2764\ufe0f\u200d\U0001f468"],
        ),
        (
            "\U0001f575\ufe0f\u200d\u2640\ufe0f",
            ["\U0001f575\u200d\u2640", "\U0001f575\u200d\u2640\ufe0f"],
        ),
        ("\u00a9", ["\u00a9\ufe0f"]),
        ("\u263a\ufe0f", ["\u263a"]),
        ("\u3297", ["\u3297\ufe0f"]),
    ],
)
def test_an_emoji_is_one_reaction_whatever_its_selectors(first: str, others: list[str]) -> None:
    writer = factories.user()
    message = factories.message(factories.chat(writer), writer)
    at: dict[str, Any] = {
        "chat_id": message.chat_id,
        "message_id": message.pk,
        "user_id": writer.pk,
    }
    for other in others:
        assert reactions.add_reaction(**at, emoji=first).seq is not None
        again = reactions.add_reaction(**at, emoji=other)
        assert (again.emoji, again.seq) == (first, None)
        assert Reaction.objects.count() == 1
        assert reactions.remove_reaction(**at, emoji=other).seq is not None
        assert not Reaction.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("\U0001f44d", "\U0001f44d\U0001f3fd"),
        ("\U0001f468", "\U0001f469"),
        ("\U0001f1e9\U0001f1ea", "\U0001f1eb\U0001f1f7"),
        ("\u2764", "\U0001f9e1"),
    ],
)
def test_other_emoji_are_other_reactions(first: str, second: str) -> None:
    writer = factories.user()
    message = factories.message(factories.chat(writer), writer)
    for emoji in (first, second):
        reactions.add_reaction(
            chat_id=message.chat_id, message_id=message.pk, user_id=writer.pk, emoji=emoji
        )
    assert Reaction.objects.count() == 2


@pytest.mark.django_db
def test_an_emoji_keeps_the_form_that_was_given_first() -> None:
    writer = factories.user()
    message = factories.message(factories.chat(writer), writer)
    at: dict[str, Any] = {
        "chat_id": message.chat_id,
        "message_id": message.pk,
        "user_id": writer.pk,
    }
    for heart, is_new in (("\u2764\ufe0f", True), ("\u2764", False)):
        event = reactions.add_reaction(**at, emoji=heart)
        assert (event.emoji, event.seq is not None) == ("\u2764\ufe0f", is_new)
    assert Reaction.objects.count() == 1
    assert reactions.remove_reaction(**at, emoji="\u2764").seq is not None
    assert not Reaction.objects.exists()


def test_a_reaction_reaches_the_members_and_is_counted_once(
    dial: Dial,
    web: httpx.Client,
    alice: Person,
    bob: Person,
    mallory: Person,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chat = shared_chat(alice, bob)
    clients = [joined(dial, who, chat) for who in (alice, bob)]
    message_id = send_message(clients[0], "hello")
    clients[1].until("message.created")
    for client in clients:
        client.send("reaction.add", message_id=message_id, emoji=PARTY)
        for other in clients:
            other.until("reaction.added")
    path = f"/api/v1/messages/{message_id}"
    # Once more changes nothing; its sender receives what is.
    clients[0].send("reaction.add", message_id=message_id, emoji=PARTY)
    assert "seq" not in clients[0].until("reaction.added")[-1]
    reaction = web.put(f"{path}/reactions", params={"emoji": SPARKLES}, headers=bob.headers)
    assert reaction.status_code == 204
    assert clients[0].until("reaction.added")[-1]["user_id"] == str(bob.user.pk)
    rows = web.get(f"/api/v1/chats/{chat.pk}/messages", headers=alice.headers).json()["data"]
    first, second = ({"id": str(who.user.pk), "name": who.user.username} for who in (alice, bob))
    assert rows[0]["reactions"] == [
        {"emoji": PARTY, "count": 2, "own": True, "users": [first, second]},
        {"emoji": SPARKLES, "count": 1, "own": False, "users": [second]},
    ]
    monkeypatch.setattr(reactions, "LISTED", 1)
    (party, _) = reactions.reactions_of([message_id], alice.user.pk)[message_id]
    assert (party["count"], party["users"]) == (2, [first])
    listed = web.get(f"{path}/reactions", headers=alice.headers).json()["data"]
    assert {(row["username"], row["emoji"]) for row in listed} == {
        ("alice", PARTY),
        ("bob", PARTY),
        ("bob", SPARKLES),
    }
    # One's own is taken back; another member's is not.
    clients[0].send("reaction.remove", message_id=message_id, emoji=SPARKLES)
    assert "seq" not in clients[0].until("reaction.removed")[-1]
    clients[0].send("reaction.remove", message_id=message_id, emoji=PARTY)
    assert clients[1].until("reaction.removed")[-1]["user_id"] == str(alice.user.pk)
    assert Reaction.objects.count() == 2
    clients[0].send("reaction.add", message_id=message_id, emoji="no")
    assert refusal(clients[0]) == "invalid_event"
    wrong = web.put(f"{path}/reactions", params={"emoji": "no"}, headers=bob.headers)
    assert (wrong.status_code, wrong.json()["code"]) == (400, "invalid")
    stranger = dial(mallory)
    stranger.create_session(agent="echo")
    stranger.send("reaction.add", message_id=message_id, emoji=PARTY)
    assert refusal(stranger) == "message_not_found"
    gone = Participant.objects.filter(chat=chat, user=bob.user)
    gone.update(left_at=chat.created_at)
    clients[1].settle()
    clients[1].send("reaction.add", message_id=message_id, emoji=PARTY)
    assert refusal(clients[1]) == "message_not_found"


def test_reactions_are_bounded(dial: Dial, alice: Person, bob: Person, settings: Settings) -> None:
    settings.UAMP_REACTIONS_PER_MEMBER, settings.UAMP_REACTIONS_PER_MESSAGE = 2, 3
    chat = shared_chat(alice, bob)
    message = factories.message(chat, alice.user)
    first, second = (joined(dial, who, chat) for who in (alice, bob))
    for emoji in (PARTY, SPARKLES):
        first.send("reaction.add", message_id=message.pk, emoji=emoji)
        first.until("reaction.added")
        second.until("reaction.added")
    first.send("reaction.add", message_id=message.pk, emoji="\N{FIRE}")
    assert refusal(first) == "quota_exceeded"
    second.send("reaction.add", message_id=message.pk, emoji="\N{FIRE}")
    second.settle()
    second.send("reaction.add", message_id=message.pk, emoji="\N{ROCKET}")
    assert refusal(second) == "quota_exceeded"
    # What is there may be given by others, too.
    second.send("reaction.add", message_id=message.pk, emoji=PARTY)
    second.settle()
    assert Reaction.objects.filter(message=message).count() == 4


def test_the_chats_setting_says_who_pins(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, mallory: Person
) -> None:
    chat = shared_chat(alice, bob)
    first_message, second_message = (
        factories.message(chat, alice.user, text) for text in ("one", "two")
    )
    client = joined(dial, bob, chat)
    for message in (second_message, first_message):
        client.send("message.pin", message_id=message.pk)
        assert client.until("message.pinned")[-1]["user_id"] == str(bob.user.pk)
    client.send("message.pin", message_id=first_message.pk)
    assert "seq" not in client.until("message.pinned")[-1]

    def pinned() -> list[str]:
        answer = web.get(f"/api/v1/chats/{chat.pk}/pins", headers=bob.headers)
        return [row["content"] for row in answer.json()["data"] if row["pinned"]]

    assert pinned() == ["two", "one"]
    changed = web.patch(
        f"/api/v1/chats/{chat.pk}", json={"only_owners_pin": True}, headers=alice.headers
    )
    assert changed.json()["only_owners_pin"] is True
    assert client.until("chat.updated")[-1]["only_owners_pin"] is True
    client.send("message.unpin", message_id=first_message.pk)
    assert refusal(client) == "forbidden"
    path = f"/api/v1/messages/{first_message.pk}/pin"
    assert web.put(path, headers=bob.headers).status_code == 403
    assert web.delete(path, headers=mallory.headers).status_code == 404
    assert web.delete(path, headers=alice.headers).status_code == 204
    assert client.until("message.unpinned")[-1]["message_id"] == first_message.pk
    # What is deleted is pinned no more.
    assert (
        web.delete(f"/api/v1/messages/{second_message.pk}", headers=alice.headers).status_code
        == 204
    )
    assert pinned() == []
    assert not Pin.objects.exists()


@pytest.mark.django_db
def test_pins_are_bounded(settings: Settings) -> None:
    settings.UAMP_PINS_PER_CHAT = 1
    person = factories.user()
    chat = factories.chat(person)
    first_message, second_message = (factories.message(chat, person) for _ in range(2))
    act: dict[str, Any] = {"chat_id": chat.pk, "user_id": person.pk}
    pins.pin_message(**act, message_id=first_message.pk)
    with pytest.raises(TooManyPins):
        pins.pin_message(**act, message_id=second_message.pk)
    assert ChatEvent.objects.filter(type="message.pinned").count() == 1


@pytest.mark.django_db
def test_a_page_of_messages_takes_a_query_for_each_kind_of_act(
    django_assert_num_queries: Any,
) -> None:
    person = factories.user()
    chat = factories.chat(person)
    messages = [factories.message(chat, person, str(number)) for number in range(10)]
    act: dict[str, Any] = {"chat_id": chat.pk, "user_id": person.pk}
    for message in messages:
        reactions.add_reaction(**act, message_id=message.pk, emoji=PARTY)
        pins.pin_message(**act, message_id=message.pk)
        count_reply(chat.pk, _reply_to(message, person), seq=100 + message.seq)
    # Reactions, pins, threads, and who follows them.
    with django_assert_num_queries(4):
        rows = messages_data(messages, html=False, reader=person.pk)
    assert all(row["pinned"] and row["reactions"][0]["own"] for row in rows)
    assert all(row["replies"]["replies"] == 1 for row in rows)


def _reply_to(message: Message, person: User) -> NewMessage:
    return NewMessage(
        id="msg_reply",
        role="user",
        at=message.created_at,
        sender_user_id=person.pk,
        thread=message.pk,
    )

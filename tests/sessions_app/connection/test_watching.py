"""A socket that watches the chats of its person receives in short what happens in them."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import pytest

from chat_app.members.agents import agent_presence
from chat_app.members.participants import add_participant, remove_participant
from chat_app.models import ChatEvent, Participant
from tests import factories
from tests.live_server import Dial, Person, shared_chat
from tests.sessions_app.billing.paid_agents import rich
from uamp_project.embedded.layer import EmbeddedChannelLayer

if TYPE_CHECKING:
    import httpx
    from pytest_django import Settings

    from chat_app.models import Chat
    from tests.client import Frame, UampClient

WATCH_EVENTS = {"chats.watched", "chat.activity", "person.changed"}


def watching(dial: Dial, who: Person) -> UampClient:
    """Return a socket without a session that watches the chats of a person."""
    client = dial(who)
    client.send("chats.watch")
    client.expect("chats.watched")
    client.settle()
    return client


def activities(frames: list[Frame], kind: str = "message.created") -> list[Frame]:
    return [f for f in frames if f["type"] == "chat.activity" and f["kind"] == kind]


def spoken(dial: Dial, who: Person, chat: Chat, text: str) -> UampClient:
    """Let a person write into a chat; return their socket once the message is in the log."""
    client = dial(who)
    client.create_session(chat=chat.pk)
    client.ask(text)
    client.until("message.created")
    return client


def test_a_message_of_a_chat_without_a_session_arrives_in_short(
    dial: Dial, alice: Person, bob: Person, mallory: Person
) -> None:
    chat = shared_chat(alice, bob)
    watcher, stranger = watching(dial, alice), watching(dial, mallory)
    plain = dial(alice)
    spoken(dial, bob, chat, "word " * 100)
    (seen,) = activities(watcher.until("chat.activity"))
    assert (seen["chat_id"], seen["at_seq"]) == (chat.pk, 1)
    assert "session_id" not in seen
    message = seen["message"]
    assert (message["name"], message["sender_id"]) == ("bob", str(bob.user.pk))
    assert message["content"] == ("word " * 100)[:200]
    # A stranger, and a socket that did not ask for it, receive nothing.
    assert stranger.settle() == []
    assert plain.settle() == []


def test_a_reply_says_to_each_person_whether_they_follow_its_thread(
    dial: Dial, alice: Person, bob: Person, mallory: Person
) -> None:
    chat = shared_chat(alice, bob, mallory)
    writer = spoken(dial, alice, chat, "the root")
    root = activities_of_log(chat)
    follower, other = watching(dial, alice), watching(dial, mallory)
    replier = dial(bob)
    replier.create_session(chat=chat.pk)
    replier.ask("a reply", thread=root)
    (mine,) = activities(follower.until("chat.activity"))
    (theirs,) = activities(other.until("chat.activity"))
    assert mine["message"]["is_followed"] is True
    assert "is_followed" not in theirs["message"]
    # One whom a reply mentions follows from then on; who left the chat does not.
    replier.ask("@mallory look", thread=root)
    assert activities(other.until("chat.activity"))[0]["message"]["is_followed"] is True
    writer.ask("an answer", thread=root)
    assert activities(other.until("chat.activity"))[0]["message"]["is_followed"] is True
    last = ChatEvent.objects.filter(chat=chat, type="message.created").latest("seq")
    assert set(last.payload["followers"]) == {str(bob.user.pk), str(mallory.user.pk)}
    # What is read leaves the counts: the person's pages are sent by how much.
    reader = dial(mallory)
    reader.create_session(chat=chat.pk)
    reader.send("message.read", message_id=last.payload["message"]["id"])
    activity = activities(other.until("chat.activity"), "message.read")[0]
    assert (activity["thread"], activity["replies"]) == (root, 3)


def test_an_answer_is_watched_by_its_message_and_not_by_its_text(
    dial: Dial, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice, bob)
    watcher = watching(dial, alice)
    spoken(dial, bob, chat, "@echo hello there").until("response.done")
    frames = watcher.until("chat.activity") + watcher.until("chat.activity")
    assert [f["message"]["role"] for f in activities(frames)] == ["user", "assistant"]
    assert not any(f["type"].startswith("response.") for f in frames)


def test_an_added_member_watches_at_once_and_a_removed_one_no_longer(
    dial: Dial, alice: Person, bob: Person, mallory: Person
) -> None:
    chat = shared_chat(alice, bob)
    watcher = watching(dial, mallory)
    add_participant(chat_id=chat.pk, added_by=alice.user, user=mallory.user)
    added = watcher.until("person.changed")[-1]
    assert (added["subject"], added["chat_id"]) == ("chat_added", chat.pk)
    writer = spoken(dial, bob, chat, "welcome")
    assert watcher.until("chat.activity")[-1]["message"]["content"] == "welcome"
    row = Participant.objects.get(chat=chat, user=mallory.user)
    remove_participant(chat_id=chat.pk, removed_by=alice.user, participant_id=row.pk)
    removed = watcher.until("person.changed")[-1]
    assert (removed["subject"], removed["chat_id"]) == ("chat_removed", chat.pk)
    writer.ask("between us")
    writer.until("message.created")
    assert not activities(watcher.settle())


def test_a_new_chat_and_changed_settings_reach_every_socket_of_the_person(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person
) -> None:
    tabs = [watching(dial, bob), watching(dial, bob)]
    chat = shared_chat(alice, bob)
    for tab in tabs:
        assert tab.until("person.changed")[-1]["chat_id"] == chat.pk
    assert web.patch("/api/v1/me/settings", headers=bob.headers, json={"theme": "dark"}).is_success
    for tab in tabs:
        assert tab.until("person.changed")[-1]["subject"] == "settings"


def test_what_was_read_elsewhere_reaches_the_persons_own_sockets_only(
    dial: Dial, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice, bob)
    writer = spoken(dial, bob, chat, "news")
    message_id = activities_of_log(chat)
    mine, others = watching(dial, alice), watching(dial, bob)
    reader = dial(alice)
    reader.create_session(chat=chat.pk)
    reader.send("message.read", chat_id=chat.pk, message_id=message_id)
    activity = mine.until("chat.activity")[-1]
    assert (activity["kind"], activity["message_id"]) == ("message.read", message_id)
    writer.until("message.read")
    assert not activities(others.settle(), "message.read")


def counts(web: httpx.Client, who: Person, chat: Chat) -> tuple[int, int]:
    """Return the unread messages and mentions of a chat, as REST has them."""
    row = web.get(f"/api/v1/chats/{chat.pk}", headers=who.headers).json()
    return row["unread"], row["unread_mentions"]


def test_mentions_are_sent_and_counted_alike_and_end_where_they_were_read(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice, bob)
    tabs = [watching(dial, alice), watching(dial, alice)]
    writer = spoken(dial, bob, chat, "@Alice and @bob, not `@alice`")
    own_id = str(alice.user.pk)
    for tab in tabs:
        # Who writes does not mention themselves.
        assert tab.until("chat.activity")[-1]["message"]["mentions"] == [own_id]
    assert counts(web, alice, chat) == (1, 1)
    for text in ("`@alice` in code", "no one"):
        writer.ask(text)
        assert "mentions" not in writer.until("message.created")[-1]
    assert counts(web, alice, chat) == (3, 1)
    first, second, third = chat.messages.order_by("seq")
    writer.send("message.edit", message_id=second.pk, content="@alice after all")
    writer.until("message.edited")
    assert counts(web, alice, chat) == (3, 2)
    writer.send("message.delete", message_id=first.pk)
    writer.until("message.deleted")
    assert counts(web, alice, chat)[1] == 1
    reader = dial(alice)
    reader.create_session(chat=chat.pk)
    reader.send("message.read", message_id=third.pk)
    assert tabs[1].until("chat.activity")[-1]
    reader.until("message.read")
    assert counts(web, alice, chat) == (0, 0)


@pytest.mark.parametrize(
    "text", ["@echo tell @bob and @alice", "请\uff20echo告诉\uff20\uff22ob和\uff20alice看"]
)
def test_an_answer_mentions_people(dial: Dial, alice: Person, bob: Person, text: str) -> None:
    chat = shared_chat(alice, bob)
    watcher = watching(dial, bob)
    spoken(dial, alice, chat, text).until("response.done")
    frames = watcher.until("chat.activity") + watcher.until("chat.activity")
    of_question, answered = [f["message"]["mentions"] for f in activities(frames)]
    assert of_question == [str(bob.user.pk)]
    assert answered == sorted([str(alice.user.pk), str(bob.user.pk)], key=int)


def activities_of_log(chat: Chat) -> str:
    """Return the id of the only message of a chat."""
    return str(chat.messages.get().pk)


def test_a_changed_balance_reaches_the_person_alone(dial: Dial, alice: Person, bob: Person) -> None:
    tabs, other = [watching(dial, alice), watching(dial, alice)], watching(dial, bob)
    rich(alice)
    for tab in tabs:
        assert tab.until("person.changed")[-1]["subject"] == "balance"
    assert other.settle() == []


def test_a_call_rings_for_watchers_and_for_those_who_connect_later(
    dial: Dial, alice: Person, bob: Person, mallory: Person
) -> None:
    chat = shared_chat(alice, bob)
    watcher, stranger = watching(dial, bob), watching(dial, mallory)
    caller = dial(alice)
    caller.create_session(chat=chat.pk)
    caller.send("voice.invite", media=["audio"])
    rings = watcher.until("call.updated")[-1]
    assert rings["chat_id"] == chat.pk
    assert "session_id" not in rings
    late = dial(bob)
    late.send("chats.watch")
    assert late.until("call.updated")[-1]["call_id"] == rings["call_id"]
    assert stranger.settle() == []


class DeafLayer(EmbeddedChannelLayer):
    """A layer that loses all messages of chats and people."""

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        """Send to the groups of processes only."""
        if not group.startswith(("chat.", "person.")):
            await super().group_send(group, message)


@pytest.fixture
def deaf(settings: Settings) -> None:
    """Let the layer lose everything, and the processes compare often."""
    backend = f"{__name__}.{DeafLayer.__name__}"
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": backend, "CONFIG": {}}}
    settings.UAMP_WATCH_SECONDS = 0.2


def test_what_the_layer_lost_is_found_by_comparing(
    deaf: None, dial: Dial, alice: Person, bob: Person, mallory: Person
) -> None:
    chat = shared_chat(alice, bob, mallory)
    watcher, former = watching(dial, alice), watching(dial, mallory)
    spoken(dial, bob, chat, "are you there?")
    assert watcher.until("chat.activity")[-1]["kind"] == "changed"
    former.until("chat.activity")
    row = Participant.objects.get(chat=chat, user=mallory.user)
    remove_participant(chat_id=chat.pk, removed_by=alice.user, participant_id=row.pk)
    # The client of the former member is to read the chat again, and finds that it is gone.
    assert former.until("chat.activity")[-1]["kind"] == "changed"
    spoken(dial, bob, chat, "between us")
    watcher.until("chat.activity")
    watcher.until("chat.activity")
    assert former.settle() == []


def test_at_most_so_many_chats_are_watched_and_the_others_are_found_later(
    dial: Dial, alice: Person, bob: Person, settings: Settings
) -> None:
    settings.UAMP_WATCHED_CHATS = 2
    chats = [shared_chat(alice, bob) for _ in range(3)]
    watcher = dial(alice)
    watcher.send("chats.watch")
    watched = watcher.expect("chats.watched")
    assert (watched["chats"], watched["more"]) == (2, True)
    spoken(dial, bob, chats[0], "an old chat")
    assert chats[0].pk not in [f["chat_id"] for f in activities(watcher.settle())]


def test_visitors_watch_nothing(dial: Dial) -> None:
    visitor = dial()
    visitor.send("chats.watch")
    assert visitor.until("session.error")[-1]["error"]["code"] == "unauthorized"


def test_members_are_sent_when_an_agent_is_switched_off_and_on(
    dial: Dial, alice: Person, mallory: Person
) -> None:
    agent = factories.agent("lamp")
    chat = shared_chat(alice, agents=(agent.name,))
    watcher, stranger = watching(dial, alice), watching(dial, mallory)
    member = dial(alice)
    member.create_session(chat=chat.pk)
    agent.description = "another one"
    agent.save()
    for is_enabled, kind in ((False, "presence.offline"), (True, "presence.online")):
        agent.is_enabled = is_enabled
        agent.save()
        for client in (watcher, member):
            seen = client.expect(kind)
            assert (seen["user_id"], seen["kind"], seen["chat_id"]) == (agent.pk, "agent", chat.pk)
    assert [f for f in stranger.settle() if f["type"].startswith("presence.")] == []


def test_members_of_many_chats_of_an_agent_are_sent_up_to_a_number(
    dial: Dial, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_presence, "MAX_CHATS", 1)
    agent = factories.agent("lamp")
    older, newer = (shared_chat(alice, agents=(agent.name,)) for _ in range(2))
    watcher = watching(dial, alice)
    agent.is_enabled = False
    agent.save()
    assert watcher.expect("presence.offline")["chat_id"] == newer.pk
    assert [f for f in watcher.settle() if f["type"] == "presence.offline"] == []
    assert older.pk != newer.pk


def test_a_changed_profile_reaches_the_members_of_the_persons_chats(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, mallory: Person
) -> None:
    chat = shared_chat(alice, bob)
    watcher, stranger = watching(dial, bob), watching(dial, mallory)
    body = {"display_name": "Alice Müller", "status_text": "On the train"}
    assert web.patch("/api/v1/me", headers=alice.headers, json=body).is_success
    changed = watcher.until("profile.changed")[-1]
    assert (changed["user_id"], changed["chat_id"]) == (str(alice.user.pk), chat.pk)
    assert (changed["display_name"], changed["status_text"]) == ("Alice Müller", "On the train")
    refused = web.patch("/api/v1/me", headers=alice.headers, json={"avatar_emoji": "two words"})
    assert refused.status_code == HTTPStatus.BAD_REQUEST
    assert not [frame for frame in watcher.settle() if frame["type"] == "profile.changed"]
    assert not [frame for frame in stranger.settle() if frame["type"] == "profile.changed"]

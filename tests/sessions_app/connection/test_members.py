"""Members of a chat receive the same, strangers nothing (UAMP §7.1, §7.3)."""

import random
from typing import Any

import httpx
import pytest
from pytest_django import Settings

from chat_app.members.participants import add_participant, remove_participant
from chat_app.models import Chat, ChatEvent, Message, Participant
from sessions_app.models import Response
from tests.client import (
    Frame,
    Story,
    UampClient,
    open_stream,
    output_text,
    text_of,
    wait_until,
)
from tests.live_server import Dial, Person, quick_agent, shared_chat
from uamp_project.embedded.layer import EmbeddedChannelLayer

WORDS = " ".join(f"w{number}é\U0001f600" for number in range(30))


class LossyLayer(EmbeddedChannelLayer):
    """A layer that loses every other message of chats, by a fixed choice."""

    choice = random.Random(1)  # noqa: S311 losses, not secrets

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        """Send to a group, or do not."""
        if group.startswith("chat.") and self.choice.random() < 0.5:
            return
        await super().group_send(group, message)


@pytest.fixture
def lossy(settings: Settings) -> None:
    """Let the server's layer lose messages."""
    backend = f"{__name__}.{LossyLayer.__name__}"
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": backend, "CONFIG": {}}}


@pytest.fixture
def chat(alice: Person, bob: Person) -> Chat:
    """Give a chat of alice, bob and an agent that answers everything, word by word."""
    quick_agent("teller", "echo", delay=0.004)
    return shared_chat(alice, bob, agents=("teller",), trigger="always")


def joined(dial: Dial, who: Person, chat: Chat) -> UampClient:
    """Return a socket of a person with a session of a chat."""
    client = dial(who)
    client.create_session(chat=chat.pk)
    client.settle()
    return client


def meeting(dial: Dial, chat: Chat, *people: Person) -> list[UampClient]:
    """Return a socket of each person; all have received that the others came."""
    clients = [joined(dial, who, chat) for who in people]
    for number, client in enumerate(clients, start=1):
        client.expect(*["presence.online"] * (len(clients) - number))
    return clients


def received(client: UampClient) -> list[Frame]:
    """Return the frames up to the agent's message, which comes last in a turn."""
    frames: list[Frame] = []
    while not frames or frames[-1].get("message", {}).get("role") != "assistant":
        frames += client.until("message.created")
    return frames


def test_all_members_receive_the_same_turn(
    dial: Dial, alice: Person, bob: Person, chat: Chat
) -> None:
    clients = meeting(dial, chat, alice, bob)
    clients[0].ask(WORDS)
    for client in clients:
        frames = received(client)
        between = {"response.delta", "usage.delta"}
        types = [f["type"] for f in frames if f["type"] not in between]
        assert types == ["message.created", "response.created", "response.done", "message.created"]
        assert text_of(frames) == output_text(frames[-2]) == WORDS
        assert sum(f["type"] == "response.delta" for f in frames) > 1
        story = Story().take_all(frames)
        stored = {e.seq: {**e.payload, "seq": e.seq} for e in ChatEvent.objects.filter(chat=chat)}
        assert story.log == stored


def test_members_receive_everything_although_the_layer_loses_half(
    lossy: None, dial: Dial, alice: Person, bob: Person, chat: Chat
) -> None:
    clients = [joined(dial, who, chat) for who in (alice, bob)]
    for turn in range(3):
        clients[turn % 2].ask(f"{WORDS} {turn}")
        wait_until(lambda: not Response.objects.filter(finished_at=None).exists())
    stories = []
    for client in clients:
        story = Story()
        while len(story.log) < 12:
            story.take(client.receive())
        stories.append(story)
    texts = dict(Response.objects.values_list("id", "text"))
    assert stories[0].log == stories[1].log
    assert list(stories[0].log) == list(range(1, 13))
    assert stories[0].texts == stories[1].texts == texts


def test_a_member_who_joins_in_mid_answer_receives_all_of_it(
    dial: Dial, alice: Person, bob: Person, chat: Chat
) -> None:
    asker = joined(dial, alice, chat)
    asker.ask(WORDS)
    asker.until("response.delta")
    late = dial(bob)
    late.send("session.create", session={}, chat=chat.pk)
    frames = received(late)
    # The response is introduced, its text so far comes at once, and the rest as it grows.
    deltas = [f for f in frames if f["type"] == "response.delta"]
    assert deltas[0]["offset"] == 0
    assert len(deltas) > 1
    done = next(f for f in frames if f["type"] == "response.done")
    assert text_of(frames) == output_text(done) == WORDS
    created = next(f for f in frames if f["type"] == "response.created")
    assert created["response_id"] == done["response_id"]


def test_an_asker_who_returns_on_a_second_socket_receives_it_there_too(
    dial: Dial, alice: Person, chat: Chat
) -> None:
    first, second = (joined(dial, alice, chat) for _ in range(2))
    first.ask(WORDS)
    assert text_of(received(first)) == text_of(received(second)) == WORDS


# --- What is not kept: typing, presence, calls; and receipts ---


def test_typing_is_sent_to_the_others_only(
    dial: Dial, alice: Person, bob: Person, mallory: Person, chat: Chat
) -> None:
    writer, reader = meeting(dial, chat, alice, bob)
    other_chat = joined(dial, mallory, shared_chat(mallory))
    before = ChatEvent.objects.count()
    writer.send("input.typing", is_typing=True, chat_id=chat.pk)
    reported = reader.expect("presence.typing")
    assert (reported["user_id"], reported["username"]) == (str(alice.user.pk), "alice")
    assert (reported["is_typing"], reported["chat_id"]) == (True, chat.pk)
    # Once in three seconds is enough; the end is always sent.
    writer.send("input.typing", is_typing=True)
    writer.send("input.typing", is_typing=False)
    assert reader.expect("presence.typing")["is_typing"] is False
    assert writer.settle() == other_chat.settle() == []
    assert ChatEvent.objects.count() == before
    writer.send("input.typing", is_typing=True, chat_id="chat_other")
    assert writer.expect("session.error")["error"]["code"] == "chat_not_found"


def test_a_person_with_a_stream_is_online_until_it_ends(
    web: httpx.Client, dial: Dial, alice: Person, bob: Person, chat: Chat
) -> None:
    reader = joined(dial, alice, chat)
    create = {"type": "session.create", "event_id": "c1", "uamp_version": "1.0", "chat": chat.pk}
    answer = web.post("/events", json={**create, "session": {}}, headers=bob.headers)
    session_id = answer.headers["X-Session-ID"]
    # A request alone is no presence.
    assert [f for f in reader.settle() if f["type"].startswith("presence.")] == []
    headers = {**bob.headers, "X-Session-ID": session_id}
    with open_stream(web, "GET", "/events/stream", headers=headers):
        assert reader.expect("presence.online")["username"] == "bob"
    assert reader.expect("presence.offline")["username"] == "bob"


def test_typing_after_a_message_is_a_new_sign(
    dial: Dial, alice: Person, bob: Person, chat: Chat
) -> None:
    writer, reader = meeting(dial, chat, alice, bob)
    writer.send("input.typing", is_typing=True, chat_id=chat.pk)
    assert reader.expect("presence.typing")["is_typing"] is True
    writer.send("input.text", text="sent")
    writer.send("input.typing", is_typing=True, chat_id=chat.pk)
    assert reader.expect("presence.typing")["is_typing"] is True


def test_alternating_signs_of_typing_are_sent_once_in_an_interval(
    dial: Dial, alice: Person, bob: Person, chat: Chat
) -> None:
    writer, reader = meeting(dial, chat, alice, bob)

    def signs() -> list[bool]:
        writer.settle()
        return [f["is_typing"] for f in reader.settle() if f["type"] == "presence.typing"]

    for _ in range(10):
        writer.send("input.typing", is_typing=True)
        writer.send("input.typing", is_typing=False)
    assert signs() == [True, False]
    # Only the first input of a turn counts as a message.
    for _ in range(10):
        writer.send("input.text", text="part of a message")
        writer.send("input.typing", is_typing=True)
    assert signs() == [True]


def test_people_of_one_socket_are_distinguished(
    dial: Dial, alice: Person, bob: Person, chat: Chat
) -> None:
    """A daemon may hold sessions of several people, each with its own token (UAMP §10.3)."""
    client = dial()
    ids = [client.create_session(chat=chat.pk, token=who.key)["session_id"] for who in (alice, bob)]
    client.settle()
    client.send("input.typing", session_id=ids[0], is_typing=True)
    reported = client.expect("presence.typing")
    assert (reported["session_id"], reported["username"]) == (ids[1], "alice")
    assert client.during(0.1) == []


def test_coming_and_going_is_sent_to_co_members_only(
    dial: Dial, alice: Person, bob: Person, mallory: Person, chat: Chat
) -> None:
    watcher = joined(dial, alice, chat)
    stranger = joined(dial, mallory, shared_chat(mallory))
    first = dial(bob)
    online = watcher.expect("presence.online")
    assert (online["user_id"], online["username"]) == (str(bob.user.pk), "bob")
    assert (online["kind"], online["chat_id"]) == ("user", chat.pk)
    second = dial(bob)
    second.settle()
    first.close()
    assert watcher.during(0.1) == []
    second.close()
    offline = watcher.expect("presence.offline")
    assert offline["user_id"] == str(bob.user.pk)
    assert offline["last_seen_at"] > 1.7e12
    assert stranger.settle() == []


def test_reading_is_sent_to_every_member_once(
    dial: Dial, alice: Person, bob: Person, chat: Chat
) -> None:
    writer, reader = meeting(dial, chat, alice, bob)
    writer.ask("Hello")
    message_id = received(reader)[-1]["message"]["id"]
    received(writer)
    reader.send("message.read", message_id=message_id, user_id="999", read_at=1)
    for client in (writer, reader):
        reported = client.expect("message.read")
        assert (reported["message_id"], reported["user_id"]) == (message_id, str(bob.user.pk))
        assert reported["read_at"] > 1.7e12
    reader.send("message.read", message_id=message_id)
    assert reader.settle() == []
    reader.send("message.read", message_id="msg_unknown")
    assert reader.expect("session.error")["error"]["code"] == "chat_not_found"


def test_a_call_is_passed_on_to_whom_it_names(
    dial: Dial, alice: Person, bob: Person, mallory: Person, chat: Chat
) -> None:
    caller, called = meeting(dial, chat, alice, bob)
    sdp = {"type": "offer", "sdp": "v=0"}
    caller.send(
        "voice.invite",
        call_id="call-1",
        to=str(bob.user.pk),
        media=["audio"],
        sdp=sdp,
        **{"from": str(bob.user.pk)},
    )
    invited = called.until("voice.invite")[-1]
    assert (invited["from"], invited["to"]) == (str(alice.user.pk), str(bob.user.pk))
    assert (invited["call_id"], invited["sdp"], invited["media"]) == ("call-1", sdp, ["audio"])
    assert invited["chat_id"] == chat.pk
    called.send("voice.accept", call_id="call-1", to=str(alice.user.pk))
    assert caller.until("voice.accept")[-1]["from"] == str(bob.user.pk)
    caller.send("voice.end", call_id="call-1", duration_ms=1200)
    assert called.until("voice.end")[-1]["duration_ms"] == 1200
    assert {frame["type"] for frame in caller.settle()} == {"call.updated"}
    caller.send("voice.invite", call_id="call-2", to=str(mallory.user.pk))
    assert caller.expect("session.error")["error"]["code"] == "chat_not_found"


# --- Strangers, and members who leave ---


def test_a_stranger_receives_nothing(
    dial: Dial, alice: Person, mallory: Person, chat: Chat
) -> None:
    stranger = dial(mallory)
    stranger.create_session(agent="echo")
    visitor = dial()
    visitor.create_session(agent="echo")
    member = joined(dial, alice, chat)
    member.ask("A secret")
    member.send("input.typing", is_typing=True)
    received(member)
    assert stranger.settle() == visitor.settle() == []


def test_a_member_who_leaves_receives_nothing_more(
    dial: Dial, alice: Person, bob: Person, chat: Chat
) -> None:
    staying, leaving = meeting(dial, chat, alice, bob)
    place = Participant.objects.get(chat=chat, user=bob.user)
    remove_participant(chat_id=chat.pk, removed_by=alice.user, participant_id=place.pk)
    assert staying.expect("participant.left")["participant"]["name"] == "bob"
    assert leaving.expect("participant.left")["participant"]["name"] == "bob"
    assert leaving.expect("session.error")["error"]["code"] == "chat_not_found"
    staying.ask("Now that bob has gone")
    staying.send("input.typing", is_typing=True)
    received(staying)
    assert leaving.settle() == []
    leaving.ask("Am I still here?")
    assert leaving.expect("session.error")["error"]["code"] == "session_required"
    assert not Message.objects.filter(content="Am I still here?").exists()
    # Taken back, a new session receives the chat again.
    add_participant(chat_id=chat.pk, added_by=alice.user, user=bob.user)
    staying.expect("participant.joined")
    again = joined(dial, bob, chat)
    staying.ask("Welcome back")
    assert text_of(received(again)) == text_of(received(staying)) == "Welcome back"
    # A session that reads the log from before they left does not end there.
    third = dial(bob)
    third.create_session(chat=chat.pk, resume={"epoch": chat.epoch, "after": 0})
    third.until("participant.joined")
    third.ask("Thank you")
    assert text_of(received(staying)) == "Thank you"


def test_a_new_member_is_announced(dial: Dial, alice: Person, mallory: Person, chat: Chat) -> None:
    client = joined(dial, alice, chat)
    add_participant(chat_id=chat.pk, added_by=alice.user, user=mallory.user)
    reported = client.expect("participant.joined")
    assert reported["participant"] == {
        "kind": "user",
        "id": str(mallory.user.pk),
        "name": "mallory",
        "participant_id": Participant.objects.get(chat=chat, user=mallory.user).pk,
        "role": "member",
    }
    assert reported["by"] == {"id": str(alice.user.pk), "name": "alice"}
    assert reported["seq"] == Chat.objects.get(pk=chat.pk).last_seq

"""Chats that peers follow: their events as signed notifications, in the order of the log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from chat_app.log.history import chat_heads
from chat_app.members.participants import remove_participant
from chat_app.models import Message, Participant
from federation_app.envelope.members.reading import envelope_of
from federation_app.envelope.signatures.signature import verify_signature
from federation_app.exchange import chats, windowed
from federation_app.models import EnvelopeStream, ReceivedEnvelope
from federation_app.own_names import own_keys
from tests.client import wait_until
from tests.federation_app.peer import SERVER, ForeignPeer, Records, add_peer, sse
from tests.federation_app.test_websocket import delta, error_of
from tests.live_server import shared_chat

if TYPE_CHECKING:
    from tests.conftest import ServerAddress
    from tests.live_server import Dial, Person

pytestmark = pytest.mark.django_db(transaction=True)


def follow(peer: ForeignPeer, chat_id: str, *, after: int | None = None, **members: Any) -> Any:
    """Return a `subscribe` to a chat."""
    content: dict[str, Any] = {"chat": chat_id}
    if after is not None:
        content["after"] = after
    values = {"to": [SERVER], "stream_id": "chat-1", **members}
    return peer.envelope("subscribe", json.dumps(content), **values)


def event_of(record: Any) -> Any:
    """Return the event in a delta, whose `notify` the server has signed."""
    envelope = envelope_of(record["payload"]["envelope"])
    assert envelope.intent == "notify"
    verify_signature(envelope.digests(), envelope.sig, sender=SERVER, keys=own_keys(SERVER))
    event = json.loads(envelope.body.content)
    assert event["seq"] == record["delta_seq"]
    assert "session_id" not in event
    return event


def texts(records: list[Any]) -> list[str]:
    """Return the texts of the messages in deltas."""
    events = [event_of(record) for record in records]
    return [event["message"]["content"] for event in events if event["type"] == "message.created"]


def test_a_peer_follows_a_chat_of_its_account(
    federated: ServerAddress, dial: Dial, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice, bob, agents=("echo",), trigger="always")
    peer = add_peer(user=bob.user)
    writer = dial(alice)
    writer.create_session(chat=chat.pk)
    with Records(federated.ws) as records:
        records.send(follow(peer, chat.pk))
        records.send(peer.envelope(content="ready"))
        records.until("done")
        writer.answer("hello there")
        head = chat_heads([chat.pk])[chat.pk]
        deltas = [records.receive()]
        while deltas[-1]["delta_seq"] < head:
            deltas.append(records.receive())
        assert texts(deltas) == ["hello there", "hello there"], "the question and its answer"
        first = deltas[0]["delta_seq"]
        assert [frame["delta_seq"] for frame in deltas] == list(range(first, head + 1))
    writer.answer("while away")
    # Over another transport, from the beginning of the log.
    headers = {**peer.bearer(), "Last-Event-ID": "0"}
    with (
        httpx.Client(base_url=federated.http, timeout=60, trust_env=False) as client,
        client.stream("GET", "/v1/stream/chat-1", headers=headers) as response,
    ):
        head, deltas = chat_heads([chat.pk])[chat.pk], []
        for number, record in sse(response):
            assert int(number) == record["delta_seq"] == len(deltas) + 1
            deltas.append(record)
            if len(deltas) == head:
                break
    assert texts(deltas) == ["hello there"] * 2 + ["while away"] * 2


def test_a_chat_waits_for_its_reader(
    federated: ServerAddress, dial: Dial, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice, bob, agents=("echo",))
    peer = add_peer(user=bob.user)
    writer = dial(alice)
    writer.create_session(chat=chat.pk)
    for number in range(4):
        writer.ask(f"message {number}")
        writer.until("message.created")
    head = chat_heads([chat.pk])[chat.pk]
    with Records(federated.ws) as records:
        ask = follow(peer, chat.pk, after=head - 4, delta_window=2)
        records.send(ask)
        deltas = [records.receive(), records.receive()]
        with pytest.raises(TimeoutError):
            records.receive(1)
        records.send(delta("chat-1", "progress", ack=deltas[-1]["delta_seq"]))
        deltas += [records.receive(), records.receive()]
        assert texts(deltas) == [f"message {number}" for number in range(4)]
        acknowledged = deltas[-2]["delta_seq"]
        records.send(delta("chat-1", "progress", ack=acknowledged))
    wait_until(lambda: EnvelopeStream.objects.get().acknowledged == acknowledged)
    # The same envelope again goes on after what was acknowledged.
    with Records(federated.ws) as records:
        records.send(ask)
        assert texts([records.receive()]) == ["message 3"]
    assert EnvelopeStream.objects.count() == 1


def test_chats_of_others_are_not_followed(
    federated: ServerAddress, alice: Person, bob: Person, mallory: Person
) -> None:
    chat = shared_chat(alice, bob)
    head = chat_heads([chat.pk])[chat.pk]
    stranger, visitor = add_peer("mallory.example", user=mallory.user), add_peer("visitor.example")
    member = add_peer("bob.example", user=bob.user)
    with Records(federated.ws) as records:
        for code, bad in (
            ("4.04", follow(stranger, chat.pk)),
            ("4.04", follow(visitor, chat.pk)),
            ("4.04", follow(member, "chat_none")),
            ("4.00", follow(member, 7)),  # type: ignore[arg-type]
            ("4.00", follow(member, chat.pk, after=2**60)),
        ):
            records.send(bad)
            assert error_of(records.receive())["code"] == code
        records.send(follow(member, chat.pk, after=head + 1))
        assert error_of(records.receive())["code"] == "4.09"
        assert not EnvelopeStream.objects.exists()
        assert not ReceivedEnvelope.objects.exists()


def test_a_reader_has_no_event_that_a_chat_does_not_have(
    federated: ServerAddress, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice, bob)
    head = chat_heads([chat.pk])[chat.pk]
    member = add_peer(user=bob.user)
    with Records(federated.ws) as records:
        records.send(follow(member, chat.pk, after=head))
        records.send(member.envelope(content="ready"))
        records.until("done")
    wait_until(lambda: not windowed.open_streams(EnvelopeStream.objects.get(chat_id=chat.pk).pk))
    with Records(federated.ws) as records:
        for intent, place in (("progress", {"ack": head + 1}), ("subscribe", {"after": head + 1})):
            content = json.dumps(place)
            records.send(member.envelope(intent, content, to=[SERVER], stream_id="chat-1"))
            assert error_of(records.receive())["code"] == "4.09"
    assert EnvelopeStream.objects.get(chat_id=chat.pk).acknowledged == head
    assert ReceivedEnvelope.objects.count() == 2


@pytest.mark.parametrize("reads_elsewhere", [False, True])
def test_a_subscription_is_cancelled(
    federated: ServerAddress,
    dial: Dial,
    alice: Person,
    bob: Person,
    monkeypatch: pytest.MonkeyPatch,
    *,
    reads_elsewhere: bool,
) -> None:
    """The states of envelope §10."""
    if reads_elsewhere:
        monkeypatch.setattr(chats, "open_streams", lambda _pk: [])
    chat = shared_chat(alice, bob, agents=("echo",))
    peer = add_peer(user=bob.user)
    writer = dial(alice)
    writer.create_session(chat=chat.pk)
    following = follow(peer, chat.pk)
    cancel = peer.envelope("cancel", "", to=[SERVER], stream_id="chat-1")
    with Records(federated.ws) as records:
        records.send(following)
        records.send(cancel)
        assert records.receive()["type"] == "cancel"
        writer.ask("secret")
        writer.until("message.created")
        # It stays cancelled, for whatever would resume it, and a repeat of either changes nothing.
        records.send(cancel)
        resuming = peer.envelope("subscribe", "", to=[SERVER], stream_id="chat-1")
        for envelope in (following, resuming):
            records.send(envelope)
            ended = records.receive()
            assert ended["type"] == "cancel"
        # A new one follows the chat again.
        records.send(follow(peer, chat.pk, after=ended["delta_seq"] - 1, stream_id="chat-2"))
        assert texts([records.receive()]) == ["secret"]


@pytest.mark.parametrize("is_forgotten", [False, True])
def test_a_subscription_with_a_full_window_ends_with_its_cancellation(
    federated: ServerAddress,
    dial: Dial,
    alice: Person,
    bob: Person,
    *,
    is_forgotten: bool,
) -> None:
    chat = shared_chat(alice, bob, agents=("echo",))
    peer = add_peer(user=bob.user)
    writer = dial(alice)
    writer.create_session(chat=chat.pk)
    for number in range(3):
        writer.ask(f"message {number}")
        writer.until("message.created")
    head = chat_heads([chat.pk])[chat.pk]
    with Records(federated.ws) as records:
        records.send(follow(peer, chat.pk, after=head - 3, delta_window=1))
        assert texts([records.receive()]) == ["message 0"]
        if is_forgotten:
            EnvelopeStream.objects.all().delete()
        else:
            records.send(peer.envelope("cancel", "", to=[SERVER], stream_id="chat-1"))
        assert records.receive()["type"] == "cancel"
    assert EnvelopeStream.objects.exists() is not is_forgotten


def test_a_cancellation_elsewhere_ends_all_readers_here(
    federated: ServerAddress,
    dial: Dial,
    alice: Person,
    bob: Person,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cancelled: set[chats.ChatStream] = set()

    def note(stream: chats.ChatStream) -> None:
        """Cancel nothing, as a reader that is stuck in a send."""
        cancelled.add(stream)

    # As if another process received the cancellation.
    monkeypatch.setattr(chats, "cancel_readers", lambda _pk: None)
    monkeypatch.setattr(chats.ChatStream, "cancel", note)
    chat = shared_chat(alice, bob, agents=("echo",))
    peer = add_peer(user=bob.user)
    writer = dial(alice)
    writer.create_session(chat=chat.pk)
    earlier = set(windowed.all_open())
    with Records(federated.ws) as first, Records(federated.ws) as second:
        first.send(follow(peer, chat.pk))
        wait_until(lambda: len(set(windowed.all_open()) - earlier) == 1)
        second.send(peer.envelope("subscribe", "", to=[SERVER], stream_id="chat-1"))
        wait_until(lambda: len(set(windowed.all_open()) - earlier) == 2)
        first.send(peer.envelope("cancel", "", to=[SERVER], stream_id="chat-1"))
        wait_until(lambda: len(cancelled) == 2)


def test_a_peer_loses_a_chat_with_the_membership(
    federated: ServerAddress, dial: Dial, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice, bob, agents=("echo",))
    peer = add_peer(user=bob.user)
    writer = dial(alice)
    writer.create_session(chat=chat.pk)
    with Records(federated.ws) as records:
        records.send(follow(peer, chat.pk))
        records.send(peer.envelope(content="ready"))
        records.until("done")
        member = Participant.objects.get(chat=chat, user=bob.user)
        remove_participant(chat_id=chat.pk, removed_by=alice.user, participant_id=member.pk)
        writer.ask("secret")
        writer.until("message.created")
        record = records.receive()
        while "delta_seq" in record:
            assert "secret" not in json.dumps(record)
            record = records.receive()
        assert error_of(record)["code"] in {"4.03", "4.04"}
    with Records(federated.ws) as records:
        records.send(peer.envelope("subscribe", "", to=[SERVER], stream_id="chat-1"))
        assert error_of(records.receive())["code"] == "4.04"


def test_a_peer_loses_a_chat_with_its_account(
    federated: ServerAddress, dial: Dial, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice, bob, agents=("echo",))
    peer = add_peer(user=bob.user)
    writer = dial(alice)
    writer.create_session(chat=chat.pk)
    with Records(federated.ws) as records:
        records.send(follow(peer, chat.pk))
        records.send(peer.envelope(content="ready"))
        records.until("done")
        bob.user.is_active = False
        bob.user.save()
        # No event has to wake the stream.
        assert error_of(records.receive())["code"] == "4.01"


def test_a_follower_of_a_chat_cannot_write_in_it(
    federated: ServerAddress, dial: Dial, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice, bob, agents=("echo",), trigger="always")
    peer = add_peer(user=bob.user)
    writer = dial(alice)
    writer.create_session(chat=chat.pk)
    writer.answer("hello there")
    following = follow(peer, chat.pk, after=0)
    with Records(federated.ws) as records:
        records.send(following)
        assert texts([records.receive()]) == ["hello there"]
    with Records(federated.ws) as records:
        reply = peer.envelope(content="in the chat", reply_to=following["id"], to=[SERVER])
        records.send(reply)
        refused = error_of(records.receive())
    assert (refused["code"], refused["detail"]) == ("4.09", "reply_to")
    assert not Message.objects.filter(content="in the chat").exists()


def test_a_chat_is_followed_in_a_session_of_its_own(
    federated: ServerAddress, dial: Dial, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice, bob, agents=("echo",), trigger="always")
    peer = add_peer(user=bob.user)
    writer = dial(alice)
    writer.create_session(chat=chat.pk)
    writer.answer("hello there")
    ask = peer.envelope(content="elsewhere")
    with Records(federated.ws) as records:
        records.send(ask)
        records.until("done")
        records.send(follow(peer, chat.pk, reply_to=ask["id"], after=0))
        assert texts([records.receive()]) == ["hello there"]

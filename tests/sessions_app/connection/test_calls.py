"""Calls in a chat: who is called, who takes part, how a call ends, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from chat_app.calls.operations import renew_participants, sweep_calls
from chat_app.members.participants import add_participant, remove_participant
from chat_app.models import (
    CallReason,
    CallState,
    Chat,
    ChatEvent,
    Participant,
    VoiceCall,
    VoiceCallMember,
)
from sessions_app.models import Session
from tests.client import UampClient, wait_until
from tests.live_server import Dial, Person, shared_chat

if TYPE_CHECKING:
    import httpx
    from pytest_django import Settings

SDP = {"type": "offer", "sdp": "v=0"}


@pytest.fixture
def chat(alice: Person, bob: Person) -> Chat:
    """Give a chat of alice and bob."""
    return shared_chat(alice, bob)


def inside(dial: Dial, who: Person, chat: Chat) -> UampClient:
    """Return a socket of a person with a session of a chat."""
    client = dial(who)
    client.create_session(chat=chat.pk)
    client.settle()
    return client


def states(call: dict[str, Any]) -> dict[str, str]:
    """Return the members of a `call.updated` by name."""
    return {member["username"]: member["state"] for member in call["members"]}


def updated(client: UampClient, **members: str) -> dict[str, Any]:
    """Wait for the `call.updated` in which the members have these states."""
    while True:
        call = client.until("call.updated")[-1]
        if members.items() <= states(call).items():
            return call


def refused(client: UampClient, type_: str, **fields: Any) -> str:
    """Send what is refused; return the code. Nothing else is sent, and no row changes."""
    before = list(VoiceCallMember.objects.order_by("id").values("user", "state", "session_id"))
    revisions = list(VoiceCall.objects.order_by("id").values("state", "revision"))
    client.send(type_, **fields)
    code: str = client.until("session.error")[-1]["error"]["code"]
    after = list(VoiceCallMember.objects.order_by("id").values("user", "state", "session_id"))
    assert after == before
    assert list(VoiceCall.objects.order_by("id").values("state", "revision")) == revisions
    return code


def running(dial: Dial, chat: Chat, *people: Person) -> list[UampClient]:
    """Return a socket of each person; they are in a call that the first one began."""
    clients = [inside(dial, who, chat) for who in people]
    clients[0].send("voice.invite", call_id="c1")
    for client in clients[1:]:
        client.until("voice.invite")
        client.send("voice.accept", call_id="c1")
    everybody = {who.user.get_username(): "joined" for who in people}
    for client in clients:
        updated(client, **everybody)
    return clients


def test_a_call_is_answered_and_ends_with_the_last_who_leaves(
    dial: Dial, alice: Person, bob: Person, chat: Chat
) -> None:
    caller, called = inside(dial, alice, chat), inside(dial, bob, chat)
    caller.settle()
    caller.send("voice.invite")
    ringing = called.expect("call.updated")
    assert (ringing["state"], states(ringing)) == ("ringing", {"alice": "joined", "bob": "ringing"})
    assert ringing["members"][1]["rings_until"] > ringing["timestamp"]
    called.until("voice.invite")
    called.send("voice.accept")
    call = updated(caller, bob="joined")
    assert (call["state"], call["call_id"]) == ("running", ringing["call_id"])
    assert call["revision"] > ringing["revision"]
    caller.send("voice.end")
    assert updated(called, alice="left")["state"] == "running"
    called.send("voice.end")
    frames = caller.until("call.ended")
    ended = frames[-1]
    assert ended["started_by"]["username"] == "alice"
    assert [person["username"] for person in ended["participants"]] == ["bob"]
    assert ended["reason"] == "ended"
    assert ended["duration_ms"] >= 0
    assert updated(caller, bob="left")["state"] == "ended"
    entry = ChatEvent.objects.get(chat=chat, type="call.ended")
    assert entry.seq == ended["seq"] == Chat.objects.get(pk=chat.pk).last_seq


def test_one_tab_accepts_and_the_other_stops_ringing_and_may_take_over(
    dial: Dial, alice: Person, bob: Person, chat: Chat
) -> None:
    caller, first, second = (inside(dial, who, chat) for who in (alice, bob, bob))
    caller.send("voice.invite", call_id="c1")
    for tab in (first, second):
        assert states(tab.until("call.updated")[-1])["bob"] == "ringing"
    first.send("voice.accept", call_id="c1")
    assert "rings_until" not in updated(second, bob="joined")["members"][1]
    joined_at = updated(caller, bob="joined")["members"][1]["joined_at"]
    second.send("voice.accept", call_id="c1")
    assert first.until("voice.end")[-1]["reason"] == "elsewhere"
    assert updated(caller, bob="joined")["members"][1]["joined_at"] >= joined_at
    assert not [f for f in second.settle() if f["type"] == "voice.end"]
    # What is signalled to bob reaches the second tab only.
    caller.send("call.signal", call_id="c1", to=str(bob.user.pk), sdp=SDP)
    assert second.until("call.signal")[-1]["sdp"] == SDP
    assert not [f for f in first.settle() if f["type"] == "call.signal"]
    # The same tab once more changes nothing.
    revision = VoiceCall.objects.get().revision
    second.send("voice.accept", call_id="c1")
    second.settle()
    assert VoiceCall.objects.get().revision == revision


@pytest.mark.parametrize(
    ("who", "event", "reason"),
    [("bob", "voice.decline", "declined"), ("alice", "voice.end", "cancelled")],
)
def test_a_call_without_an_answer_ends(
    dial: Dial, alice: Person, bob: Person, chat: Chat, who: str, event: str, reason: str
) -> None:
    clients = {"alice": inside(dial, alice, chat), "bob": inside(dial, bob, chat)}
    clients["alice"].send("voice.invite", call_id="c1")
    clients["bob"].until("voice.invite")
    clients[who].send(event, call_id="c1")
    for client in clients.values():
        ended = client.until("call.ended")[-1]
        assert (ended["reason"], "duration_ms" in ended) == (reason, False)
    assert VoiceCall.objects.get().state == CallState.ENDED
    assert refused(clients["bob"], "voice.accept", call_id="c1") == "call_not_found"
    # The id of a call that has ended begins no other one.
    assert refused(clients["bob"], "voice.invite", call_id="c1") == "call_not_found"


def test_ringing_ends_after_its_time(
    dial: Dial, alice: Person, bob: Person, chat: Chat, settings: Settings
) -> None:
    settings.UAMP_CALL_RING_SECONDS = 1
    caller = inside(dial, alice, chat)
    caller.send("voice.invite", call_id="c1")
    assert caller.until("call.ended", timeout=20)[-1]["reason"] == "unanswered"
    assert states(caller.until("call.updated")[-1]) == {"alice": "left", "bob": "missed"}


def test_a_call_whose_participants_are_lost_is_ended_by_the_sweep(
    dial: Dial, alice: Person, bob: Person, chat: Chat
) -> None:
    caller, called = running(dial, chat, alice, bob)
    now = timezone.now()
    assert sweep_calls(now) == 0
    # A process that died renews nothing.
    bobs_sessions = list(Session.objects.filter(user=bob.user).values_list("id", flat=True))
    caller.close()
    called.close()
    wait_until(lambda: not Session.objects.filter(status="active").exists())
    VoiceCallMember.objects.update(seen_at=now - timedelta(seconds=60))
    renew_participants(bobs_sessions, now=now)
    sweep_calls(now)
    call = VoiceCall.objects.get()
    assert call.state == CallState.RUNNING
    assert dict(call.members.values_list("user__username", "state")) == {
        "alice": "left",
        "bob": "joined",
    }
    sweep_calls(now + timedelta(seconds=60))
    call.refresh_from_db()
    assert (call.state, call.reason) == (CallState.ENDED, CallReason.ENDED)
    assert ChatEvent.objects.filter(chat=chat, type="call.ended").count() == 1
    assert sweep_calls(now + timedelta(seconds=90)) == 0


def test_a_process_renews_the_participants_whose_sockets_it_holds(
    dial: Dial, alice: Person, bob: Person, chat: Chat
) -> None:
    running(dial, chat, alice, bob)
    before = timezone.now() - timedelta(seconds=15)
    VoiceCallMember.objects.update(seen_at=before)
    wait_until(lambda: not VoiceCallMember.objects.filter(seen_at=before).exists())
    assert VoiceCall.objects.get().state == CallState.RUNNING


def test_a_later_member_learns_of_the_call_and_joins(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, mallory: Person, chat: Chat
) -> None:
    caller, _ = running(dial, chat, alice, bob)
    place = f"/api/v1/chats/{chat.pk}/call"
    assert web.get(place, headers=mallory.headers).status_code == 404
    add_participant(chat_id=chat.pk, added_by=alice.user, user=mallory.user)
    late = dial(mallory)
    late.send("session.create", session={}, chat=chat.pk)
    update = late.until("call.updated")[-1]
    assert states(update) == {"alice": "joined", "bob": "joined"}
    description = web.get(place, headers=mallory.headers).json()
    assert description["ice_servers"] == []
    assert {name: update[name] for name in description["call"]} == description["call"]
    assert refused(late, "voice.invite") == "call_running"
    assert refused(late, "voice.decline") == "not_in_call"
    late.send("voice.accept")
    assert len(updated(caller, mallory="joined")["members"]) == 3


def test_a_participant_calls_one_more_person(
    dial: Dial, alice: Person, bob: Person, mallory: Person, chat: Chat
) -> None:
    caller, called = running(dial, chat, alice, bob)
    add_participant(chat_id=chat.pk, added_by=alice.user, user=mallory.user)
    third = inside(dial, mallory, chat)
    caller.send("voice.invite", call_id="c1", to=str(mallory.user.pk))
    assert states(third.until("call.updated")[-1])["mallory"] == "ringing"
    assert third.until("voice.invite")[-1]["from"] == str(alice.user.pk)
    third.send("voice.decline")
    updated(called, mallory="declined")
    assert VoiceCall.objects.get().state == CallState.RUNNING


def test_a_second_invitation_does_not_ring_for_longer(
    dial: Dial, alice: Person, bob: Person, chat: Chat
) -> None:
    caller = inside(dial, alice, chat)
    caller.send("voice.invite")
    updated(caller, bob="ringing")
    rings_until = VoiceCallMember.objects.get(user=bob.user).rings_until
    caller.send("voice.invite", to=str(bob.user.pk))
    caller.settle()
    assert VoiceCallMember.objects.get(user=bob.user).rings_until == rings_until


def test_a_member_who_is_removed_is_out_of_the_call(
    dial: Dial, alice: Person, bob: Person, chat: Chat
) -> None:
    caller, called = running(dial, chat, alice, bob)
    place = Participant.objects.get(chat=chat, user=bob.user)
    remove_participant(chat_id=chat.pk, removed_by=alice.user, participant_id=place.pk)
    assert updated(caller, bob="left")["state"] == "running"
    assert refused(caller, "call.signal", call_id="c1", to=str(bob.user.pk), sdp=SDP) == (
        "not_in_call"
    )
    called.settle()
    caller.send("voice.end")
    assert caller.until("call.ended")[-1]["participants"][0]["username"] == "bob"
    # Who leaves a chat without a call, or without being called, changes no call.
    assert VoiceCallMember.objects.filter(call__chat=chat).count() == 2


def test_signals_go_to_one_participant_only(
    dial: Dial, alice: Person, bob: Person, mallory: Person, chat: Chat
) -> None:
    caller, called = running(dial, chat, alice, bob)
    add_participant(chat_id=chat.pk, added_by=alice.user, user=mallory.user)
    third = inside(dial, mallory, chat)
    called.settle()
    candidate = {"candidate": "candidate:1 1 udp 1 192.0.2.1 5 typ host", "sdpMLineIndex": 0}
    caller.send("call.signal", call_id="c1", to=str(bob.user.pk), candidate=candidate)
    signal = called.until("call.signal")[-1]
    assert (signal["candidate"], signal["from"]) == (candidate, str(alice.user.pk))
    # Mallory is in the chat, but not in the call.
    for to in (alice, bob):
        foreign = {"call_id": "c1", "to": str(to.user.pk), "sdp": SDP}
        assert refused(third, "call.signal", **foreign) == "not_in_call"
    for whom in (str(mallory.user.pk), str(alice.user.pk), "x"):
        assert refused(caller, "call.signal", call_id="c1", to=whom, sdp=SDP) == "not_in_call"
    assert refused(caller, "call.signal", call_id="c2", to=str(bob.user.pk)) == "not_in_call"
    assert refused(third, "voice.end") == "not_in_call"
    assert refused(third, "voice.accept", to="x", sdp=SDP) == "not_in_call"
    assert called.settle() == third.settle() == []
    assert not ChatEvent.objects.filter(payload__icontains="sdp").exists()
    # Another session of a participant takes no part in the call.
    other = inside(dial, alice, chat)
    called.settle()
    assert refused(other, "call.signal", call_id="c1", to=str(bob.user.pk)) == "not_in_call"
    assert called.settle() == []


def test_an_offer_to_several_people_is_refused(
    dial: Dial, alice: Person, bob: Person, mallory: Person, chat: Chat
) -> None:
    add_participant(chat_id=chat.pk, added_by=alice.user, user=mallory.user)
    caller, third = inside(dial, alice, chat), inside(dial, mallory, chat)
    assert refused(caller, "voice.invite", sdp=SDP) == "not_in_call"
    caller.send("voice.invite", call_id="c1", sdp=SDP, to=str(bob.user.pk))
    caller.until("call.updated")
    assert [f["type"] for f in third.settle()] == ["call.updated"]
    assert VoiceCall.objects.get().members.count() == 2


def test_bounds_of_calls(
    dial: Dial, alice: Person, bob: Person, mallory: Person, chat: Chat, settings: Settings
) -> None:
    settings.UAMP_CALL_PARTICIPANTS = 2
    settings.UAMP_CALL_SIGNALS_PER_MINUTE = 1
    settings.UAMP_CALLS_PER_MINUTE = 1
    add_participant(chat_id=chat.pk, added_by=alice.user, user=mallory.user)
    caller, called = running(dial, chat, alice, bob)
    third = inside(dial, mallory, chat)
    assert refused(third, "voice.accept") == "call_full"
    caller.send("call.signal", call_id="c1", to=str(bob.user.pk), sdp=SDP)
    called.until("call.signal")
    signal = {"call_id": "c1", "to": str(bob.user.pk), "sdp": SDP}
    assert refused(caller, "call.signal", **signal) == "rate_limited"
    assert refused(caller, "voice.invite", to=str(mallory.user.pk)) == "rate_limited"
    large = {"type": "offer", "sdp": "v" * 65_537}
    assert refused(called, "call.signal", **{**signal, "sdp": large}) == "invalid_event"
    assert called.settle() == []


def test_a_person_alone_calls_no_one(dial: Dial, alice: Person) -> None:
    alone = inside(dial, alice, shared_chat(alice))
    alone.send("voice.invite")
    assert alone.expect("voice.decline")["reason"] == "alone"
    private = dial(alice)
    private.create_session(agent="echo")
    assert refused(private, "voice.accept", call_id="c1") == "call_not_found"
    assert not VoiceCall.objects.exists()


def test_a_stranger_learns_nothing_of_a_call(
    dial: Dial, alice: Person, bob: Person, mallory: Person, chat: Chat
) -> None:
    running(dial, chat, alice, bob)
    stranger = inside(dial, mallory, shared_chat(mallory))
    assert refused(stranger, "voice.accept", call_id="c1") == "call_not_found"
    assert refused(stranger, "voice.accept", chat_id=chat.pk) == "chat_not_found"
    signal = {"call_id": "c1", "chat_id": chat.pk, "to": str(bob.user.pk)}
    assert refused(stranger, "call.signal", **signal) == "chat_not_found"


@pytest.mark.django_db
def test_the_database_keeps_one_call_in_a_chat() -> None:
    chat = Chat.objects.create()
    VoiceCall.objects.create(chat=chat, call_id="a")
    with pytest.raises(IntegrityError), transaction.atomic():
        VoiceCall.objects.create(chat=chat, call_id="b")
    with pytest.raises(IntegrityError), transaction.atomic():
        VoiceCall.objects.update(state=CallState.ENDED)
    VoiceCall.objects.update(state=CallState.ENDED, ended_at=timezone.now())
    assert str(VoiceCall.objects.create(chat=chat, call_id="b")) == f"b in {chat.pk}"

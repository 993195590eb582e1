"""Agents in calls: who adds one, who speaks to it, what it answers, and how it leaves."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest

from chat_app.members.participants import add_participant, remove_participant
from chat_app.models import ChatEvent, Message, Participant, VoiceCall, VoiceCallAgent
from sessions_app.models import Response
from tests.live_server import Dial, Person, shared_chat
from tests.realtime_vendor import RealtimeVendor, realtime_vendor, tone
from tests.sessions_app.billing.paid_agents import WALLET, clean, earned, rich
from tests.sessions_app.connection.test_calls import inside, refused, running, updated

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx
    from pytest_django import Settings

    from agents_app.models import Agent
    from chat_app.models import Chat
    from tests.client import UampClient

SPEAKER = {"call_id": "c1", "agent": "speaker"}
END = ("response.done", "response.cancelled", "response.error")


@pytest.fixture
def vendor(settings: Settings) -> Iterator[RealtimeVendor]:
    """Run a vendor whose address the operator allows."""
    with realtime_vendor("You played {said}") as running_vendor:
        settings.UAMP_MODEL_ALLOW_HOSTS = [running_vendor.url.split("/")[2]]
        yield running_vendor


@pytest.fixture
def speaker(vendor: RealtimeVendor) -> Agent:
    """Give an agent that takes sound and speaks."""
    return vendor.agent(options={"transcription": "whisper"})


@pytest.fixture
def chat(alice: Person, bob: Person, speaker: Agent) -> Chat:
    """Give a chat of alice and bob with an agent that speaks, and one that does not."""
    return shared_chat(alice, bob, agents=(speaker.name, "echo"))


def agents(call: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Return the agents of a `call.updated`: state or reason, and host, by name."""
    return {
        row["agent"]: (row.get("reason", row["state"]), row["host"])
        for row in call.get("agents", ())
    }


def with_agent(client: UampClient, state: str) -> dict[str, Any]:
    """Wait for the `call.updated` in which the speaker has a state or left for a reason."""
    while True:
        call = client.until("call.updated")[-1]
        if agents(call).get("speaker", ("",))[0] == state:
            return call


def joined(dial: Dial, chat: Chat, *people: Person) -> list[UampClient]:
    """Return sockets of people in a call, to which the first one has added the speaker."""
    clients = running(dial, chat, *people)
    clients[0].send("call.agent_add", **SPEAKER)
    for client in clients:
        with_agent(client, "joined")
    return clients


def say(
    client: UampClient, samples: bytes, *, format_: str = "pcm16", text: str = "", **create: Any
) -> None:
    """Say a sound to the speaker, in two pieces."""
    if text:
        client.send("input.text", text=text)
    half = len(samples) // 4 * 2
    for piece, is_final in ((samples[:half], False), (samples[half:], True)):
        audio = base64.b64encode(piece).decode()
        client.send("input.audio", audio=audio, format=format_, is_final=is_final)
    spoken = {"modalities": ["audio", "text"], "output_audio_format": "pcm16"}
    client.send("response.create", **{"response": spoken, "call": SPEAKER, **create})


def test_a_person_alone_with_an_agent_calls_it(
    dial: Dial, web: httpx.Client, alice: Person, speaker: Agent
) -> None:
    chat = shared_chat(alice, agents=(speaker.name, "echo"))
    caller = inside(dial, alice, chat)
    caller.send("voice.invite", call_id="c1")
    assert updated(caller, alice="joined")["state"] == "running"
    caller.send("call.agent_add", **SPEAKER)
    assert with_agent(caller, "joined")["state"] == "running"
    say(caller, tone(200))
    assert caller.until(*END)[-1]["type"] == "response.done"
    # The call goes on with the agent until the person leaves, and no one was called.
    assert web.get(f"/api/v1/chats/{chat.pk}/call", headers=alice.headers).json()["call"]
    caller.send("voice.end")
    assert caller.until("call.ended")[-1]["reason"] == "ended"


def test_the_last_person_stays_with_the_agent(
    dial: Dial, alice: Person, bob: Person, chat: Chat
) -> None:
    host, other = joined(dial, chat, alice, bob)
    other.send("voice.end")
    left = updated(host, bob="left")
    assert (left["state"], agents(left)["speaker"][0]) == ("running", "joined")


def test_speech_to_an_agent_is_answered_aloud_and_kept_in_the_chat(
    dial: Dial,
    web: httpx.Client,
    alice: Person,
    bob: Person,
    mallory: Person,
    chat: Chat,
    vendor: RealtimeVendor,
) -> None:
    add_participant(chat_id=chat.pk, added_by=alice.user, user=mallory.user)
    host, other = joined(dial, chat, alice, bob)
    reader = inside(dial, mallory, chat)
    chat_description = web.get(f"/api/v1/chats/{chat.pk}", headers=bob.headers).json()
    takes = {
        participant["name"]: participant["takes_calls"]
        for participant in chat_description["participants"]
        if "pricing" in participant
    }
    assert takes == {"speaker": True, "echo": False}
    call = web.get(f"/api/v1/chats/{chat.pk}/call", headers=bob.headers).json()["call"]
    assert agents(call) == {"speaker": ("joined", str(alice.user.pk))}

    host.send("call.agent_state", **SPEAKER, state="thinks")
    for client in (other, reader):
        state = client.until("call.agent_state")[-1]
        assert (state["state"], state["from"]) == ("thinks", str(alice.user.pk))
    say(host, tone(200), text="alice, bob")
    frames = host.until(*END)
    others = reader.until(*END)

    sound = b"".join(
        base64.b64decode(frame["delta"]["audio"])
        for frame in frames
        if frame["type"] == "response.delta"
        and "audio" in frame["delta"]
        and isinstance(frame["delta"]["audio"], str)
    )
    assert sound == tone(40) * 7
    transcript = next(frame for frame in frames if frame["type"] == "transcript.done")
    assert (transcript["role"], transcript["transcript"]) == ("user", "a sound of 200 ms")
    assert "transcript.done" in {frame["type"] for frame in others}
    question, answer = Message.objects.filter(chat=chat).order_by("seq")
    assert (question.sender_user_id, question.content) == (alice.user.pk, "alice, bob")
    assert question.content_items[1]["type"] == "audio"
    assert (str(answer.sender_agent), answer.content) == ("speaker", "You played a sound of 200 ms")
    assert answer.content_items[-1]["duration_ms"] == 280
    assert vendor.session["output_modalities"] == ["audio"]
    place = f"/api/v1/contents/{question.content_items[1]['content_id']}/transcript"
    result = web.post(place, headers=mallory.headers).json()
    assert result == {"state": "done", "text": "a sound of 200 ms"}
    # What is written in the chat meanwhile is asked as ever: no one mentioned the agent.
    other.send("input.text", text="Hello")
    other.send("response.create")
    other.until("message.created")
    assert Response.objects.filter(chat=chat).count() == 1


def test_what_agents_of_calls_are_refused(
    dial: Dial, alice: Person, bob: Person, mallory: Person, chat: Chat, settings: Settings
) -> None:
    settings.UAMP_CALL_AGENTS = 0
    host, other = running(dial, chat, alice, bob)
    add_participant(chat_id=chat.pk, added_by=alice.user, user=mallory.user)
    third, second_tab = inside(dial, mallory, chat), inside(dial, alice, chat)
    assert refused(host, "call.agent_add", **SPEAKER) == "call_full"
    settings.UAMP_CALL_AGENTS = 2
    for client in (third, second_tab):
        assert refused(client, "call.agent_add", **SPEAKER) == "not_in_call"
    assert refused(host, "call.agent_add", call_id="c2", agent="speaker") == "call_not_found"
    assert refused(host, "call.agent_add", call_id="c1", agent="x") == "agent_not_found"
    assert refused(host, "call.agent_add", call_id="c1", agent="echo") == "unsupported_modality"
    assert refused(host, "call.agent_remove", **SPEAKER) == "agent_not_found"
    assert refused(host, "call.agent_state", **SPEAKER, state="listens") == "not_in_call"
    assert refused(host, "call.agent_state", **SPEAKER, state="sings") == "invalid_event"
    assert not VoiceCallAgent.objects.exists()

    host.send("call.agent_add", **SPEAKER)
    with_agent(other, "joined")
    for client in (other, third, second_tab):
        assert refused(client, "call.agent_state", **SPEAKER, state="speaks") == "not_in_call"
        say(client, tone(200))
        assert client.until("session.error")[-1]["error"]["code"] == "not_in_call"
    assert refused(third, "call.agent_remove", **SPEAKER) == "not_in_call"
    # Strangers learn nothing: no chat of theirs has this call.
    assert not Response.objects.exists()
    assert not Message.objects.filter(chat=chat).exists()


def test_speech_has_bounds(
    dial: Dial,
    alice: Person,
    bob: Person,
    chat: Chat,
    settings: Settings,
    vendor: RealtimeVendor,
) -> None:
    settings.UAMP_CALL_SPEECH_SECONDS = 1
    settings.UAMP_CALL_SPEECHES_PER_MINUTE = 9
    host, _ = joined(dial, chat, alice, bob)

    def code(samples: bytes, **fields: Any) -> str:
        say(host, samples, **fields)
        error_code: str = host.until("session.error")[-1]["error"]["code"]
        return error_code

    assert code(tone(1100)) == "event_too_large"
    assert code(tone(200), text="a" * 1001) == "event_too_large"
    assert code(tone(60)) == "invalid_event"
    assert code(tone(200), format_="mp3") == "unsupported_modality"
    assert code(tone(200), queue=True) == "invalid_event"
    host.send("input.image", image={"url": "https://example.com/a.png"})
    assert code(tone(200)) == "invalid_event"
    assert not Message.objects.filter(chat=chat).exists()

    # One answer at a time; to interrupt it its host stops it first.
    vendor.go_on.clear()
    say(host, tone(200))
    began = host.until("response.created")[-1]
    host.until("response.delta")
    assert code(tone(200)) == "busy"
    host.send("response.cancel", response_id=began["response_id"])
    assert host.until(*END)[-1]["type"] == "response.cancelled"
    vendor.go_on.set()
    say(host, tone(200))
    assert host.until(*END)[-1]["type"] == "response.done"
    assert code(tone(200)) == "rate_limited"


def test_an_agent_is_taken_over_and_leaves_with_its_host_or_by_a_button(
    dial: Dial, alice: Person, bob: Person, chat: Chat, speaker: Agent
) -> None:
    host, other = joined(dial, chat, alice, bob)
    revision = VoiceCall.objects.get().revision
    host.send("call.agent_add", **SPEAKER)
    host.settle()
    assert VoiceCall.objects.get().revision == revision
    other.send("call.agent_add", **SPEAKER)
    assert agents(with_agent(host, "joined")) == {"speaker": ("joined", str(bob.user.pk))}
    assert refused(host, "call.agent_state", **SPEAKER, state="speaks") == "not_in_call"
    # Its host is another one now: that alice leaves does not take it along.
    host.send("voice.end")
    assert agents(updated(other, alice="left"))["speaker"][0] == "joined"
    host.send("voice.accept")
    updated(other, alice="joined")
    other.send("voice.end")
    assert agents(updated(host, bob="left"))["speaker"][0] == "host_left"
    line = ChatEvent.objects.get(chat=chat, type="agent.stopped").payload
    assert line["reason"] == "host_left"
    assert line["message"].startswith("speaker left the call with bob")

    host.send("call.agent_add", **SPEAKER)
    with_agent(host, "joined")
    host.send("call.agent_remove", **SPEAKER)
    with_agent(host, "removed")
    host.send("call.agent_add", **SPEAKER)
    with_agent(host, "joined")
    place = Participant.objects.get(chat=chat, agent=speaker)
    remove_participant(chat_id=chat.pk, removed_by=alice.user, participant_id=place.pk)
    with_agent(host, "not_member")
    add_participant(chat_id=chat.pk, added_by=alice.user, agent_id=speaker.pk)
    host.send("call.agent_add", **SPEAKER)
    with_agent(host, "joined")
    host.send("voice.end")
    with_agent(host, "ended")
    assert ChatEvent.objects.filter(chat=chat, type="agent.stopped").count() == 1


def test_an_answer_in_a_call_is_paid_by_its_host_who_agrees_first(
    dial: Dial, alice: Person, bob: Person, chat: Chat, speaker: Agent, vendor: RealtimeVendor
) -> None:
    speaker.pricing = {"output_per_1k": "0.01", "audio_output_per_1k": "0.1"}
    speaker.save()
    rich(alice)
    host, other = joined(dial, chat, alice, bob)
    say(host, tone(200))
    demand = host.until("payment.required")[-1]
    assert vendor.responses == 0
    assert not [frame for frame in other.settle() if frame["type"] == "payment.required"]
    host.send("payment.submit", payment=WALLET, response_id=demand["response_id"])
    assert host.until(*END)[-1]["type"] == "response.done"
    assert earned(speaker) != "0"
    assert clean()

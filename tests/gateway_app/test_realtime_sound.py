"""OpenAI's Realtime API with sound: buffers, speech, spoken answers, transcripts, interruptions."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any

import pytest

from chat_app.models import Content
from gateway_app.realtime.audio_fields import SpeechSettings, TurnDetection
from gateway_app.realtime.input_sound import InputSound
from gateway_app.realtime.read import AudioAppendFrame
from gateway_app.realtime.speech_turns import SpeechTurns
from tests.client import wait_until
from tests.gateway_app.test_realtime import END, RealtimeClient, realtime, types_of
from tests.realtime_vendor import RealtimeVendor, realtime_vendor, silence, tone
from tests.sessions_app.billing.paid_agents import clean, earned, rich
from uap.uamp_adapter.stream import TOKENS_AT_MOST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django import Settings

    from tests.gateway_app.test_realtime import Realtime, Shown
    from tests.live_server import Person

__all__ = ["realtime"]

GA = "v1/realtime?model=speaker"
BETA = "agents/speaker/realtime"


@pytest.fixture
def vendor(settings: Settings) -> Iterator[RealtimeVendor]:
    """Run a vendor whose address the operator allows."""
    with realtime_vendor() as running:
        settings.UAMP_MODEL_ALLOW_HOSTS = [running.url.split("/")[2]]
        yield running


def append(client: RealtimeClient, samples: bytes) -> None:
    """Append samples to the buffer."""
    client.send("input_audio_buffer.append", audio=base64.b64encode(samples).decode())


def manual(client: RealtimeClient, **output: Any) -> Shown:
    """Turn the detection of turns off; return the session."""
    audio = {"input": {"turn_detection": None}, "output": output}
    updated = client.ask("session.update", session={"type": "realtime", "audio": audio})
    assert updated["type"] == "session.updated", updated
    session: Shown = updated["session"]
    return session


def sound_of(events: list[Shown], kind: str = "response.output_audio.delta") -> bytes:
    """Return the sound of deltas."""
    return b"".join(base64.b64decode(e["delta"]) for e in events if e["type"] == kind)


def test_a_committed_sound_is_answered_with_sound_in_ga(
    realtime: Realtime, alice: Person, vendor: RealtimeVendor
) -> None:
    vendor.answers = ["You played {said}", "Again"]
    vendor.agent(options={"transcription": "whisper"})
    client = realtime(GA, alice)
    session = manual(client, voice="marin")
    assert session["output_modalities"] == ["audio"]
    assert session["audio"] == {
        "input": {"format": {"type": "audio/pcm", "rate": 24_000}, "turn_detection": None},
        "output": {"format": {"type": "audio/pcm", "rate": 24_000}, "voice": "marin"},
    }

    append(client, tone(60))
    append(client, tone(60))
    client.send("input_audio_buffer.commit")
    committed = client.until("conversation.item.done")
    client.send("response.create")
    events = client.until(END)

    assert types_of(committed) == [
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
    ]
    item_id = committed[0]["item_id"]
    assert committed[1]["item"]["content"] == [{"type": "input_audio", "transcript": None}]
    spoken = [event["type"] for event in events]
    assert list(dict.fromkeys(spoken)) == [
        "response.created",
        "conversation.item.input_audio_transcription.delta",
        "conversation.item.input_audio_transcription.completed",
        "response.output_item.added",
        "conversation.item.added",
        "response.content_part.added",
        "response.output_audio_transcript.delta",
        "response.output_audio.delta",
        "response.output_audio.done",
        "response.output_audio_transcript.done",
        "response.content_part.done",
        "response.output_item.done",
        "conversation.item.done",
        "response.done",
    ]
    of = {event["type"]: event for event in events}
    written = of["conversation.item.input_audio_transcription.completed"]
    assert (written["item_id"], written["transcript"]) == (item_id, "a sound of 120 ms")
    words = "You played a sound of 120 ms"
    assert sound_of(events) == tone(40) * 7
    assert of["response.output_audio_transcript.done"]["transcript"] == words
    assert of["response.content_part.done"]["part"] == {"type": "audio", "transcript": words}
    done = of[END]["response"]
    assert done["output_modalities"] == ["audio"]
    assert done["output"][0]["content"] == [{"type": "output_audio", "transcript": words}]
    assert done["usage"]["input_token_details"]["audio_tokens"] == 16
    assert done["usage"]["output_token_details"] == {"text_tokens": 5, "audio_tokens": 14}
    found = client.ask("conversation.item.retrieve", item_id=item_id)
    assert found["item"]["content"][0]["transcript"] == "a sound of 120 ms"

    # The next response has the words of the first, and the sound that is stored once.
    client.say("And now?")
    assert client.answer()["output"][0]["content"][0]["transcript"] == "Again"
    items = [event["item"] for event in vendor.sent("conversation.item.create")]
    assert items[0]["content"][0]["type"] == "input_audio"
    assert base64.b64decode(items[0]["content"][0]["audio"]) == tone(60) * 2
    assert items[1]["content"] == [{"type": "output_text", "text": words}]
    assert Content.objects.filter(owner=alice.user).count() == 1


def test_a_committed_sound_is_answered_in_the_beta(
    realtime: Realtime, alice: Person, vendor: RealtimeVendor
) -> None:
    vendor.agent()
    client = realtime(BETA, alice)
    session = {
        "turn_detection": None,
        "voice": "alloy",
        "input_audio_format": "g711_ulaw",
        "output_audio_format": "g711_alaw",
    }
    updated = client.ask("session.update", session=session)["session"]
    assert updated | session == updated
    assert updated["modalities"] == ["audio", "text"]

    append(client, tone(120, format="audio/pcmu"))
    client.send("input_audio_buffer.commit")
    client.until("conversation.item.created")
    client.send("response.create")
    events = client.until(END)

    assert sound_of(events, "response.audio.delta") == tone(40, format="audio/pcma") * 3
    (said,) = (e for e in events if e["type"] == "response.audio_transcript.done")
    assert said["transcript"] == "You are welcome"
    assert events[-1]["response"]["output"][0]["content"][0]["type"] == "audio"
    assert vendor.session["audio"]["input"]["format"] == {"type": "audio/pcmu"}
    (sent,) = vendor.sent("input_audio_buffer.append")
    assert base64.b64decode(sent["audio"]) == tone(120, format="audio/pcmu")


@pytest.mark.parametrize("form", ["audio/pcm", "audio/pcmu", "audio/pcma"])
def test_speech_that_ends_is_answered(
    realtime: Realtime, alice: Person, vendor: RealtimeVendor, form: str
) -> None:
    vendor.answers = ["{said}"]
    vendor.agent()
    client = realtime(GA, alice)
    detection = {"type": "semantic_vad", "silence_duration_ms": 200, "prefix_padding_ms": 40}
    audio = {"input": {"turn_detection": detection, "format": {"type": form}}}
    updated = client.ask("session.update", session={"type": "realtime", "audio": audio})
    assert updated["session"]["audio"]["input"]["turn_detection"]["type"] == "server_vad"

    for piece in (silence(6000, format=form), tone(160, format=form), silence(300, format=form)):
        append(client, piece)
    events = client.until(END)

    of = {event["type"]: event for event in events}
    started, stopped = (of[f"input_audio_buffer.speech_{x}"] for x in ("started", "stopped"))
    assert (started["audio_start_ms"], stopped["audio_end_ms"]) == (5960, 6360)
    committed = of["input_audio_buffer.committed"]
    assert committed["item_id"] == started["item_id"] == stopped["item_id"]
    # What was kept before the speech, the speech, and the silence that ended it.
    words = of[END]["response"]["output"][0]["content"][0]["transcript"]
    assert words == "a sound of 400 ms"


def test_speech_interrupts_an_answer_which_is_cut_to_what_was_played(
    realtime: Realtime, alice: Person, vendor: RealtimeVendor
) -> None:
    vendor.answers = ["One two three four", "Yes"]
    vendor.agent()
    client = realtime(GA, alice)
    audio = {"input": {"turn_detection": {"type": "server_vad", "silence_duration_ms": 100}}}
    client.ask("session.update", session={"type": "realtime", "audio": audio})
    vendor.go_on.clear()
    client.say("Count")
    client.send("response.create")
    item = client.until("response.output_audio.delta")[-1]

    append(client, tone(200))
    append(client, silence(200))
    client.send(
        "conversation.item.truncate",
        item_id=item["item_id"],
        content_index=0,
        audio_end_ms=10,
    )
    events = client.until(END)
    vendor.go_on.set()
    events += client.until(END)

    first, second = (e["response"] for e in events if e["type"] == END)
    assert (first["status"], second["status"]) == ("cancelled", "completed")
    assert second["output"][0]["content"][0]["transcript"] == "Yes"
    kinds = [event["type"] for event in events]
    assert kinds.index("input_audio_buffer.speech_started") < kinds.index(END)
    if "conversation.item.truncated" not in kinds:
        client.until("conversation.item.truncated")
    found = client.ask("conversation.item.retrieve", item_id=item["item_id"])
    assert found["item"]["content"] == [{"type": "output_audio", "transcript": ""}]


def test_an_answer_is_cut_to_the_share_that_was_played(
    realtime: Realtime, alice: Person, vendor: RealtimeVendor
) -> None:
    vendor.answers = ["One two three four"]
    vendor.agent()
    client = realtime(GA, alice)
    client.say("Count")
    item_id = client.answer()["output"][0]["id"]
    cut = {"item_id": item_id, "content_index": 0}

    late = client.ask("conversation.item.truncate", **cut, audio_end_ms=161)
    assert late["error"]["param"] == "audio_end_ms"
    done = client.ask("conversation.item.truncate", **cut, audio_end_ms=90)
    assert (done["type"], done["audio_end_ms"]) == ("conversation.item.truncated", 90)
    found = client.ask("conversation.item.retrieve", item_id=item_id)
    assert found["item"]["content"][0]["transcript"] == "One two"
    client.ask("conversation.item.truncate", **cut, audio_end_ms=45)
    found = client.ask("conversation.item.retrieve", item_id=item_id)
    assert found["item"]["content"][0]["transcript"] == "One"


def test_who_asks_for_text_gets_text(
    realtime: Realtime, alice: Person, vendor: RealtimeVendor
) -> None:
    vendor.agent()
    client = realtime(GA, alice)
    client.say("Hello")

    client.send("response.create", response={"output_modalities": ["text"]})
    events = client.until(END)

    assert "response.output_text.done" in types_of(events)
    assert sound_of(events) == b""
    assert vendor.session["output_modalities"] == ["text"]


def test_a_response_may_have_a_voice_and_a_format_of_its_own(
    realtime: Realtime, alice: Person, vendor: RealtimeVendor
) -> None:
    vendor.agent()
    client = realtime(GA, alice)
    manual(client, voice="marin")
    own = {"audio": {"output": {"voice": "cedar", "format": {"type": "audio/pcmu"}}}}
    chosen: tuple[tuple[Shown, str, str], ...] = (
        (own, "cedar", "audio/pcmu"),
        ({}, "marin", "audio/pcm"),
    )
    for response, voice, form in chosen:
        client.say("Hello")
        client.send("response.create", response=response)
        events = client.until(END)

        assert sound_of(events) == tone(40, format=form) * 3
        spoken = vendor.session["audio"]["output"]
        assert (spoken["voice"], spoken["format"]["type"]) == (voice, form)


def test_sound_is_read_at_the_pace_of_speech(
    realtime: Realtime, alice: Person, vendor: RealtimeVendor, settings: Settings
) -> None:
    # Beyond these the socket is not read for a minute: fifty pieces of 20 ms count as five.
    settings.UAMP_EVENTS_PER_MINUTE, settings.UAMP_EVENTS_BURST = 1, 7
    vendor.agent()
    client = realtime(GA, alice)
    manual(client)
    for _ in range(50):
        append(client, tone(20))
    client.send("input_audio_buffer.commit")
    assert client.until("conversation.item.done")[0]["type"] == "input_audio_buffer.committed"


def test_a_large_piece_of_sound_is_examined_in_parts() -> None:
    sound = InputSound(10**7)
    sound.append(base64.b64encode(silence(6000)).decode())
    detection = TurnDetection(type="server_vad")

    assert [(sound.find(detection), sound.has_more) for _ in range(2)] == [
        (None, True),
        (None, False),
    ]


class Items:
    """A conversation that keeps the sounds that it is given."""

    def __init__(self) -> None:
        self.sounds: list[tuple[str, bytes, str]] = []
        self.shown: list[Shown] = []

    def show(self, *messages: Shown) -> None:
        self.shown += messages

    def add_sound(self, item_id: str, samples: bytes, name: str) -> str | None:
        self.sounds.append((item_id, samples, name))
        return None

    async def respond(self) -> None:
        raise AssertionError

    async def interrupt(self) -> None:
        raise AssertionError


def test_many_speeches_in_one_piece_count_and_leave_others_their_turn() -> None:
    items = Items()
    turns = SpeechTurns(items, most=10**7)
    turns.takes = ("pcm16",)
    turns.change(
        SpeechSettings(
            detection=TurnDetection(
                type="server_vad",
                silence_duration_ms=0,
                create_response=False,
                interrupt_response=False,
            )
        )
    )
    piece = base64.b64encode((tone(20) + silence(20)) * 40).decode()
    seen: list[int] = []

    async def take() -> None:
        taken = asyncio.create_task(
            turns.append(AudioAppendFrame(type="input_audio_buffer.append", audio=piece))
        )
        while not taken.done():
            await asyncio.sleep(0)
            seen.append(len(items.sounds))

    asyncio.run(take())
    assert (turns.turns, len(items.sounds)) == (40, 40)
    assert set(seen) >= set(range(1, 41))


def test_a_sound_may_be_an_item_of_the_client(
    realtime: Realtime, alice: Person, vendor: RealtimeVendor
) -> None:
    vendor.answers = ["{said}"]
    vendor.agent()
    client = realtime(GA, alice)
    part = {"type": "input_audio", "audio": base64.b64encode(tone(120)).decode()}
    item = {"type": "message", "role": "user", "content": [part]}

    answer = client.answer(input=[item])
    assert answer["output"][0]["content"][0]["transcript"] == "a sound of 120 ms"
    client.ask("conversation.item.create", item=item)
    client.next()
    said = {"type": "output_audio", "transcript": "Before"}
    client.ask(
        "conversation.item.create", item={"type": "message", "role": "assistant", "content": [said]}
    )
    assert client.next()["item"]["content"] == [said]


def test_a_spoken_answer_is_paid(realtime: Realtime, alice: Person, vendor: RealtimeVendor) -> None:
    agent = vendor.agent(pricing={"output_per_1k": "0.01", "audio_output_per_1k": "0.1"})
    client = realtime(GA, rich(alice))
    client.say("Hello")

    client.send("response.create")
    client.until("payment.required")
    client.send("payment.submit", payment={"scheme": "balance", "network": "uamp"})
    client.until(END)

    wait_until(lambda: earned(agent) == "0.00063")
    assert clean()


@pytest.mark.parametrize("tokens", [-(10**6), 2**53, 10**30])
def test_a_vendor_that_counts_anything_ends_its_answer(
    realtime: Realtime, alice: Person, vendor: RealtimeVendor, tokens: int
) -> None:
    vendor.agent()
    details = {"cached_tokens": tokens, "audio_tokens": tokens}
    vendor.usage = {"input_tokens": tokens, "output_tokens": tokens, "total_tokens": tokens}
    vendor.usage |= {"input_token_details": details, "output_token_details": details}
    client = realtime(GA, alice)
    client.say("Hello")

    client.send("response.create")
    ended = client.until(END)[-1]["response"]

    assert ended["status"] == "completed"
    assert 0 <= ended["usage"]["output_tokens"] <= TOKENS_AT_MOST
    client.say("The socket stays")


@pytest.mark.parametrize(
    ("frame", "code", "param"),
    [
        ({"type": "input_audio_buffer.append", "audio": "no base64!"}, "invalid_media", "audio"),
        ({"type": "input_audio_buffer.append", "audio": 1}, "invalid_event", "audio"),
        (
            {
                "type": "input_audio_buffer.append",
                "audio": base64.b64encode(bytes(70_000)).decode(),
            },
            "event_too_large",
            "audio",
        ),
        ({"type": "input_audio_buffer.commit"}, "invalid_event", "input_audio_buffer"),
        ({"type": "output_audio_buffer.clear"}, "unsupported_modality", "type"),
        (
            {"type": "response.create", "response": {"voice": "a/b"}},
            "invalid_event",
            "response.voice",
        ),
        (
            {"type": "session.update", "session": {"voice": "a/b"}},
            "invalid_event",
            "session.voice",
        ),
        (
            {"type": "session.update", "session": {"turn_detection": {"type": "other"}}},
            "invalid_event",
            "session.turn_detection.type",
        ),
    ],
)
def test_sound_that_is_not_good_is_refused_and_the_socket_stays(
    realtime: Realtime,
    alice: Person,
    vendor: RealtimeVendor,
    settings: Settings,
    frame: Shown,
    code: str,
    param: str,
) -> None:
    settings.UAMP_REALTIME_SOUND_BYTES = 64_000
    vendor.agent()
    client = realtime(GA, alice)
    manual(client)

    refused = client.ask(**frame, event_id="mine")

    assert refused["type"] == "error", refused
    assert (refused["error"]["code"], refused["error"]["param"]) == (code, param)
    assert refused["error"]["event_id"] == "mine"
    client.say("Hello")
    assert client.answer()["status"] == "completed"


def test_sound_that_no_response_reads_is_bounded(
    realtime: Realtime, alice: Person, vendor: RealtimeVendor, settings: Settings
) -> None:
    settings.UAMP_REALTIME_SOUND_BYTES = 12_000
    vendor.agent()
    client = realtime(GA, alice)
    manual(client)
    for _ in range(2):
        append(client, tone(120))
        client.send("input_audio_buffer.commit")
    client.until("conversation.item.done")

    refused = client.next()
    assert refused["error"]["code"] == "event_too_large"
    # What a response has read is stored; the buffer has what was refused.
    client.answer()
    client.send("input_audio_buffer.commit")
    assert client.next()["type"] == "input_audio_buffer.committed"
    client.until("conversation.item.done")
    append(client, tone(120))
    assert client.ask("input_audio_buffer.clear")["type"] != "error"


def test_a_client_that_leaves_leaves_the_answer(
    realtime: Realtime, alice: Person, vendor: RealtimeVendor
) -> None:
    vendor.agent()
    vendor.go_on.clear()
    client = realtime(GA, alice)
    client.say("Hello")
    client.send("response.create")
    client.until("response.output_audio.delta")
    client.socket.close()
    vendor.go_on.set()

    wait_until(lambda: Content.objects.filter(mime_type="audio/wav").exists())

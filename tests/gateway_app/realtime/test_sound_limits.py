"""Limits, prices and errors of audio in a Realtime session."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING

import pytest

from chat_app.models import Content
from gateway_app.realtime.audio_fields import SpeechSettings, TurnDetection
from gateway_app.realtime.input_sound import InputSound
from gateway_app.realtime.read import AudioAppendFrame
from gateway_app.realtime.speech_turns import SpeechTurns
from tests.client import wait_until
from tests.gateway_app.realtime.client import END
from tests.gateway_app.realtime.speech import GA, append, manual
from tests.realtime_vendor import RealtimeVendor, silence, tone
from tests.sessions_app.billing.paid_agents import clean, earned, rich
from uap.uamp_adapter.stream import MAX_TOKENS

if TYPE_CHECKING:
    from pytest_django import Settings

    from tests.gateway_app.realtime.client import Realtime, Shown
    from tests.live_server import Person


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
        """Keep messages."""
        self.shown += messages

    def add_sound(self, item_id: str, samples: bytes, name: str) -> str | None:
        """Keep a sound."""
        self.sounds.append((item_id, samples, name))
        return None

    async def respond(self) -> None:
        """Fail: no response is expected."""
        raise AssertionError

    async def interrupt(self) -> None:
        """Fail: no interruption is expected."""
        raise AssertionError


def test_many_speeches_in_one_piece_count_and_leave_others_their_turn() -> None:
    items = Items()
    turns = SpeechTurns(items, limit=10**7)
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
        append_task = asyncio.create_task(
            turns.append(AudioAppendFrame(type="input_audio_buffer.append", audio=piece))
        )
        while not append_task.done():
            await asyncio.sleep(0)
            seen.append(len(items.sounds))

    asyncio.run(take())
    assert (turns.turns, len(items.sounds)) == (40, 40)
    assert set(seen) >= set(range(1, 41))


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
    assert 0 <= ended["usage"]["output_tokens"] <= MAX_TOKENS
    client.say("The socket stays")


@pytest.mark.sampled(3)
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


@pytest.mark.parametrize(
    ("setting", "limit"), [("UAMP_RESPONSES_PER_MINUTE", 1), ("UAMP_TEXT_BYTES_PER_DAY", 1000)]
)
def test_a_refused_turn_leaves_its_sound_in_memory_alone(
    realtime: Realtime,
    alice: Person,
    vendor: RealtimeVendor,
    settings: Settings,
    setting: str,
    limit: int,
) -> None:
    vendor.agent()
    client = realtime(GA, alice)
    manual(client)
    before = getattr(settings, setting)
    setattr(settings, setting, limit)
    client.say("Hello")
    client.answer()
    client.say("x" * 2000)
    append(client, tone(120))
    client.send("input_audio_buffer.commit")
    client.until("conversation.item.done")

    client.send("response.create")
    assert client.until("error")[-1]["error"]["code"] == "rate_limited"
    assert not Content.objects.filter(owner=alice.user).exists()

    setattr(settings, setting, before)
    client.send("response.create")
    assert client.until(END)[-1]["response"]["status"] == "completed"
    (sent,) = vendor.sent("input_audio_buffer.append")
    assert base64.b64decode(sent["audio"]) == tone(120)
    assert Content.objects.filter(owner=alice.user).count() == 1

"""Agents whose model listens and speaks: sound in, words and sound out, stored once and paid."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from chat_app.models import Content
from tests.client import TERMINAL, Frame, output_text, text_of, wait_until
from tests.realtime_vendor import Call, Fault, RealtimeVendor, realtime_vendor, tone
from tests.sessions_app.billing.paid_agents import clean, earned, pay, rich
from upp.providers.realtime.sound import PCM16, Sound, read_wave

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django import Settings

    from tests.client import UampClient
    from tests.conftest import ServerAddress
    from tests.live_server import Dial, Person

SPEECH = {"modalities": ["text", "audio"], "voice": {"provider": "openai", "voice_id": "alloy"}}
PRICES = {
    "input_per_1k": "0.004",
    "output_per_1k": "0.016",
    "cache_read_per_1k": "0",
    "audio_input_per_1k": "0.032",
    "audio_output_per_1k": "0.064",
}


@pytest.fixture
def vendor(settings: Settings) -> Iterator[RealtimeVendor]:
    """Run a vendor whose address the operator allows."""
    with realtime_vendor() as running:
        settings.UAMP_MODEL_ALLOW_HOSTS = [running.url.split("/")[2]]
        yield running


def speak(client: UampClient, ms: int = 200, **fields: Any) -> None:
    """Send a sound in two pieces and ask for the answer."""
    samples = tone(ms)
    for piece, is_final in ((samples[:100], False), (samples[100:], True)):
        audio = base64.b64encode(piece).decode()
        client.send("input.audio", audio=audio, format="pcm16", is_final=is_final)
    client.send("response.create", **fields)


def sound_of(frames: list[Frame]) -> bytes:
    """Return the sound of the deltas."""
    deltas = [f["delta"] for f in frames if f["type"] == "response.delta"]
    return b"".join(base64.b64decode(d["audio"]) for d in deltas if d["type"] == "audio")


def spoken(frame: Frame) -> Frame:
    """Return the sound in the output of a terminal event."""
    output = frame["response"]["output"] if "response" in frame else frame["partial_output"]
    (item,) = (item for item in output if item["type"] == "audio")
    sound: Frame = item
    return sound


def test_a_sound_is_answered_with_words_and_sound(
    dial: Dial, demo: ServerAddress, alice: Person, vendor: RealtimeVendor
) -> None:
    vendor.answers = ["You played {said}"]
    vendor.agent(options={"transcription": "gpt-4o-transcribe"})
    client = dial(alice)
    client.create_session(agent="speaker", session=SPEECH)

    speak(client)
    frames = client.until(*TERMINAL)

    words = "You played a sound of 200 ms"
    assert text_of(frames) == words
    assert sound_of(frames) == tone(40) * 7
    (received,) = (frame for frame in frames if frame["type"] == "transcript.done")
    assert (received["transcript"], received["role"]) == ("a sound of 200 ms", "user")
    done = frames[-1]
    assert output_text(done) == words
    item = spoken(done)
    assert (item["format"], item["duration_ms"]) == ("wav", 280)
    download = httpx.get(f"{demo.http}{item['audio']['url']}", headers=alice.headers)
    assert (download.status_code, download.headers["content-type"]) == (200, "audio/wav")
    assert read_wave(download.content) == Sound(PCM16, tone(40) * 7)
    # The question is kept once too, in a form that plays.
    assert sorted(Content.objects.values_list("mime_type", flat=True)) == ["audio/wav"] * 2
    usage = done["response"]["usage"]
    assert usage["audio"] == {"input_tokens": 16, "output_tokens": 14}
    assert vendor.session["audio"]["output"]["voice"] == "alloy"


def test_an_answer_is_spoken_in_the_format_that_is_asked_for(
    dial: Dial, alice: Person, vendor: RealtimeVendor
) -> None:
    vendor.agent(options={"voice": "cedar"})
    client = dial(alice)
    client.create_session(
        agent="speaker", session={"modalities": ["audio"], "output_audio_format": "g711_ulaw"}
    )

    frames = client.answer("Hello")

    assert sound_of(frames) == tone(40, format="audio/pcmu") * 3
    assert spoken(frames[-1])["duration_ms"] == 120
    assert vendor.session["audio"]["output"] == {"format": {"type": "audio/pcmu"}, "voice": "cedar"}


def test_a_client_that_does_not_ask_for_sound_gets_none(
    dial: Dial, alice: Person, vendor: RealtimeVendor
) -> None:
    vendor.agent()
    client = dial(alice)
    client.create_session(agent="speaker")

    frames = client.answer("Hello")

    assert (sound_of(frames), output_text(frames[-1])) == (b"", "You are welcome")
    assert vendor.session["output_modalities"] == ["text"]


def test_a_voice_has_a_name_of_bounded_form(
    dial: Dial, alice: Person, vendor: RealtimeVendor
) -> None:
    vendor.agent()
    client = dial(alice)
    voice = {"provider": "openai", "voice_id": "a/../b"}
    client.create_session(agent="speaker", session={**SPEECH, "voice": voice})

    client.ask("Hello")
    refused = client.expect("session.error")

    assert refused["error"]["code"] == "invalid_event"
    assert refused["error"]["details"]["param"] == "session.voice.voice_id"
    assert vendor.received == []


def test_sound_has_prices_of_its_own(dial: Dial, alice: Person, vendor: RealtimeVendor) -> None:
    agent = vendor.agent(pricing=PRICES)
    client = dial(rich(alice))
    client.create_session(agent="speaker", session=SPEECH)

    speak(client)
    frames = client.until(*TERMINAL, "payment.required")
    pay(client, frames[-1])
    done = client.until(*TERMINAL)[-1]

    # 30 tokens were read, 6 of them from the cache; of the others 16 were sound. 3 words were
    # written, and 6 tokens spoken.
    cost = (8 * 0.004 + 16 * 0.032 + 3 * 0.016 + 6 * 0.064) / 1000
    assert done["response"]["usage"]["cost"]["total_cost"] == pytest.approx(cost)
    wait_until(lambda: float(earned(agent)) == pytest.approx(cost))
    assert clean()


def test_a_stopped_answer_keeps_and_costs_what_was_spoken(
    dial: Dial, alice: Person, vendor: RealtimeVendor
) -> None:
    agent = vendor.agent(pricing=PRICES)
    client = dial(rich(alice))
    client.create_session(agent="speaker", session=SPEECH)
    vendor.answers = ["One two three"]
    vendor.go_on.clear()

    speak(client)
    frames = client.until(*TERMINAL, "payment.required")
    pay(client, frames[-1])
    while not sound_of([client.receive()]):
        pass
    client.send("response.cancel")
    cancelled = client.until(*TERMINAL)[-1]
    vendor.go_on.set()

    assert cancelled["type"] == "response.cancelled"
    assert output_text(cancelled) == "One"
    assert spoken(cancelled)["duration_ms"] == 40
    # The vendor has not counted it: a token is written, and one was spoken in 50 ms. The question
    # has 32 tokens a second.
    assert cancelled["usage"]["audio"] == {"input_tokens": 7, "output_tokens": 1}
    assert float(cancelled["usage"]["cost"]["total_cost"]) > 0.000064
    assert vendor.closed.acquire(timeout=20)
    wait_until(lambda: float(earned(agent)) > 0)
    assert clean()


def test_a_vendor_that_leaves_in_the_middle_ends_the_answer(
    dial: Dial, alice: Person, vendor: RealtimeVendor
) -> None:
    vendor.answers = [Fault("close")]
    vendor.agent()
    client = dial(alice)
    client.create_session(agent="speaker", session=SPEECH)

    frames = client.answer("Hello")

    assert frames[-1]["type"] == "response.error"
    assert frames[-1]["error"]["code"] == "provider_error"
    assert "lost" in frames[-1]["error"]["message"]
    assert sound_of(frames) == tone(40) * 2
    assert Content.objects.count() == 1


def test_an_answer_that_is_spoken_without_end_is_stopped(
    dial: Dial, alice: Person, vendor: RealtimeVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents_app.runtime.agent_run.ANSWER_SOUND_BYTES", 2 * len(tone(40)))
    vendor.answers = ["One two three four"]
    vendor.agent()
    client = dial(alice)
    client.create_session(agent="speaker", session=SPEECH)

    frames = client.answer("Hello")

    assert frames[-1]["error"]["code"] == "answer_too_long"


def test_sound_that_finds_no_room_leaves_its_words(
    dial: Dial, alice: Person, vendor: RealtimeVendor, settings: Settings
) -> None:
    settings.UAMP_STORED_BYTES_PER_USER = 100
    vendor.agent()
    client = dial(alice)
    client.create_session(agent="speaker", session=SPEECH)

    frames = client.answer("Hello")

    assert sound_of(frames) == tone(40) * 3
    assert [item["type"] for item in frames[-1]["response"]["output"]] == ["text"]


def test_a_tool_is_called_between_two_spoken_texts(
    dial: Dial, alice: Person, vendor: RealtimeVendor
) -> None:
    vendor.answers = [Call("search", '{"query": "cats"}'), "Three cats"]
    vendor.agent()
    client = dial(alice)
    tool = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}
    client.create_session(agent="speaker", session={**SPEECH, "tools": [tool]})

    client.ask("How many?")
    call = client.until("tool.call")[-1]
    client.send("tool.result", call_id=call["call_id"], result='"three"')
    frames = client.until(*TERMINAL)

    assert output_text(frames[-1]) == "Three cats"
    assert spoken(frames[-1])["duration_ms"] == 80
    items = [event["item"] for event in vendor.sent("conversation.item.create")]
    assert items[-1] == {"type": "function_call_output", "call_id": "call_1", "output": "three"}


def test_sound_that_is_not_paid_waits_for_its_payment(
    dial: Dial, alice: Person, vendor: RealtimeVendor, settings: Settings
) -> None:
    settings.UAMP_RESERVE_TOKENS = 1
    vendor.answers = ["One two three four five six"]
    vendor.agent(pricing={"audio_output_per_1k": "10"})
    client = dial(rich(alice))
    client.create_session(agent="speaker", session=SPEECH)

    client.ask("Count")
    pay(client, client.until("payment.required")[-1])
    frames = client.until("payment.required")
    pay(client, frames[-1])
    while frames[-1]["type"] not in TERMINAL:
        frames += client.until("payment.required", *TERMINAL)
        if frames[-1]["type"] == "payment.required":
            pay(client, frames[-1])

    position = next(n for n, frame in enumerate(frames) if frame["type"] == "payment.required")
    assert 0 < len(sound_of(frames[:position])) < len(sound_of(frames)) == 6 * len(tone(40))
    assert clean()

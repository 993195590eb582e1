"""Audio sent to a Realtime session, and spoken answers, in both dialects."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from chat_app.models import Content
from tests.gateway_app.realtime.client import END, types_of
from tests.gateway_app.realtime.speech import BETA, GA, append, manual, sound_of
from tests.realtime_vendor import RealtimeVendor, tone

if TYPE_CHECKING:
    from tests.gateway_app.realtime.client import Realtime, Shown
    from tests.live_server import Person


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
    transcription = of["conversation.item.input_audio_transcription.completed"]
    assert (transcription["item_id"], transcription["transcript"]) == (item_id, "a sound of 120 ms")
    words = "You played a sound of 120 ms"
    assert sound_of(events) == tone(40) * 7
    assert of["response.output_audio_transcript.done"]["transcript"] == words
    assert of["response.content_part.done"]["part"] == {"type": "audio", "transcript": words}
    done = of[END]["response"]
    assert done["output_modalities"] == ["audio"]
    assert done["output"][0]["content"] == [{"type": "output_audio", "transcript": words}]
    assert done["usage"]["input_token_details"]["audio_tokens"] == 16
    assert done["usage"]["output_token_details"] == {"text_tokens": 5, "audio_tokens": 14}
    reply = client.ask("conversation.item.retrieve", item_id=item_id)
    assert reply["item"]["content"][0]["transcript"] == "a sound of 120 ms"

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
    (transcript,) = (e for e in events if e["type"] == "response.audio_transcript.done")
    assert transcript["transcript"] == "You are welcome"
    assert events[-1]["response"]["output"][0]["content"][0]["type"] == "audio"
    assert vendor.session["audio"]["input"]["format"] == {"type": "audio/pcmu"}
    (audio_frame,) = vendor.sent("input_audio_buffer.append")
    assert base64.b64decode(audio_frame["audio"]) == tone(120, format="audio/pcmu")


def test_a_client_that_asks_for_text_gets_text(
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
    overrides = {"audio": {"output": {"voice": "cedar", "format": {"type": "audio/pcmu"}}}}
    chosen: tuple[tuple[Shown, str, str], ...] = (
        (overrides, "cedar", "audio/pcmu"),
        ({}, "marin", "audio/pcm"),
    )
    for response, voice, form in chosen:
        client.say("Hello")
        client.send("response.create", response=response)
        events = client.until(END)

        assert sound_of(events) == tone(40, format=form) * 3
        spoken = vendor.session["audio"]["output"]
        assert (spoken["voice"], spoken["format"]["type"]) == (voice, form)


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
    output_part = {"type": "output_audio", "transcript": "Before"}
    client.ask(
        "conversation.item.create",
        item={"type": "message", "role": "assistant", "content": [output_part]},
    )
    assert client.next()["item"]["content"] == [output_part]

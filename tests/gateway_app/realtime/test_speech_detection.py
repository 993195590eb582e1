"""Speech that ends a turn or interrupts an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gateway_app.realtime.client import END
from tests.gateway_app.realtime.speech import GA, append
from tests.realtime_vendor import RealtimeVendor, silence, tone

if TYPE_CHECKING:
    from tests.gateway_app.realtime.client import Realtime
    from tests.live_server import Person


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
    reply = client.ask("conversation.item.retrieve", item_id=item["item_id"])
    assert reply["item"]["content"] == [{"type": "output_audio", "transcript": ""}]


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
    reply = client.ask("conversation.item.retrieve", item_id=item_id)
    assert reply["item"]["content"][0]["transcript"] == "One two"
    client.ask("conversation.item.truncate", **cut, audio_end_ms=45)
    reply = client.ask("conversation.item.retrieve", item_id=item_id)
    assert reply["item"]["content"][0]["transcript"] == "One"

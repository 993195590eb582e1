"""Turns of the Realtime provider: audio, conversations, tools and token counts."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.realtime_vendor import KEY, Call, Raw, realtime_vendor, silence, tone
from tests.upp.realtime.vendor_turns import SPOKEN, TRANSCRIBED, ask, deltas, sound, wave
from upp import (
    AssistantMessage,
    AudioBlock,
    Base64Source,
    BytesSource,
    DocumentBlock,
    ImageBlock,
    TextBlock,
    TextSource,
    TokenUsage,
    Tool,
    UrlSource,
    UserMessage,
)
from upp.providers.realtime import provider as realtime
from upp.providers.realtime.sound import PCM16, ULAW


async def test_a_sound_is_taken_and_the_answer_is_spoken() -> None:
    with realtime_vendor("Hello {said}") as vendor:
        events, turn = await ask(
            vendor,
            sound(100),
            system="Be brief.",
            params={**SPOKEN, **TRANSCRIBED, "max_tokens": 9_000},
        )

    text = "Hello a sound of 100 ms"
    assert turn.response.text == text
    assert "".join(delta.text or "" for delta in deltas(events, "text_delta")) == text
    assert [delta.text for delta in deltas(events, "input_transcript")] == ["a sound of 100 ms"]
    spoken = b"".join(delta.data or b"" for delta in deltas(events, "audio_delta"))
    assert spoken == tone(40) * 6
    # Sound of the cache is paid as what is cached; the words of the transcript are paid too.
    assert turn.usage == TokenUsage(
        input_tokens=33,
        output_tokens=2 + 12 + 2,
        total_tokens=44 + 5,
        cache_read_tokens=6,
        audio_input_tokens=16,
        audio_output_tokens=12,
    )
    assert deltas(events, "message_stop")[0].usage == turn.usage
    assert turn.stop_reason == "end_turn"
    assert vendor.session == {
        "type": "realtime",
        "output_modalities": ["audio"],
        "instructions": "Be brief.",
        "tools": [],
        "max_output_tokens": 4096,
        "audio": {
            "input": {
                "format": {"type": PCM16, "rate": 24_000},
                "turn_detection": None,
                "transcription": TRANSCRIBED["transcription"],
            },
            "output": {"format": {"type": PCM16, "rate": 24_000}, "voice": "alloy"},
        },
    }
    assert (vendor.keys, vendor.models) == ([f"Bearer {KEY}"], ["gpt-realtime"])


async def test_a_conversation_is_items_and_its_last_sound_is_committed() -> None:
    calls = AssistantMessage(content="Look", tool_calls=())
    message = UserMessage(
        content=(
            TextBlock(text="What is this?"),
            ImageBlock(source=BytesSource(data=b"p"), mime_type="image/png"),
            ImageBlock(source=Base64Source(data="cA=="), mime_type="image/png"),
            ImageBlock(source=UrlSource(url="https://a.example/p"), mime_type="image/png"),
            DocumentBlock(source=TextSource(data="words"), mime_type="text/plain", title="a.txt"),
            DocumentBlock(source=TextSource(data="words"), mime_type="text/plain"),
            sound(20),
            AudioBlock(data=wave(silence(20, format=ULAW), 7, 8_000, 8), mime_type="audio/wav"),
        )
    )
    last = UserMessage(content=(TextBlock(text="And this?"), sound(8_000)))
    with realtime_vendor() as vendor:
        _, turn = await ask(vendor, message, calls, last)

    assert turn.response.text == "You are welcome"
    items = [event["item"] for event in vendor.sent("conversation.item.create")]
    picture = {"type": "input_image", "image_url": "data:image/png;base64,cA=="}
    assert items == [
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "What is this?"},
                picture,
                picture,
                {"type": "input_image", "image_url": "https://a.example/p"},
                {"type": "input_text", "text": "a.txt:\nwords"},
                {"type": "input_text", "text": "words"},
                {"type": "input_audio", "audio": base64.b64encode(tone(20)).decode()},
                {"type": "input_text", "text": "[a sound in another format]"},
            ],
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Look"}],
        },
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "And this?"}],
        },
    ]
    pieces = [base64.b64decode(e["audio"]) for e in vendor.sent("input_audio_buffer.append")]
    assert len(pieces) == 2
    assert b"".join(pieces) == tone(8_000)
    assert vendor.session["output_modalities"] == ["text"]
    assert vendor.session["max_output_tokens"] == "inf"


async def test_a_tool_is_called_and_its_result_is_sent() -> None:
    async def add(params: dict[str, Any]) -> Any:
        return {"sum": params["a"] + 1}

    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    tools = [Tool(name="add", description="Adds", parameters=schema, run=add)]
    with realtime_vendor(Call("add", '{"a": 1}'), Call("add", '{"a": 2}'), "Two") as vendor:
        events, turn = await ask(vendor, "Add", tools=tools, params={"tool_choice": "required"})

    assert turn.response.text == "Two"
    assert turn.cycles == 3
    assert vendor.session["tools"] == [
        {"type": "function", "name": "add", "description": "Adds", "parameters": schema}
    ]
    assert vendor.session["tool_choice"] == "required"
    assert [delta.arguments_json for delta in deltas(events, "tool_call_delta")] == [
        '{"a": 1}',
        '{"a": 2}',
    ]
    items = [event["item"] for event in vendor.sent("conversation.item.create")]
    assert {"type": "function_call_output", "call_id": "call_1", "output": '{"sum":2}'} in items
    assert {
        "type": "function_call",
        "call_id": "call_2",
        "name": "add",
        "arguments": '{"a":2}',
    } in items


@pytest.mark.parametrize("when", ["after", "failed", "closed", "never"])
async def test_words_that_come_late_are_awaited_for_a_moment(
    when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with realtime_vendor() as vendor:
        vendor.transcript = when
        if when == "never":
            monkeypatch.setattr(realtime, "TRANSCRIPT_SECONDS", 0.01)
            monkeypatch.setattr("tests.realtime_vendor._Talk._transcribe", lambda *_: None)
        if when == "closed":
            monkeypatch.setattr(
                "tests.realtime_vendor._Talk._transcribe", lambda talk, _: talk.leave()
            )
        events, turn = await ask(
            vendor, sound(), params={**TRANSCRIBED, "speech": {"format": "pcm16"}}
        )

    assert turn.response.text == "You are welcome"
    received = [delta.text for delta in deltas(events, "input_transcript")]
    assert received == (["a sound of 100 ms"] if when == "after" else [])


async def test_a_vendor_that_is_not_trusted_counts_at_most_its_bytes() -> None:
    tokens = {"input_tokens": 10**9, "output_tokens": 10**9}
    events = [
        {"type": "response.output_text.delta", "delta": "Hello"},
        {"type": "response.done", "response": {"status": "completed", "usage": tokens}},
    ]
    with realtime_vendor(Raw(tuple(map(json.dumps, events)))) as vendor:
        _, turn = await ask(vendor, "Hello", hidden_tokens=100)

    assert 0 < turn.usage.input_tokens < 1000
    assert 100 < turn.usage.output_tokens < 2000


async def test_what_was_not_asked_for_is_neither_shown_nor_paid() -> None:
    kind = "conversation.item.input_audio_transcription.completed"
    tokens = {"input_tokens": 1, "output_tokens": 2}
    words = {"type": kind, "transcript": "words", "usage": tokens}
    done = {"type": "response.done", "response": {"status": "completed", "usage": tokens}}
    late = {"type": "response.output_text.delta", "delta": " late"}
    vendor_events = [
        words,
        {"type": "response.output_audio.delta", "delta": "AAAA"},
        {"type": "response.output_text.delta", "delta": "Hello"},
        done,
        done,
        late,
        {"type": "error", "error": {"message": "It broke."}},
        words,
        words,
    ]
    with realtime_vendor(Raw(tuple(map(json.dumps, vendor_events)))) as vendor:
        vendor.transcript = "after"
        events, turn = await ask(vendor, "Hello")
        # The words of one sound are owed: they come before the answer, or after it.
        again, spoken = await ask(vendor, sound(), params={**TRANSCRIBED, "speech": {}})

    assert (turn.response.text, turn.usage.output_tokens) == ("Hello", 2)
    assert not deltas(events, "input_transcript")
    assert not deltas(events, "audio_delta")
    assert (spoken.response.text, spoken.usage.output_tokens) == ("Hello", 4)
    assert [delta.text for delta in deltas(again, "input_transcript")] == ["words"]
    assert [delta.data for delta in deltas(again, "audio_delta")] == [b"\0\0\0"]

    with realtime_vendor(Raw(tuple(map(json.dumps, vendor_events[2:])))) as vendor:
        vendor.transcript = "after"
        again, spoken = await ask(vendor, sound(), params={**TRANSCRIBED, "speech": {}})
    assert (spoken.response.text, spoken.usage.output_tokens) == ("Hello", 4)
    assert [delta.text for delta in deltas(again, "input_transcript")] == ["words"]

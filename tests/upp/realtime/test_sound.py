"""Audio formats of the Realtime provider."""

from __future__ import annotations

import json

import pytest

from tests.upp.realtime.vendor_turns import sound, wave
from upp import (
    AudioBlock,
    Base64Source,
    DocumentBlock,
    ErrorCode,
    LLMRequest,
    TokenUsage,
    UPPError,
    UserMessage,
)
from upp.providers.http.failures import Failures
from upp.providers.realtime.answer import RealtimeAnswer
from upp.providers.realtime.request import events_of
from upp.providers.realtime.sound import ALAW, PCM16, ULAW, Sound, read_wave


def test_a_wave_is_read() -> None:
    assert read_wave(wave(b"ab")) == Sound(PCM16, b"ab")
    assert read_wave(wave(b"a", 7, 8_000, 8)) == Sound(ULAW, b"a")
    assert read_wave(wave(b"a", 6, 8_000, 8)) == Sound(ALAW, b"a")
    guid = b"\x16\0\x10\0\0\0\0\0\x01\0" + bytes(14)
    assert read_wave(wave(b"ab", 0xFFFE, extra=guid)) == Sound(PCM16, b"ab")
    # Cut off, and of another kind.
    assert read_wave(wave(b"abcd")[:-2]) == Sound(PCM16, b"ab")
    assert read_wave(wave(b"ab", rate=44_100)) is None
    assert read_wave(wave(b"ab")[:30]) is None
    assert read_wave(b"ID3" + bytes(20)) is None


@pytest.mark.parametrize(
    "message",
    [
        UserMessage(content=AudioBlock(data=b"ID3", mime_type="audio/mpeg")),
        UserMessage(content=AudioBlock(data=wave(b""), mime_type="audio/wav")),
        UserMessage(
            content=(
                sound(20),
                AudioBlock(data=wave(b"a", 7, 8_000, 8), mime_type="audio/wav"),
            )
        ),
        UserMessage(
            content=DocumentBlock(source=Base64Source(data=""), mime_type="application/pdf")
        ),
    ],
)
def test_what_cannot_be_sent_is_refused(message: UserMessage) -> None:
    with pytest.raises(UPPError) as caught:
        list(events_of(LLMRequest(messages=(message,)), provider="p"))

    assert caught.value.code == ErrorCode.INVALID_REQUEST


def test_members_that_a_server_leaves_out_are_taken_as_they_come() -> None:
    answer = RealtimeAnswer(LLMRequest(messages=()), Failures(provider="p"), transcripts=1)
    received = "conversation.item.input_audio_transcription.completed"
    call = {"type": "function_call"}
    for event in (
        {"type": "response.output_text.delta"},
        {"type": received},
        {"type": "response.output_item.done"},
        {"type": "response.output_item.done", "item": call},
        {"type": "response.done"},
        {"type": "rate_limits.updated"},
    ):
        answer.add(json.dumps(event))
        assert not answer.is_answered
    answer.add(json.dumps({"type": "response.done", "response": {"status": "completed"}}))

    response = answer.response()
    assert answer.transcripts == 0
    assert (response.stop_reason, response.usage) == ("tool_use", TokenUsage())
    assert response.message.tool_calls[0].tool_call_id.startswith("call_")

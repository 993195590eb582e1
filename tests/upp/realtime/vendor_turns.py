"""Helpers that run a turn against the Realtime vendor."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pytest

from tests.realtime_vendor import KEY, RealtimeVendor, tone
from upp import AudioBlock, Message, ProviderConfig, StreamEvent, Turn, UPPError, llm
from upp.providers.realtime.provider import OpenAIRealtimeProvider

if TYPE_CHECKING:
    from upp.stream import EventDelta

SPOKEN = {"speech": {"voice": "alloy"}}
TRANSCRIBED = {"transcription": {"model": "gpt-4o-transcribe"}}


def wave(
    samples: bytes, kind: int = 1, rate: int = 24_000, bits: int = 16, extra: bytes = b""
) -> bytes:
    """Return a WAV file of one channel."""
    align = bits // 8
    facts = struct.pack("<HHIIHH", kind, 1, rate, rate * align, align, bits) + extra
    chunks = b"fmt " + struct.pack("<I", len(facts)) + facts + b"fact\x01\0\0\0x\0"
    data = b"data" + struct.pack("<I", len(samples)) + samples
    return b"RIFF" + struct.pack("<I", 4 + len(chunks) + len(data)) + b"WAVE" + chunks + data


def sound(ms: int = 100) -> AudioBlock:
    """Return a sound."""
    return AudioBlock(data=wave(tone(ms)), mime_type="audio/wav")


async def ask(
    vendor: RealtimeVendor, *inputs: Message | AudioBlock | str, **options: Any
) -> tuple[list[StreamEvent], Turn]:
    """Return the events and the turn of a model of the vendor."""
    config = ProviderConfig(
        timeout=options.pop("timeout", 20),
        retry=options.pop("retry", None),
        headers={"X-A": "b"},
        hidden_tokens=options.pop("hidden_tokens", None),
    )
    name = options.pop("model", "gpt-realtime")
    key = options.pop("key", KEY)
    provider = OpenAIRealtimeProvider(base_url=vendor.url, api_key=key, config=config)
    try:
        stream = llm(model=provider(name), **options).stream([], *inputs)
        events = [event async for event in stream]
        return events, await stream
    finally:
        await provider.aclose()


async def failure(vendor: RealtimeVendor, **options: Any) -> UPPError:
    """Return the error of a model of the vendor."""
    with pytest.raises(UPPError) as caught:
        await ask(vendor, "Hello", **options)
    assert KEY not in str(caught.value)
    assert caught.value.provider == "openai_realtime"
    return caught.value


def deltas(events: list[StreamEvent], kind: str) -> list[EventDelta]:
    """Return the deltas of the events of a type."""
    return [event.delta for event in events if event.type == kind]

"""The Realtime provider against a stand-in with the vendor's wire format, on a real socket."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from websockets.utils import accept_key

from tests.realtime_vendor import (
    KEY,
    Call,
    Fault,
    Raw,
    RealtimeVendor,
    realtime_vendor,
    silence,
    tone,
)
from upp import (
    AssistantMessage,
    AudioBlock,
    Base64Source,
    BytesSource,
    DocumentBlock,
    ErrorCode,
    ImageBlock,
    LinearBackoff,
    LLMRequest,
    Message,
    ProviderConfig,
    StreamEvent,
    TextBlock,
    TextSource,
    TokenUsage,
    Tool,
    Turn,
    UPPError,
    UrlSource,
    UserMessage,
    llm,
)
from upp.providers.http.connections import HttpSession
from upp.providers.http.failures import Failures
from upp.providers.realtime import answer as answer_module
from upp.providers.realtime import provider as realtime
from upp.providers.realtime.answer import RealtimeAnswer
from upp.providers.realtime.provider import OpenAIRealtimeProvider
from upp.providers.realtime.request import events_of
from upp.providers.realtime.sound import ALAW, PCM16, ULAW, Sound, read_wave

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
    vendor: RealtimeVendor, *said: Message | AudioBlock | str, **options: Any
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
        stream = llm(model=provider(name), **options).stream([], *said)
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
    said = UserMessage(
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
        _, turn = await ask(vendor, said, calls, last)

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


@pytest.mark.parametrize(
    ("fault", "code", "words"),
    [
        (Fault("error"), ErrorCode.PROVIDER_ERROR, "It broke."),
        (
            Fault("error", {"code": "rate_limit_exceeded", "message": "Slowly"}),
            ErrorCode.RATE_LIMITED,
            "Slowly",
        ),
        (Fault("failed"), ErrorCode.PROVIDER_ERROR, "It broke."),
        (Fault("turn_detected of cancelled"), ErrorCode.PROVIDER_ERROR, "turn_detected"),
        (Fault("close"), ErrorCode.NETWORK_ERROR, "1011: broken"),
        (Fault("binary"), ErrorCode.INVALID_RESPONSE, "not an event"),
        (Fault("huge"), ErrorCode.INVALID_RESPONSE, "without an end"),
        (Fault("nonsense"), ErrorCode.INVALID_RESPONSE, "invalid piece of an answer"),
        (Fault("noise"), ErrorCode.INVALID_RESPONSE, "not base64"),
        (Fault("content_filter of incomplete", words=""), ErrorCode.CONTENT_FILTERED, "filtered"),
    ],
)
async def test_a_failure_in_the_middle_has_its_cause(
    fault: Fault, code: ErrorCode, words: str
) -> None:
    with realtime_vendor(fault) as vendor:
        error = await failure(vendor, params=SPOKEN)

    assert error.code == code
    assert words in error.message


@pytest.mark.parametrize(
    ("reason", "stop"),
    [("max_output_tokens", "max_tokens"), ("content_filter", "content_filter")],
)
async def test_an_answer_may_be_incomplete(reason: str, stop: str) -> None:
    with realtime_vendor(Fault(f"{reason} of incomplete")) as vendor:
        _, turn = await ask(vendor, "Hello")

    assert (turn.response.text, turn.stop_reason) == ("Half an", stop)


async def test_a_silent_server_is_not_awaited_for_ever() -> None:
    with realtime_vendor(Fault("silent")) as vendor:
        error = await failure(vendor, timeout=0.3)

    assert error.code == ErrorCode.TIMEOUT


async def test_a_handshake_that_is_refused_has_its_status() -> None:
    with realtime_vendor() as vendor:
        refused = await failure(vendor, key="sk-other")
        moved = await failure(vendor, model="moved")

    assert (refused.code, refused.status_code) == (ErrorCode.AUTHENTICATION_FAILED, 401)
    # A redirect is not followed: it could lead anywhere.
    assert (moved.code, moved.status_code) == (ErrorCode.PROVIDER_ERROR, 302)
    assert len(vendor.models) == 2


async def test_a_server_that_is_away_is_asked_again(unused_tcp_port: int) -> None:
    vendor = RealtimeVendor()
    vendor.url = f"http://127.0.0.1:{unused_tcp_port}/v1"
    retry = LinearBackoff(max_attempts=1, delay=0.01)

    error = await failure(vendor, retry=retry)

    assert error.code == ErrorCode.NETWORK_ERROR


async def test_no_header_is_sent_that_no_header_may_be() -> None:
    provider = OpenAIRealtimeProvider(
        base_url="http://127.0.0.1:9/v1", config=ProviderConfig(headers={"X-A": "b\n"})
    )
    with pytest.raises(UPPError) as caught:
        await llm(model=provider("m")).generate([], "Hello")

    assert caught.value.code == ErrorCode.INVALID_REQUEST
    await provider.aclose()


async def test_who_stops_following_closes_the_socket() -> None:
    with realtime_vendor("One two three") as vendor:
        vendor.go_on.clear()
        provider = OpenAIRealtimeProvider(base_url=vendor.url)
        stream = llm(model=provider("gpt-realtime")).stream([], "Hello")
        async for event in stream:
            if event.type == "text_delta":
                break
        await stream.aclose()
        vendor.go_on.set()
        assert await asyncio.to_thread(vendor.closed.acquire, timeout=20)
        await provider.aclose()
    assert vendor.keys == [None]


async def test_a_server_that_sends_on_after_the_end_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(realtime, "CLOSE_SECONDS", 0.1)
    is_left = asyncio.Event()

    async def send_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take the handshake, and send without reading what the client says."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        key = re.search("(?i)sec-websocket-key: (.*)\r", head)
        assert key is not None
        accept = accept_key(key[1]).encode()
        upgrade = b"HTTP/1.1 101 .\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        writer.write(upgrade + b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
        done = b'{"type":"response.done","response":{"status":"completed"}}'
        event = b'{"type":"response.output_text.delta","delta":"on and "}'
        writer.write(bytes((0x81, len(done))) + done)
        with suppress(ConnectionError):
            while True:
                writer.write(bytes((0x81, len(event))) + event)
                await writer.drain()
                await asyncio.sleep(0.001)
        is_left.set()
        writer.close()

    server = await asyncio.start_server(send_on, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    provider = OpenAIRealtimeProvider(base_url=f"http://127.0.0.1:{port}")
    stream = llm(model=provider("gpt-realtime")).stream([], "Hello")
    async with asyncio.timeout(20):
        turn = await stream
        await is_left.wait()
    assert turn.stop_reason == "end_turn"
    await provider.aclose()
    server.close()


async def test_an_answer_has_a_bounded_number_of_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_module, "ANSWER_EVENTS", 20)
    with realtime_vendor("one two three four five six seven eight nine ten") as vendor:
        error = await failure(vendor, params=SPOKEN)
    assert error.code == ErrorCode.INVALID_RESPONSE


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
    sent = [
        {"type": "response.output_text.delta", "delta": "Hello"},
        {"type": "response.done", "response": {"status": "completed", "usage": tokens}},
    ]
    with realtime_vendor(Raw(tuple(map(json.dumps, sent)))) as vendor:
        _, turn = await ask(vendor, "Hello", hidden_tokens=100)

    assert 0 < turn.usage.input_tokens < 1000
    assert 100 < turn.usage.output_tokens < 2000


async def test_what_was_not_asked_for_is_neither_shown_nor_paid() -> None:
    kind = "conversation.item.input_audio_transcription.completed"
    tokens = {"input_tokens": 1, "output_tokens": 2}
    words = {"type": kind, "transcript": "words", "usage": tokens}
    done = {"type": "response.done", "response": {"status": "completed", "usage": tokens}}
    late = {"type": "response.output_text.delta", "delta": " late"}
    sent = [
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
    with realtime_vendor(Raw(tuple(map(json.dumps, sent)))) as vendor:
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

    with realtime_vendor(Raw(tuple(map(json.dumps, sent[2:])))) as vendor:
        vendor.transcript = "after"
        again, spoken = await ask(vendor, sound(), params={**TRANSCRIBED, "speech": {}})
    assert (spoken.response.text, spoken.usage.output_tokens) == ("Hello", 4)
    assert [delta.text for delta in deltas(again, "input_transcript")] == ["words"]


def test_the_environment_names_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://a.example/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    provider = OpenAIRealtimeProvider()

    assert provider.environment() == ("http://a.example/v1", "k")
    assert provider("m").capabilities.audio_input
    assert provider("m").provider == "openai_realtime"


async def test_a_session_leaves_its_sockets_with_its_connections() -> None:
    with realtime_vendor() as vendor:
        session = HttpSession(aiohttp.TCPConnector(), uses_proxies=False)
        socket = await session.dial(f"{vendor.url}/realtime?model=m", headers={}, silent=20)
        connector = session.client.connector
        session.detach()
        assert connector is not None
        await socket.close()
        await connector.close()


# --- Sound ---


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
    "said",
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
def test_what_cannot_be_sent_is_refused(said: UserMessage) -> None:
    with pytest.raises(UPPError) as caught:
        list(events_of(LLMRequest(messages=(said,)), provider="p"))

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

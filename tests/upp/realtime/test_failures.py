"""Realtime turns that fail, stall or never end."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress

import pytest
from websockets.utils import accept_key

from tests.realtime_vendor import Fault, RealtimeVendor, realtime_vendor
from tests.upp.realtime.vendor_turns import SPOKEN, ask, failure
from upp import ErrorCode, LinearBackoff, ProviderConfig, UPPError, llm
from upp.providers.realtime import answer as answer_module
from upp.providers.realtime import provider as realtime
from upp.providers.realtime.provider import OpenAIRealtimeProvider


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


async def test_a_silent_server_times_out() -> None:
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


async def test_abandoning_the_stream_closes_the_socket() -> None:
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

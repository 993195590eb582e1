"""OpenAI-compatible requests that are refused, cut off or answered with invalid data."""

import asyncio

import aiohttp
import pytest

from tests.upp.openai_compat.answers import failure
from tests.upp.wire_server import STREAM_HEAD, Exchange
from upp import ErrorCode, UPPError, llm
from upp.providers.http import sse
from upp.providers.http.failures import Failures
from upp.providers.http.transport import HttpProvider
from upp.providers.openai_compat import OpenAICompatProvider


@pytest.mark.parametrize(
    ("status", "body", "headers", "code", "message", "retry_after"),
    [
        (
            "401 Unauthorized",
            b'{"error":{"message":"Incorrect key sk-secret","code":"invalid_api_key"}}',
            [],
            "AUTHENTICATION_FAILED",
            "HTTP 401: Incorrect key ***",
            None,
        ),
        (
            "429 Too Many Requests",
            b'{"error":{"message":"Slow down","type":"requests"}}',
            ["Retry-After: 20"],
            "RATE_LIMITED",
            "HTTP 429: Slow down",
            20.0,
        ),
        (
            "429 Too Many Requests",
            b'{"error":{"message":"No credit","code":"insufficient_quota"}}',
            ["Retry-After: Sat, 21 Nov 2026 08:00:30 GMT", "Date: Sat, 21 Nov 2026 08:00:00 GMT"],
            "QUOTA_EXCEEDED",
            "HTTP 429: No credit",
            30.0,
        ),
        (
            "400 Bad Request",
            b'{"error":{"message":"Too long","code":"context_length_exceeded"}}',
            ["Retry-After: soon"],
            "CONTEXT_LENGTH_EXCEEDED",
            "HTTP 400: Too long",
            None,
        ),
        (
            "503 Unavailable",
            b"<html>",
            ["Retry-After: 99999999"],
            "PROVIDER_ERROR",
            "HTTP 503: <html>",
            3600.0,
        ),
        ("404 Not Found", b'{"detail":"x"}', ["Retry-After: nan"], "MODEL_NOT_FOUND", "x", None),
        ("500 Oops", b"[]", ["Retry-After: -5"], "PROVIDER_ERROR", "HTTP 500: []", 0.0),
        ("418 Tea", b'{"error":"teapot"}', [], "PROVIDER_ERROR", "HTTP 418: teapot", None),
        ("500 Oops", b"{}", [], "PROVIDER_ERROR", "HTTP 500: no message", None),
        ("500 Oops", b"[" * 5000, [], "PROVIDER_ERROR", "[[[", None),
        ("500 Oops", b'"\xff"', [], "PROVIDER_ERROR", 'HTTP 500: "\ufffd"', None),
        (
            "429 Slow",
            b"{}",
            ["Retry-After: Sat, 21 Nov 2026 08:00:30 -0000", "Date: Sat, 21 Nov 2026 08:00:00 GMT"],
            "RATE_LIMITED",
            "no message",
            30.0,
        ),
        # Without a Date of the server's, our own clock counts, and this was long ago.
        (
            "429 Slow",
            b"{}",
            ["Retry-After: Sat, 21 Nov 2020 08:00:30 GMT"],
            "RATE_LIMITED",
            "no message",
            0.0,
        ),
    ],
)
async def test_a_refused_request_has_its_code(
    status: str, body: bytes, headers: list[str], code: str, message: str, retry_after: float | None
) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.refuse(status, body, *headers)

    error = await failure(answer)
    assert (error.code, error.retry_after) == (code, retry_after)
    assert error.message.endswith(message)
    assert error.status_code == int(status[:3])


async def test_a_long_refusal_is_not_read_to_its_end() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 500 Oops\r\nConnection: close\r\n\r\n")
        while not exchange.gone.is_set():
            await exchange.send(b"x" * 16384)
            await asyncio.sleep(0)

    error = await failure(answer)
    assert len(error.message) == 500


async def test_a_cut_stream_is_a_network_error() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="half")

    error = await failure(answer)
    assert (error.code, error.message) == (
        "NETWORK_ERROR",
        "The answer was cut off before its end.",
    )


async def test_a_connection_that_breaks_is_a_network_error() -> None:
    async def answer(exchange: Exchange) -> None:
        head = STREAM_HEAD.replace(b"Connection: close", b"Content-Length: 1000")
        await exchange.send(head)
        await exchange.delta(content="half")

    assert (await failure(answer)).code == "NETWORK_ERROR"


async def test_a_closed_port_is_a_network_error() -> None:
    provider = OpenAICompatProvider(base_url="http://me:s3cret@127.0.0.1:9/v1/s3cret")
    with pytest.raises(UPPError) as caught:
        await llm(model=provider("m1")).generate([], "hi")
    await provider.aclose()
    assert caught.value.code == ErrorCode.NETWORK_ERROR
    assert caught.value.message.startswith(
        "The connection to the server at http://127.0.0.1:9 failed: "
        "ClientConnectorError: Connection refused"
    )
    assert "s3cret" not in caught.value.message


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("https://models.example/v1?key=s3cret", " at https://models.example:443 failed"),
        ("http://[::1]:11434/v1", " at http://[::1]:11434 failed"),
        ("http://models.example:port/", "The connection to the server failed"),
        ("/v1/s3cret", "The connection to the server failed"),
    ],
)
def test_a_failed_connection_names_the_server_and_nothing_secret(url: str, server: str) -> None:
    failures = Failures(provider="p", url=url)
    with pytest.raises(UPPError) as caught, failures.translated():
        raise aiohttp.ClientConnectionError(f"refused at {url}")
    assert server in caught.value.message
    assert "s3cret" not in caught.value.message


async def test_silence_is_a_timeout() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="half")
        await asyncio.wait_for(exchange.gone.wait(), 60)

    assert (await failure(answer, timeout=0.1)).code == "TIMEOUT"


@pytest.mark.parametrize(
    ("events", "code", "message"),
    [
        (b"data: {not json\n\n", "INVALID_RESPONSE", "invalid piece of an answer"),
        (b'data: {"choices": 7}\n\n', "INVALID_RESPONSE", "invalid piece of an answer"),
        (b"<html>hello</html>", "INVALID_RESPONSE", "not stream an answer but sent: <html>hello"),
        (b'{"choices": []}', "INVALID_RESPONSE", 'not stream an answer but sent: {"choices"'),
        (b'{"error": {"message": "no", "code": "invalid_api_key"}}', "AUTHENTICATION_FAILED", "no"),
        (b"\xff[", "INVALID_RESPONSE", "but sent: \ufffd["),
        (b"\n", "NETWORK_ERROR", "cut off"),
        (b": ping\n\n", "NETWORK_ERROR", "cut off"),
        (
            b'{"error":{"code":500,"message":"too much","type":"exceed_context_size_error"}}',
            "CONTEXT_LENGTH_EXCEEDED",
            "too much",
        ),
        (b'data: {"choices": [{"del', "NETWORK_ERROR", "cut off"),
        (b'data: {"choices": [{"delta": {"content": "\xe2', "NETWORK_ERROR", "cut off"),
        (
            b'data: {"error": ' + b"[" * 5000 + b"\n\n",
            "INVALID_RESPONSE",
            "invalid piece of an answer",
        ),
        (b'data: {"error": {"code": 429, "message": "slow"}}\n\n', "RATE_LIMITED", "slow"),
        (b'data: {"error": {"code": "503", "message": "busy"}}\n\n', "PROVIDER_ERROR", "busy"),
        (
            b'data: {"error": {"type": "invalid_request_error", "message": "no such role"}}\n\n',
            "INVALID_REQUEST",
            "no such role",
        ),
        (
            b'data: {"error": {"code": 400, "message": "maximum context length is 9"}}\n\n',
            "CONTEXT_LENGTH_EXCEEDED",
            "maximum context length",
        ),
        (
            b'data: {"error": {"message": "filtered sk-secret", "code": "content_filter"}}\n\n',
            "CONTENT_FILTERED",
            "filtered \\*\\*\\*",
        ),
        (b'data: {"error": "broken"}\n\n', "PROVIDER_ERROR", "broken"),
        (
            b'data: {"choices": [{"finish_reason": "content_filter"}]}\n\n',
            "CONTENT_FILTERED",
            "filtered out",
        ),
    ],
)
async def test_a_stream_that_says_something_else_is_an_error(
    events: bytes, code: str, message: str
) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD + events)

    error = await failure(answer)
    assert error.code == code
    assert message.replace("\\", "") in error.message


async def test_an_event_without_an_end_is_an_invalid_response(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 1000)

    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD + b"data: " + b"x" * 2000)

    assert (await failure(answer)).code == "INVALID_RESPONSE"


async def test_an_answer_with_more_bytes_than_its_server_may_send_is_an_invalid_response(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(HttpProvider, "answer_bytes", 1000)

    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD + b": x\n\n" * 1000)

    error = await failure(answer)
    assert (error.code, "1000 bytes" in error.message) == ("INVALID_RESPONSE", True)

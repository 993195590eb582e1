"""The OpenAI-compatible provider against a server on a real socket."""

import asyncio
import logging
from contextlib import suppress
from typing import Any

import aiohttp
import pytest

from tests.upp.wire_server import STREAM_HEAD, Answer, Exchange, serve
from upp import (
    ErrorCode,
    LinearBackoff,
    LLMRequest,
    ProviderConfig,
    ReasoningBlock,
    RetryAfterStrategy,
    RoundRobinKeys,
    StreamEvent,
    TextBlock,
    TokenUsage,
    Tool,
    ToolResultMessage,
    Turn,
    UPPError,
    llm,
)
from upp.providers.http import sse, transport
from upp.providers.http.failures import Failures
from upp.providers.http.transport import HttpProvider
from upp.providers.openai_compat import OpenAICompatProvider

KEY = "sk-secret"


async def ask(answer: Answer, **options: Any) -> Turn:
    """Return the turn of a model on a server that answers so."""
    async with serve(answer) as wire:
        config = ProviderConfig(
            timeout=options.pop("timeout", None), hidden_tokens=options.pop("hidden_tokens", None)
        )
        provider = OpenAICompatProvider(base_url=wire.url, api_key=KEY, config=config)
        try:
            return await asyncio.wait_for(
                llm(model=provider("m1"), **options).generate([], "hi"), 5
            )
        finally:
            await provider.aclose()


async def failure(answer: Answer, **options: Any) -> UPPError:
    """Return the error of a model on a server that answers so."""
    with pytest.raises(UPPError) as caught:
        await ask(answer, **options)
    assert KEY not in str(caught.value)
    assert caught.value.provider == "openai_compat"
    return caught.value


async def test_text_and_usage_are_streamed() -> None:
    async def answer(exchange: Exchange) -> None:
        assert exchange.head.startswith("POST /v1/chat/completions HTTP/1.1")
        assert f"Authorization: Bearer {KEY}" in exchange.head
        assert exchange.body == {
            "model": "m1",
            "messages": [{"role": "user", "content": "hi"}],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        await exchange.send(STREAM_HEAD)
        await exchange.delta(role="assistant", content="")
        await exchange.delta(content="Hel")
        await exchange.delta(content="lo\u2028.")
        await exchange.chunk(
            choices=[],
            usage={
                "prompt_tokens": 9,
                "completion_tokens": 2,
                "total_tokens": 11,
                "prompt_tokens_details": {"cached_tokens": 4},
            },
        )
        await exchange.finish()

    turn = await ask(answer)
    assert turn.response.text == "Hello\u2028."
    assert turn.response.metadata == {"openai": {"id": "chatcmpl-1"}}
    assert turn.stop_reason == "end_turn"
    assert turn.usage == TokenUsage(
        input_tokens=9, output_tokens=2, total_tokens=11, cache_read_tokens=4
    )


async def test_each_piece_comes_when_the_server_sends_it() -> None:
    goes_on = asyncio.Event()

    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="one")
        await asyncio.wait_for(goes_on.wait(), 60)
        await exchange.delta(content="two")
        await exchange.finish()

    async with serve(answer) as wire:
        provider = OpenAICompatProvider(base_url=wire.url)
        seen = []
        async for event in llm(model=provider("m1")).stream([], "hi"):
            if event.type == "text_delta":
                seen.append(event.delta.text)
                goes_on.set()
        assert "Authorization" not in wire.exchanges[0].head
        await provider.aclose()
    assert seen == ["one", "two"]


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
async def test_thinking_is_kept_apart(name: str) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(**{name: "let me"})
        await exchange.delta(**{name: " see"})
        await exchange.delta(content="yes")
        await exchange.finish()

    turn = await ask(answer)
    assert turn.response.content == (ReasoningBlock(text="let me see"), TextBlock(text="yes"))


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
async def test_thoughts_before_a_call_go_back_until_the_question_is_answered(name: str) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        if len(exchange.body["messages"]) == 1:
            detail = {"type": "reasoning.encrypted", "data": "x=="}
            await exchange.delta(**{name: "let me", "reasoning_details": [detail]})
            await exchange.delta(**{name: " see"})
            call = {"index": 0, "id": "c1", "function": {"name": "search", "arguments": '{"q":1}'}}
            await exchange.delta(tool_calls=[call])
            await exchange.finish("tool_calls")
            return
        await exchange.delta(content="yes")
        await exchange.finish()

    async with serve(answer) as wire:
        provider = OpenAICompatProvider(base_url=wire.url)
        model = llm(model=provider("m1"), tools=TOOLS)
        turn = await model.generate("hi")
        await model.generate(turn.messages, "and now?")
        await provider.aclose()
    asked, later = (exchange.body["messages"][1] for exchange in wire.exchanges[1:])
    thoughts = {
        name: "let me see",
        "reasoning_details": [{"type": "reasoning.encrypted", "data": "x=="}],
    }
    assert asked == later | thoughts
    assert not thoughts.keys() & later.keys()


@pytest.mark.parametrize(
    "usage",
    [
        {"usage": {"prompt_tokens": 9, "prompt_cache_hit_tokens": 4}},
        {"usage": {"prompt_tokens": 9, "cached_tokens": 4, "prompt_tokens_details": {}}},
        {"x_groq": {"usage": {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}}}},
    ],
)
async def test_cached_tokens_are_found_where_servers_count_them(usage: dict[str, Any]) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.chunk(choices=[], x_groq={"id": "r"})
        await exchange.chunk(**usage)
        await exchange.finish()

    turn = await ask(answer)
    assert turn.usage == TokenUsage(input_tokens=9, total_tokens=9, cache_read_tokens=4)


@pytest.mark.parametrize(
    ("completion", "total", "output"),
    [
        (40, 50, 40),  # OpenAI: the completion holds the reasoning
        (40, None, 40),
        (8, 50, 40),  # xAI: the reasoning stands beside the completion, and is billed
    ],
)
async def test_reasoning_tokens_are_output_and_counted_once(
    completion: int, total: int | None, output: int
) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.chunk(
            usage={
                "prompt_tokens": 10,
                "completion_tokens": completion,
                "total_tokens": total,
                "completion_tokens_details": {"reasoning_tokens": 32},
            }
        )
        await exchange.finish()

    turn = await ask(answer)
    assert turn.usage == TokenUsage(
        input_tokens=10, output_tokens=output, total_tokens=10 + output, reasoning_tokens=32
    )


@pytest.mark.parametrize("hidden", [None, 0, 500])
async def test_a_server_that_is_not_trusted_counts_at_most_its_bytes(hidden: int | None) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="Hi")
        await exchange.chunk(
            usage={
                "prompt_tokens": 10**9,
                "completion_tokens": 10**9,
                "total_tokens": 2 * 10**9,
                "prompt_tokens_details": {"cached_tokens": 10**9},
                "completion_tokens_details": {"reasoning_tokens": 10**9},
            }
        )
        await exchange.finish()

    usage = (await ask(answer, hidden_tokens=hidden)).usage
    if hidden is None:
        assert usage.total_tokens == 2 * 10**9
        return
    assert 0 < usage.input_tokens < 500
    assert hidden < usage.output_tokens < hidden + 1500
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens
    assert usage.cache_read_tokens <= usage.input_tokens
    assert usage.reasoning_tokens <= usage.output_tokens


async def test_a_refusal_is_what_the_model_said() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(refusal="I will not.")
        await exchange.finish()

    assert (await ask(answer)).response.text == "I will not."


def search(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"found": arguments["q"]}


TOOLS = [Tool(name="search", description="Searches", parameters={"type": "object"}, run=search)]


async def test_calls_are_put_together_from_pieces_and_answered() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        if len(exchange.body["messages"]) > 1:
            await exchange.delta(content="done")
            await exchange.finish()
            return
        first = {"index": 0, "id": "c1", "function": {"name": "search", "arguments": ""}}
        second = {"index": 1, "id": "c2", "function": {"name": "search", "arguments": '{"q":2}'}}
        await exchange.delta(tool_calls=[first])
        await exchange.delta(tool_calls=[{"index": 0, "function": {"arguments": '{"q"'}}])
        await exchange.delta(tool_calls=[second])
        await exchange.delta(tool_calls=[{"index": 0, "function": {"arguments": ":1}"}}])
        await exchange.finish("tool_calls")

    async with serve(answer) as wire:
        provider = OpenAICompatProvider(base_url=wire.url)
        turn = await llm(model=provider("m1"), tools=TOOLS).generate([], "hi")
        await provider.aclose()
    assert turn.response.text == "done"
    assert isinstance(turn.messages[2], ToolResultMessage)
    assert wire.exchanges[0].body["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "search",
                "description": "Searches",
                "parameters": {"type": "object"},
            },
        }
    ]
    assert wire.exchanges[1].body["messages"][1:] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "search", "arguments": '{"q":1}'},
                },
                {
                    "id": "c2",
                    "type": "function",
                    "function": {"name": "search", "arguments": '{"q":2}'},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": '{"found":1}'},
        {"role": "tool", "tool_call_id": "c2", "content": '{"found":2}'},
    ]


async def test_calls_that_a_server_numbers_alike_or_not_at_all_are_distinguished() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        for piece in (
            {"index": 0, "id": "c1", "function": {"name": "a", "arguments": "{}"}},
            {"index": 0, "id": "c2", "function": {"name": "b", "arguments": "{}"}},
            {"index": None, "function": {"name": "c"}},
            {"index": 7},
        ):
            await exchange.delta(tool_calls=[piece])
        await exchange.finish("tool_calls")

    calls = (await ask(answer)).response.tool_calls
    assert [call.tool_name for call in calls] == ["a", "b", "c", ""]
    assert len({call.tool_call_id for call in calls}) == 4


async def test_an_id_that_a_server_uses_again_in_the_next_answer_becomes_another() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        if len(exchange.body["messages"]) < 5:
            call = {"index": 0, "id": "c1", "function": {"name": "search", "arguments": '{"q":1}'}}
            await exchange.delta(tool_calls=[call])
            await exchange.finish("tool_calls")
            return
        await exchange.delta(content="yes")
        await exchange.finish()

    async with serve(answer) as wire:
        provider = OpenAICompatProvider(base_url=wire.url)
        turn = await llm(model=provider("m1"), tools=TOOLS).generate("hi")
        await provider.aclose()
    first, second = (execution.tool_call_id for execution in turn.tool_executions)
    assert first == "c1"
    assert second != "c1"


async def test_malformed_arguments_are_reported_to_the_model() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        messages = exchange.body["messages"]
        if len(messages) > 1:
            await exchange.delta(content=messages[-1]["content"])
            await exchange.finish()
            return
        call = {"index": 0, "id": "c1", "function": {"name": "search", "arguments": '{"q": '}}
        await exchange.delta(tool_calls=[call])
        await exchange.finish("tool_calls")

    turn = await ask(answer, tools=TOOLS)
    assert turn.response.text == "The arguments are not a JSON object."


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
    ("url", "named"),
    [
        ("https://models.example/v1?key=s3cret", " at https://models.example:443 failed"),
        ("http://[::1]:11434/v1", " at http://[::1]:11434 failed"),
        ("http://models.example:port/", "The connection to the server failed"),
        ("/v1/s3cret", "The connection to the server failed"),
    ],
)
def test_a_failed_connection_names_the_server_and_nothing_secret(url: str, named: str) -> None:
    failures = Failures(provider="p", url=url)
    with pytest.raises(UPPError) as caught, failures.translated():
        raise aiohttp.ClientConnectionError(f"refused at {url}")
    assert named in caught.value.message
    assert "s3cret" not in caught.value.message


async def test_silence_is_a_timeout() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="half")
        await asyncio.wait_for(exchange.gone.wait(), 60)

    assert (await failure(answer, timeout=0.1)).code == "TIMEOUT"


@pytest.mark.parametrize(
    ("sent", "code", "message"),
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
    sent: bytes, code: str, message: str
) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD + sent)

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


async def test_an_end_without_done_or_empty_line_is_an_end() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.send(
            b'data: {"choices":[{"delta":{"content":"a"},"finish_reason":"length"}]}'
        )

    turn = await ask(answer)
    assert (turn.response.text, turn.stop_reason) == ("a", "max_tokens")
    assert turn.response.metadata == {}
    assert turn.usage == TokenUsage()


async def test_done_without_a_reason_is_an_end() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD + b'data: {"usage": {}}\n\ndata: [DONE]\n\n')

    turn = await ask(answer)
    assert (turn.response.content, turn.stop_reason) == ((), "end_turn")


async def test_what_comes_after_done_is_not_read_as_an_answer() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="a")
        await exchange.finish()
        await asyncio.sleep(0.02)
        await exchange.delta(content="b")

    assert (await ask(answer)).response.text == "a"


async def test_a_server_that_never_hangs_up_is_not_awaited_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transport, "DRAIN_SECONDS", 0.05)

    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="a")
        await exchange.finish()
        await asyncio.wait_for(exchange.gone.wait(), 60)

    assert (await ask(answer)).response.text == "a"


@pytest.mark.parametrize("how", ["abort", "cancel", "leave"])
async def test_stopping_closes_the_request(how: str) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="a")
        await asyncio.wait_for(exchange.gone.wait(), 60)

    async with serve(answer) as wire:
        provider = OpenAICompatProvider(base_url=wire.url)
        result = llm(model=provider("m1")).stream([], "hi")
        began = asyncio.Event()

        async def follow() -> None:
            async for event in result:
                if event.type == "text_delta":
                    began.set()
                    if how == "leave":
                        break

        reader = asyncio.create_task(follow())
        await asyncio.wait_for(began.wait(), 60)
        if how == "abort":
            result.abort()
        elif how == "cancel":
            reader.cancel()
        await asyncio.wait({reader}, timeout=60)
        await asyncio.wait_for(wire.exchanges[0].gone.wait(), 2)
        assert reader.cancelled() is (how == "cancel")
        assert reader.exception() is not None if how == "abort" else True
        await provider.aclose()


async def test_a_stream_that_is_closed_has_closed_its_connection() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="a")
        await asyncio.wait_for(exchange.gone.wait(), 60)

    async with serve(answer) as wire:
        provider = OpenAICompatProvider(base_url=wire.url)
        stream = provider("m1").stream(LLMRequest(messages=()))
        assert isinstance(await anext(stream), StreamEvent)
        assert not wire.exchanges[0].gone.is_set()
        await stream.aclose()
        await asyncio.wait_for(wire.exchanges[0].gone.wait(), 5)
        await provider.aclose()


async def connection(**options: Any) -> tuple[str | None, str | None]:
    """Return the address and the key of a request."""
    config, key = await OpenAICompatProvider(**options).connection(None)
    return config.base_url, key


async def test_without_an_address_the_environment_says_where(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "from-env")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert await connection() == ("https://api.openai.com/v1", "from-env")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1/")
    assert await connection() == ("http://localhost:1/v1", "from-env")
    monkeypatch.delenv("OPENAI_API_KEY")
    assert await connection() == ("http://localhost:1/v1", None)


async def test_a_key_stays_with_its_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "from-env")
    assert await connection(base_url="http://x/v1") == ("http://x/v1", None)
    assert await connection(base_url="http://x/v1", api_key="k") == ("http://x/v1", "k")
    provider = OpenAICompatProvider(api_key="own")
    elsewhere = ProviderConfig(base_url="http://y/v1")
    config, key = await provider.connection(elsewhere)
    assert (config.base_url, key) == ("http://y/v1", None)
    config, key = await provider.connection(ProviderConfig(base_url="http://y/v1", api_key="y"))
    assert (config.base_url, key) == ("http://y/v1", "y")
    config, key = await provider.connection(ProviderConfig(api_key="other"))
    assert key == "other"


async def test_headers_of_the_caller_win_and_a_connector_takes_the_place_of_the_network() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD + b"data: [DONE]\n\n")

    async with serve(answer) as wire:
        provider = OpenAICompatProvider(
            base_url="http://nowhere/v1",
            api_key="k",
            config=ProviderConfig(headers={"X-Mine": "1", "accept": "all"}),
        )
        over = ProviderConfig(connector=wire.connector, headers={"authorization": "Mine"})
        await llm(model=provider("m1"), config=over).generate("hi")
        await provider.aclose()
    request, *lines = wire.exchanges[0].head.split("\r\n")
    assert request == "POST /v1/chat/completions HTTP/1.1"
    headers = [line.partition(": ")[::2] for line in lines]
    given = {"host", "x-mine", "accept", "authorization"}
    assert {(name.lower(), value) for name, value in headers if name.lower() in given} == {
        ("host", "nowhere"),
        ("x-mine", "1"),
        ("accept", "all"),
        ("authorization", "Mine"),
    }


@pytest.mark.parametrize(
    ("failing", "events"),
    [(0, 1), (2, 1), (3, 0)],
)
async def test_what_fails_before_its_first_event_is_sent_again(failing: int, events: int) -> None:
    async def answer(exchange: Exchange) -> None:
        if len(wire.exchanges) <= failing:
            await exchange.refuse("429 Slow", b"{}", "Retry-After: 0")
            return
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="a")
        await exchange.finish()

    keys = RoundRobinKeys(["k1", "k2"])
    async with serve(answer) as wire:
        config = ProviderConfig(retry=RetryAfterStrategy(max_attempts=2), api_key=keys)
        provider = OpenAICompatProvider(base_url=wire.url, config=config)
        result = llm(model=provider("m1")).stream("hi")
        seen = []
        with suppress(UPPError):
            async for event in result:
                seen.append(event.type)  # noqa: PERF401 what came before the error counts
        await provider.aclose()
    sent = [exchange.head.split("Bearer ")[1][:2] for exchange in wire.exchanges]
    assert sent == ["k1", "k2", "k1"][: min(failing, 2) + 1]
    assert seen.count("message_start") == events


async def test_an_answer_that_is_cut_after_its_first_event_is_not_asked_for_again() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="half")

    async with serve(answer) as wire:
        config = ProviderConfig(retry=LinearBackoff(delay=0))
        provider = OpenAICompatProvider(base_url=wire.url, config=config)
        with pytest.raises(UPPError) as caught:
            await llm(model=provider("m1")).generate("hi")
        await provider.aclose()
    assert caught.value.code == ErrorCode.NETWORK_ERROR
    assert len(wire.exchanges) == 1


async def test_the_key_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.refuse("500 Oops", b"sk-secret")

    with caplog.at_level(logging.DEBUG):
        await failure(answer)
    assert KEY not in caplog.text


def test_a_request_is_a_value() -> None:
    assert LLMRequest(messages=()).tools == ()


async def test_what_the_receiver_of_events_raises_is_no_failure_of_the_server() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.delta(content="a")
        await asyncio.wait_for(exchange.gone.wait(), 60)

    async def emit(event: StreamEvent) -> None:
        if event.type == "text_delta":
            raise TimeoutError("of the receiver")

    async with serve(answer) as wire:
        provider = OpenAICompatProvider(base_url=wire.url)
        with pytest.raises(TimeoutError, match="of the receiver"):
            await provider("m1").infer(LLMRequest(messages=()), emit)
        await asyncio.wait_for(wire.exchanges[0].gone.wait(), 5)
        assert len(wire.exchanges) == 1
        await provider.aclose()

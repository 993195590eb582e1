"""Requests to the Messages API that fail, and its version and key."""

import pytest

from tests.upp.anthropic.events import KEY, ask, begin, block, end, json_piece, text
from tests.upp.wire_server import Exchange, serve
from upp import ErrorCode, Tool, ToolCall, UPPError, llm
from upp.providers.anthropic import AnthropicProvider


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("overloaded_error", "PROVIDER_ERROR"),
        ("rate_limit_error", "RATE_LIMITED"),
        ("api_error", "PROVIDER_ERROR"),
        ("timeout_error", "TIMEOUT"),
    ],
)
async def test_a_failure_in_the_stream_has_its_code(kind: str, code: str) -> None:
    async def answer(exchange: Exchange) -> None:
        await begin(exchange)
        await exchange.event("error", error={"type": kind, "message": f"no, {KEY}"})

    with pytest.raises(UPPError) as caught:
        await ask(answer)
    assert (caught.value.code, caught.value.message) == (code, "no, ***")


@pytest.mark.parametrize(
    ("status", "kind", "message", "code"),
    [
        ("401 No", "authentication_error", "invalid x-api-key", "AUTHENTICATION_FAILED"),
        ("400 No", "billing_error", "no credit", "QUOTA_EXCEEDED"),
        ("400 No", "invalid_request_error", "max_tokens: required", "INVALID_REQUEST"),
        (
            "400 No",
            "invalid_request_error",
            "prompt is too long: 209000 tokens > 200000 maximum",
            "CONTEXT_LENGTH_EXCEEDED",
        ),
        (
            "400 No",
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 199759 + 8192 > 200000",
            "CONTEXT_LENGTH_EXCEEDED",
        ),
        (
            "400 No",
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API.",
            "QUOTA_EXCEEDED",
        ),
        ("404 No", "not_found_error", "model: x", "MODEL_NOT_FOUND"),
        ("413 No", "request_too_large", "too large", "CONTEXT_LENGTH_EXCEEDED"),
        ("529 Overloaded", "overloaded_error", "overloaded", "PROVIDER_ERROR"),
    ],
)
async def test_a_refused_request_has_its_code(
    status: str, kind: str, message: str, code: str
) -> None:
    async def answer(exchange: Exchange) -> None:
        body = f'{{"type":"error","error":{{"type":"{kind}","message":"{message}"}}}}'
        await exchange.refuse(status, body.encode(), "Retry-After: 3")

    with pytest.raises(UPPError) as caught:
        await ask(answer)
    error = caught.value
    assert (error.code, error.retry_after) == (code, 3.0)
    assert error.message == f"HTTP {status[:3]}: {message}"


async def test_a_stream_without_its_end_is_cut_off() -> None:
    async def answer(exchange: Exchange) -> None:
        await begin(exchange)
        await block(exchange, 0, {"type": "text"}, text("half"))

    with pytest.raises(UPPError, match="cut off") as caught:
        await ask(answer)
    assert caught.value.code == ErrorCode.NETWORK_ERROR


async def test_malformed_arguments_are_reported_to_the_model() -> None:
    async def answer(exchange: Exchange) -> None:
        await begin(exchange)
        if len(exchange.body["messages"]) > 1:
            result_text = exchange.body["messages"][-1]["content"][0]["content"]
            await block(exchange, 0, {"type": "text"}, text(result_text))
            await end(exchange)
            return
        call = {"type": "tool_use", "id": "t1", "name": "look"}
        await block(exchange, 0, call, json_piece('{"a": '))
        await end(exchange, "tool_use")

    look = Tool(name="look", description="", parameters={"type": "object"}, run=lambda _: "seen")
    turn, _ = await ask(answer, tools=[look])
    assert turn.response.text == "The arguments are not a JSON object."
    assert turn.messages[1].tool_calls == (  # type: ignore[union-attr] # it is the assistant's
        ToolCall(tool_call_id="t1", tool_name="look", arguments={}, malformed='{"a": '),
    )


async def test_another_version_of_the_api_is_a_header() -> None:
    async def answer(exchange: Exchange) -> None:
        assert "anthropic-version: 2026-10-21" in exchange.head
        await begin(exchange)
        await end(exchange)

    await ask(answer, api_version="2026-10-21")


async def test_without_a_key_there_is_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(UPPError, match="no key") as caught:
        await llm(model=AnthropicProvider()("claude")).generate("hi")
    assert caught.value.code == ErrorCode.AUTHENTICATION_FAILED


async def test_a_gateway_may_need_no_key() -> None:
    async def answer(exchange: Exchange) -> None:
        assert "x-api-key" not in exchange.head
        await begin(exchange)
        await end(exchange)

    async with serve(answer) as wire:
        provider = AnthropicProvider(base_url=wire.url)
        await llm(model=provider("claude")).generate("hi")
        await provider.aclose()

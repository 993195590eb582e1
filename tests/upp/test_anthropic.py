"""Anthropic's Messages API, against a server on a real socket that speaks as documented."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.upp.wire_server import STREAM_HEAD, Answer, Exchange, serve
from upp import (
    ErrorCode,
    Message,
    ProviderConfig,
    ReasoningBlock,
    StreamEvent,
    TextBlock,
    TokenUsage,
    Tool,
    ToolCall,
    Turn,
    UPPError,
    llm,
)
from upp.providers.anthropic import AnthropicProvider

KEY = "sk-ant-secret"
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


async def ask(
    answer: Answer, history: Sequence[Message] = (), **options: Any
) -> tuple[Turn, list[StreamEvent]]:
    """Return the turn and the events of a model on a server that answers so."""
    async with serve(answer) as wire:
        config = ProviderConfig(api_version=options.pop("api_version", None))
        provider = AnthropicProvider(base_url=wire.url, api_key=KEY, config=config)
        try:
            result = llm(model=provider("claude"), **options).stream(history, "hi")
            events = [event async for event in result]
            return await result.turn(), events
        finally:
            await provider.aclose()


async def begin(exchange: Exchange, **usage: int) -> None:
    await exchange.send(STREAM_HEAD)
    message = {"id": "msg_1", "type": "message", "role": "assistant", "usage": usage}
    await exchange.event("message_start", message=message)
    await exchange.event("ping")


async def block(exchange: Exchange, index: int, start: dict[str, Any], *deltas: Any) -> None:
    await exchange.event("content_block_start", index=index, content_block=start)
    for delta in deltas:
        await exchange.event("content_block_delta", index=index, delta=delta)
    await exchange.event("content_block_stop", index=index)


def text(piece: str) -> dict[str, str]:
    return {"type": "text_delta", "text": piece}


def json_piece(piece: str) -> dict[str, str]:
    return {"type": "input_json_delta", "partial_json": piece}


async def end(exchange: Exchange, reason: str = "end_turn", **usage: Any) -> None:
    delta = {"stop_reason": reason, "stop_sequence": None}
    await exchange.event("message_delta", delta=delta, usage=usage)
    await exchange.event("message_stop")


async def test_text_is_streamed_and_cached_tokens_are_counted_beside_the_input() -> None:
    async def answer(exchange: Exchange) -> None:
        assert exchange.head.startswith("POST /v1/messages HTTP/1.1")
        assert f"x-api-key: {KEY}" in exchange.head
        assert "anthropic-version: 2023-06-01" in exchange.head
        assert exchange.body == {
            "model": "claude",
            "max_tokens": 8192,
            "system": "be kind",
            "temperature": 1,
            "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
            "stream": True,
        }
        await begin(
            exchange,
            input_tokens=9,
            output_tokens=1,
            cache_read_input_tokens=100,
            cache_creation_input_tokens=20,
        )
        await block(exchange, 0, {"type": "text", "text": ""}, text("Hel"), text("lo"))
        await end(exchange, output_tokens=5, output_tokens_details={"thinking_tokens": 2})

    turn, events = await ask(answer, system="be kind", params={"temperature": 1})
    assert [(event.type, event.delta.text) for event in events] == [
        ("message_start", None),
        ("content_block_start", None),
        ("text_delta", "Hel"),
        ("text_delta", "lo"),
        ("content_block_stop", None),
        ("message_stop", None),
    ]
    assert turn.response.text == "Hello"
    assert turn.stop_reason == "end_turn"
    assert turn.response.metadata["anthropic"]["id"] == "msg_1"
    assert turn.usage == TokenUsage(
        input_tokens=9,
        output_tokens=5,
        total_tokens=14,
        cache_read_tokens=100,
        cache_write_tokens=20,
        reasoning_tokens=2,
    )


async def test_thoughts_go_back_in_their_places_with_their_signatures() -> None:
    async def answer(exchange: Exchange) -> None:
        if len(exchange.body["messages"]) > 1:
            await begin(exchange)
            await block(exchange, 0, {"type": "text"}, text("done"))
            await end(exchange)
            return
        await begin(exchange)
        thinking = {"type": "thinking", "thinking": "", "signature": ""}
        thought = {"type": "thinking_delta", "thinking": "let me see"}
        signature = {"type": "signature_delta", "signature": "sig=="}
        await block(exchange, 0, thinking, thought, signature)
        await block(exchange, 1, {"type": "redacted_thinking", "data": "secret=="})
        await block(exchange, 2, {"type": "text", "text": ""}, text("I look."))
        call = {"type": "tool_use", "id": "toolu_1", "name": "search", "input": {}}
        await block(exchange, 3, call, json_piece(""), json_piece('{"q":'), json_piece(" 1}"))
        await block(exchange, 4, {"type": "tool_use", "id": "toolu_2", "name": "search"})
        await end(exchange, "tool_use")

    sent: list[Any] = []

    async def keeping(exchange: Exchange) -> None:
        sent.append(exchange.body)
        await answer(exchange)

    def search(arguments: dict[str, Any]) -> dict[str, Any]:
        if not arguments:
            raise ValueError("nothing to look for")
        return {"found": arguments["q"]}

    tool = Tool(
        name="search",
        description="Searches",
        parameters={"type": "object"},
        run=search,
        metadata={"anthropic": {"cache_control": {"type": "ephemeral"}}},
    )
    native = {"type": "web_search_20250305", "name": "web_search"}
    params = {"thinking": {"type": "enabled", "budget_tokens": 2000}, "tools": [native]}
    turn, events = await ask(keeping, tools=[tool], params=params)
    assert sent[0]["max_tokens"] == 10192
    assert sent[0]["tools"] == [
        native,
        {
            "name": "search",
            "description": "Searches",
            "input_schema": {"type": "object"},
            "cache_control": {"type": "ephemeral"},
        },
    ]
    assert sent[1]["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "let me see", "signature": "sig=="},
                {"type": "redacted_thinking", "data": "secret=="},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "toolu_1", "name": "search", "input": {"q": 1}},
                {"type": "tool_use", "id": "toolu_2", "name": "search", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": '{"found":1}'},
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_2",
                    "content": "nothing to look for",
                    "is_error": True,
                },
            ],
        },
    ]
    first = turn.messages[1]
    assert first.content == (ReasoningBlock(text="let me see"), TextBlock(text="I look."))
    calls = [event.delta for event in events if event.type == "tool_call_delta"]
    assert [(call.tool_call_id, call.arguments_json) for call in calls] == [
        ("toolu_1", ""),
        ("toolu_1", '{"q":'),
        ("toolu_1", " 1}"),
    ]
    assert [event.delta.text for event in events if event.type == "reasoning_delta"] == [
        "let me see"
    ]
    assert turn.response.text == "done"


async def test_a_schema_is_answered_by_a_forced_call_that_becomes_text() -> None:
    async def answer(exchange: Exchange) -> None:
        assert exchange.body["tool_choice"] == {"type": "tool", "name": "json_answer"}
        assert exchange.body["tools"][0]["input_schema"] == SCHEMA
        await begin(exchange)
        await block(exchange, 0, {"type": "text"}, text("Here it is:"))
        call = {"type": "tool_use", "id": "toolu_1", "name": "json_answer"}
        await block(exchange, 1, call, json_piece('{"a"'), json_piece(": 1}"))
        await end(exchange, "tool_use")

    turn, events = await ask(answer, structure=SCHEMA)
    assert turn.data == {"a": 1}
    assert turn.stop_reason == "end_turn"
    assert turn.response.tool_calls == ()
    assert turn.response.text == 'Here it is:\n\n{"a": 1}'
    pieces = [event.delta.text for event in events if event.type == "object_delta"]
    assert pieces == ["Here it is:", '{"a"', ": 1}"]


async def test_tools_may_run_before_the_structured_answer() -> None:
    chosen: list[Any] = []

    async def answer(exchange: Exchange) -> None:
        chosen.append(exchange.body["tool_choice"])
        await begin(exchange)
        if len(chosen) == 1:
            await block(exchange, 0, {"type": "tool_use", "id": "t1", "name": "look"})
            # An answer beside a call is too early: the model has not seen the result.
            await block(exchange, 1, {"type": "tool_use", "id": "t2", "name": "json_answer"})
        else:
            call = {"type": "tool_use", "id": "t3", "name": "json_answer"}
            await block(exchange, 0, call, json_piece('{"a": 2}'))
        await end(exchange, "tool_use")

    look = Tool(name="look", description="", parameters={"type": "object"}, run=lambda _: "seen")
    turn, _ = await ask(answer, structure=SCHEMA, tools=[look])
    assert chosen == [{"type": "any"}, {"type": "any"}]
    assert (turn.data, turn.cycles, len(turn.tool_executions)) == ({"a": 2}, 2, 1)
    assert turn.messages[1].text == "{}"


@pytest.mark.parametrize(
    ("params", "choice"),
    [
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, {"type": "auto"}),
        ({"thinking": {"type": "disabled"}}, {"type": "tool", "name": "json_answer"}),
        ({"tool_choice": {"type": "none"}}, {"type": "none"}),
    ],
)
async def test_thinking_and_the_caller_keep_a_call_from_being_forced(
    params: dict[str, Any], choice: dict[str, str]
) -> None:
    async def answer(exchange: Exchange) -> None:
        assert exchange.body["tool_choice"] == choice
        await begin(exchange)
        await block(exchange, 0, {"type": "text"}, text('{"a": 3}'))
        await end(exchange)

    turn, _ = await ask(answer, structure=SCHEMA, params=params)
    assert turn.data == {"a": 3}


@pytest.mark.parametrize(
    ("options", "begins"),
    [
        ({}, "Answer with one valid JSON object"),
        ({"system": "be kind"}, "be kind\n\nAnswer with one valid JSON object"),
    ],
)
async def test_any_object_is_asked_for_in_the_system_prompt(
    options: dict[str, Any], begins: str
) -> None:
    async def answer(exchange: Exchange) -> None:
        assert exchange.body["system"].startswith(begins)
        assert "tools" not in exchange.body
        await begin(exchange)
        await block(exchange, 0, {"type": "text"}, text('{"b": []}'))
        await end(exchange)

    turn, _ = await ask(answer, structure={"type": "object"}, **options)
    assert turn.data == {"b": []}


async def test_a_system_prompt_in_blocks_keeps_its_blocks() -> None:
    blocks = [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}]

    async def answer(exchange: Exchange) -> None:
        assert exchange.body["system"][0] == blocks[0]
        assert exchange.body["system"][1]["text"].startswith("Answer with one valid JSON object")
        await begin(exchange)
        await end(exchange)

    turn, _ = await ask(answer, structure={"type": "object"}, params={"system": blocks})
    assert turn.data is None


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("max_tokens", "max_tokens"),
        ("stop_sequence", "end_turn"),
        ("model_context_window_exceeded", "max_tokens"),
        ("pause_turn", "pause_turn"),
        ("refusal", "content_filter"),
    ],
)
async def test_reasons_to_stop_have_common_names(said: str, reason: str) -> None:
    async def answer(exchange: Exchange) -> None:
        await begin(exchange)
        await block(exchange, 0, {"type": "text"}, text("a"))
        await end(exchange, said)

    turn, _ = await ask(answer)
    assert turn.stop_reason == reason


async def test_a_refusal_without_words_is_filtered_content() -> None:
    async def answer(exchange: Exchange) -> None:
        await begin(exchange)
        await end(exchange, "refusal")

    with pytest.raises(UPPError) as caught:
        await ask(answer)
    assert caught.value.code == ErrorCode.CONTENT_FILTERED


async def test_what_is_not_known_is_passed_over() -> None:
    async def answer(exchange: Exchange) -> None:
        await begin(exchange)
        await exchange.event("something_new", index=7)
        await exchange.event("content_block_delta", index=9, delta=text("nowhere"))
        server_tool = {"type": "server_tool_use", "id": "s1", "name": "web_search"}
        await block(exchange, 0, server_tool, json_piece('{"query": "x"}'))
        citation = {"type": "citations_delta", "citation": {"cited_text": "x"}}
        await block(exchange, 1, {"type": "text"}, citation, text("a"))
        await exchange.event("message_delta", usage={"output_tokens": 2})
        await exchange.event("message_stop")

    turn, _ = await ask(answer)
    assert (turn.response.text, turn.response.tool_calls) == ("a", ())
    assert (turn.stop_reason, turn.usage.output_tokens) == ("end_turn", 2)


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
            said = exchange.body["messages"][-1]["content"][0]["content"]
            await block(exchange, 0, {"type": "text"}, text(said))
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

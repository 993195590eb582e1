"""Google's Gemini API, against a server on a real socket that speaks as documented."""

import time
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from tests.upp.wire_server import STREAM_HEAD, Answer, Exchange, serve
from upp import (
    ErrorCode,
    LLMRequest,
    Message,
    ProviderConfig,
    ReasoningBlock,
    StreamEvent,
    TextBlock,
    TokenUsage,
    Tool,
    Turn,
    UPPError,
    llm,
)
from upp.providers.google import GoogleProvider
from upp.providers.google_answer import GeminiAnswer
from upp.providers.http.failures import Failures

KEY = "AIza-secret"
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


async def ask(
    answer: Answer, history: Sequence[Message] = (), **options: Any
) -> tuple[Turn, list[StreamEvent]]:
    """Return the turn and the events of a model on a server that answers so."""
    async with serve(answer) as wire:
        address = wire.url.removesuffix("/v1")
        provider = GoogleProvider(base_url=address, api_key=KEY)
        try:
            result = llm(model=provider("models/gemini-x"), **options).stream(history, "hi")
            events = [event async for event in result]
            return await result.turn(), events
        finally:
            await provider.aclose()


async def say(
    exchange: Exchange, *parts: dict[str, Any], reason: str | None = None, **usage: int
) -> None:
    """Send one piece of an answer."""
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if reason is not None:
        candidate["finishReason"] = reason
    more = {"usageMetadata": usage} if usage else {}
    await exchange.chunk(candidates=[candidate], responseId="resp-1", **more)


async def test_text_is_streamed_and_thoughts_are_counted_as_output() -> None:
    async def answer(exchange: Exchange) -> None:
        path = "/v1beta/models/gemini-x:streamGenerateContent?alt=sse"
        assert exchange.head.startswith(f"POST {path} HTTP/1.1")
        assert f"x-goog-api-key: {KEY}" in exchange.head
        assert exchange.body == {
            "systemInstruction": {"parts": [{"text": "be kind"}]},
            "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
            "generationConfig": {"temperature": 1},
        }
        await exchange.send(STREAM_HEAD)
        await say(exchange, {"text": "I think", "thought": True})
        await say(exchange, {"text": " so", "thought": True}, {"text": "Hel"})
        await say(
            exchange,
            {"text": "lo", "thoughtSignature": "sig=="},
            reason="STOP",
            promptTokenCount=100,
            toolUsePromptTokenCount=5,
            cachedContentTokenCount=60,
            candidatesTokenCount=7,
            thoughtsTokenCount=30,
            totalTokenCount=142,
        )

    params = {"generationConfig": {"temperature": 1}}
    turn, events = await ask(answer, system="be kind", params=params)
    assert [(event.type, event.delta.text, event.index) for event in events] == [
        ("message_start", None, 0),
        ("reasoning_delta", "I think", 0),
        ("reasoning_delta", " so", 0),
        ("text_delta", "Hel", 1),
        ("text_delta", "lo", 1),
        ("message_stop", None, 0),
    ]
    assert turn.response.content == (ReasoningBlock(text="I think so"), TextBlock(text="Hello"))
    assert turn.response.metadata["google"] == {
        "id": "resp-1",
        "layout": [{"type": "text"}, {"type": "signature", "signature": "sig=="}],
    }
    assert turn.stop_reason == "end_turn"
    assert turn.usage == TokenUsage(
        input_tokens=105,
        output_tokens=37,
        total_tokens=142,
        cache_read_tokens=60,
        reasoning_tokens=30,
    )


async def test_calls_go_back_with_their_signatures_and_results_by_name() -> None:
    bodies: list[Any] = []

    async def answer(exchange: Exchange) -> None:
        bodies.append(exchange.body)
        await exchange.send(STREAM_HEAD)
        if len(bodies) > 1:
            await say(exchange, {"text": "done"}, reason="STOP")
            return
        await say(exchange, {"text": "I look."})
        first = {"functionCall": {"name": "search", "args": {"q": 1}}, "thoughtSignature": "sig=="}
        second = {"functionCall": {"id": "own-1", "name": "search"}}
        await say(exchange, first, second, {"text": "Wait."})
        await say(exchange, reason="STOP")

    def search(arguments: dict[str, Any]) -> dict[str, Any]:
        if not arguments:
            raise ValueError("nothing to look for")
        return {"found": arguments["q"]}

    tool = Tool(name="search", description="Searches", parameters={"type": "object"}, run=search)
    turn, events = await ask(answer, tools=[tool], params={"tools": [{"googleSearch": {}}]})
    assert bodies[0]["tools"] == [
        {"googleSearch": {}},
        {
            "functionDeclarations": [
                {
                    "name": "search",
                    "description": "Searches",
                    "parametersJsonSchema": {"type": "object"},
                }
            ]
        },
    ]
    assert bodies[1]["contents"][1:] == [
        {
            "role": "model",
            "parts": [
                {"text": "I look."},
                {
                    "functionCall": {"name": "search", "args": {"q": 1}},
                    "thoughtSignature": "sig==",
                },
                {"functionCall": {"id": "own-1", "name": "search", "args": {}}},
                {"text": "Wait."},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "search", "response": {"result": {"found": 1}}}},
                {
                    "functionResponse": {
                        "id": "own-1",
                        "name": "search",
                        "response": {"error": "nothing to look for"},
                    }
                },
            ],
        },
    ]
    calls = [event for event in events if event.type == "tool_call_delta"]
    assert [(call.index, call.delta.arguments_json) for call in calls] == [
        (0, '{"q":1}'),
        (1, "{}"),
    ]
    ids = [call.delta.tool_call_id for call in calls]
    assert ids[0] is not None
    assert ids[0].startswith("call_")
    assert ids[1] == "own-1"
    assert turn.response.text == "done"


async def test_a_signature_without_words_goes_back_alone() -> None:
    bodies: list[Any] = []

    async def answer(exchange: Exchange) -> None:
        bodies.append(exchange.body)
        await exchange.send(STREAM_HEAD)
        await say(exchange, {"text": "a"}, {})
        await say(exchange, {"text": "", "thoughtSignature": "sig=="})
        await say(exchange, {"text": "b"}, reason="STOP")

    turn, _ = await ask(answer)
    assert turn.response.content == (TextBlock(text="a"), TextBlock(text="b"))
    await ask(answer, history=turn.messages)
    assert bodies[1]["contents"][1]["parts"] == [
        {"text": "a"},
        {"text": "", "thoughtSignature": "sig=="},
        {"text": "b"},
    ]


@pytest.mark.parametrize(
    ("structure", "config"),
    [
        (SCHEMA, {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}),
        ({"type": "object"}, {"responseMimeType": "application/json"}),
    ],
)
async def test_structured_output_is_the_apis_own(
    structure: dict[str, Any], config: dict[str, Any]
) -> None:
    async def answer(exchange: Exchange) -> None:
        assert exchange.body["generationConfig"] == {**config, "maxOutputTokens": 9}
        await exchange.send(STREAM_HEAD)
        await say(exchange, {"text": '{"a'})
        await say(exchange, {"text": '": 1}'}, reason="STOP")

    params = {"generationConfig": {"maxOutputTokens": 9}}
    turn, events = await ask(answer, structure=structure, params=params)
    assert turn.data == {"a": 1}
    assert [e.delta.text for e in events if e.type == "object_delta"] == ['{"a', '": 1}']


@pytest.mark.parametrize(
    ("vendor_reason", "reason"),
    [
        ("STOP", "end_turn"),
        ("MAX_TOKENS", "max_tokens"),
        ("SAFETY", "content_filter"),
        ("OTHER", "other"),
    ],
)
async def test_reasons_to_stop_have_common_names(vendor_reason: str, reason: str) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await say(exchange, {"text": "a"}, reason=vendor_reason)

    turn, _ = await ask(answer)
    assert turn.stop_reason == reason


@pytest.mark.parametrize(
    ("piece", "code", "message"),
    [
        (
            {"promptFeedback": {"blockReason": "SAFETY"}},
            "CONTENT_FILTERED",
            "The prompt was blocked: SAFETY.",
        ),
        (
            {"candidates": [{"finishReason": "SAFETY"}]},
            "CONTENT_FILTERED",
            "The answer was filtered out.",
        ),
        (
            {"candidates": [{"content": {}, "finishReason": "MALFORMED_FUNCTION_CALL"}]},
            "INVALID_RESPONSE",
            "The model's tool call was malformed: MALFORMED_FUNCTION_CALL.",
        ),
        (
            {"error": {"code": 503, "message": f"busy {KEY}", "status": "UNAVAILABLE"}},
            "PROVIDER_ERROR",
            "busy ***",
        ),
        (
            {"promptFeedback": {}, "candidates": []},
            "NETWORK_ERROR",
            "The answer was cut off before its end.",
        ),
    ],
)
async def test_a_reply_without_an_answer_is_an_error(
    piece: dict[str, Any], code: str, message: str
) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.chunk(**piece)

    with pytest.raises(UPPError) as caught:
        await ask(answer)
    assert (caught.value.code, caught.value.message) == (code, message)


@pytest.mark.parametrize(
    ("status", "body", "code", "retry_after"),
    [
        (
            "400 No",
            (
                '{"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "bad key",'
                ' "details": [{"reason": "API_KEY_INVALID"}, "odd"]}}'
            ),
            "AUTHENTICATION_FAILED",
            None,
        ),
        (
            "400 No",
            (
                '{"error": {"status": "INVALID_ARGUMENT", "message": "The input token count (9)'
                ' exceeds the maximum number of tokens allowed (8)."}}'
            ),
            "CONTEXT_LENGTH_EXCEEDED",
            None,
        ),
        (
            "429 No",
            (
                '[{"error": {"status": "RESOURCE_EXHAUSTED", "message": "slow down",'
                ' "details": [{"retryDelay": "34.5s"}]}}]'
            ),
            "RATE_LIMITED",
            34.5,
        ),
        (
            "429 No",
            (
                '{"error": {"status": "RESOURCE_EXHAUSTED", "details": [{"retryDelay": "soon"},'
                ' {"retryDelay": "s"}]}}'
            ),
            "RATE_LIMITED",
            None,
        ),
        ("403 No", '{"error": {"status": "PERMISSION_DENIED"}}', "AUTHENTICATION_FAILED", None),
        ("404 No", '{"error": {"status": "NOT_FOUND"}}', "MODEL_NOT_FOUND", None),
        ("504 No", '{"error": {"status": "DEADLINE_EXCEEDED"}}', "TIMEOUT", None),
    ],
)
async def test_a_refused_request_has_its_code(
    status: str, body: str, code: str, retry_after: float | None
) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.refuse(status, body.encode())

    with pytest.raises(UPPError) as caught:
        await ask(answer)
    assert (caught.value.code, caught.value.retry_after) == (code, retry_after)


async def test_another_version_of_the_api_is_in_the_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def answer(exchange: Exchange) -> None:
        assert exchange.head.startswith("POST /v1/models/a%2Fb:streamGenerateContent?alt=sse ")
        assert "x-goog-api-key: from-env" in exchange.head
        await exchange.send(STREAM_HEAD)
        await say(exchange, reason="STOP")

    async with serve(answer) as wire:
        monkeypatch.setenv("GOOGLE_BASE_URL", wire.url.removesuffix("/v1"))
        monkeypatch.setenv("GOOGLE_API_KEY", "from-env")
        provider = GoogleProvider(config=ProviderConfig(api_version="v1"))
        turn = await llm(model=provider("a/b")).generate("hi")
        await provider.aclose()
    assert turn.response.content == ()


async def test_without_a_key_there_is_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    with pytest.raises(UPPError, match="no key") as caught:
        await llm(model=GoogleProvider()("gemini")).generate("hi")
    assert caught.value.code == ErrorCode.AUTHENTICATION_FAILED


async def test_a_gateway_may_need_no_key() -> None:
    async def answer(exchange: Exchange) -> None:
        assert "x-goog-api-key" not in exchange.head
        await exchange.send(STREAM_HEAD)
        await say(exchange, {"text": "a"}, reason="STOP")

    async with serve(answer) as wire:
        provider = GoogleProvider(base_url=wire.url)
        await llm(model=provider("gemini")).generate("hi")
        await provider.aclose()


def test_a_long_answer_in_small_pieces_takes_the_time_of_its_pieces() -> None:
    part = {"text": "0123456789" * 5}
    piece = msgspec.json.encode({"candidates": [{"content": {"parts": [part]}}]})
    answer = GeminiAnswer(LLMRequest(messages=()), Failures(provider="google"))
    began = time.process_time()
    for _ in range(100_000):
        answer.add(piece)
    # Joining the text anew for each piece took minutes.
    assert (len(answer.response().message.text), time.process_time() - began < 10) == (
        5_000_000,
        True,
    )

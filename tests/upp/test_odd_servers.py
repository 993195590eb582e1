"""Servers that speak a dialect in their own way, on a real socket."""

import asyncio
import json
from types import MappingProxyType
from typing import Any

import aiohttp
import pytest

from tests.upp.wire_server import STREAM_HEAD, Exchange, serve
from upp import (
    DynamicKey,
    ErrorCode,
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
from upp.providers.anthropic import AnthropicProvider
from upp.providers.google import GoogleProvider
from upp.providers.http.transport import HttpProvider
from upp.providers.openai_compat import OpenAICompatProvider

DONE = b"data: [DONE]\n\n"
CHUNKED = STREAM_HEAD.replace(b"Connection: close", b"Transfer-Encoding: chunked")
TOOL = Tool(name="t", description="t", parameters={"type": "object"}, run=lambda _: 1)


async def received(
    provider: type[HttpProvider], *sent: bytes, head: bytes = STREAM_HEAD, **options: Any
) -> tuple[Turn, list[StreamEvent]]:
    """Return the turn and the events of a server that sends this, one piece after the other."""

    async def answer(exchange: Exchange) -> None:
        await exchange.send(head)
        for piece in sent:
            await exchange.send(piece)
            await asyncio.sleep(0)

    async with serve(answer) as wire:
        server = provider(base_url=wire.url, api_key=options.pop("api_key", "k"))
        try:
            model = llm(model=server("m"), max_iterations=0, **options)
            result = model.stream("hi")
            events = [event async for event in result]
            return await result.turn(), events
        finally:
            await server.aclose()


def data(*members: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in members)


def delta(**members: Any) -> dict[str, Any]:
    return {"choices": [{"delta": members}]}


def pieces_of_calls(*pieces: dict[str, Any]) -> bytes:
    return data(*(delta(tool_calls=[piece]) for piece in pieces)) + DONE


async def completion(*sent: bytes, **options: Any) -> tuple[Turn, list[StreamEvent]]:
    return await received(OpenAICompatProvider, *sent, **options)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
async def test_events_have_comments_and_any_ends_of_lines(end: bytes) -> None:
    lines = [b": ping", b"", b"event: x", b"id: 1", b'data: {"choices":', b"retry: 5"]
    lines += [
        b'data: [{"delta": {"content": "a"}}]}',
        b"",
        b": pong",
        b"",
        b"data: [DONE]",
        b"",
        b"",
    ]
    turn, _ = await completion(end.join(lines))

    assert turn.response.text == "a"


async def test_a_character_may_come_in_several_pieces() -> None:
    text = "data: " + json.dumps(delta(content="h\u00e9\U0001f600"), ensure_ascii=False)
    sent = text.encode() + b"\n\n" + DONE
    turn, _ = await completion(*(sent[at : at + 1] for at in range(len(sent))))

    assert turn.response.text == "h\u00e9\U0001f600"


@pytest.mark.parametrize(
    ("half", "said"), [(b"\xf0\x9f", "a\ufffd."), (b"\\ud83d", "a?.")], ids=["utf-8", "escaped"]
)
async def test_half_a_character_does_not_end_the_answer(half: bytes, said: str) -> None:
    first = data(delta(content="a@")).replace(b"@", half)
    turn, _ = await completion(first + data(delta(content=".")) + DONE)

    assert turn.response.text == said
    assert json.dumps(turn.to_json(), ensure_ascii=False).encode()


FIRST = {"function": {"name": "t", "arguments": '{"a"'}}
REST = {"function": {"arguments": ": 1}"}}


@pytest.mark.parametrize(
    "pieces",
    [
        [{"index": 0, "id": "c1"} | FIRST, {"index": 0} | REST],
        [{"index": 0, "id": "c1"}, {"index": 0} | FIRST, {"index": 0} | REST],
        [{"index": 0} | FIRST, {"index": 0, "id": "c1"} | REST],
        [{"id": "c1"} | FIRST, REST],
        [{"id": "c1"} | FIRST, {"id": "c1"} | REST],
        [FIRST, REST],
        [{"index": 0, "id": "c1", "function": {"name": "t", "arguments": {"a": 1}}}],
    ],
)
async def test_a_call_is_one_whatever_its_pieces_leave_out(pieces: list[dict[str, Any]]) -> None:
    turn, events = await completion(pieces_of_calls(*pieces), tools=[TOOL])
    (call,) = turn.response.tool_calls

    assert (call.tool_name, call.arguments, call.malformed) == ("t", {"a": 1}, None)
    reported = [event.delta for event in events if event.type == "tool_call_delta"]
    assert {one.tool_call_id for one in reported} == {call.tool_call_id}
    assert json.loads("".join(one.arguments_json or "" for one in reported)) == {"a": 1}


async def test_calls_without_a_number_are_distinguished_by_id_and_name() -> None:
    sent = pieces_of_calls(
        {"id": "c1", "function": {"name": "t", "arguments": '{"n":'}},
        {"id": "c2", "function": {"name": "t", "arguments": '{"n":'}},
        {"id": "c1", "function": {"arguments": "1}"}},
        {"id": "c2", "function": {"arguments": "2}"}},
        {"function": {"name": "t", "arguments": "{}"}},
    )
    turn, _ = await completion(sent, tools=[TOOL])

    assert [call.arguments for call in turn.response.tool_calls] == [{"n": 1}, {"n": 2}, {}]


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("stop", "tool_use"),
        ("tool_calls", "tool_use"),
        (None, "tool_use"),
        ("length", "max_tokens"),
    ],
)
async def test_a_stop_with_calls_is_one_for_tools(reason: str | None, said: str) -> None:
    piece = {"index": 0, "id": "c1", "function": {"name": "t", "arguments": "{}"}}
    end = data({"choices": [{"delta": {}, "finish_reason": reason}]})
    turn, _ = await completion(data(delta(tool_calls=[piece])) + end + DONE, tools=[TOOL])

    assert turn.stop_reason == said


async def test_calls_with_the_same_id_get_another() -> None:
    piece = {"id": "c1", "function": {"name": "t", "arguments": "{}"}}
    sent = pieces_of_calls({"index": 0} | piece, {"index": 1} | piece)
    turn, _ = await completion(sent, tools=[TOOL])
    first, second = turn.response.tool_calls

    assert first.tool_call_id == "c1" != second.tool_call_id


async def test_content_in_parts_is_put_together() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}, {"type": "other"}]}
    parts = [thought, {"type": "text", "text": "yes"}, {"type": "reference"}]
    turn, events = await completion(data(delta(content=parts), delta(content=[])) + DONE)

    assert turn.response.content == (ReasoningBlock(text="hm"), TextBlock(text="yes"))
    assert [event.type for event in events if event.delta.text] == ["reasoning_delta", "text_delta"]


async def test_an_id_may_be_a_number() -> None:
    turn, _ = await completion(data({"id": 7} | delta(content="a")) + DONE)

    assert turn.response.metadata == {"openai": {"id": 7}}


def chunked(body: bytes) -> bytes:
    return f"{len(body):x}\r\n".encode() + body + b"\r\n"


ENDS = {
    "done": data(delta(content="a")) + DONE,
    "finish_reason": data({"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}),
}


@pytest.mark.parametrize("end", ENDS)
async def test_a_connection_that_breaks_after_the_answer_breaks_nothing(end: str) -> None:
    turn, _ = await completion(chunked(ENDS[end]), head=CHUNKED)

    assert (turn.response.text, turn.stop_reason) == ("a", "end_turn")


@pytest.mark.parametrize(
    ("api_key", "header"), [("sk-secret\n", "Bearer sk-secret"), (" \n", None)]
)
async def test_space_around_a_key_is_no_part_of_it(api_key: str, header: str | None) -> None:
    async def answer(exchange: Exchange) -> None:
        lines = exchange.head.split("\r\n")
        sent = [line for line in lines if line.lower().startswith("authorization: ")]
        assert sent == ([f"Authorization: {header}"] if header else [])
        await exchange.send(STREAM_HEAD + DONE)

    async with serve(answer) as wire:
        server = OpenAICompatProvider(base_url=wire.url, api_key=api_key)
        assert (await llm(model=server("m")).generate("hi")).response.text == ""
        await server.aclose()


@pytest.mark.parametrize("api_key", ["sk-sec\nret", "\u201csk-secret\u201d"])
async def test_a_key_that_is_none_is_refused_and_not_quoted(api_key: str) -> None:
    server = OpenAICompatProvider(base_url="http://127.0.0.1:9", api_key=api_key)
    with pytest.raises(UPPError) as caught:
        await llm(model=server("m")).generate("hi")

    assert caught.value.code == ErrorCode.AUTHENTICATION_FAILED
    assert "sec" not in json.dumps(caught.value.to_json())


@pytest.mark.parametrize(
    ("raised", "code", "message"),
    [
        (
            OSError("vault"),
            "AUTHENTICATION_FAILED",
            "The key for openai_compat could not be obtained: OSError",
        ),
        (UPPError("later", code=ErrorCode.RATE_LIMITED), "RATE_LIMITED", "later"),
    ],
)
async def test_a_key_that_cannot_be_got_is_an_error_of_its_own(
    raised: Exception, code: str, message: str
) -> None:
    async def get_key() -> str:
        raise raised

    server = OpenAICompatProvider(base_url="http://127.0.0.1:9", api_key=DynamicKey(get_key))
    with pytest.raises(UPPError, match=message) as caught:
        await llm(model=server("m")).generate("hi")

    assert caught.value.code == code


async def test_a_key_of_the_environment_is_looked_at_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret\n")
    assert (await OpenAICompatProvider().connection(None))[1] == "sk-secret"


@pytest.mark.parametrize("value", ["Bearer sec\nret", "Bearer sec\u201dret"])
async def test_a_header_that_cannot_be_sent_is_not_quoted(value: str) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD + DONE)

    async with serve(answer) as wire:
        config = ProviderConfig(headers={"Authorization": value})
        server = OpenAICompatProvider(base_url=wire.url, config=config)
        with pytest.raises(UPPError) as caught:
            await llm(model=server("m")).generate("hi")
        await server.aclose()

    assert caught.value.code == ErrorCode.INVALID_REQUEST
    assert "sec" not in json.dumps(caught.value.to_json())


@pytest.mark.parametrize(("given", "silent"), [(None, 300), (7, 7)])
async def test_a_server_may_be_silent_for_as_long_as_models_reason(
    given: float | None, silent: float
) -> None:
    seen: list[float | None] = []

    class Watching(aiohttp.TCPConnector):
        async def connect(
            self,
            req: aiohttp.ClientRequest,
            traces: list[Any],
            timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 the signature of aiohttp
        ) -> Any:
            seen.append(timeout.sock_read)
            return await super().connect(req, traces, timeout)

    async def answer(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD + DONE)

    async with serve(answer) as wire:
        config = ProviderConfig(timeout=given, connector=Watching)
        server = OpenAICompatProvider(base_url=wire.url, config=config)
        await llm(model=server("m")).generate("hi")
        await server.aclose()

    assert seen == [silent]


async def test_a_request_that_is_no_json_is_refused() -> None:
    server = OpenAICompatProvider(base_url="http://127.0.0.1:9")
    with pytest.raises(UPPError, match="The request is not JSON") as caught:
        await llm(model=server("m"), params={"stop": object()}).generate("hi")
    await server.aclose()

    assert caught.value.code == ErrorCode.INVALID_REQUEST


def events(*members: dict[str, Any]) -> bytes:
    return b"".join(b"event: x\n" + data(one) for one in members)


def block(start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": 0, "content_block": start},
        *({"type": "content_block_delta", "index": 0, "delta": one} for one in deltas),
        {"type": "content_block_stop", "index": 0},
    ]


BEGIN = {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 3}}}
REASON = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
STOP = {"type": "message_stop"}


async def claude(*between: dict[str, Any], **options: Any) -> tuple[Turn, list[StreamEvent]]:
    return await received(AnthropicProvider, events(BEGIN, *between, REASON, STOP), **options)


async def test_a_block_may_begin_with_its_text() -> None:
    more = {"type": "text_delta", "text": "lo"}
    turn, streamed = await claude(*block({"type": "text", "text": "Hel"}, more))

    assert turn.response.text == "Hello"
    assert "".join(event.delta.text or "" for event in streamed) == "Hello"


async def test_a_block_may_begin_with_its_thought_and_signature() -> None:
    start = {"type": "thinking", "thinking": "hm", "signature": "s=="}
    turn, streamed = await claude(*block(start))

    assert turn.response.reasoning == (ReasoningBlock(text="hm"),)
    assert turn.response.metadata["anthropic"]["layout"] == [
        {"type": "thinking", "signature": "s=="}
    ]
    assert [event.type for event in streamed if event.delta.text] == ["reasoning_delta"]


async def test_a_call_may_come_whole_and_without_an_id() -> None:
    start = {"type": "tool_use", "name": "t", "input": {"a": 1}}
    second = [one | {"index": 1} for one in block(start)]
    turn, streamed = await claude(*block(start), *second, tools=[TOOL])

    calls = turn.response.tool_calls
    assert [call.arguments for call in calls] == [{"a": 1}] * 2
    assert len({call.tool_call_id for call in calls}) == 2
    assert all(call.tool_call_id for call in calls)
    reported = [event.delta.arguments_json for event in streamed if event.type == "tool_call_delta"]
    assert reported == ['{"a":1}'] * 2


async def test_the_pieces_of_a_call_count_more_than_its_beginning() -> None:
    start = {"type": "tool_use", "id": "c1", "name": "t", "input": {"a": 1}}
    piece = {"type": "input_json_delta", "partial_json": '{"a": 2}'}
    turn, _ = await claude(*block(start, piece), tools=[TOOL])

    assert turn.response.tool_calls[0].arguments == {"a": 2}


async def test_unknown_events_are_passed_over() -> None:
    notice = {"type": "notice", "message": "hello", "delta": "x", "usage": 7}
    stop_of_nothing = {"type": "content_block_stop", "index": 5}
    turn, _ = await claude(notice, stop_of_nothing, *block({"type": "text", "text": "ok"}))

    assert turn.response.text == "ok"


async def test_an_event_that_is_known_and_makes_no_sense_is_an_error() -> None:
    with pytest.raises(UPPError, match="invalid piece of an answer") as caught:
        await claude({"type": "message_delta", "delta": 7})

    assert caught.value.code == ErrorCode.INVALID_RESPONSE


async def test_the_reason_to_stop_says_that_a_message_is_whole() -> None:
    sent = events(BEGIN, *block({"type": "text", "text": "ok"}), REASON)
    turn, _ = await received(AnthropicProvider, sent)

    assert (turn.response.text, turn.usage.input_tokens) == ("ok", 3)


async def test_an_overload_in_the_middle_is_a_provider_error() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    with pytest.raises(UPPError, match="Overloaded") as caught:
        await claude(*block({"type": "text", "text": "ok"}), error)

    assert caught.value.code == ErrorCode.PROVIDER_ERROR


async def test_counts_and_members_may_be_null() -> None:
    usage = {"promptTokenCount": 3, "candidatesTokenCount": None, "thoughtsTokenCount": 2}
    part = {"text": "a", "thought": None}
    candidate = {"content": {"parts": [part]}, "finishReason": "STOP"}
    piece = data({"candidates": [candidate], "usageMetadata": usage})
    turn, _ = await received(GoogleProvider, piece)

    assert turn.response.text == "a"
    assert turn.usage == TokenUsage(
        input_tokens=3, output_tokens=2, total_tokens=5, reasoning_tokens=2
    )


async def test_an_answer_nested_without_end_is_a_text_and_no_object() -> None:
    structure = {"type": "object"}
    turn, _ = await completion(data(delta(content="[" * 5000)) + DONE, structure=structure)

    assert (turn.response.text, turn.data) == ("[" * 5000, None)


async def test_schemas_may_be_mappings_that_cannot_be_changed() -> None:
    schema = MappingProxyType({"type": "object", "properties": MappingProxyType({})})
    tool = Tool(name="t", description="t", parameters=schema, run=lambda _: 1)
    turn, _ = await completion(data(delta(content="a")) + DONE, tools=[tool], structure=schema)

    assert turn.response.text == "a"

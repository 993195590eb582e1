"""Servers with their own variant of OpenAI's dialect."""

import json
from types import MappingProxyType
from typing import Any

import aiohttp
import pytest

from tests.upp.odd_servers.pieces import CHUNKED, DONE, TOOL, completion, data, delta
from tests.upp.wire_server import STREAM_HEAD, Exchange, serve
from upp import ProviderConfig, ReasoningBlock, TextBlock, Tool, llm
from upp.providers.openai_compat import OpenAICompatProvider


def pieces_of_calls(*pieces: dict[str, Any]) -> bytes:
    return data(*(delta(tool_calls=[piece]) for piece in pieces)) + DONE


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
    body = text.encode() + b"\n\n" + DONE
    turn, _ = await completion(*(body[at : at + 1] for at in range(len(body))))

    assert turn.response.text == "h\u00e9\U0001f600"


@pytest.mark.parametrize(
    ("half", "text"), [(b"\xf0\x9f", "a\ufffd."), (b"\\ud83d", "a?.")], ids=["utf-8", "escaped"]
)
async def test_half_a_character_does_not_end_the_answer(half: bytes, text: str) -> None:
    first = data(delta(content="a@")).replace(b"@", half)
    turn, _ = await completion(first + data(delta(content=".")) + DONE)

    assert turn.response.text == text
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
    deltas = [event.delta for event in events if event.type == "tool_call_delta"]
    assert {delta.tool_call_id for delta in deltas} == {call.tool_call_id}
    assert json.loads("".join(delta.arguments_json or "" for delta in deltas)) == {"a": 1}


async def test_calls_without_a_number_are_distinguished_by_id_and_name() -> None:
    body = pieces_of_calls(
        {"id": "c1", "function": {"name": "t", "arguments": '{"n":'}},
        {"id": "c2", "function": {"name": "t", "arguments": '{"n":'}},
        {"id": "c1", "function": {"arguments": "1}"}},
        {"id": "c2", "function": {"arguments": "2}"}},
        {"function": {"name": "t", "arguments": "{}"}},
    )
    turn, _ = await completion(body, tools=[TOOL])

    assert [call.arguments for call in turn.response.tool_calls] == [{"n": 1}, {"n": 2}, {}]


@pytest.mark.parametrize(
    ("reason", "stop_reason"),
    [
        ("stop", "tool_use"),
        ("tool_calls", "tool_use"),
        (None, "tool_use"),
        ("length", "max_tokens"),
    ],
)
async def test_a_stop_with_calls_is_one_for_tools(reason: str | None, stop_reason: str) -> None:
    piece = {"index": 0, "id": "c1", "function": {"name": "t", "arguments": "{}"}}
    end = data({"choices": [{"delta": {}, "finish_reason": reason}]})
    turn, _ = await completion(data(delta(tool_calls=[piece])) + end + DONE, tools=[TOOL])

    assert turn.stop_reason == stop_reason


async def test_calls_with_the_same_id_get_another() -> None:
    piece = {"id": "c1", "function": {"name": "t", "arguments": "{}"}}
    body = pieces_of_calls({"index": 0} | piece, {"index": 1} | piece)
    turn, _ = await completion(body, tools=[TOOL])
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


@pytest.mark.parametrize(("own_timeout", "silent"), [(None, 300), (7, 7)])
async def test_a_server_may_be_silent_for_as_long_as_models_reason(
    own_timeout: float | None, silent: float
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
        config = ProviderConfig(timeout=own_timeout, connector=Watching)
        server = OpenAICompatProvider(base_url=wire.url, config=config)
        await llm(model=server("m")).generate("hi")
        await server.aclose()

    assert seen == [silent]


async def test_an_answer_nested_without_end_is_a_text_and_no_object() -> None:
    structure = {"type": "object"}
    turn, _ = await completion(data(delta(content="[" * 5000)) + DONE, structure=structure)

    assert (turn.response.text, turn.data) == ("[" * 5000, None)


async def test_schemas_may_be_mappings_that_cannot_be_changed() -> None:
    schema = MappingProxyType({"type": "object", "properties": MappingProxyType({})})
    tool = Tool(name="t", description="t", parameters=schema, run=lambda _: 1)
    turn, _ = await completion(data(delta(content="a")) + DONE, tools=[tool], structure=schema)

    assert turn.response.text == "a"

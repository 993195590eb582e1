"""Following a generation, and leaving it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
import pytest

from tests.upp.text_scripts import three_words
from upp import ErrorCode, LLMRequest, StreamEvent, StreamResult, Tool, Turn, UPPError, llm
from upp.providers.scripted import Call, Fail, ScriptedModel, Step, StepGate, Text
from upp.stream import _WINDOW, EventDelta, text_delta


class Endless:
    """A script without an end that records whether it was closed."""

    def __init__(self) -> None:
        self.closed = asyncio.Event()
        self.said = 0

    async def __call__(self, _request: LLMRequest) -> AsyncIterator[Step]:
        """Say x for ever."""
        try:
            while True:
                self.said += 1
                yield Text("x")
                await asyncio.sleep(0)
        finally:
            self.closed.set()


def streamed(script: Any, **more: Any) -> StreamResult:
    return llm(model=ScriptedModel(script=script), **more).stream([], "go")


async def follow(result: StreamResult, react: Callable[[StreamEvent], object]) -> None:
    async for event in result:
        react(event)


def texts(events: list[StreamEvent]) -> list[str]:
    return [event.delta.text for event in events if event.delta.text is not None]


async def test_events_come_in_order_and_then_the_turn() -> None:
    result = streamed(three_words)
    events = [event async for event in result]
    assert [event.type for event in events] == [
        "message_start",
        "text_delta",
        "text_delta",
        "text_delta",
        "message_stop",
    ]
    turn = await result
    assert turn.response.text == "abc"
    assert events[-1].delta.usage == turn.usage
    assert await result is turn


async def test_generate_and_stream_say_the_same() -> None:
    model = llm(model=ScriptedModel(script=three_words))
    generated, turn = await model.generate([], "go"), await model.stream([], "go")
    assert turn.response.content == generated.response.content
    assert turn.usage == generated.usage


async def test_nothing_is_asked_before_the_first_follower() -> None:
    script = Endless()
    result = streamed(script)
    await asyncio.sleep(0.01)
    assert script.said == 0
    result.abort()
    with pytest.raises(UPPError) as caught:
        await result
    assert caught.value.code == ErrorCode.CANCELLED
    assert script.said == 0


async def test_a_block_without_followers_asks_nothing() -> None:
    script = Endless()
    async with streamed(script):
        await asyncio.sleep(0.01)
    assert script.said == 0


async def test_awaiting_does_not_wait_for_a_reader() -> None:
    async def long(_request: LLMRequest) -> AsyncIterator[Step]:
        for _ in range(3 * _WINDOW):
            yield Text("x")

    result = streamed(long)
    turn = await asyncio.wait_for(result.turn(), 2)
    assert len(turn.response.text) == 3 * _WINDOW
    assert len(texts([event async for event in result])) == 3 * _WINDOW


async def test_awaiting_inside_the_iteration_works() -> None:
    result = streamed(three_words)
    seen: list[StreamEvent] = []
    async for event in result:
        if not seen:
            assert (await result).response.text == "abc"
        seen.append(event)
    assert texts(seen) == ["a", "b", "c"]


async def test_a_slow_reader_holds_the_provider_back() -> None:
    script = Endless()
    async with streamed(script) as result:
        events = aiter(result)
        await anext(events)
        for _ in range(10 * _WINDOW):
            await asyncio.sleep(0)
        assert script.said == _WINDOW
        for _ in range(2 * _WINDOW):
            await anext(events)
        assert 2 * _WINDOW <= script.said <= 3 * _WINDOW + 1
        await events.aclose()
    assert script.closed.is_set()


async def test_abort_ends_the_iteration_and_the_turn() -> None:
    script = Endless()
    result = streamed(script)
    with pytest.raises(UPPError) as iteration:
        await follow(result, lambda _: result.abort())
    with pytest.raises(UPPError) as turn:
        await result
    assert iteration.value.code == turn.value.code == ErrorCode.CANCELLED
    assert script.closed.is_set()


async def test_abort_after_the_end_changes_nothing() -> None:
    result = streamed(three_words)
    turn = await result
    result.abort()
    assert await result is turn


async def test_leaving_the_iteration_closes_the_request() -> None:
    script = Endless()
    result = streamed(script)
    async for _ in result:
        break
    await asyncio.wait_for(script.closed.wait(), 2)
    with pytest.raises(UPPError) as caught:
        await result
    assert caught.value.code == ErrorCode.CANCELLED


async def test_leaving_the_block_closes_the_request_before_it_is_left() -> None:
    script = Endless()
    async with streamed(script) as result:
        async for _ in result:
            break
    assert script.closed.is_set()


@pytest.mark.parametrize("how", ["iterating", "awaiting", "generating"])
async def test_cancelling_the_reader_reaches_the_provider(how: str) -> None:
    script = Endless()
    model = llm(model=ScriptedModel(script=script))

    async def read() -> None:
        if how == "iterating":
            async for _ in model.stream([], "go"):
                pass
        elif how == "awaiting":
            await model.stream([], "go")
        else:
            await model.generate([], "go")

    task = asyncio.create_task(read())
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert script.closed.is_set()
    assert len(asyncio.all_tasks()) == 1


async def test_a_generation_whose_task_is_killed_says_cancelled() -> None:
    script = Endless()
    result = streamed(script)

    async def read() -> None:
        async for _ in result:
            pass

    reader = asyncio.create_task(read())
    await asyncio.sleep(0.01)
    inner = [t for t in asyncio.all_tasks() if t not in (reader, asyncio.current_task())]
    inner[0].cancel()
    with pytest.raises(UPPError) as caught:
        await reader
    assert caught.value.code == ErrorCode.CANCELLED


async def test_cancelling_reaches_a_running_tool() -> None:
    ended = asyncio.Event()

    async def wait(_arguments: dict[str, Any]) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    async def script(_request: LLMRequest) -> AsyncIterator[Step]:
        yield Call(name="wait", arguments={})

    tools = [Tool(name="wait", description="", parameters={}, run=wait)]
    async with streamed(script, tools=tools) as result:
        async for event in result:
            if event.type == "tool_execution_start":
                await asyncio.sleep(0.01)
                break
    assert ended.is_set()


async def test_tool_events_are_live() -> None:
    release = asyncio.Event()

    async def wait(arguments: dict[str, Any]) -> str:
        if arguments["slow"]:
            await asyncio.wait_for(release.wait(), 60)
        return "done"

    async def script(request: LLMRequest) -> AsyncIterator[Step]:
        if len(request.messages) == 1:
            yield Call(name="t", arguments={"slow": True}, call_id="slow")
            yield Call(name="t", arguments={"slow": False}, call_id="fast")
        else:
            yield Text("end")

    tools = [Tool(name="t", description="", parameters={}, run=wait)]
    seen = []
    async for event in streamed(script, tools=tools):
        if event.type.startswith("tool_execution"):
            seen.append((event.type.rsplit("_", 1)[1], event.delta.tool_call_id, event.index))
            if seen[-1][:2] == ("end", "fast"):
                release.set()
    assert seen == [
        ("start", "slow", 0),
        ("start", "fast", 1),
        ("end", "fast", 1),
        ("end", "slow", 0),
    ]


async def test_an_error_comes_after_what_was_said_before_it() -> None:
    async def script(_request: LLMRequest) -> AsyncIterator[Step]:
        yield Text("half")
        yield Fail(UPPError("down", code=ErrorCode.PROVIDER_ERROR))

    result = streamed(script)
    events: list[StreamEvent] = []
    with pytest.raises(UPPError, match="down"):
        await follow(result, events.append)
    assert texts(events) == ["half"]
    with pytest.raises(UPPError, match="down"):
        await result


async def test_an_error_after_the_abort_is_not_reported() -> None:
    async def stubborn(_request: LLMRequest) -> AsyncIterator[Step]:
        try:
            yield Text("x")
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise ValueError from None

    result = streamed(stubborn)
    with pytest.raises(UPPError) as caught:
        await follow(result, lambda _: result.abort())
    assert caught.value.code == ErrorCode.CANCELLED


async def test_a_generation_that_ignores_the_abort_has_no_turn() -> None:
    async def stubborn(_request: LLMRequest) -> AsyncIterator[Step]:
        try:
            yield Text("x")
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            yield Text("and yet")

    result = streamed(stubborn)
    with pytest.raises(UPPError):
        await follow(result, lambda _: result.abort())
    with pytest.raises(UPPError) as caught:
        await result
    assert caught.value.code == ErrorCode.CANCELLED


async def test_a_gate_decides_when_the_next_step_comes() -> None:
    gate = StepGate()
    model = llm(model=ScriptedModel(script=three_words, gate=gate))
    async with model.stream([], "go") as result:
        events = aiter(result)
        assert (await anext(events)).type == "message_start"
        gate.release()
        assert (await anext(events)).delta.text == "a"
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0.02)
        assert not waiting.done()
        gate.release(2)
        assert (await waiting).delta.text == "b"
        await events.aclose()


def test_a_stream_event_is_camel_case_json() -> None:
    event = StreamEvent(
        type="tool_execution_end", index=1, delta=EventDelta(tool_call_id="c", is_error=False)
    )
    assert msgspec.to_builtins(event) == {
        "type": "tool_execution_end",
        "index": 1,
        "delta": {"toolCallId": "c", "isError": False},
    }
    again = msgspec.json.decode(msgspec.json.encode(text_delta("a")), type=StreamEvent)
    assert again == text_delta("a")


async def test_relayed_work_gives_its_events_to_another_and_its_turn_to_the_caller() -> None:
    events: list[StreamEvent] = []

    async def keep(event: StreamEvent) -> None:
        events.append(event)

    turn = await streamed(three_words).relay(keep)
    assert texts(events) == ["a", "b", "c"]
    assert turn.response.text == "abc"


async def test_work_that_reports_of_its_own_end_does_not_wait_for_a_reader_who_left() -> None:
    has_reported = asyncio.Event()

    async def work(emit: Callable[[StreamEvent], Awaitable[None]]) -> Turn:
        try:
            await emit(text_delta("x"))
            await asyncio.wait_for(asyncio.Event().wait(), 300)
        finally:
            for _ in range(_WINDOW + 1):
                await emit(text_delta("bye"))
            has_reported.set()
        raise AssertionError

    stream = StreamResult(work)
    async with asyncio.timeout(5), stream:
        async for _ in stream:
            break
        await stream.aclose()
    assert has_reported.is_set()

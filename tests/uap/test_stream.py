"""Following a run: events, the outcome, and leaving early."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from tests.uap.agents import Answers, call, content, followed, kinds, model, plain, settle, tool
from uap import AgentState, AgentStreamEvent, agent
from uap.execution import ExecutionStrategy, loop, plan, react
from upp import ErrorCode, LLMCapabilities, LLMRequest, StreamEvent, UPPError
from upp.providers.scripted import Fail, ScriptedModel, Step, Text

START = AgentState.initial()
TWO_STEPS = '{"steps": [{"id": "a", "description": "x"}, {"id": "b", "description": "y"}]}'


async def test_events_of_the_model_and_of_the_agent_come_in_one_stream() -> None:
    """UAP §11.2: source is uap or upp, with the event of that source; §10.3."""
    bot = agent(model=model(call("t"), "bye"), tools=[tool("t")])
    events = await followed(bot.stream("go", START))

    assert [event.uap.type if event.uap else event.upp and event.upp.type for event in events] == [
        "step_start",
        *("message_start", "tool_call_delta", "message_stop"),
        *("action", "tool_execution_start", "tool_execution_end", "observation", "step_end"),
        "step_start",
        *("message_start", "text_delta", "message_stop"),
        "step_end",
    ]
    assert all((event.source == "uap") == (event.uap is not None) for event in events)
    assert all((event.source == "upp") == (event.upp is not None) for event in events)
    assert all(isinstance(event.upp, StreamEvent) for event in events if event.source == "upp")
    assert {event.uap.agent_id for event in events if event.uap} == {bot.id}


async def test_events_have_the_json_of_the_specification() -> None:
    """UAP §11.2: { source, uap: { type, step, agentId, data } }."""
    bot = agent(model=model(call("t", n=1), "bye"), tools=[tool("t", lambda _: 7)])
    uap_events = [plain(event) for event in await followed(bot.stream("go", START)) if event.uap]

    assert uap_events[0] == {
        "source": "uap",
        "uap": {"type": "step_start", "step": 1, "agentId": bot.id, "data": {}},
    }
    assert uap_events[1]["uap"]["data"] == {
        "toolCalls": [{"toolCallId": "c1", "toolName": "t", "arguments": {"n": 1}}]
    }
    observation = uap_events[2]["uap"]["data"]["observations"][0]
    assert (observation["toolCallId"], observation["result"]) == ("c1", 7)
    assert uap_events[3]["uap"]["data"]["usage"]["totalTokens"] == 1


@pytest.mark.parametrize(
    ("execution", "answers"),
    [
        (loop(), ["hello"]),
        (loop(), [call("t"), call("t", "c2"), "bye"]),
        (loop(max_iterations=1), [call("t")]),
        (react(), ["hm", call("t"), "so", "bye"]),
        (plan(), [TWO_STEPS, call("t"), "a", "b"]),
        (plan(), [TWO_STEPS, [Fail(UPPError("x", code=ErrorCode.TIMEOUT))], TWO_STEPS, "a", "b"]),
    ],
)
async def test_a_stream_comes_to_what_generate_returns(
    execution: ExecutionStrategy, answers: list[Any]
) -> None:
    """UAP §11.3 MUST: the complete history, identical to what generate() would return."""

    def bot() -> Any:
        return agent(model=model(*answers), tools=[tool("t")], execution=execution)

    generated = await bot().generate("go", START)
    stream = bot().stream("go", START)
    await followed(stream)
    streamed = await stream.result()

    assert content(streamed.state) == content(generated.state)
    assert streamed.turn.messages == streamed.state.messages
    assert (streamed.turn.cycles, streamed.turn.usage) == (
        generated.turn.cycles,
        generated.turn.usage,
    )
    assert streamed.turn.response.text == generated.turn.response.text
    assert len(streamed.turn.tool_executions) == len(generated.turn.tool_executions)


async def test_a_stream_is_awaited_without_iterating_and_more_than_once() -> None:
    """UAP §11.1: result is a promise."""
    script = Answers("hello")
    stream = agent(model=ScriptedModel(script=script)).stream("go", START)
    first = await stream.result()

    assert first.turn.response.text == "hello"
    assert await stream is first
    assert len(script.requests) == 1


async def test_nothing_is_asked_before_a_stream_is_followed() -> None:
    script = Answers("hello")
    agent(model=ScriptedModel(script=script)).stream("go", START)
    await settle()

    assert script.requests == []


class Slow:
    """A tool that never ends, and knows whether it was cancelled."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def __call__(self, _arguments: object) -> None:
        """Wait for ever."""
        self.started.set()
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 300)
        finally:
            self.cancelled.set()


async def test_an_abort_reaches_the_tool_and_both_ends_say_so() -> None:
    """UAP §11.1: abort()."""
    slow = Slow()
    bot = agent(model=model(call("t")), tools=[tool("t", slow)])
    stream = bot.stream("go", START)
    events: list[AgentStreamEvent] = []

    async def read() -> None:
        async for event in stream:
            events.append(event)  # noqa: PERF401 what came before the abort is kept

    reading = asyncio.ensure_future(read())
    await asyncio.wait_for(slow.started.wait(), 1)
    await settle()
    stream.abort()

    with pytest.raises(UPPError) as raised:
        await reading
    assert raised.value.code is ErrorCode.CANCELLED
    with pytest.raises(UPPError, match="aborted"):
        await stream.result()
    assert slow.cancelled.is_set()
    assert kinds(events) == ["step_start 1", "action 1"]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_leaving_the_stream_ends_the_run() -> None:
    closed = asyncio.Event()

    async def endless(_request: LLMRequest) -> AsyncIterator[Step]:
        try:
            while True:
                yield Text("x")
                await asyncio.sleep(0)
        finally:
            closed.set()

    async with agent(model=ScriptedModel(script=endless)).stream("go", START) as stream:
        async for event in stream:
            if event.source == "upp":
                break

    assert closed.is_set()
    await settle()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_cancelled_run_stays_cancelled_for_who_waits() -> None:
    slow = Slow()
    bot = agent(model=model(call("t")), tools=[tool("t", slow)])
    running = asyncio.ensure_future(bot.generate("go", START))
    await asyncio.wait_for(slow.started.wait(), 1)
    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running
    assert slow.cancelled.is_set()


async def test_an_error_comes_out_of_both_ends() -> None:
    error = UPPError("down", code=ErrorCode.PROVIDER_ERROR)
    stream = agent(model=model([Text("half"), Fail(error)])).stream("go", START)
    seen: list[str | None] = []
    with pytest.raises(UPPError) as raised:
        seen += [event.upp.delta.text async for event in stream if event.upp is not None]

    assert raised.value is error
    with pytest.raises(UPPError, match="down"):
        await stream


async def test_a_model_without_streaming_generates_and_does_not_stream() -> None:
    api = LLMCapabilities(streaming=False)
    bot = agent(model=model("hello", capabilities=api))

    assert (await bot.generate("go", START)).turn.response.text == "hello"
    with pytest.raises(UPPError, match="does not support streaming"):
        await bot.stream("go", START)


async def test_events_can_be_encoded() -> None:
    bot = agent(model=model(TWO_STEPS, call("t"), "a", "b"), tools=[tool("t")], execution=plan())
    events = await followed(bot.stream("go", START))

    assert all(msgspec.json.decode(msgspec.json.encode(event)) for event in events)

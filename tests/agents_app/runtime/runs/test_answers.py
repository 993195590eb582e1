"""The events of a run, one at a time, and what its model is shown."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

import uamp
from agents_app.runtime.agent_run import AgentError, RunFinished, RunRequest, run_agent
from agents_app.selectors import AgentSpec
from tests.agents_app.run_context import Broker, Media, as_event
from tests.agents_app.runtime.runs.scripted_runs import Play, output, request_of, run, with_tools
from uamp.events import Event, ResponseDelta, Thinking, UsageDelta
from uamp.types.content import Message, TextContent
from uamp.types.session import UsageStats
from upp import LLMRequest
from upp.providers.scripted import Call, Step, Stop, Text


async def test_an_answer_is_deltas_usage_and_an_end() -> None:
    spec = AgentSpec(id="a", name="echo")
    events, end = await run(spec, request_of("@echo two words"))
    *deltas, usage = events
    assert [(type(e), e.delta.text, e.offset) for e in deltas if isinstance(e, ResponseDelta)] == [
        (ResponseDelta, "two ", None),
        (ResponseDelta, "words", None),
    ]
    tokens = UsageStats(input_tokens=3, output_tokens=2, total_tokens=5)
    assert usage == UsageDelta(response_id="r1", delta=tokens)
    assert end == RunFinished(usage=tokens, finish_reason="stop", steps=1, model="echo")


async def test_thinking_comes_before_the_answer() -> None:
    events, _ = await run(AgentSpec(id="a", name="thinker"), request_of())
    kinds = [type(event) for event in events]
    assert kinds.index(ResponseDelta) == kinds.count(Thinking)
    assert all(e.is_delta for e in events if isinstance(e, Thinking))


async def test_instructions_are_the_agents_then_the_sessions_then_the_contexts(
    play: Callable[[Play], AgentSpec],
) -> None:
    seen: list[LLMRequest] = []

    async def script(request: LLMRequest) -> AsyncIterator[Step]:
        seen.append(request)
        yield Text("ok")

    spec = with_tools(play(script), instructions="agent")
    history = [Message(role="system", content="context"), Message(role="user", content="hi")]
    await run(spec, RunRequest(response_id="r1", history=history, instructions="session"))
    await run(play(script), request_of(params={"temperature": 0.5, "model": "x"}))
    assert [request.system for request in seen] == ["agent\n\nsession\n\ncontext", None]
    assert seen[1].params == {"temperature": 0.5}


async def test_a_run_resumes_in_the_middle_of_a_text() -> None:
    events, _ = await run(AgentSpec(id="a", name="echo"), request_of("one two three"))
    rest, _ = await run(
        AgentSpec(id="a", name="echo"),
        request_of("one two three", resume=(TextContent(text="one "),)),
    )
    assert output(events) == [TextContent(text="one two three")]
    assert output(rest) == [TextContent(text="two three")]


async def test_an_agent_is_shown_its_last_messages(play: Callable[[Play], AgentSpec]) -> None:
    seen: list[LLMRequest] = []

    async def script(request: LLMRequest) -> AsyncIterator[Step]:
        seen.append(request)
        yield Text("ok")

    history = [
        Message(role="system", content="context"),
        *(Message(role="user", content=f"m{number}") for number in range(5)),
    ]
    request = RunRequest(response_id="r1", history=history)
    for limit in (2, 6, None):
        await run(with_tools(play(script), history_messages=limit), request)
    prompts = [[message.text for message in request.messages] for request in seen]
    assert prompts[0] == ["m3", "m4"]
    assert prompts[1] == prompts[2] == ["m0", "m1", "m2", "m3", "m4"]
    assert {request.system for request in seen} == {"context"}


@pytest.mark.parametrize(
    ("reason", "reported"), [("max_tokens", "length"), ("tool_use", "tool_calls"), ("odd", "odd")]
)
async def test_the_finish_reason_is_reported(
    play: Callable[[Play], AgentSpec], reason: str, reported: str
) -> None:
    async def script(_request: LLMRequest) -> AsyncIterator[Step]:
        yield Stop(reason)

    _, end = await run(play(script), request_of())
    assert end.finish_reason == reported


async def test_what_the_receiver_raises_ends_the_run_and_its_script(
    play: Callable[[Play], AgentSpec],
) -> None:
    closed = asyncio.Event()

    async def script(_request: LLMRequest) -> AsyncIterator[Step]:
        try:
            while True:
                yield Text("x")
                await asyncio.sleep(0)
        finally:
            closed.set()

    def receive(_shown: Event | str) -> None:
        raise AgentError("No more.", code=uamp.ErrorCode.PAYMENT_REQUIRED)

    with pytest.raises(AgentError, match="No more"):
        await run_agent(play(script), request_of(), receive, broker=Broker(), media=Media())
    assert closed.is_set()


async def test_events_are_received_one_at_a_time_however_many_tools_run(
    play: Callable[[Play], AgentSpec],
) -> None:
    kinds: list[str] = []
    receiving = 0

    async def script(request: LLMRequest) -> AsyncIterator[Step]:
        if len(request.messages) > 1:
            yield Text("done")
            return
        for number in range(4):
            yield Call(name="short", arguments={}, call_id=f"c{number}")

    async def receive(piece: Event | str) -> None:
        nonlocal receiving
        receiving += 1
        await asyncio.sleep(0.005)
        assert receiving == 1
        receiving -= 1
        event = as_event(piece)
        if isinstance(event, ResponseDelta):
            kinds.append(event.delta.type)

    spec = with_tools(play(script), "short")
    await run_agent(spec, request_of(), receive, broker=Broker(), media=Media())
    assert sorted(kinds) == ["text", *["tool_call"] * 4, *["tool_result"] * 4]


async def test_a_fast_model_lets_other_tasks_run(play: Callable[[Play], AgentSpec]) -> None:
    turns = 0

    async def script(_request: LLMRequest) -> AsyncIterator[Step]:
        for _ in range(1000):
            yield Text("x")

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await run(play(script), request_of())
    task.cancel()
    assert turns > 10

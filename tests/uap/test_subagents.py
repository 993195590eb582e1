"""Agents inside the tools of agents."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from tests.uap.agents import (
    call,
    content,
    followed,
    kinds,
    message_lines,
    model,
    plain,
    settle,
    tool,
)
from uap import (
    Agent,
    AgentState,
    AgentStrategy,
    AgentStreamEvent,
    Middleware,
    MiddlewareContext,
    agent,
)
from upp import ErrorCode, Tool, ToolUseStrategy, UPPError
from upp.providers.scripted import Fail, Pause

START = AgentState.initial()


def explorer_tool(explorer: Agent, name: str = "explore") -> Tool:
    """Return a sub-agent as UAP §8.2 declares one: an explicit tool that calls an agent."""

    async def run(arguments: dict[str, Any]) -> str:
        turn = await explorer.query(arguments["query"])
        return turn.response.text

    return Tool(
        name=name,
        description="Explores the code",
        parameters={
            "type": "object",
            "properties": {"query": {"type": "string"}},
            "required": ["query"],
        },
        run=run,
    )


def explorer() -> Agent:
    return agent(model=model(call("grep", "g1"), "in main.py"), tools=[tool("grep")])


def parent(*tools: Tool, asks: Any = None) -> Agent:
    first = asks or call("explore", "p1", query="where is main?")
    return agent(model=model(first, "found"), tools=tools)


def of_subagents(events: list[AgentStreamEvent]) -> list[AgentStreamEvent]:
    return [event for event in events if event.uap and event.uap.type.startswith("subagent")]


async def test_a_sub_agent_is_a_tool_whose_run_calls_an_agent() -> None:
    """UAP §8.1, §8.2: sub-agents are regular UPP tools with explicit schemas."""
    result = await parent(explorer_tool(explorer())).generate("go", START)

    assert message_lines(result.state.messages) == [
        "user go",
        "assistant",
        "results in main.py",
        "assistant found",
    ]


async def test_a_sub_agent_leaves_a_trace_in_the_state_of_its_parent() -> None:
    """UAP §8.5 MUST: traces are persisted in AgentState, with and without a stream."""
    generated = await parent(explorer_tool(explorer())).generate("go", START)
    streamed = await parent(explorer_tool(explorer())).stream("go", START)
    (trace,) = generated.state.subagent_traces

    assert content(streamed.state) == content(generated.state)
    assert AgentState.from_json(generated.state.to_json()).subagent_traces == (trace,)
    shape = plain(trace)
    assert UUID(shape.pop("subagentId")).version == 4
    assert shape.pop("startTime") <= shape.pop("endTime")
    assert shape["toolExecutions"][0].pop("duration") >= 0
    assert shape == {
        "subagentType": "explore",
        "parentToolCallId": "p1",
        "prompt": "where is main?",
        "success": True,
        "result": "in main.py",
        "toolExecutions": [
            {"toolName": "grep", "toolCallId": "g1", "arguments": {}, "result": "done"}
        ],
        "usage": {
            "inputTokens": 7,
            "outputTokens": 2,
            "totalTokens": 9,
            "cacheReadTokens": 0,
            "cacheWriteTokens": 0,
            "reasoningTokens": 0,
            "audioInputTokens": 0,
            "audioOutputTokens": 0,
        },
    }


async def test_events_of_a_sub_agent_reach_the_stream_of_its_parent() -> None:
    """UAP §8.4 SHOULD: events are propagated to the parent stream."""
    inner = explorer()
    bot = parent(explorer_tool(inner))
    events = await followed(bot.stream("go", START))
    first, *forwarded, last = of_subagents(events)

    assert [kind.split()[0] for kind in kinds(events)][:3] == [
        *("step_start", "action", "subagent_start"),
    ]
    assert [kind.split()[0] for kind in kinds(events)][-5:] == [
        *("subagent_end", "observation", "step_end", "step_start", "step_end"),
    ]
    start, end = plain(first)["uap"], plain(last)["uap"]
    assert (start["type"], start["agentId"], start["step"]) == ("subagent_start", bot.id, 1)
    names = {key: start["data"][key] for key in ("subagentId", "subagentType", "parentToolCallId")}
    assert names == {**names, "subagentType": "explore", "parentToolCallId": "p1"}
    assert start["data"]["prompt"] == "where is main?"
    assert start["data"]["timestamp"] <= end["data"]["timestamp"]
    assert (end["data"]["success"], end["data"]["result"]) == (True, "in main.py")
    assert end["data"]["toolExecutions"][0]["toolName"] == "grep"
    assert end["data"]["usage"]["totalTokens"] == 9
    assert all(names.items() <= event.uap.data.items() for event in forwarded if event.uap)
    seen = [event.uap.data["innerEvent"] for event in forwarded if event.uap]
    assert kinds(seen) == [
        *("step_start 1", "action 1", "observation 1", "step_end 1", "step_start 2", "step_end 2"),
    ]
    assert {event.uap.agent_id for event in seen if event.uap} == {inner.id}
    assert "text_delta" in [event.upp.type for event in seen if event.upp]


async def test_a_sub_agent_that_streams_by_itself_is_reported_as_well() -> None:
    """UAP §8.4 SHOULD: when sub-agents execute via streaming."""
    event_kinds: list[str] = []

    async def run(_arguments: object) -> str:
        stream = explorer().stream("where?", START)
        event_kinds.extend(kinds(await followed(stream)))
        return (await stream).turn.response.text

    bot = parent(tool("explore", run))
    generated = await bot.generate("go", START)
    events = of_subagents(await followed(parent(tool("explore", run)).stream("go", START)))

    assert len(generated.state.subagent_traces) == 1
    assert event_kinds == event_kinds[:6] * 2
    assert kinds([e.uap.data["innerEvent"] for e in events[1:-1] if e.uap]) == event_kinds[:6]


async def test_the_end_of_a_failed_sub_agent_is_reported_and_the_error_is_the_tools() -> None:
    """UAP §8.4, §8.5: subagent_end and a trace, also for a failure."""
    broken = agent(model=model("x"), middleware=[Breaks()])
    stream = parent(explorer_tool(broken)).stream("go", START)
    _, last = of_subagents(await followed(stream))
    state = (await stream).state

    assert message_lines(state.messages)[2] == "results no way!"
    assert last.uap is not None
    assert last.uap.data["success"] is False
    assert last.uap.data["error"] == "no way"
    assert (state.subagent_traces[0].success, state.subagent_traces[0].error) == (False, "no way")


class Breaks(Middleware):
    """Refuses every run."""

    async def before(self, context: MiddlewareContext) -> MiddlewareContext | None:
        """Refuse."""
        raise ValueError("no way" if context.input else "")


async def test_an_error_without_words_is_reported_by_its_name() -> None:
    async def run(_arguments: object) -> str:
        broken = agent(model=model("x"), middleware=[Breaks()])
        return (await broken.generate(None, START)).turn.response.text

    result = await parent(tool("explore", run)).generate("go", START)
    assert result.state.subagent_traces[0].error == "ValueError"
    assert result.state.subagent_traces[0].prompt == ""


async def test_an_error_of_the_inner_model_is_a_result_for_the_outer_one() -> None:
    """UAP §8.1: a sub-agent is a tool, and the words of its provider go into no answer."""
    error = UPPError("secret words", code=ErrorCode.RATE_LIMITED)
    broken = agent(model=model([Fail(error)]))
    result = await parent(explorer_tool(broken)).generate("go", START)

    assert message_lines(result.state.messages)[2:] == [
        "results The tool's own model failed: RATE_LIMITED!",
        "assistant found",
    ]
    assert result.state.subagent_traces[0].success is False


async def test_a_sub_agent_that_cancels_ends_the_outer_run() -> None:
    error = UPPError("no more money", code=ErrorCode.CANCELLED)
    stops = agent(model=model([Fail(error)]))

    with pytest.raises(UPPError, match="no more money"):
        await parent(explorer_tool(stops)).generate("go", START)


@pytest.mark.parametrize("hook", ["approval", "on_before_call", "on_after_call"])
async def test_an_agent_that_watches_over_a_call_is_a_sub_agent_of_it(hook: str) -> None:
    async def judges(*_given: object) -> Any:
        turn = await agent(model=model("yes")).query("may it run?")
        return None if hook == "on_after_call" else turn.response.text == "yes"

    watched = tool("t", approval=judges if hook == "approval" else None)
    more: Any = {} if hook == "approval" else {hook: judges}
    bot = agent(
        model=model(call("t", "p1"), "bye"), tools=[watched], tool_strategy=ToolUseStrategy(**more)
    )
    result = await bot.generate("go", START)

    assert message_lines(result.state.messages)[2] == "results done"
    (trace,) = result.state.subagent_traces
    assert (trace.parent_tool_call_id, trace.result) == ("p1", "yes")


async def test_descendants_leave_their_traces_before_their_parent() -> None:
    """UAP §8.5 MUST: traces of nested sub-agents."""
    middle = agent(
        model=model(call("deeper", "m1", query="deep?"), "middle"),
        tools=[explorer_tool(explorer(), "deeper")],
    )
    stream = parent(explorer_tool(middle)).stream("go", START)
    events = await followed(stream)
    traces = (await stream).state.subagent_traces

    assert [(trace.subagent_type, trace.parent_tool_call_id, trace.prompt) for trace in traces] == [
        ("deeper", "m1", "deep?"),
        ("explore", "p1", "where is main?"),
    ]
    inner = [e.uap.data.get("innerEvent") for e in of_subagents(events) if e.uap]
    nested = [e.uap.type for e in inner if e and e.uap and e.uap.type.startswith("subagent")]
    assert (nested[0], nested[-1]) == ("subagent_start", "subagent_end")


async def test_traces_that_a_sub_agent_was_given_are_not_taken_again() -> None:
    inner = parent(explorer_tool(explorer()))
    earlier_state = (await inner.generate("go", START)).state
    states: list[AgentState] = []

    async def run(_arguments: object) -> str:
        result = await agent(model=model("short")).generate("more", earlier_state)
        states.append(result.state)
        return "ok"

    result = await parent(tool("explore", run)).generate("go", START)

    assert len(states[0].subagent_traces) == 1
    assert [trace.prompt for trace in result.state.subagent_traces] == ["more"]


async def test_sub_agents_of_one_round_are_distinguished() -> None:
    asks = [call("explore", "p1", query="a"), call("explore", "p2", query="b")]
    stream = parent(explorer_tool(explorer()), asks=asks).stream("go", START)
    events = of_subagents(await followed(stream))
    by_run: dict[str, set[str]] = {}
    for event in events:
        assert event.uap is not None
        data = event.uap.data
        by_run.setdefault(data["subagentId"], set()).add(data["parentToolCallId"])

    assert sorted(map(sorted, by_run.values())) == [["p1"], ["p2"]]
    traces = (await stream).state.subagent_traces
    assert {trace.prompt for trace in traces} == {"a", "b"}


async def test_sub_agents_of_one_call_each_leave_a_trace() -> None:
    """UAP §8.5 MUST: one after the other as well."""

    async def run(_arguments: object) -> str:
        first = await agent(model=model("one")).query("first")
        second = await agent(model=model("two")).query("second")
        return f"{first.response.text} {second.response.text}"

    result = await parent(tool("explore", run)).generate("go", START)

    assert [trace.prompt for trace in result.state.subagent_traces] == ["first", "second"]
    assert message_lines(result.state.messages)[2] == "results one two"


async def test_an_agent_in_the_middleware_of_a_sub_agent_has_no_parent() -> None:
    class Consults(Middleware):
        async def before(self, context: MiddlewareContext) -> MiddlewareContext | None:
            await agent(model=model("aside")).query("?")
            return await super().before(context)

    inner = agent(model=model("x"), middleware=[Consults()])
    result = await parent(explorer_tool(inner)).generate("go", START)

    assert [trace.subagent_type for trace in result.state.subagent_traces] == ["explore"]


async def test_an_agent_in_a_sync_tool_leaves_a_trace_and_no_events() -> None:
    def run(_arguments: object) -> str:
        return asyncio.run(explorer().query("where?")).response.text

    stream = parent(tool("explore", run)).stream("go", START)

    assert of_subagents(await followed(stream)) == []
    assert [trace.success for trace in (await stream).state.subagent_traces] == [True]


async def test_stop_conditions_of_the_parent_are_not_those_of_the_sub_agent() -> None:
    """UAP §15.2: stop conditions do not propagate to sub-agents."""
    bot = agent(
        model=model(call("explore", query="a"), "found"),
        tools=[explorer_tool(explorer())],
        strategy=AgentStrategy(stop_condition=lambda _: True),
    )
    result = await bot.generate("go", START)

    assert result.state.subagent_traces[0].result == "in main.py"


async def test_results_that_are_not_text_are_traced_as_json() -> None:
    inner = agent(model=model(call("t"), "x"), tools=[tool("t", lambda _: {"n": 1})])
    result = await parent(explorer_tool(inner)).generate("go", START)

    assert result.state.subagent_traces[0].tool_executions[0].result == '{"n":1}'


async def test_a_sub_agent_that_its_tool_gives_up_ends_all_the_same() -> None:
    """UAP §8.4, §8.5: subagent_end and a trace, also for a run that was cancelled."""

    async def run(_arguments: object) -> str:
        try:
            async with asyncio.timeout(0.02):
                await agent(model=model([Pause(60)])).query("where?")
        except TimeoutError:
            return "no answer in time"
        return "an answer"

    stream = parent(tool("explore", run)).stream("go", START)
    last = of_subagents(await followed(stream))[-1]

    assert message_lines((await stream).state.messages)[2] == "results no answer in time"
    assert last.uap is not None
    assert (last.uap.type, last.uap.data["success"]) == ("subagent_end", False)
    (trace,) = (await stream).state.subagent_traces
    assert (trace.success, trace.error) == (False, "The run was cancelled.")


async def test_an_abort_of_the_parent_ends_the_sub_agent() -> None:
    started = asyncio.Event()

    async def waits(_arguments: object) -> None:
        started.set()
        await asyncio.wait_for(asyncio.Event().wait(), 300)

    inner = agent(model=model(call("t")), tools=[tool("t", waits)])
    async with parent(explorer_tool(inner)).stream("go", START) as stream:
        result_task = asyncio.ensure_future(stream.result())
        await asyncio.wait_for(started.wait(), 1)
        stream.abort()
        with pytest.raises(UPPError, match="aborted"):
            await result_task
    await settle()

    assert asyncio.all_tasks() == {asyncio.current_task()}

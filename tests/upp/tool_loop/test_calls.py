"""Tool calls in a generation: order, threads, errors and approvals."""

import asyncio
import threading
from typing import Any

import pytest

from tests.upp.tool_loop.scripts import broken, keeps_calling, speechless
from tests.upp.tool_scripts import calls_then_answers, tool
from upp import AssistantMessage, ErrorCode, StreamEvent, ToolCall, UPPError, current_tool_call, llm
from upp.providers.scripted import Call, ScriptedModel


async def test_calls_of_a_round_run_together_and_keep_their_order() -> None:
    barrier = asyncio.Barrier(2)

    async def meet(arguments: dict[str, Any]) -> str:
        await asyncio.wait_for(barrier.wait(), 60)
        await asyncio.sleep(0.02 if arguments["n"] == 1 else 0)
        return f"r{arguments['n']}"

    script = calls_then_answers(
        Call(name="meet", arguments={"n": 1}, call_id="a"),
        Call(name="meet", arguments={"n": 2}, call_id="b"),
    )
    model = llm(model=ScriptedModel(script=script), tools=[tool("meet", meet)])
    turn = await asyncio.wait_for(model.generate([], "go"), 2)
    assert turn.response.text == "r1 r2"
    assert [execution.tool_call_id for execution in turn.tool_executions] == ["b", "a"]
    assert turn.cycles == 2
    assert turn.tool_executions[0].approved is None


async def test_a_sync_tool_runs_in_a_thread_and_knows_its_call() -> None:
    def where(_arguments: dict[str, Any]) -> str:
        on_main = threading.current_thread() is threading.main_thread()
        return f"{on_main} {current_tool_call.get().tool_call_id}"

    script = calls_then_answers(Call(name="where", arguments={}, call_id="c9"))
    model = llm(model=ScriptedModel(script=script), tools=[tool("where", where)])
    assert (await model.generate([], "go")).response.text == "False c9"


async def test_a_callable_that_returns_an_awaitable_is_awaited() -> None:
    async def later() -> str:
        return "later"

    script = calls_then_answers(Call(name="t", arguments={}))
    model = llm(model=ScriptedModel(script=script), tools=[tool("t", lambda _: later())])
    assert (await model.generate([], "go")).response.text == "later"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (Call(name="broken", arguments={}), "it is broken!"),
        (Call(name="speechless", arguments={}), "KeyError!"),
        (Call(name="absent", arguments={}), "Tool 'absent' not found!"),
        (Call(name="broken", arguments='{"a":'), "The arguments are not a JSON object.!"),
    ],
)
async def test_what_goes_wrong_in_a_call_is_reported_to_the_model(call: Call, text: str) -> None:
    tools = [tool("broken", broken), tool("speechless", speechless)]
    model = llm(model=ScriptedModel(script=calls_then_answers(call)), tools=tools)
    turn = await model.generate([], "go")
    assert turn.response.text == text
    assert turn.tool_executions[0].is_error


async def test_a_upp_error_in_a_tool_ends_the_generation_and_the_other_calls() -> None:
    ended = asyncio.Event()
    cause = ValueError("why")

    async def fail(_arguments: dict[str, Any]) -> None:
        raise UPPError("stop", code=ErrorCode.CANCELLED) from cause

    async def wait(_arguments: dict[str, Any]) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    script = calls_then_answers(Call(name="wait", arguments={}), Call(name="fail", arguments={}))
    tools = [tool("fail", fail), tool("wait", wait)]
    with pytest.raises(UPPError, match="stop") as caught:
        await llm(model=ScriptedModel(script=script), tools=tools).generate([], "go")
    assert caught.value.__cause__ is cause
    assert ended.is_set()


async def test_an_approval_decides_and_is_recorded() -> None:
    async def approval(arguments: dict[str, Any]) -> bool:
        return bool(arguments["ok"])

    script = calls_then_answers(
        Call(name="t", arguments={"ok": True}), Call(name="t", arguments={"ok": False})
    )
    tools = [tool("t", lambda _: "ran", approval=approval)]
    turn = await llm(model=ScriptedModel(script=script), tools=tools).generate([], "go")
    assert turn.response.text == "ran The call was not approved.!"
    assert sorted(bool(e.approved) for e in turn.tool_executions) == [False, True]


async def test_an_approval_that_raises_ends_the_generation() -> None:
    script = calls_then_answers(Call(name="t", arguments={}))
    tools = [tool("t", lambda _: "ran", approval=broken)]
    with pytest.raises(ValueError, match="it is broken"):
        await llm(model=ScriptedModel(script=script), tools=tools).generate([], "go")


async def test_calls_run_by_hand_wait_for_those_that_they_come_after() -> None:
    log: list[str] = []

    async def work(arguments: dict[str, Any]) -> str:
        log.append(f"+{arguments['n']}")
        await asyncio.sleep(0.01)
        log.append(f"-{arguments['n']}")
        return str(arguments["n"])

    async def note(event: StreamEvent) -> None:
        log.append(f"{event.type} {event.index}")

    model = llm(model=ScriptedModel(script=keeps_calling), tools=[tool("t", work)])
    calls = [ToolCall(tool_call_id=f"c{n}", tool_name="t", arguments={"n": n}) for n in (1, 2, 3)]
    answer, executions = await model.run_tools(calls, after={0: [1, 2]}, emit=note)

    assert [entry for entry in log if " " not in entry] == ["+2", "+3", "-2", "-3", "+1", "-1"]
    assert log[-1] == "tool_execution_end 0"
    assert [result.result for result in answer.results] == ["1", "2", "3"]
    assert [execution.tool_call_id for execution in executions] == ["c2", "c3", "c1"]


async def test_a_tool_that_changes_its_arguments_does_not_change_the_conversation() -> None:
    script = calls_then_answers(Call(name="t", arguments={"list": [1]}))
    eats = tool("t", lambda arguments: arguments.pop("list").pop())
    turn = await llm(model=ScriptedModel(script=script), tools=[eats]).generate([], "go")
    call_message = turn.messages[1]

    assert isinstance(call_message, AssistantMessage)
    assert call_message.tool_calls[0].arguments == {"list": [1]}
    assert turn.tool_executions[0].arguments == {"list": [1]}
    assert turn.response.text == "1"

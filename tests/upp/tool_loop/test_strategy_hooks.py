"""Hooks of a tool-use strategy."""

from typing import Any

import pytest

from tests.upp.tool_loop.scripts import broken, keeps_calling
from tests.upp.tool_scripts import calls_then_answers, tool
from upp import (
    AfterCallResult,
    BeforeCallResult,
    Tool,
    ToolUseStrategy,
    TooManyRoundsError,
    current_tool_call,
    llm,
)
from upp.providers.scripted import Call, ScriptedModel


async def test_hooks_of_the_strategy_see_each_call_in_order() -> None:
    log: list[str] = []

    async def on_tool_call(tool: Tool, arguments: dict[str, Any]) -> None:
        log.append(f"call {tool.name} {arguments}")

    def on_before_call(_tool: Tool, arguments: dict[str, Any]) -> BeforeCallResult:
        log.append("before")
        return BeforeCallResult(params={**arguments, "more": 1})

    def approval(arguments: dict[str, Any]) -> bool:
        log.append(f"approval {arguments}")
        return True

    def run(arguments: dict[str, Any]) -> str:
        log.append(f"run {current_tool_call.get().arguments}")
        return str(arguments)

    async def on_after_call(
        _tool: Tool, _arguments: dict[str, Any], result: Any
    ) -> AfterCallResult:
        log.append(f"after {result}")
        return AfterCallResult(result="replaced")

    strategy = ToolUseStrategy(
        on_tool_call=on_tool_call, on_before_call=on_before_call, on_after_call=on_after_call
    )
    model = llm(
        model=ScriptedModel(script=calls_then_answers(Call(name="t", arguments={"n": 1}))),
        tools=[tool("t", run, approval=approval)],
        tool_strategy=strategy,
    )
    turn = await model.generate("go")
    changed = {"n": 1, "more": 1}
    assert log == [
        "call t {'n': 1}",
        "before",
        f"approval {changed}",
        f"run {changed}",
        f"after {changed}",
    ]
    assert turn.response.text == "replaced"
    assert turn.tool_executions[0].arguments == changed


@pytest.mark.parametrize(
    ("decision", "text"),
    [
        (True, "ran"),
        (BeforeCallResult(), "ran"),
        (False, "Tool execution skipped!"),
        (BeforeCallResult(proceed=False), "Tool execution skipped!"),
    ],
)
async def test_a_hook_decides_whether_a_call_runs(decision: Any, text: str) -> None:
    strategy = ToolUseStrategy(
        on_before_call=lambda _tool, _arguments: decision, on_after_call=lambda *_: None
    )
    model = llm(
        model=ScriptedModel(script=calls_then_answers(Call(name="t", arguments={}))),
        tools=[tool("t", lambda _: "ran")],
        tool_strategy=strategy,
    )
    assert (await model.generate("go")).response.text == text


@pytest.mark.parametrize("hook", ["on_tool_call", "on_before_call", "on_after_call"])
async def test_a_hook_that_raises_makes_an_error_result(hook: str) -> None:
    def raising(*_arguments: Any) -> Any:
        raise ValueError(f"{hook} is broken")

    hooks: dict[str, Any] = {hook: raising}
    model = llm(
        model=ScriptedModel(script=calls_then_answers(Call(name="t", arguments={}))),
        tools=[tool("t", lambda _: "ran")],
        tool_strategy=ToolUseStrategy(**hooks),
    )
    assert (await model.generate("go")).response.text == f"{hook} is broken!"


async def test_errors_and_the_limit_are_reported_to_the_strategy() -> None:
    log: list[str] = []

    async def on_error(tool: Tool, arguments: dict[str, Any], error: Exception) -> None:
        log.append(f"{tool.name} {arguments} {error}")

    strategy = ToolUseStrategy(
        max_iterations=1,
        on_error=on_error,
        on_max_iterations=lambda rounds: log.append(f"limit {rounds}"),
    )
    model = llm(
        model=ScriptedModel(script=keeps_calling), tools=[tool("t", broken)], tool_strategy=strategy
    )
    with pytest.raises(TooManyRoundsError):
        await model.generate("go")
    assert log == ["t {'round': 1} it is broken", "limit 1"]

"""The limit on rounds, and histories that end in calls."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.upp.tool_loop.scripts import broken, keeps_calling
from tests.upp.tool_scripts import calls_then_answers, tool
from upp import (
    AssistantMessage,
    ErrorCode,
    LLMRequest,
    TextBlock,
    ToolCall,
    ToolResult,
    ToolResultMessage,
    TooManyRoundsError,
    llm,
)
from upp.providers.scripted import Call, ScriptedModel, Step, Text


async def test_the_round_after_the_last_one_is_refused() -> None:
    rounds: list[int] = []
    tools = [tool("t", lambda arguments: rounds.append(arguments["round"]))]
    model = llm(model=ScriptedModel(script=keeps_calling), tools=tools, max_iterations=2)
    with pytest.raises(TooManyRoundsError) as caught:
        await model.generate([], "go")
    assert len(rounds) == 2
    assert caught.value.code == ErrorCode.INVALID_REQUEST


async def test_no_limit_means_no_limit() -> None:
    async def script(request: LLMRequest) -> AsyncIterator[Step]:
        if len(request.messages) < 40:
            yield Call(name="t", arguments={})
        else:
            yield Text("enough")

    tools = [tool("t", lambda _: "")]
    model = llm(model=ScriptedModel(script=script), tools=tools, max_iterations=None)
    assert (await model.generate([], "go")).response.text == "enough"


@pytest.mark.parametrize("more", [{"max_iterations": 0, "tools": [tool("t", broken)]}, {}])
async def test_zero_rounds_and_no_tools_give_the_calls_back(more: dict[str, Any]) -> None:
    turn = await llm(model=ScriptedModel(script=keeps_calling), **more).generate([], "go")
    assert turn.response.has_tool_calls
    assert turn.tool_executions == ()
    assert turn.stop_reason == "tool_use"


async def test_a_history_that_ends_in_calls_starts_with_them() -> None:
    call_message = AssistantMessage(
        content=(TextBlock(text="let me see"),),
        tool_calls=(
            ToolCall(tool_call_id="c1", tool_name="t", arguments={"n": 1}),
            ToolCall(tool_call_id="c2", tool_name="t", arguments={"n": 2}),
        ),
    )
    answered = ToolResultMessage(results=(ToolResult(tool_call_id="c1", result="kept"),))
    script = calls_then_answers(Call(name="t", arguments={"n": 3}))
    model = llm(model=ScriptedModel(script=script), tools=[tool("t", lambda a: f"fresh {a['n']}")])
    turn = await model.generate([call_message, answered])
    assert turn.response.text == "kept fresh 2"
    assert turn.cycles == 1
    assert [type(message) for message in turn.messages] == [ToolResultMessage, AssistantMessage]

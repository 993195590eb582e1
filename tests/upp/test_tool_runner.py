"""Effects that tools may have on the generation that runs them, and may not."""

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType
from typing import Any

import pytest

from upp import (
    ErrorCode,
    LLMRequest,
    StreamEvent,
    Tool,
    ToolCall,
    ToolExecution,
    ToolResultMessage,
    ToolUseStrategy,
    Turn,
    UPPError,
    current_tool_call,
    llm,
)
from upp.providers.scripted import Call, ScriptedModel, Step, Text


async def calls_once(request: LLMRequest) -> AsyncIterator[Step]:
    if isinstance(request.messages[-1], ToolResultMessage):
        yield Text("bye")
    else:
        yield Call(name="t", arguments={})


async def ran(run: Any, **more: Any) -> ToolExecution:
    """Return the outcome of a call of such a tool, after the model got its result."""
    turn = await turn_with(run, **more)
    assert turn.response.text == "bye"
    return turn.tool_executions[0]


async def turn_with(run: Any, **more: Any) -> Turn:
    tool = Tool(name="t", description="t", parameters={"type": "object"}, run=run)
    model = llm(model=ScriptedModel(script=calls_once), tools=[tool], **more)
    return await asyncio.wait_for(model.generate("go"), 10)


@dataclass
class Found:
    """A value that a tool may return."""

    on: date


class Marked(str):
    """A text that a template library has marked."""

    __slots__ = ()


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ("text", "text"),
        (None, None),
        ((1, {"a": [2.5]}), [1, {"a": [2.5]}]),
        (Found(on=date(2026, 1, 2)), {"on": "2026-01-02"}),
        (MappingProxyType({"a": MappingProxyType({})}), {"a": {}}),
        ([Marked("<b>")], ["<b>"]),
    ],
)
async def test_a_result_is_json_whatever_the_tool_returns(value: Any, result: Any) -> None:
    execution = await ran(lambda _: value)

    assert (execution.result, execution.is_error) == (result, False)
    assert type(execution.result) is type(result)


class Opaque:
    """A value that JSON cannot represent."""


@pytest.mark.parametrize("value", [Opaque(), [Opaque()], "\ud83d", {1j: 1}])
async def test_a_result_that_json_has_no_word_for_is_reported_to_the_model(value: Any) -> None:
    errors: list[Exception] = []
    strategy = ToolUseStrategy(on_error=lambda _tool, _arguments, error: errors.append(error))
    execution = await ran(lambda _: value, tool_strategy=strategy)

    kind = type(value).__name__
    assert execution.is_error
    assert execution.result.startswith(f"The tool ran, but its result ({kind}) is not JSON: ")
    assert [str(error) for error in errors] == [execution.result]


async def test_a_result_that_holds_itself_is_reported_to_the_model() -> None:
    endless: list[Any] = []
    endless.append(endless)

    assert "(list) is not JSON" in (await ran(lambda _: endless)).result


async def test_what_a_tool_keeps_of_its_result_does_not_change_the_conversation() -> None:
    numbers: list[int] = []

    def run(_arguments: object) -> list[int]:
        numbers.append(1)
        return numbers

    turn = await turn_with(run)
    numbers.append(2)

    assert turn.tool_executions[0].result == [1]
    assert isinstance(turn.messages[2], ToolResultMessage)
    assert turn.messages[2].results[0].result == [1]


def exhausted(_arguments: object) -> object:
    return next(iter(()))


async def exits(_arguments: object) -> None:
    sys.exit(3)


async def waits_for_what_is_cancelled(_arguments: object) -> None:
    waited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waited.cancel()
    await waited


def fails_without_a_word(_arguments: object) -> None:
    raise OSError("\udcff")


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (exhausted, "StopIteration"),
        (lambda _: sys.exit("usage: t"), "The tool exited: usage: t"),
        (exits, "The tool exited: 3"),
        (waits_for_what_is_cancelled, "The work that the tool waited for was cancelled."),
        (fails_without_a_word, "?"),
    ],
)
async def test_a_tool_cannot_end_or_hang_the_program(run: Any, words: str) -> None:
    execution = await ran(run)

    assert (execution.result, execution.is_error) == (words, True)


async def test_a_model_that_fails_inside_a_tool_is_reported_by_its_code() -> None:
    def run(_arguments: object) -> None:
        raise UPPError("secret words", code=ErrorCode.QUOTA_EXCEEDED)

    execution = await ran(run)

    assert execution.result == "The tool's own model failed: QUOTA_EXCEEDED"


async def test_a_tool_that_cancels_ends_the_generation() -> None:
    error = UPPError("enough", code=ErrorCode.CANCELLED)

    def run(_arguments: object) -> None:
        raise error

    with pytest.raises(UPPError) as caught:
        await turn_with(run)
    assert caught.value is error


async def test_hooks_and_approvals_know_the_call_that_they_are_about() -> None:
    seen: list[str] = []

    def notes(*_given: object) -> bool:
        seen.append(current_tool_call.get().tool_name)
        return True

    tool = Tool(name="t", description="t", parameters={}, run=lambda _: 1, approval=notes)
    strategy = ToolUseStrategy(
        on_tool_call=lambda *_: seen.append(current_tool_call.get().tool_name),
        on_before_call=notes,
    )
    model = llm(model=ScriptedModel(script=calls_once), tools=[tool], tool_strategy=strategy)
    await model.generate("go")

    assert seen == ["t"] * 3


async def test_calls_that_run_together_are_announced_before_the_first_one_runs() -> None:
    """A process that stores the first call that runs has received those that run with it."""
    order: list[str] = []

    async def emit(event: StreamEvent) -> None:
        # A reader may take its time.
        await asyncio.sleep(0)
        order.append(f"{event.type.removeprefix('tool_execution_')} {event.delta.tool_call_id}")

    async def run(_arguments: dict[str, Any]) -> None:
        order.append(f"run {current_tool_call.get().tool_call_id}")

    tool = Tool(name="t", description="t", parameters={}, run=run)
    model = llm(model=ScriptedModel(script=calls_once), tools=[tool])
    calls = [ToolCall(tool_call_id=key, tool_name="t", arguments={}) for key in ("a", "b", "c")]
    await model.run_tools(calls, after={2: {0}}, emit=emit)
    assert order[:2] == ["start a", "start b"]
    assert order.index("end a") < order.index("start c")
    assert len(order) == 9

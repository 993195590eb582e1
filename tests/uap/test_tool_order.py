"""The order in which the calls of an answer run."""

import asyncio
from typing import Any

import pytest

from tests.uap.agents import call, model, tool
from uap import AgentState, agent
from uap.tool_order import order_of_calls
from upp import ErrorCode, Tool, ToolCall, UPPError

START = AgentState.initial()


def calls(*names: str) -> list[ToolCall]:
    return [
        ToolCall(tool_call_id=f"c{n}", tool_name=name, arguments={}) for n, name in enumerate(names)
    ]


A = tool("a")
B_AFTER_A = tool("b", depends_on=("a",))
C_AFTER_B = tool("c", depends_on=("b",))
BOTH = tool("both", depends_on=("a", "c"))
FIRST = tool("first", sequential=True)
SECOND = tool("second", sequential=True)
LAST = tool("c", sequential=True, depends_on=("b",))
FIRST_AFTER_A = tool("first", sequential=True, depends_on=("a",))


@pytest.mark.parametrize(
    ("tools", "names", "order"),
    [
        ([], [], {}),
        ([A], ["a", "a", "unknown"], {}),
        ([A, B_AFTER_A], ["b", "a"], {0: {1}}),
        ([A, B_AFTER_A], ["a", "a", "b"], {2: {0, 1}}),
        ([A, B_AFTER_A], ["b"], {}),
        ([A, B_AFTER_A, C_AFTER_B], ["c", "b", "a"], {0: {1}, 1: {2}}),
        ([A, tool("c"), BOTH], ["both", "a", "c"], {0: {1, 2}}),
        ([A, FIRST], ["a", "first", "a"], {0: {1}, 2: {1}}),
        ([A, FIRST], ["unknown", "first"], {0: {1}}),
        ([FIRST, SECOND], ["second", "first", "second"], {1: {0}, 2: {0, 1}}),
        ([A, FIRST_AFTER_A, tool("x")], ["x", "first", "a"], {0: {1}, 1: {2}}),
        (
            [A, B_AFTER_A, tool("c", sequential=True, depends_on=("b",))],
            ["a", "c", "b"],
            {1: {2}, 2: {0}},
        ),
    ],
)
def test_calls_wait_for_what_they_depend_on_and_for_sequential_ones(
    tools: list[Tool], names: list[str], order: dict[int, set[int]]
) -> None:
    """UAP §8.3: dependsOn complete first; sequential complete before other tools."""
    assert order_of_calls(tools, calls(*names)) == order


def test_hundreds_of_sequential_calls_are_put_in_order() -> None:
    """UAP §8.3: however many calls there are; walking each way between 200 would never end."""
    order = order_of_calls([FIRST, B_AFTER_A, A], calls(*["first"] * 200, "b", "a"))

    assert [order.get(position, set()) for position in range(200)] == [
        set(range(position)) for position in range(200)
    ]
    assert order[200] == {*range(200), 201}
    assert order[201] == set(range(200))


async def test_a_dependent_tool_begins_when_the_other_has_ended() -> None:
    """UAP §8.3: dependsOn, when an agent runs."""
    log: list[str] = []

    def work(name: str, **more: Any) -> Tool:
        async def run(_arguments: object) -> str:
            log.append(f"+{name}")
            await asyncio.sleep(0.01)
            log.append(f"-{name}")
            return name

        return tool(name, run, **more)

    bot = agent(
        model=model([call("b", "1"), call("a", "2"), call("c", "3")], "bye"),
        tools=[work("a"), work("b", depends_on=["a"]), work("c")],
    )
    result = await bot.generate("go", START)

    assert log[:2] == ["+a", "+c"]
    assert log.index("-a") < log.index("+b")
    assert sorted(log) == ["+a", "+b", "+c", "-a", "-b", "-c"]
    answer = result.state.messages[2]
    assert [entry.result for entry in getattr(answer, "results", ())] == ["b", "a", "c"]


def test_tools_that_depend_on_each_other_in_a_circle_are_refused() -> None:
    tools = [tool("a", depends_on=["c"]), B_AFTER_A, C_AFTER_B]

    with pytest.raises(UPPError, match="cycle: ") as raised:
        agent(model=model("x"), tools=tools)
    assert raised.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("depends_on", "message"),
    [
        (["serch"], "Did you mean 'search'"),
        (["x"], r"'read' depends on 'x', which is not one of the tools\.$"),
    ],
)
def test_a_tool_that_depends_on_no_tool_is_refused(depends_on: list[str], message: str) -> None:
    """UAP §8.3: dependsOn names tools; a name that is misspelt would order nothing."""
    with pytest.raises(UPPError, match=message) as raised:
        agent(model=model("x"), tools=[tool("search"), tool("read", depends_on=depends_on)])
    assert raised.value.code is ErrorCode.INVALID_REQUEST


def test_a_single_name_is_not_a_sequence_of_names() -> None:
    with pytest.raises(TypeError, match=r"\['search'\]"):
        tool("read", depends_on="search")

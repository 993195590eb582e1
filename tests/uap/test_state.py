"""The state as a value, and its JSON."""

import copy
import math
import pickle
from dataclasses import FrozenInstanceError
from enum import IntEnum, StrEnum
from typing import Any
from uuid import UUID

import msgspec
import pytest

from tests.uap.agents import message_lines
from uap import AgentState, InvalidState, PlanStep, SubagentExecutionTrace, ToolExecutionTrace
from upp import (
    AssistantMessage,
    AudioBlock,
    ReasoningBlock,
    TextBlock,
    TokenUsage,
    ToolCall,
    ToolResult,
    ToolResultMessage,
    UserMessage,
)

ONE = UserMessage(content=(TextBlock(text="one"),))
TWO = AssistantMessage(content=(TextBlock(text="two"),))
STEP = PlanStep(id="a", description="look", depends_on=(), status="pending")
TRACE = SubagentExecutionTrace(
    subagent_id="s",
    subagent_type="explorer",
    parent_tool_call_id="c",
    prompt="where",
    start_time=1,
    end_time=2,
    success=True,
    result="there",
    tool_executions=(
        ToolExecutionTrace(tool_name="t", tool_call_id="i", arguments={"a": 1}, result="r"),
    ),
    usage=TokenUsage(total_tokens=3),
)

OPERATIONS: dict[str, Any] = {
    "messages": lambda state: state.with_message(TWO),
    "context": lambda state: state.with_context([TWO]),
    "step": lambda state: state.with_step(7),
    "metadata": lambda state: state.with_metadata("k", "v"),
    "reasoning": lambda state: state.with_reasoning("because"),
    "plan": lambda state: state.with_plan([STEP]),
    "subagent_traces": lambda state: state.with_subagent_traces([TRACE]),
}


def test_an_initial_state_is_empty() -> None:
    """UAP §6.1, §6.2: the fields of a state, and AgentState.initial()."""
    state = AgentState.initial()

    assert (state.messages, state.step, state.metadata, state.reasoning) == ((), 0, {}, ())
    assert (state.plan, state.subagent_traces) == (None, ())
    assert UUID(state.id).version == 4


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_returns_a_new_state_and_leaves_the_old_one(name: str) -> None:
    """UAP §6.2, §14.2 MUST: immutable AgentState; MUST NOT mutate state; §3.4: a new UUIDv4 id."""
    state = AgentState.initial().with_message(ONE)
    before = msgspec.json.encode(state.to_json())
    changed = OPERATIONS[name](state)

    assert msgspec.json.encode(state.to_json()) == before
    assert changed.id != state.id
    assert UUID(changed.id).version == 4
    field = "messages" if name == "context" else name
    same = {"id", "messages", "step", "metadata", "reasoning", "plan", "subagent_traces"} - {
        "id",
        field,
    }
    assert getattr(changed, field) != getattr(state, field)
    assert all(getattr(changed, other) == getattr(state, other) for other in same)


def test_operations_append_and_context_replaces() -> None:
    """UAP §6.2, §6.3: withMessage(s) append, withContext replaces, traces are appended."""
    state = AgentState.initial().with_message(ONE).with_messages([TWO, ONE])

    assert state.messages == (ONE, TWO, ONE)
    assert state.with_context([TWO]).messages == (TWO,)
    assert state.with_context([]).messages == ()
    assert state.with_reasoning("a").with_reasoning("b").reasoning == ("a", "b")
    assert state.with_metadata("a", 1).with_metadata("b", 2).metadata == {"a": 1, "b": 2}
    assert state.with_plan([STEP]).with_plan([]).plan == ()
    traced = state.with_subagent_traces([TRACE]).with_subagent_traces([TRACE])
    assert traced.subagent_traces == (TRACE, TRACE)


def test_nothing_can_be_changed_through_a_state() -> None:
    """UAP §14.2 MUST: immutable AgentState, also what is inside."""
    metadata = {"list": [1, {"deep": 2}]}
    state = AgentState.initial().with_metadata("k", metadata).with_plan([STEP])
    metadata["list"].append(3)

    assert state.metadata["k"]["list"] == (1, {"deep": 2})
    with pytest.raises(FrozenInstanceError):
        state.step = 1  # type: ignore[misc]  # that it cannot be is what is shown
    with pytest.raises(TypeError):
        state.metadata["k"]["list"][1]["deep"] = 3
    with pytest.raises(AttributeError):
        (state.plan or ())[0].status = "failed"  # type: ignore[misc]  # as above
    state.to_json()["metadata"]["k"]["list"].clear()
    assert state.metadata["k"]["list"] == (1, {"deep": 2})


def nested(levels: int) -> dict[str, Any]:
    deepest: dict[str, Any] = {}
    for _ in range(levels):
        deepest = {"a": deepest}
    return deepest


@pytest.mark.parametrize(
    "value",
    [object(), {1: 2}, [b"bytes"], math.nan, [math.inf], "\ud83d", {"\ud83d": 1}, nested(2000)],
    ids=["object", "key", "bytes", "nan", "inf", "half", "half_key", "deep"],
)
def test_metadata_outside_json_is_refused_at_once(value: Any) -> None:
    """UAP §14.2 MUST: the state is fully serialisable."""
    with pytest.raises(TypeError, match="etadata"):
        AgentState.initial().with_metadata("k", value)


class Name(StrEnum):
    """Texts with a class of their own."""

    A = "a"


class Marked(str):
    """A text that a template library has marked."""

    __slots__ = ()


class Count(IntEnum):
    """Numbers with a class of their own."""

    ONE = 1


class Metres(float):
    """A measure."""

    __slots__ = ()


def test_metadata_that_only_look_different_become_json() -> None:
    """UAP §14.2 MUST: the state is fully serialisable."""
    metadata = {Marked("k"): [Name.A, Marked("<b>"), Count.ONE, Metres(2.5), True, 2**70]}
    state = AgentState.initial().with_metadata("m", metadata)

    assert AgentState.from_json(state.to_json()) == state
    types = [type(value) for value in state.metadata["m"]["k"]]
    assert types == [str, str, int, float, bool, int]


def test_the_json_of_a_state_comes_back_as_the_same_state() -> None:
    """UAP §6.2, §12.1, §14.2 MUST: toJSON() holds the whole state, fromJSON() reads it."""
    state = (
        AgentState.initial()
        .with_messages(
            [
                UserMessage(
                    content=(TextBlock(text="hi"), AudioBlock(data=b"\x00\xff", mime_type="a/b")),
                    metadata={"vendor": {"x": [1]}},
                ),
                AssistantMessage(
                    content=(ReasoningBlock(text="hm"),),
                    tool_calls=(ToolCall(tool_call_id="c", tool_name="t", arguments={"a": 1}),),
                ),
                ToolResultMessage(
                    results=(ToolResult(tool_call_id="c", result={"n": None}, is_error=True),)
                ),
            ]
        )
        .with_step(3)
        .with_metadata("k", [1, {"a": None}])
        .with_reasoning("because")
        .with_plan([STEP, msgspec.structs.replace(STEP, id="b", tool="t", depends_on=("a",))])
        .with_subagent_traces([TRACE])
    )
    text = msgspec.json.encode(state.to_json())

    assert AgentState.from_json(msgspec.json.decode(text)) == state


def test_a_state_can_be_copied_and_pickled() -> None:
    state = AgentState.initial().with_message(ONE).with_metadata("k", {"a": [1]})

    assert copy.deepcopy(state) == state
    assert pickle.loads(pickle.dumps(state)) == state  # noqa: S301  # our own bytes


def test_the_json_of_a_state_has_the_members_of_the_specification() -> None:
    """UAP §12.1: required members always, optional ones when there is something in them."""
    state = AgentState.initial().with_message(ONE)
    full = state.with_reasoning("r").with_plan([STEP]).with_subagent_traces([TRACE])

    assert state.to_json() == {
        "version": "1.1.0",
        "id": state.id,
        "messages": [
            {
                "type": "user",
                "id": ONE.id,
                "timestamp": ONE.timestamp.isoformat().replace("+00:00", "Z"),
                "content": [{"type": "text", "text": "one"}],
            }
        ],
        "step": 0,
        "metadata": {},
    }
    shape = full.to_json()
    assert shape["reasoning"] == ["r"]
    assert shape["plan"] == [
        {"id": "a", "description": "look", "dependsOn": [], "status": "pending"}
    ]
    assert shape["subagentTraces"][0]["toolExecutions"] == [
        {"toolName": "t", "toolCallId": "i", "arguments": {"a": 1}, "result": "r"}
    ]
    assert shape["subagentTraces"][0]["parentToolCallId"] == "c"


def test_json_without_the_optional_members_makes_a_whole_state() -> None:
    """UAP §12.1: reasoning, plan and traces are optional."""
    shape = {"version": "1.0.0", "id": "x", "messages": [], "step": 2, "metadata": {"a": 1}}
    state = AgentState.from_json(shape)

    assert (state.id, state.step, state.metadata) == ("x", 2, {"a": 1})
    assert state.with_reasoning("r").reasoning == ("r",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": "2.0.0", "messages": "of another shape"}, "Unsupported UAP version: '2.0.0'"),
        ({"version": None}, r"\$.version"),
        ({"id": ""}, r"\$.id"),
        ({"step": -1}, r"\$.step"),
        ({"messages": [{"type": "robot"}]}, r"\$.messages"),
        ({"messages": [{"type": "user"}]}, "content"),
        ({"metadata": []}, r"\$.metadata"),
        ({"reasoning": [1]}, r"\$.reasoning"),
        ({"plan": [{"id": "a", "description": "d", "dependsOn": [], "status": "?"}]}, "status"),
        ({"subagentTraces": [{}]}, r"\$.subagentTraces"),
    ],
)
def test_json_of_an_invalid_state_is_refused(change: dict[str, Any], message: str) -> None:
    """UAP §15.3 MUST: deserialization validates the structure."""
    with pytest.raises(InvalidState, match=message):
        AgentState.from_json({**AgentState.initial().to_json(), **change})


@pytest.mark.parametrize("value", [[], "text", None, {}])
def test_a_value_that_is_not_a_state_object_is_refused(value: Any) -> None:
    """UAP §15.3 MUST: deserialization validates the structure."""
    with pytest.raises(InvalidState):
        AgentState.from_json(value)


def test_json_that_is_nested_too_deeply_is_refused() -> None:
    """UAP §15.3 MUST: deserialization validates the structure."""
    document = AgentState.initial().to_json()
    document["metadata"] = nested(600)

    with pytest.raises(InvalidState, match="too deeply"):
        AgentState.from_json(document)


def test_nothing_inside_a_state_can_be_changed() -> None:
    """UAP §6.2: every operation returns a new state, and the old one is immutable, however deep."""
    metadata: dict[str, Any] = {"vendor": {"signature": ["s"]}}
    arguments: dict[str, Any] = {"query": {"words": ["key"]}}
    call = ToolCall(tool_call_id="c", tool_name="t", arguments=arguments)
    trace = SubagentExecutionTrace(
        subagent_id="s",
        subagent_type="t",
        parent_tool_call_id="c",
        prompt="",
        start_time=0,
        end_time=0,
        success=True,
        tool_executions=[
            ToolExecutionTrace(tool_name="t", tool_call_id="c", arguments=arguments, result="")
        ],  # type: ignore[arg-type]
    )
    state = (
        AgentState.initial()
        .with_message(AssistantMessage(content="hm", tool_calls=[call], metadata=metadata))
        .with_subagent_traces([trace])
        .with_plan([PlanStep(id="a", description="", depends_on=["b"], status="pending")])  # type: ignore[arg-type]
    )
    before = state.to_json()

    metadata["vendor"]["signature"].append("other")
    arguments["query"]["words"].clear()
    spoken: Any = state.messages[0]
    traced = state.subagent_traces[0].tool_executions[0].arguments
    for mapping in (spoken.metadata, spoken.tool_calls[0].arguments, traced):
        with pytest.raises(TypeError):
            mapping["new"] = 1
        with pytest.raises(TypeError):
            next(iter(mapping.values())).clear()
    assert state.to_json() == before
    assert [type(items) for items in (state.plan, state.subagent_traces[0].tool_executions)] == [
        tuple
    ] * 2
    assert state.plan == (PlanStep(id="a", description="", depends_on=("b",), status="pending"),)


def test_messages_are_added_as_text_or_blocks() -> None:
    """UAP §6.2: withMessage, withMessages and withContext take what a model is asked."""
    state = AgentState.initial().with_message("hi").with_messages([TextBlock(text="there")])
    assert message_lines(state.messages) == ["user hi", "user there"]
    assert message_lines(state.with_context(["again"]).messages) == ["user again"]
    for wrong in (state.with_messages, state.with_context):
        with pytest.raises(TypeError, match="with_message"):
            wrong("hi")
    value: Any = 5
    with pytest.raises(TypeError, match="not int"):
        state.with_message(value)

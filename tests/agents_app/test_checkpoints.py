"""Checkpoints of responses, as rows."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agents_app import checkpoints
from agents_app.checkpoints import ResponseCheckpoint, UnreadableCheckpointError, of_response
from agents_app.models import Checkpoint
from uamp.types.content import ContentItem, TextContent, ThinkingContent
from uap import AgentState, PlanStep
from upp import AssistantMessage, TextBlock, ToolResult, ToolResultMessage, UserMessage

AT = datetime(2026, 1, 2, tzinfo=UTC)
ASKED = UserMessage(content=(TextBlock(text="hi"),))
RESULT = ToolResultMessage(results=(ToolResult(tool_call_id="c1", result="a\0b"),))
STEP = PlanStep(id="a", description="d", depends_on=(), status="completed")
SAID = (TextContent(text="one"),)


def saved(response_id: str = "r1", **values: Any) -> AgentState:
    state = AgentState.initial().with_messages((RESULT,)).with_plan([STEP])
    defaults: dict[str, Any] = {"state": state, "output": SAID, "step": 1, "fence": 2, "at": AT}
    checkpoints.save(response_id, **{**defaults, **values})
    return state


@pytest.mark.django_db
def test_a_checkpoint_comes_back_as_it_was_saved() -> None:
    state = saved()
    checkpoint = checkpoints.load("r1")
    assert checkpoint is not None
    assert (checkpoint.output, checkpoint.step, checkpoint.fence, checkpoint.tool_rounds) == (
        SAID,
        1,
        2,
        1,
    )
    assert (checkpoint.state.id, checkpoint.state.plan) == (state.id, (STEP,))
    (message,) = checkpoint.state.messages
    assert isinstance(message, ToolResultMessage)
    # PostgreSQL takes no NUL.
    assert message.results[0].result == "a\N{REPLACEMENT CHARACTER}b"


@pytest.mark.django_db
def test_only_the_last_checkpoint_is_kept_until_it_is_deleted() -> None:
    saved()
    saved(step=2, at=AT + timedelta(days=1))
    saved("r2")
    assert Checkpoint.objects.count() == 2
    checkpoint = checkpoints.load("r1")
    assert checkpoint is not None
    assert checkpoint.step == 2
    assert checkpoints.saved_before(AT + timedelta(hours=1)) == ["r2"]
    checkpoints.delete(["r1", "unknown"])
    assert checkpoints.load("r1") is None
    assert checkpoints.load("r2") is not None


@pytest.mark.django_db
@pytest.mark.parametrize(
    "change",
    [
        {"state": {"version": "2.0.0"}},
        {"state": []},
        {"state": None},
        {"output": [{"type": "alien"}]},
        {"output": {}},
    ],
)
def test_an_unreadable_checkpoint_is_reported(change: dict[str, Any]) -> None:
    saved()
    row = Checkpoint.objects.get()
    for name, value in change.items():
        setattr(row, name, {"version": "1.1.0"} if value is None else value)
    row.save()
    with pytest.raises(UnreadableCheckpointError, match=r"r1, version 1\.1\.0"):
        checkpoints.load("r1")


def test_the_conversation_is_not_part_of_a_checkpoint() -> None:
    state = AgentState.initial().with_messages((ASKED, RESULT))
    assert of_response(state, after=1).messages == (RESULT,)


@pytest.mark.parametrize(
    ("before", "now", "added"),
    [
        ((), SAID, SAID),
        (SAID, SAID, ()),
        (SAID, (TextContent(text="one two"),), (TextContent(text=" two"),)),
        (
            (ThinkingContent(thinking="a"),),
            (ThinkingContent(thinking="ab"), *SAID),
            (ThinkingContent(thinking="b"), *SAID),
        ),
        ((ThinkingContent(thinking="a"), *SAID), SAID, ()),
    ],
)
def test_what_was_shown_after_a_checkpoint_is_known(
    before: tuple[ContentItem, ...], now: tuple[ContentItem, ...], added: tuple[ContentItem, ...]
) -> None:
    checkpoint = ResponseCheckpoint(state=AgentState.initial(), output=before, step=1, fence=1)
    assert checkpoint.output_since(now) == added


def test_the_rounds_of_tools_are_counted() -> None:
    answer = AssistantMessage(content=(TextBlock(text="x"),))
    state = AgentState.initial().with_messages((RESULT, answer, RESULT))
    assert ResponseCheckpoint(state=state, output=(), step=3, fence=1).tool_rounds == 2

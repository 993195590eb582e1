"""Usage of a response that another process continues: no step is charged twice."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pytest
from django.utils import timezone

import uamp
from agents_app import checkpoints
from agents_app.models import Checkpoint
from agents_app.remote import tasks
from agents_app.remote.tasks import TaskHandle
from sessions_app.models import Response
from sessions_app.process import continuations
from sessions_app.response.request import ResponseRequest
from sessions_app.store import responses
from tests import factories
from tests.sessions_app.response.running import left_behind
from uap import AgentState
from upp import AssistantMessage, TextBlock

if TYPE_CHECKING:
    from sessions_app.response.context import RunContext

pytestmark = pytest.mark.django_db

FIRST: Final[dict[str, Any]] = {"input_tokens": 100, "output_tokens": 10}
BOTH: Final[dict[str, Any]] = {"input_tokens": 400, "output_tokens": 25}
SAID: Final = (uamp.TextContent(text="First. "),)


def in_its_second_step(*, is_counted: bool = True) -> Response:
    """Return a response that died in its second step, after its provider had counted it."""
    row = left_behind()
    row.tool_calls.all().delete()
    Response.objects.filter(pk=row.pk).update(status="in_progress")
    spoken = AssistantMessage(content=(TextBlock(text="First. "),))
    responses.save_checkpoint(
        row.pk,
        fence=1,
        text="First. ",
        output=SAID,
        usage=uamp.UsageStats(**FIRST) if is_counted else None,
        inferences=None,
        state=AgentState.initial().with_messages((spoken,)),
        step=1,
    )
    thinking = {"type": "thinking", "thinking": "Second"}
    Response.objects.filter(pk=row.pk).update(
        output=[{"type": "text", "text": "First. "}, thinking], usage=BOTH
    )
    row.refresh_from_db()
    return row


def continued(row: Response) -> RunContext:
    """Return the context in which a response continues."""
    context = continuations.continuation_of(row, was_handed_over=False)
    assert context is not None
    return context


def used(row: Response) -> dict[str, Any] | None:
    """Return the usage from before in the context of a continued response."""
    usage = continued(row).usage_before
    return None if usage is None else {name: getattr(usage, name) for name in FIRST}


def test_a_step_that_runs_again_is_not_charged_twice() -> None:
    row = in_its_second_step()
    context = continued(row)
    assert context.request.resume == SAID
    assert used(row) == FIRST
    # Nor do its tokens count twice towards the most that the agent may write.
    assert context.request.written == FIRST["output_tokens"]


def test_a_step_whose_tools_have_run_keeps_its_usage() -> None:
    row = in_its_second_step()
    call = {"id": "call_1", "name": "report", "arguments": "{}"}
    items = [*row.output, {"type": "tool_call", "tool_call": call}]
    Response.objects.filter(pk=row.pk).update(output=items)
    row.tool_calls.create(
        call_id="call_1",
        name="report",
        status="done",
        result="ready",
        deadline=timezone.now() + timedelta(minutes=1),
        finished_at=timezone.now(),
    )
    row.refresh_from_db()
    assert used(row) == BOTH


def test_a_response_that_waits_keeps_its_usage() -> None:
    row = in_its_second_step()
    row.status = "waiting"
    assert used(row) == BOTH


def test_before_the_first_count_nothing_was_used() -> None:
    assert used(in_its_second_step(is_counted=False)) == dict.fromkeys(FIRST)


def test_a_checkpoint_of_an_older_version_has_the_usage_of_the_response() -> None:
    row = in_its_second_step()
    Checkpoint.objects.update(usage=None)
    assert used(row) == BOTH


@pytest.mark.parametrize(("protocol", "continues"), [("uamp", True), ("uamp_http", False)])
def test_only_an_answer_that_can_be_followed_continues(protocol: str, *, continues: bool) -> None:
    row = left_behind()
    row.tool_calls.all().delete()
    Response.objects.filter(pk=row.pk).update(status="in_progress")
    row.refresh_from_db()
    handle = TaskHandle(protocol=protocol, address="https://a.example", ids={}, rounds=0)
    responses.save_remote_task(row.pk, handle, fence=1)
    context = continuations.continuation_of(row, was_handed_over=False)
    assert (context is not None) is continues


def test_a_checkpoint_with_unreadable_usage_ends_the_response() -> None:
    row = in_its_second_step()
    Checkpoint.objects.update(usage={"input_tokens": "many"})
    with pytest.raises(checkpoints.UnreadableCheckpointError):
        continued(row)


def test_an_answer_that_is_followed_elsewhere_is_counted_from_its_beginning() -> None:
    row = in_its_second_step()
    Checkpoint.objects.all().delete()
    handle = TaskHandle(
        protocol="a2a", address="https://agents.example", ids={"task": "t1"}, rounds=0
    )
    tasks.save(row.pk, handle, fence=1, at=timezone.now())
    assert used(row) is None


def test_a_response_that_ends_has_used_what_was_counted_and_delivered() -> None:
    row = in_its_second_step()
    row.usage_under_way = {"input_tokens": 5, "output_tokens": 1}
    usage = continuations.ending_of(row).usage_before
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (405, 26)


@pytest.mark.parametrize("is_stateless", [True, False])
def test_the_conversation_ends_with_the_question_as_it_did_at_the_beginning(
    *, is_stateless: bool
) -> None:
    row = left_behind()
    assert row.session is not None
    person, chat = row.session.user, row.chat
    assert person is not None
    factories.message(chat, person, "earlier")
    question = factories.message(chat, person, "and now?")
    factories.message(chat, person, "later")
    rules = uamp.Message(role="system", content="be brief")
    first = uamp.Message(role="user", content="first")
    overrides = ResponseRequest(
        context=(rules, first) if is_stateless else None,
        before=() if is_stateless else (rules,),
        has_message=True,
    )
    request = msgspec.to_builtins(overrides)
    Response.objects.filter(pk=row.pk).update(message_id=question.pk, request=request)
    row = Response.objects.select_related("session", "chat").get(pk=row.pk)
    history = continued(row).request.history
    texts = [message.content for message in history]
    assert texts == (
        ["be brief", "first", "and now?"] if is_stateless else ["earlier", "be brief", "and now?"]
    )

"""Responses that a dead process left behind: which stay where they are, which resume, which end."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.utils import timezone

import uamp
from agents_app import checkpoints, connections
from agents_app.models import Agent, ProcessLease
from agents_app.providers.scripts import SCRIPTS
from payments_app.money import Money
from payments_app.spending import onward
from sessions_app import database
from sessions_app.models import Response, Session, ToolCall, ToolCallKind
from sessions_app.process import recovery
from sessions_app.process.heartbeat import Heartbeat
from sessions_app.store import responses
from sessions_app.tools import calls
from tests import factories
from tests.client import wait_until
from tests.sessions_app.response.running import get_response, left_behind, log_of, process
from uap import AgentState
from upp import AssistantMessage, TextBlock, ToolResultMessage
from upp.providers.scripted import Text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from pytest_django import Settings

    from agents_app.selectors import AgentSpec
    from sessions_app.process.registry import Process
    from upp import LLMRequest
    from upp.providers.scripted import Step

__all__ = ["process"]

SO_FAR: dict[str, Any] = {"text": "So far", "output": [{"type": "text", "text": "So far"}]}


@transaction.atomic
def of_kind(kind: str, status: str) -> Response:
    """Return a response that was left while it waited for a call of that kind."""
    response = left_behind(**SO_FAR)
    call = response.tool_calls.get()
    ToolCall.objects.filter(pk=call.pk).update(
        kind=kind, status=status, asked_in=response.chat_id if status == "asking" else ""
    )
    if kind == ToolCallKind.AGENT:
        person = User.objects.get(username="ada")
        room = factories.chat(person)
        session = factories.session(person, room, parent_call=call)
        factories.response(response.agent, room, session=session)
    return response


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("client", "waiting"),
        ("agent", "waiting"),
        ("long", "asking"),
        ("long", "queued"),
        ("long", "running"),
    ],
)
async def test_a_response_stays_where_it_is_while_its_calls_run(
    process: Process, kind: str, status: str
) -> None:
    """A process that took it over now would ask the client, or the person, a second time."""
    response = await database.run(of_kind, kind, status)
    await recovery.sweep(process)
    assert response.pk not in process.runs
    assert (await database.run(get_response, response.pk)).fence == response.fence
    ended = {"status": "done", "result": '"sunny"', "finished_at": timezone.now()}
    await database.run(lambda: response.tool_calls.update(**ended))
    await recovery.sweep(process)
    await database.run(wait_until, lambda: get_response(response.pk).status == "completed")
    went_on = await database.run(get_response, response.pk)
    assert went_on.fence == response.fence + 1
    assert went_on.text.startswith("So far")


async def ended_as_interrupted(process: Process, response: Response) -> None:
    """Check that a response ends, with what it had said."""
    await recovery.sweep(process)
    await database.run(wait_until, lambda: get_response(response.pk).status == "failed")
    ended = await database.run(get_response, response.pk)
    assert ended.text == "So far"
    assert (ended.error or {})["code"] == "interrupted"


@pytest.mark.parametrize(
    ("silent_for", "is_taken_over"),
    [(0, False), (None, False), (connections.LEASE_SECONDS + 0.5, True)],
    ids=["alive", "not known", "dead"],
)
async def test_a_dead_process_loses_its_responses_before_their_leases_end(
    process: Process, silent_for: float | None, *, is_taken_over: bool
) -> None:
    until = timezone.now() + timedelta(hours=1)
    response = await database.run(left_behind, **SO_FAR)
    await database.run(
        Response.objects.filter(pk=response.pk).update,
        process="other", lease_until=until, cancel_requested_at=timezone.now(),
    )  # fmt: skip
    if silent_for is not None:
        left = connections.LEASE_SECONDS - silent_for
        await database.run(connections.renew, "other", seconds=left)

    await recovery.take_over_dead(process)

    row = await database.run(get_response, response.pk)
    assert (row.finished_at is not None) == is_taken_over
    assert await database.run(connections.dead_processes) == []


@transaction.atomic
def left_by_a_daemon(options: dict[str, Any]) -> Response:
    """Return a response of a connected agent whose daemon was lost before it said a word."""
    response = left_behind()
    response.tool_calls.all().delete()
    Response.objects.filter(pk=response.pk).update(status="in_progress")
    agent = response.agent
    agent.kind, agent.owner, agent.options = "connected", User.objects.get(), options
    agent.save()
    return response


def mark_question(response: Response, mark: str) -> None:
    """Record in the row whether a daemon had the question; an earlier release records nothing."""
    rows = Response.objects.filter(pk=response.pk)
    if mark:
        rows.update(offered_fence=response.fence)
    if mark == "given":
        assert responses.give_question(response.pk, fence=response.fence)
    if mark == "not given at first":
        # A process of an earlier release claimed it.
        rows.update(fence=response.fence + 1)


@pytest.mark.parametrize(
    ("options", "mark", "code"),
    [
        ({}, "", "agent_offline"),
        ({}, "given", "agent_offline"),
        ({"starts_over": False}, "", "interrupted"),
        ({"starts_over": False}, "given", "interrupted"),
        ({"starts_over": False}, "not given", "agent_offline"),
        ({"starts_over": False}, "not given at first", "interrupted"),
    ],
)
async def test_an_answer_without_a_word_looks_for_another_daemon_if_its_agent_starts_over(
    process: Process, options: dict[str, Any], mark: str, code: str
) -> None:
    """So does one whose process died before it had given the question to a daemon."""
    response = await database.run(left_by_a_daemon, options)
    await database.run(mark_question, response, mark)
    await recovery.sweep(process)
    await database.run(wait_until, lambda: get_response(response.pk).status == "failed")
    ended = await database.run(get_response, response.pk)
    assert (ended.error or {})["code"] == code


@transaction.atomic
def left_paid_elsewhere() -> Response:
    """Return a cancelled response whose process paid a remote agent and died before counting it."""
    response = left_by_a_daemon({"pays_per_answer": "1"})
    Agent.objects.filter(pk=response.agent_id).update(kind="remote", protocol="completions")
    Response.objects.filter(pk=response.pk).update(cancel_requested_at=timezone.now())
    owner = User.objects.get()
    onward.set_budget(response.agent_id, owner, Money.parse("5", "USD"))
    onward.BudgetLedger().reserve(response.agent_id, response.pk, "0.5", "USD")
    return response


async def test_what_a_dead_process_paid_elsewhere_is_charged_when_its_answer_ends(
    process: Process,
) -> None:
    response = await database.run(left_paid_elsewhere)
    await recovery.sweep(process)

    def is_charged() -> bool:
        budget = onward.budget_of(response.agent_id, User.objects.get().pk)
        return (str(budget.held), str(budget.spent)) == ("0", "0.5")

    await database.run(wait_until, is_charged)


async def test_a_process_has_a_heartbeat_until_it_ends(process: Process) -> None:
    def leases() -> list[str]:
        return list(ProcessLease.objects.values_list("pk", flat=True))

    heart = Heartbeat("mine")
    heart.start()
    try:
        await database.run(wait_until, lambda: "mine" in leases())
        await database.run(ProcessLease.objects.all().delete)
        await database.run(wait_until, lambda: "mine" in leases())
    finally:
        await asyncio.to_thread(heart.stop)
    await database.run(connections.close_process, "mine")
    assert "mine" not in await database.run(leases)


async def test_a_response_whose_asker_is_gone_ends_with_its_text(process: Process) -> None:
    response = await database.run(left_behind, **SO_FAR)
    await database.run(lambda: User.objects.get(username="ada").delete())
    await ended_as_interrupted(process, response)
    assert (await database.run(log_of, response.chat_id))[-2:] == [
        "response.error",
        "message.created",
    ]
    rows = await database.run(calls.tool_calls_of, response.pk)
    assert [call.status for call in rows] == ["cancelled"]


@transaction.atomic
def corrupt(column: str) -> Response:
    """Return a response whose call has ended, with what this server never wrote in its row."""
    response = left_behind(**SO_FAR)
    response.tool_calls.update(status="done", result='"sunny"')
    if column == "config":
        Session.objects.filter(pk=response.session_id).update(config=[7])
    else:
        Response.objects.filter(pk=response.pk).update(**{column: [7]})
    return response


@pytest.mark.parametrize("column", ["output", "request", "config"])
async def test_a_response_whose_row_cannot_be_read_ends_with_its_text(
    process: Process, column: str
) -> None:
    response = await database.run(corrupt, column)
    await ended_as_interrupted(process, response)


async def test_a_response_with_unreadable_usage_continues_without_it(process: Process) -> None:
    response = await database.run(corrupt, "usage")
    await recovery.sweep(process)
    await database.run(wait_until, lambda: get_response(response.pk).status == "completed")


@transaction.atomic
def approve_during_expiry() -> list[ToolCall]:
    """Approve a call just as it is being expired; return the calls that expired."""
    response = left_behind()
    row = response.tool_calls.get()
    ToolCall.objects.update(status="asking", deadline=timezone.now(), asked_in=response.chat_id)

    def race(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if sql.startswith("UPDATE") and "sessions_app_toolcall" in sql:
            execute("UPDATE sessions_app_toolcall SET status = 'queued'", (), *rest[1:])
        return execute(sql, *rest)

    with connection.execute_wrapper(race):
        late = calls.expire_calls()
    row.refresh_from_db()
    assert row.status == "queued"
    return late


async def test_a_call_approved_at_the_last_moment_is_not_reported_as_expired(
    process: Process,
) -> None:
    del process
    assert await database.run(approve_during_expiry) == []


@transaction.atomic
def between_a_result_and_the_next_checkpoint() -> Response:
    """Return a response that died when a tool had answered, after an earlier checkpoint."""
    response = left_behind()
    call = response.tool_calls.get()
    response.tool_calls.update(status="done", result='"sunny"')
    items = [{"type": "text", "text": "First. "}]
    data = {"id": call.call_id, "name": call.name, "arguments": "{}"}
    tool_call = {"type": "tool_call", "tool_call": data}
    Response.objects.update(
        status="in_progress", fence=2, text="First. ", output=[*items, tool_call]
    )
    spoken = AssistantMessage(content=(TextBlock(text="First. "),))
    checkpoints.save(
        response.pk,
        state=AgentState.initial().with_messages((spoken,)),
        output=(uamp.TextContent(text="First. "),),
        step=1,
        fence=2,
        at=timezone.now(),
    )
    return response


async def test_a_tool_that_answered_after_the_last_checkpoint_is_not_called_again(
    process: Process,
) -> None:
    response = await database.run(between_a_result_and_the_next_checkpoint)
    await recovery.sweep(process)
    await database.run(wait_until, lambda: get_response(response.pk).status == "completed")
    ended = await database.run(get_response, response.pk)
    (call,) = await database.run(calls.tool_calls_of, response.pk)
    kinds = [item["type"] for item in ended.output]
    assert kinds == ["text", "tool_call", "tool_result", "text"]
    assert ended.output[1]["tool_call"]["id"] == call.call_id
    assert ended.output[2]["tool_result"]["call_id"] == call.call_id
    assert ended.output[3]["text"].endswith("sunny")


async def says_results(_agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Say the results that came last."""
    last = request.messages[-1]
    assert isinstance(last, ToolResultMessage)
    yield Text(" and ".join(str(message.result) for message in last.results))


@transaction.atomic
def between_the_rows_of_two_calls(journal: Path) -> Response:
    """Return a response that died when one of its two calls had a row, which has ended since."""
    response = left_behind()
    response.agent.tools, response.agent.options = ["note"], {"script": "says-results"}
    response.agent.save()
    call = response.tool_calls.get()
    response.tool_calls.update(status="done", result='"sunny"')
    called = [
        ("call_note", "note", json.dumps({"journal": str(journal)})),
        (call.call_id, call.name, "{}"),
    ]
    Response.objects.update(
        text="I do both. ",
        output=[
            {"type": "text", "text": "I do both. "},
            *(
                {
                    "type": "tool_call",
                    "tool_call": {"id": key, "name": name, "arguments": arguments},
                }
                for key, name, arguments in called
            ),
        ],
    )
    return response


async def test_calls_with_and_without_a_row_are_one_round_after_a_takeover(
    process: Process, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The agent is given both results, and the call without a row is run."""
    settings.UAMP_SERVER_TOOLS = ["tests.sessions_app.response.step_tools.note"]
    monkeypatch.setitem(SCRIPTS, "says-results", says_results)
    journal = tmp_path / "journal"
    response = await database.run(between_the_rows_of_two_calls, journal)
    await recovery.sweep(process)
    await database.run(wait_until, lambda: get_response(response.pk).status == "completed")
    ended = await database.run(get_response, response.pk)
    assert ended.text == "I do both. noted and sunny"
    assert [item["type"] for item in ended.output] == [
        "text",
        *("tool_call", "tool_call"),
        *("tool_result", "tool_result"),
        "text",
    ]
    assert journal.read_text() == "noted\n"


@transaction.atomic
def at_the_end_of_its_tokens() -> Response:
    """Return a response whose call has ended, and whose agent has written all that it may."""
    response = left_behind(**SO_FAR, usage={"input_tokens": 1, "output_tokens": 10})
    response.tool_calls.update(status="done", result='"sunny"')
    response.agent.max_output_tokens = 10
    response.agent.save()
    return response


async def test_what_was_written_before_a_takeover_counts(process: Process) -> None:
    response = await database.run(at_the_end_of_its_tokens)
    await recovery.sweep(process)
    await database.run(wait_until, lambda: get_response(response.pk).status == "failed")
    ended = await database.run(get_response, response.pk)
    assert (ended.error or {})["code"] == "too_many_steps"
    assert ended.text == "So far"

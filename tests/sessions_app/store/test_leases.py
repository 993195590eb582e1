"""Responses that one process hands to another, which claims them with a single statement."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents_app import connections
from sessions_app import database
from sessions_app.models import Response, Session, ToolCallKind
from sessions_app.process import continuations
from sessions_app.store import leases, responses
from tests import factories
from uamp_project import database_clock

if TYPE_CHECKING:
    from sessions_app.response.context import RunContext

# The session, the history, the agents of the chat, and its shared state.
CONTEXT_QUERIES = 4
REQUEST = {"pricing": None, "temperature": 0.5}


def daemons_session() -> Session:
    """Return a session with a connected agent."""
    ada, agent = factories.user(), factories.agent("daemon", kind="connected")
    return factories.session(ada, factories.chat(ada, agent), agent=agent)


def handed_over_response(*, to: str = "here", in_session: Session | None = None) -> Response:
    """Return a response that another process has just handed over."""
    session = in_session or daemons_session()
    assert session.agent is not None
    row = factories.response(
        session.agent, session.chat, session=session, process="there", request=REQUEST
    )
    assert leases.give_response(row.pk, fence=1, process=to)
    return row


@pytest.mark.django_db
def test_one_statement_claims_what_was_handed_to_a_process() -> None:
    session = daemons_session()
    first, second = (
        handed_over_response(in_session=session),
        handed_over_response(in_session=session),
    )
    elsewhere = handed_over_response(to="elsewhere", in_session=session)
    ended = handed_over_response(in_session=session)
    Response.objects.filter(pk=ended.pk).update(status="failed", finished_at=timezone.now())
    began = timezone.now()
    with CaptureQueriesContext(connection) as statements:
        claimed = leases.claim_handed_over("here")
    assert len(statements) == 1
    assert {row.pk for row in claimed} == {first.pk, second.pk}
    for row in claimed:
        stored = Response.objects.get(pk=row.pk)
        assert (row.status, row.fence, row.process) == ("in_progress", 2, "here")
        assert (row.request, row.chat_id, row.created_at) == (
            REQUEST,
            stored.chat_id,
            stored.created_at,
        )
        assert row.lease_until == stored.lease_until
        assert (row.lease_until or began) > began + timedelta(seconds=5)
    assert leases.claim_handed_over("here") == []
    assert [row.pk for row in leases.claim_handed_over("elsewhere")] == [elsewhere.pk]


@pytest.mark.django_db
def test_a_process_claims_only_the_responses_that_it_names() -> None:
    session = daemons_session()
    first, second = (
        handed_over_response(in_session=session),
        handed_over_response(in_session=session),
    )
    assert leases.claim_handed_over("here", []) == []
    assert [row.pk for row in leases.claim_handed_over("here", [first.pk, "resp_x"])] == [first.pk]
    assert [row.pk for row in leases.claim_handed_over("here", [first.pk, second.pk])] == [
        second.pk
    ]


@pytest.mark.django_db
def test_a_run_that_moves_costs_few_queries() -> None:
    session = daemons_session()
    agent, asker = session.agent, session.user
    assert agent is not None
    assert asker is not None
    factories.message(session.chat, asker, "hello")
    row = factories.response(agent, session.chat, session=session, process="there", request=REQUEST)
    with CaptureQueriesContext(connection) as placing:
        assert connections.connections_of(agent.pk) == []
        assert leases.give_response(row.pk, fence=1, process="here")
    (claimed,) = leases.claim_handed_over("here")
    with CaptureQueriesContext(connection) as reading:
        context = continuations.continuation_of(claimed, was_handed_over=True)
    assert context is not None
    assert (len(placing), len(reading)) == (2, CONTEXT_QUERIES)


@pytest.mark.django_db
def test_an_offer_that_lapses_is_not_made_to_the_same_process_again() -> None:
    row = handed_over_response(to="blocked")
    row.refresh_from_db()
    assert row.lease_until is not None
    assert row.lease_until <= timezone.now() + timedelta(seconds=leases.OFFER_SECONDS)
    assert leases.claim_orphans("here", running=()) == [], "it has time to claim it"
    Response.objects.filter(pk=row.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    (claimed,) = leases.claim_orphans("here", running=())
    context = continuations.continuation_of(claimed, was_handed_over=False)
    assert context is not None
    assert (context.avoids, context.fence) == ("blocked", 2)
    assert leases.claim_handed_over("blocked") == []


@pytest.mark.django_db
@pytest.mark.parametrize("step", ["offered", "claimed", "given"])
def test_an_agent_that_does_not_start_over_is_placed_anew_if_no_daemon_had_the_question(
    step: str,
) -> None:
    session = daemons_session()
    assert session.agent is not None
    session.agent.options = {"starts_over": False}
    session.agent.save()
    row = handed_over_response(to="blocked", in_session=session)
    if step != "offered":
        leases.claim_handed_over("blocked")
    if step == "given":
        assert responses.give_question(row.pk, fence=2)
    # Processes that die before they ask a daemon hand on what the row says.
    for _ in range(2):
        Response.objects.filter(pk=row.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
        (claimed,) = leases.claim_orphans("here", running=())
        context = continuations.continuation_of(claimed, was_handed_over=False)
        assert (context is None) is (step == "given")


def test_an_offer_outlasts_the_difference_of_two_clocks() -> None:
    assert leases.OFFER_SECONDS > 2 * database_clock.TOLERANCE_SECONDS


@transaction.atomic
def continued(row: Response) -> RunContext:
    """Return the context in which the process named `here` continues a response."""
    (claimed,) = leases.claim_handed_over("here", [row.pk])
    context = continuations.continuation_of(claimed, was_handed_over=True)
    assert context is not None
    return context


@pytest.mark.django_db
def test_a_response_that_had_not_begun_is_not_searched_for_earlier_work() -> None:
    row = handed_over_response()
    factories.tool_call(row, kind=ToolCallKind.CLIENT)
    (claimed,) = leases.claim_handed_over("here")
    with CaptureQueriesContext(connection) as statements:
        context = continuations.continuation_of(claimed, was_handed_over=True)
    assert context is not None
    assert (context.has_moved, context.was_taken_over) == (True, False)
    assert context.request.resume == ()
    sql = " ".join(query["sql"] for query in statements)
    for table in ("agents_app_checkpoint", "agents_app_remotetask", "sessions_app_toolcall"):
        assert f'FROM "{table}"' not in sql
    assert sql.count('FROM "sessions_app_session"') == 1


@pytest.mark.django_db
def test_a_response_that_was_taken_over_before_brings_its_earlier_work() -> None:
    row = handed_over_response()
    call = factories.tool_call(row, kind=ToolCallKind.CLIENT)
    # Its first process died, and the one that took it over handed it here.
    Response.objects.filter(pk=row.pk).update(fence=2)
    context = continued(row)
    assert (context.has_moved, context.was_taken_over) == (True, True)
    (item,) = context.request.resume
    assert getattr(item, "tool_call").id == call.call_id  # noqa: B009


@pytest.mark.django_db
def test_a_response_of_a_dead_process_is_taken_over() -> None:
    row = handed_over_response()
    Response.objects.update(status="in_progress", lease_until=timezone.now() - timedelta(1))
    (claimed,) = leases.claim_orphans("here", running=())
    context = continuations.continuation_of(claimed, was_handed_over=False)
    assert context is not None
    assert (context.response_id, context.fence, context.was_taken_over) == (row.pk, 2, True)


@pytest.mark.django_db(transaction=True)
async def test_only_one_of_two_claims_wins(database_threads: None) -> None:
    """The signal of a handover and the look for lost ones may come at the same time."""
    row = await database.run(handed_over_response)
    first, second = await asyncio.gather(
        database.run(leases.claim_handed_over, "here", [row.pk]),
        database.run(leases.claim_handed_over, "here"),
    )
    won = [*first, *second]
    assert [claimed.pk for claimed in won] == [row.pk]
    assert [claimed.fence for claimed in won] == [2]

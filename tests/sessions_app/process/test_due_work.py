"""Jobs wait until the database has something for them, which one query says."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING
from unittest.mock import MagicMock

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents_app.models import ProcessLease
from chat_app.models import CallReason, CallState, PushDelivery, PushSubscription, VoiceCall
from sessions_app import database
from sessions_app.models import PaymentRequest, ToolCallKind, Webhook, WebhookDelivery
from sessions_app.process import periodic
from sessions_app.process.due_work import DueWork
from sessions_app.process.periodic import PeriodicJob
from sessions_app.states import ToolCallState
from tests import factories

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import QuerySet
    from django.db.models.functions import Now

    from chat_app.models import Chat
    from sessions_app.models import Response

pytestmark = pytest.mark.django_db

PAST, FUTURE = timedelta(minutes=-5), timedelta(minutes=5)
SWEEP, QUEUE, HOOKS = "sweep responses", "start queued turns", "send webhooks"
PUSHES, CALLS = "send notifications", "renew and sweep calls"
DEAD = "take over from dead processes"


def answer() -> Response:
    """Return a running answer whose process is alive."""
    lease = timezone.now() + FUTURE
    chat = factories.chat(factories.user())
    return factories.response(factories.agent(), chat, lease_until=lease)


def active_chat() -> Chat:
    chat = factories.chat(factories.user())
    factories.message(chat, factories.user("bob"))
    chat.refresh_from_db()
    return chat


def call_that_ends(after: timedelta) -> None:
    deadline = timezone.now() + after
    factories.tool_call(
        answer(), kind=ToolCallKind.CLIENT, status=ToolCallState.WAITING, deadline=deadline
    )


def payment_that_ends(after: timedelta) -> None:
    response = answer()
    PaymentRequest.objects.create(
        response=response,
        number=1,
        asked_in=response.chat_id,
        amount=1,
        asset="USD",
        reason="llm_usage",
        deadline=timezone.now() + after,
    )


def lost_answer(after: timedelta) -> None:
    lease = timezone.now() + after
    factories.response(factories.agent(), factories.chat(factories.user()), lease_until=lease)


def silent_call(after: timedelta) -> None:
    factories.tool_call(answer(), lease_until=timezone.now() + after)


def queued_turn(after: timedelta) -> None:
    person = factories.user()
    session = factories.session(person, factories.chat(person))
    factories.queued_turn(person, session, due_at=timezone.now() + after)


def webhook_of_an_answer(after: timedelta) -> None:
    Webhook.objects.create(response=answer(), name="x", look_at=timezone.now() + after)


def webhook_of_a_chat(after: timedelta) -> None:
    chat = factories.chat(factories.user())
    Webhook.objects.create(chat=chat, name="x", look_at=timezone.now() + after)


def webhook_behind(after: timedelta) -> None:
    chat = active_chat()
    seq = chat.last_seq if after > timedelta() else chat.last_seq - 1
    Webhook.objects.create(chat=chat, name="x", queued_seq=seq)


def delivery(after: timedelta) -> None:
    later = timezone.now() + FUTURE
    row = Webhook.objects.create(response=answer(), name="x", look_at=later)
    WebhookDelivery.objects.create(webhook=row, number=1, due_at=timezone.now() + after)


def subscription() -> PushSubscription:
    return PushSubscription.objects.create(user=factories.user("carol"), session_id="none")


def subscribed_chat(after: timedelta) -> None:
    chat = factories.chat(subscription().user, factories.user("dave"))
    # Chats that were recently written to.
    chat.latest_at = timezone.now() + (PAST if after > timedelta() else timedelta())
    chat.save()


def push(after: timedelta) -> None:
    chat = factories.chat(factories.user("erin"))
    PushDelivery.objects.create(
        subscription=subscription(),
        message=factories.message(chat, factories.user("frank")),
        is_mention=False,
        is_followed=False,
        due_at=timezone.now() + after,
    )


def voice_call(after: timedelta) -> None:
    chat = factories.chat(factories.user())
    ended = {"state": CallState.ENDED, "ended_at": timezone.now(), "reason": CallReason.ENDED}
    VoiceCall.objects.create(chat=chat, **ended if after > timedelta() else {})


def lease(after: timedelta) -> None:
    ProcessLease.objects.create(pk="other", lease_until=timezone.now() + after)


WORK = [
    (SWEEP, call_that_ends),
    (SWEEP, payment_that_ends),
    (SWEEP, lost_answer),
    (SWEEP, silent_call),
    (QUEUE, queued_turn),
    (HOOKS, webhook_of_an_answer),
    (HOOKS, webhook_of_a_chat),
    (HOOKS, webhook_behind),
    (HOOKS, delivery),
    (PUSHES, subscribed_chat),
    (PUSHES, push),
    (CALLS, voice_call),
    (DEAD, lease),
]
"""A job, and what makes a row that is due after a time: a past or a future one."""


def due_work() -> DueWork:
    """Return the work that the jobs of a process look for."""
    jobs = periodic.jobs(MagicMock())
    return DueWork({job.name: job.due for job in jobs if job.due is not None})


@pytest.mark.parametrize(("job", "make"), WORK)
def test_a_job_has_work_once_its_row_is_due(job: str, make: Callable[[timedelta], None]) -> None:
    make(PAST)
    work = due_work()
    assert work.jobs() == [job]
    with CaptureQueriesContext(connection) as queries:
        assert work.jobs() == [job]
    assert len(queries) <= 1


@pytest.mark.parametrize(("job", "make"), WORK)
def test_a_job_has_no_work_before(job: str, make: Callable[[timedelta], None]) -> None:
    del job
    make(FUTURE)
    assert due_work().jobs() == []


def test_every_job_that_waits_is_in_the_table() -> None:
    waiting = {job.name for job in periodic.jobs(MagicMock()) if job.due is not None}
    assert waiting == {name for name, _ in WORK}


@pytest.mark.usefixtures("database_threads")
async def test_a_job_runs_when_there_is_work_and_not_otherwise() -> None:
    runs = []

    async def run() -> None:
        runs.append("ran")

    def due(_: Now) -> list[QuerySet[ProcessLease]]:
        return [ProcessLease.objects.all()]

    waiting, look = periodic.with_look([PeriodicJob("job", 0, run, due)])
    round_of_job = asyncio.ensure_future(waiting.run())
    await look.run()
    assert runs == []

    await database.run(lease, PAST)
    await look.run()
    await asyncio.wait_for(round_of_job, 60)
    assert runs == ["ran"]

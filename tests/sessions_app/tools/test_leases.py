"""Claims and leases of calls, lost messages, and workers that die."""

import os
import signal
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from celery import Celery
from django.db import connection
from django.utils import timezone
from pytest_django.fixtures import Settings

from agents_app.tools.registry import ToolCancelled, ToolOutcome
from chat_app.models import ContentUse
from sessions_app.models import ToolCall
from sessions_app.tools.tasks import notify_workers, requeue_lost_calls, run_tool_call
from sessions_app.tools.worker import CallClaim, Work, claim_call, end_call
from tests.sessions_app.tools.claims import claimed, expire_lease, progress_of, receiving
from tests.sessions_app.tools.tool_workers import (
    ended,
    is_alive,
    lines,
    queued_call,
    wait_for,
    worker_process,
)
from tests.threads import join_threads
from uamp_project.celery import app

pytestmark = pytest.mark.usefixtures("database_threads")


def test_the_second_claim_wins_and_the_first_writes_nothing() -> None:
    call = queued_call("steps")
    first = claimed(call)
    with Work(first) as slow:
        slow.progress(stage="one")
        assert claim_call(call.pk) is None
        expire_lease(call)
        second = claimed(call)
        with receiving(call) as received, pytest.raises(ToolCancelled):
            slow.progress(stage="two")
        with pytest.raises(ToolCancelled):
            slow.write_content(b"late", mime_type="text/plain", filename="late.txt")
    assert received == []
    assert not end_call(first, "done", ToolOutcome(result="first"))
    assert end_call(second, "done", ToolOutcome(result="second"))
    row = ToolCall.objects.get(pk=call.pk)
    assert (row.status, row.result, row.attempts) == ("done", "second", 2)
    assert row.progress is not None
    assert row.progress["stage"] == "one"
    assert not ContentUse.objects.filter(chat_id=call.response.chat_id).exists()


def test_of_many_claims_one_wins() -> None:
    call = queued_call("steps")
    won: list[CallClaim | None] = []
    start = threading.Barrier(4)

    def claim() -> None:
        start.wait(60)
        won.append(claim_call(call.pk))
        connection.close()

    threads = [threading.Thread(target=claim) for _ in range(4)]
    for thread in threads:
        thread.start()
    join_threads(threads)
    assert len([claim for claim in won if claim]) == 1


@pytest.mark.usefixtures("notified_calls")
def test_the_lease_of_a_silent_tool_is_kept(settings: Settings) -> None:
    settings.UAMP_LEASE_SECONDS = 2
    call = queued_call("steps")
    claim = claimed(call)
    with Work(claim):
        time.sleep(3)
        assert requeue_lost_calls() == []
        assert claim_call(call.pk) is None
    wait_for(lambda: requeue_lost_calls() == [call.pk])


@pytest.mark.usefixtures("celery_worker_thread")
def test_a_call_whose_lease_ended_is_run_again() -> None:
    call = queued_call("repeat", {"text": "x", "times": 2})
    claimed(call)
    assert requeue_lost_calls() == []
    expire_lease(call)
    assert requeue_lost_calls() == [call.pk]
    row = ended(call)
    assert (row.status, row.result, row.attempts) == ("done", "xx", 2)


def test_a_lost_message_is_rung_for_again_but_not_at_once(
    notified_calls: Callable[[], list[int]],
) -> None:
    call = queued_call("steps")
    assert requeue_lost_calls() == []
    early = timezone.now() - timedelta(seconds=4)
    ToolCall.objects.filter(pk=call.pk).update(created_at=early)
    assert requeue_lost_calls() == [call.pk]
    assert requeue_lost_calls() == []
    assert notified_calls() == [call.pk]
    expire_lease(call)
    assert requeue_lost_calls() == [call.pk]
    assert notified_calls() == [call.pk]
    assert claimed(call).attempt == 1


def test_calls_of_clients_and_ended_calls_are_not_rung_for() -> None:
    call = queued_call("steps")
    past = timezone.now() - timedelta(seconds=60)
    ToolCall.objects.filter(pk=call.pk).update(created_at=past, kind="client", status="waiting")
    assert requeue_lost_calls() == []
    assert claim_call(call.pk) is None
    ToolCall.objects.filter(pk=call.pk).update(kind="long", status="done", lease_until=past)
    assert requeue_lost_calls() == []
    assert claim_call(call.pk) is None


def test_a_broker_that_is_away_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    call = queued_call("steps")
    away = Celery("away", broker="redis://127.0.0.1:1/0")
    away.conf.broker_transport_options = {"max_retries": 0}
    away.set_current()
    try:
        notify_workers(call.pk)
    finally:
        app.set_current()
        away.close()
    assert f"the message of tool call {call.pk}" in caplog.text
    assert ToolCall.objects.get(pk=call.pk).status == "queued"


def test_a_tool_with_an_effect_is_not_run_a_second_time(tmp_path: Path) -> None:
    call = queued_call("once", {"journal": str(tmp_path / "j")})
    claimed(call)
    expire_lease(call)
    run_tool_call(pk=call.pk)
    row = ended(call)
    assert (row.status, row.is_error, row.attempts) == ("unknown", True, 2)
    assert row.result.startswith("Outcome unknown: ")
    assert lines(tmp_path / "j") == []


def test_a_call_that_kills_every_worker_is_given_up() -> None:
    call = queued_call("repeat", {"text": "x", "times": 1})
    for _ in range(5):
        claimed(call)
        expire_lease(call)
    run_tool_call(pk=call.pk)
    row = ended(call)
    assert (row.status, row.attempts) == ("unknown", 6)


@pytest.mark.usefixtures("celery_worker_thread")
def test_a_worker_killed_in_a_tool_is_replaced_once(tmp_path: Path, settings: Settings) -> None:
    settings.UAMP_LEASE_SECONDS = 1
    journal = tmp_path / "j"
    call = queued_call("steps", {"steps": 8, "pause": 0.2, "journal": str(journal)})
    with worker_process(tmp_path) as (process, broker):
        app.send_task(str(run_tool_call.name), kwargs={"pk": call.pk}, connection=broker)
        wait_for(lambda: len(lines(journal)) >= 3)
        process.end(signal.SIGKILL)
    [tool_process] = {int(line.split()[0]) for line in lines(journal)}
    assert tool_process != process.pid
    wait_for(lambda: not is_alive(tool_process))
    killed = lines(journal)
    assert 3 <= len(killed) < 8
    progress = ToolCall.objects.get(pk=call.pk).progress
    assert progress is not None

    with receiving(call) as received:
        wait_for(lambda: requeue_lost_calls() == [call.pk])
        row = ended(call)
        wait_for(lambda: received and received[-1]["type"] == "run.settled")

    assert (row.status, row.result, row.attempts) == ("done", "8 steps", 2)
    again = [line.split() for line in lines(journal)[len(killed) :]]
    assert [step for _, step in again] == [str(step) for step in range(1, 9)]
    assert not {process for process, _ in again} & {str(tool_process), str(os.getpid())}
    percents = [event["percent"] for event in progress_of(received)]
    assert percents == sorted(percents)
    assert (percents[0], percents[-1]) == (progress["percent"], 100)
    assert requeue_lost_calls() == []

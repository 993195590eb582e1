"""Long tools: their progress, their cancel, and what is left of them when workers die."""

import asyncio
import json
import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from channels.layers import channel_layers, get_channel_layer
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone
from pytest_django.fixtures import Settings

import uamp
from agents_app.tools.registry import FoundMessage, ToolCancelled, ToolError, ToolOutcome
from chat_app.contents import quota, reading_rights, references, storage
from chat_app.log import fanout
from chat_app.models import ContentUse, Participant
from sessions_app.models import Response, ToolCall
from sessions_app.store import responses
from sessions_app.tools import calls
from sessions_app.tools.tasks import notify_workers, requeue_lost_calls, run_tool_call
from sessions_app.tools.worker import CallClaim, Work, claim_call, end_call
from telemetry.log_fields import AddFields
from tests import factories
from tests.agents_app.web_server import web_server
from tests.sessions_app.tools import long_tools
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
from uamp_project.monitoring.log_forms import JsonFormatter

pytestmark = pytest.mark.usefixtures("database_threads")

LIMIT = uamp.DEFAULT_LIMITS.tool_result_bytes


@pytest.fixture(autouse=True)
def _tools(settings: Settings) -> None:
    settings.UAMP_SERVER_TOOLS = [*django_settings.UAMP_SERVER_TOOLS, *long_tools.PATHS]
    channel_layers.set("default", None)
    channel_layers.backends.clear()


@pytest.fixture
def notified_calls() -> Iterator[Callable[[], list[int]]]:
    """Send messages to a queue without workers; give a function that returns the new calls."""
    unanswered = Celery("unanswered", broker="memory://")
    unanswered.conf.task_default_queue = "unanswered"
    unanswered.set_current()
    with unanswered.connection_for_read() as broker, broker.SimpleQueue("unanswered") as queue:
        queue.clear()

        def notified() -> list[int]:
            found = []
            while queue.qsize():
                message = queue.get_nowait()
                message.ack()
                found.append(message.payload[1]["pk"])
            return found

        yield notified
    app.set_current()
    unanswered.close()


def expire_lease(call: ToolCall) -> None:
    """Let a call look as if its worker had fallen silent."""
    ToolCall.objects.filter(pk=call.pk).update(lease_until=timezone.now() - timedelta(seconds=1))


def claimed(call: ToolCall) -> CallClaim:
    """Take a call as a worker does."""
    claim = claim_call(call.pk)
    assert claim is not None
    return claim


@contextmanager
def receiving(call: ToolCall) -> Iterator[list[dict[str, Any]]]:
    """Collect what is sent to the chat of a call and to the processes."""
    received: list[dict[str, Any]] = []
    ready = threading.Event()
    stop = asyncio.Event()

    async def listen() -> None:
        layer = get_channel_layer()
        channel = await layer.new_channel()
        for group in (fanout.chat_group(call.response.chat_id), fanout.PROCESSES_GROUP):
            await layer.group_add(group, channel)
        ready.set()
        while True:
            received.append(await layer.receive(channel))

    async def main() -> None:
        task = asyncio.create_task(listen())
        await asyncio.wait_for(stop.wait(), 600)
        task.cancel()
        await asyncio.wait([task], timeout=60)

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_until_complete, args=(main(),))
    thread.start()
    try:
        assert ready.wait(5)
        yield received
    finally:
        loop.call_soon_threadsafe(stop.set)
        join_threads([thread])
        loop.close()


def progress_of(received: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the progress events among the layer messages."""
    return [json.loads(m["frame"]) for m in received if m["type"] == "chat.signal"]


# --- Progress and the end ---


@pytest.mark.usefixtures("celery_worker_thread")
def test_a_queued_call_is_run_and_the_chat_receives_its_progress(tmp_path: Path) -> None:
    call = queued_call("steps", {"steps": 3, "pause": 0.15, "journal": str(tmp_path / "j")})
    with receiving(call) as received:
        notify_workers(call.pk)
        row = ended(call)
        wait_for(lambda: received[-1:] and received[-1]["type"] == "run.settled")
    assert (row.status, row.result, row.is_error) == ("done", "3 steps", False)
    assert (row.attempts, row.lease_until) == (1, None)
    reported = progress_of(received)
    assert [(e["step"], e["percent"]) for e in reported] == [(1, 33), (2, 67), (3, 100)]
    last = reported[-1]
    assert row.progress is not None
    assert {name: last[name] for name in row.progress if name not in {"event_id", "timestamp"}} == {
        "type": "progress",
        "target": "tool",
        "target_id": "call_1",
        "response_id": call.response_id,
        "stage": "steps",
        "message": "on",
        "percent": 100,
        "step": 3,
        "total_steps": 3,
    }
    assert {m["response"] for m in received} == {call.response_id}
    assert received[-1] == {"type": "run.settled", "response": call.response_id, "call": call.pk}


@pytest.mark.usefixtures("celery_worker_thread")
def test_rapid_progress_is_thinned_out_but_each_stage_keeps_its_last() -> None:
    call = queued_call("rapid", {"seconds": 0.5})
    with receiving(call) as received:
        notify_workers(call.pk)
        row = ended(call)
        wait_for(lambda: received and received[-1]["type"] == "run.settled")
    reported = progress_of(received)
    assert row.status == "done"
    assert len(reported) <= 14
    read = [e for e in reported if e["stage"] == "read"]
    assert (read[0]["step"], read[-1]["step"], reported[-1]["step"]) == (1, -1, -1)
    percents = [e["percent"] for e in reported if "percent" in e]
    assert set(percents) == {99}


@pytest.mark.usefixtures("celery_worker_thread")
def test_the_last_words_before_a_silence_are_reported(tmp_path: Path) -> None:
    call = queued_call("gated", {"journal": str(tmp_path / "j")})
    with receiving(call) as received:
        notify_workers(call.pk)
        wait_for(lambda: len(progress_of(received)) == 2)
        assert [e["message"] for e in progress_of(received)] == ["first", "second"]
        long_tools.open_gate(tmp_path / "j")
        assert ended(call).status == "done"


def test_progress_never_falls_not_even_in_another_attempt() -> None:
    call = queued_call("steps")
    with Work(claimed(call)) as work:
        work.progress(percent=60.4)
    expire_lease(call)
    with Work(claimed(call)) as work, receiving(call) as received:
        work.progress(percent=10, stage="again")
        work.progress(percent=250, stage="over")
    assert [e["percent"] for e in progress_of(received)] == [60, 100]


@pytest.mark.parametrize("percent", [float("nan"), float("inf"), float("-inf"), 1e308 * 10])
def test_progress_that_is_no_number_is_reported_without_it(percent: float) -> None:
    call = queued_call("steps")
    with Work(claimed(call)) as work, receiving(call) as received:
        work.progress(percent=30, stage="one")
        work.progress(percent=percent, stage="two", step=2)
        work.progress(percent=20, stage="three")
    reported = [(e["stage"], e.get("percent"), e.get("step")) for e in progress_of(received)]
    assert reported == [("one", 30, None), ("two", None, 2), ("three", 30, None)]


def test_long_words_of_progress_are_cut() -> None:
    call = queued_call("steps")
    with Work(claimed(call)) as work, receiving(call) as received:
        work.progress(stage="s" * 10_000, message="m" * 10_000)
    (reported,) = progress_of(received)
    assert (reported["stage"], reported["message"]) == ("s" * 500, "m" * 500)


@pytest.mark.usefixtures("celery_worker_thread")
def test_ringing_twice_runs_a_call_once(tmp_path: Path) -> None:
    call = queued_call("once", {"journal": str(tmp_path / "j")})
    for _ in range(3):
        notify_workers(call.pk)
    assert ended(call).status == "done"
    later = queued_call("repeat", {"text": "x", "times": 1})
    notify_workers(later.pk)
    ended(later)
    assert lines(tmp_path / "j") == ["sent"]


# --- Answers that are errors ---


@pytest.mark.parametrize(
    "arguments", ["[1]", '{"a":', "null", '"text"', "NaN", '{"a":' * 5000 + "1" + "}" * 5000]
)
def test_bad_arguments_are_answered_and_no_tool_is_run(arguments: str) -> None:
    call = queued_call("break", arguments)
    run_tool_call(pk=call.pk)
    row = ended(call)
    assert (row.status, row.is_error) == ("failed", True)
    assert row.result.startswith("The arguments must be one JSON object: ")


def test_arguments_that_do_not_fit_are_answered_and_the_tool_is_not_begun() -> None:
    call = queued_call("csv_report", {"content_id": 7})
    run_tool_call(pk=call.pk)
    row = ended(call)
    assert (row.status, row.is_error, row.progress) == ("failed", True, None)
    assert row.result == "csv_report was not run. Expected `str`, got `int` - at `$.content_id`."


def test_an_unknown_tool_is_answered() -> None:
    call = queued_call("teleport")
    run_tool_call(pk=call.pk)
    row = ended(call)
    assert (row.status, row.is_error) == ("failed", True)
    assert row.result == "This server has no tool named 'teleport'."


def test_a_tool_that_refuses_is_quoted() -> None:
    call = queued_call("refuse")
    run_tool_call(pk=call.pk)
    row = ended(call)
    assert (row.status, row.is_error) == ("failed", True)
    assert row.result == "There is no column 'price'. Name one of: cost, date."


def test_a_tool_that_breaks_is_logged_and_reveals_no_internals(
    caplog: pytest.LogCaptureFixture,
) -> None:
    call = queued_call("break")
    run_tool_call(pk=call.pk)
    row = ended(call)
    assert (row.status, row.is_error) == ("failed", True)
    assert row.result == "The tool failed. Its error is in the server's log."
    assert "hunter2" in caplog.text


def test_the_line_of_a_tool_that_breaks_has_the_ids_of_its_call(
    caplog: pytest.LogCaptureFixture,
) -> None:
    call = queued_call("break")
    ids = AddFields()
    caplog.handler.addFilter(ids)
    try:
        run_tool_call(pk=call.pk)
    finally:
        caplog.handler.removeFilter(ids)
    (line,) = [record for record in caplog.records if "hunter2" in record.getMessage()]
    written = json.loads(JsonFormatter().format(line))
    assert (written["response_id"], written["tool_call_id"]) == (call.response_id, call.call_id)


def test_a_result_at_the_limit_stays_in_the_row() -> None:
    call = queued_call("repeat", {"text": "x", "times": LIMIT})
    run_tool_call(pk=call.pk)
    row = ended(call)
    assert (row.result, row.content_items) == ("x" * LIMIT, [])


def test_a_result_past_the_limit_becomes_a_file_of_the_chat() -> None:
    call = queued_call("repeat", {"text": "x", "times": LIMIT + 1})
    run_tool_call(pk=call.pk)
    row = ended(call)
    assert (row.status, row.is_error) == ("done", False)
    assert row.result.startswith(f"The result has {LIMIT + 1} bytes, too many to show here.")
    assert len(row.result) < 2500
    [item] = row.content_items
    assert (item["type"], item["filename"]) == ("file", "repeat-result.txt")
    data, mime_type = storage.read_in_chat(item["content_id"], call.response.chat_id)
    assert (data, mime_type) == (b"x" * (LIMIT + 1), "text/plain")


def test_a_result_that_no_file_may_hold_is_answered(settings: Settings) -> None:
    settings.UAMP_UPLOAD_BYTES = LIMIT + 10
    for times, status in ((LIMIT + 10, "done"), (LIMIT + 11, "failed")):
        call = queued_call("repeat", {"text": "x", "times": times})
        run_tool_call(pk=call.pk)
        row = ended(call)
        assert (row.status, row.is_error) == (status, status == "failed")
        assert len(row.result) < 2500
    assert row.result == f"The file is larger than {LIMIT + 10} bytes."
    assert row.content_items == []


def test_a_result_that_is_no_text_is_answered(caplog: pytest.LogCaptureFixture) -> None:
    call = queued_call("odd")
    run_tool_call(pk=call.pk)
    row = ended(call)
    assert (row.status, row.is_error) == ("failed", True)
    assert row.result == "The tool failed. Its error is in the server's log."
    assert "Encoding objects of type object is unsupported" in caplog.text


def test_a_result_with_characters_that_no_database_takes_is_kept() -> None:
    call = queued_call("repeat", '{"text": "a\\u0000b", "times": 1}')
    run_tool_call(pk=call.pk)
    assert ended(call).result == "a\N{REPLACEMENT CHARACTER}b"


# --- Cancel and time ---


@pytest.mark.usefixtures("celery_worker_thread")
def test_a_cancelled_response_stops_its_running_tool(tmp_path: Path) -> None:
    call = queued_call("gated", {"journal": str(tmp_path / "j")})
    with receiving(call) as received:
        notify_workers(call.pk)
        wait_for(lambda: lines(tmp_path / "j"))
        responses.request_cancel(call.response_id)
        long_tools.open_gate(tmp_path / "j")
        row = ended(call)
        wait_for(lambda: received and received[-1]["type"] == "run.settled")
    assert (row.status, row.is_error) == ("cancelled", True)
    assert row.result == "The tool was cancelled."
    assert lines(tmp_path / "j") == ["began"]


def test_a_call_whose_response_was_cancelled_is_not_begun(tmp_path: Path) -> None:
    call = queued_call("once", {"journal": str(tmp_path / "j")})
    responses.request_cancel(call.response_id)
    run_tool_call(pk=call.pk)
    assert ended(call).status == "cancelled"
    assert lines(tmp_path / "j") == []


def test_a_tool_that_takes_too_long_is_stopped(settings: Settings, tmp_path: Path) -> None:
    settings.UAMP_TOOL_SECONDS = 0.4
    call = queued_call("steps", {"steps": 50, "pause": 0.1, "journal": str(tmp_path / "j")})
    run_tool_call(pk=call.pk)
    row = ended(call)
    assert (row.status, row.is_error) == ("failed", True)
    assert row.result == "The tool took too long and was stopped."
    assert len(lines(tmp_path / "j")) < 50


@pytest.mark.usefixtures("notified_calls")
def test_a_tool_that_hangs_past_its_time_loses_its_call(settings: Settings) -> None:
    settings.UAMP_TOOL_SECONDS = settings.UAMP_LEASE_SECONDS = 0.5
    call = queued_call("steps")
    claim = claimed(call)
    with Work(claim):
        wait_for(lambda: requeue_lost_calls() == [call.pk])
        wait_for(lambda: [late.pk for late in calls.expire_calls()] == [call.pk])
        assert not end_call(claim, "done", ToolOutcome(result="late"))
    row = ToolCall.objects.get(pk=call.pk)
    assert (row.status, row.result) == ("failed", "The tool did not answer in time.")


# --- Fences, leases, lost messages ---


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


# --- Content ---


def test_a_tool_reads_what_is_in_its_chat_or_its_persons_own() -> None:
    asker, other = (User.objects.create_user(name) for name in ("asker", "other"))
    call, elsewhere = (queued_call("steps", user=asker) for _ in range(2))
    for chat_id in (call.response.chat_id, elsewhere.response.chat_id):
        for user in (asker, other):
            Participant.objects.create(chat_id=chat_id, user=user)
    shared, own, foreign, carried = (
        storage.store(name.encode(), mime_type="text/plain", filename=f"{name}.txt", owner=owner)
        for name, owner in (
            ("shared", quota.ContentOwner(user_id=other.pk)),
            ("own", quota.ContentOwner(user_id=asker.pk)),
            ("foreign", quota.ContentOwner(user_id=other.pk)),
            ("carried", quota.ContentOwner(user_id=other.pk)),
        )
    )
    reading_rights.use(call.response.chat_id, [str(shared.pk)])
    reading_rights.use(elsewhere.response.chat_id, [str(carried.pk)])
    with Work(claimed(call)) as work:
        read = work.read_content(str(shared.pk))
        assert (read.data, read.mime_type, read.filename) == (
            b"shared",
            "text/plain",
            "shared.txt",
        )
        assert work.read_content(str(own.pk)).data == b"own"
        for content_id in (str(foreign.pk), str(carried.pk), str(uuid.uuid4()), "x"):
            with pytest.raises(ToolError, match=f"There is no content '{content_id}'"):
                work.read_content(content_id)


def test_a_visitors_tool_reads_what_they_sent_and_what_was_made_for_them() -> None:
    call = queued_call("steps")
    sent, foreign = (
        storage.store(b"sent", mime_type="text/plain", filename="a.txt", owner=owner)
        for owner in (
            quota.ContentOwner(key="anonymous:abc"),
            quota.ContentOwner(key="anonymous:x"),
        )
    )
    with Work(claimed(call)) as work:
        made = work.write_content(b"made", mime_type="text/plain", filename="b.txt")
        assert isinstance(made, uamp.FileContent)
        assert work.read_content(str(made.content_id)).data == b"made"
        assert work.read_content(str(sent.pk)).data == b"sent"
        with pytest.raises(ToolError, match="There is no content"):
            work.read_content(str(foreign.pk))


def test_the_same_bytes_from_two_attempts_are_one_content() -> None:
    call = queued_call("steps")
    items = []
    for _ in range(2):
        with Work(claimed(call)) as work:
            items.append(work.write_content(b"a,b", mime_type="text/csv", filename="r.csv"))
        expire_lease(call)
    assert items[0] == items[1]
    [use] = ContentUse.objects.filter(chat_id=call.response.chat_id).select_related("content")
    assert use.content.owner_key == f"chat:{call.response.chat_id}"
    assert references.item_of(use.content) == items[0]


def test_what_may_not_be_stored_is_said() -> None:
    call = queued_call("steps")
    with Work(claimed(call)) as work, pytest.raises(ToolError, match="The file is empty"):
        work.write_content(b"", mime_type="text/csv", filename="r.csv")


# --- The chat ---


def test_a_tool_searches_its_own_chat_and_no_other() -> None:
    asker = User.objects.create_user("asker")
    call, elsewhere = (queued_call("steps", user=asker) for _ in range(2))
    here = call.response.chat
    texts = ("Die ÄRGER-Liste", "100% ärger, liste", "an_other liste", "Liste: Ärger?")
    first, second, _, question = (factories.message(here, asker, text) for text in texts)
    factories.message(elsewhere.response.chat, asker, "ärger liste elsewhere")
    Response.objects.filter(pk=call.response_id).update(message=question)
    with Work(claimed(call)) as work:
        assert work.search_messages(["ärger", "LISTE"], limit=5) == [
            FoundMessage(at=m.created_at, role="user", name="asker", text=m.content)
            for m in (second, first)
        ]
        assert [m.text for m in work.search_messages(["liste"], limit=1)] == ["an_other liste"]
        # What LIKE takes for a wildcard is a character here.
        assert [m.text for m in work.search_messages(["%"], limit=5)] == ["100% ärger, liste"]
        assert [m.text for m in work.search_messages(["n_o"], limit=5)] == ["an_other liste"]
        assert work.search_messages(["elsewhere"], limit=5) == []


@pytest.mark.usefixtures("celery_worker_thread")
def test_the_tool_that_ships_reports_on_a_file_of_the_chat() -> None:
    asker = User.objects.create_user("asker")
    table = storage.store(
        b"city,rain\nBern,3\nBasel,5\n",
        mime_type="text/csv",
        filename="rain.csv",
        owner=quota.ContentOwner(user_id=asker.pk),
    )
    call = queued_call("csv_report", {"content_id": str(table.pk)}, user=asker)
    with receiving(call) as received:
        notify_workers(call.pk)
        row = ended(call)
        wait_for(lambda: received and received[-1]["type"] == "run.settled")
    assert (row.status, row.is_error) == ("done", False)
    assert row.result.startswith("**rain.csv** has 2 rows and 2 columns.")
    [item] = row.content_items
    _, mime_type = storage.read_in_chat(item["content_id"], call.response.chat_id)
    assert (item["type"], mime_type) == ("image", "image/png")
    stages = list(dict.fromkeys(event["stage"] for event in progress_of(received)))
    assert stages == ["read", "parse", "statistics", "chart", "write", "done"]
    assert progress_of(received)[-1]["percent"] == 100


@pytest.mark.usefixtures("celery_worker_thread")
def test_the_tool_that_ships_searches_its_chat() -> None:
    asker = User.objects.create_user("asker")
    call, elsewhere = (queued_call("search_chat", {"query": "BUDGET"}) for _ in range(2))
    said = factories.message(call.response.chat, asker, "The budget is 5.")
    factories.message(elsewhere.response.chat, asker, "Another budget.")
    notify_workers(call.pk)
    row = ended(call)
    assert (row.status, row.is_error) == ("done", False)
    time_of = said.created_at.isoformat(timespec="seconds")
    assert json.loads(row.result) == [
        {"time": time_of, "name": "asker", "excerpt": "The budget is 5."}
    ]


# --- A worker that dies ---


def test_the_tool_that_ships_fetches_a_page(tmp_path: Path) -> None:
    with web_server() as web:
        url = web.page("/", "<title>Rain</title><p>It rains.")
        call = queued_call("fetch_page", {"url": url})
        inside = queued_call("fetch_page", {"url": web.redirect("/in", "https://169.254.169.254/")})
        environment = {"UAMP_FETCH_ALLOW_HOSTS": web.place}
        with worker_process(tmp_path, environment) as (_, broker):
            for each in (call, inside):
                app.send_task(str(run_tool_call.name), kwargs={"pk": each.pk}, connection=broker)
            wait_for(lambda: ToolCall.objects.get(pk=call.pk).finished_at, 40)
            row, refused = ended(call), ended(inside)
    assert (row.status, row.is_error) == ("done", False)
    assert row.result.startswith(f"Content of {url}, untrusted: ")
    assert row.result.endswith("\n\nTitle: Rain\n\nIt rains.")
    assert row.progress is not None
    assert (row.progress["stage"], row.progress["percent"]) == ("done", 100)
    assert (refused.status, refused.is_error) == ("failed", True)
    assert refused.result == "The page was not fetched. The address cannot be reached."


@pytest.mark.usefixtures("celery_worker_thread")
def test_a_worker_killed_in_a_tool_is_replaced_once(tmp_path: Path, settings: Settings) -> None:
    settings.UAMP_LEASE_SECONDS = 1
    journal = tmp_path / "j"
    call = queued_call("steps", {"steps": 8, "pause": 0.2, "journal": str(journal)})
    with worker_process(tmp_path) as (process, broker):
        app.send_task(str(run_tool_call.name), kwargs={"pk": call.pk}, connection=broker)
        wait_for(lambda: len(lines(journal)) >= 3, 40)
        process.end(signal.SIGKILL)
    [tool_process] = {int(line.split()[0]) for line in lines(journal)}
    assert tool_process != process.pid
    wait_for(lambda: not is_alive(tool_process))
    killed = lines(journal)
    assert 3 <= len(killed) < 8
    kept = ToolCall.objects.get(pk=call.pk).progress
    assert kept is not None

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
    assert (percents[0], percents[-1]) == (kept["percent"], 100)
    assert requeue_lost_calls() == []

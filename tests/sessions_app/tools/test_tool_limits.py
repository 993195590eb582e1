"""Limits of a long tool: it cannot hang, exhaust or end its worker, or stay behind."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.conf import settings as django_settings

from chat_app.contents import storage
from sessions_app.models import ToolCall
from sessions_app.store import responses
from sessions_app.tools.tasks import requeue_lost_calls, run_tool_call
from tests.sessions_app.tools import long_tools
from tests.sessions_app.tools.tool_workers import (
    ended,
    is_alive,
    lines,
    queued_call,
    wait_for,
    worker_process,
)
from uamp_project.celery import app

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kombu import Connection
    from pytest_django.fixtures import Settings

    from tests.programs import Program

pytestmark = pytest.mark.usefixtures("database_threads")

HANGS = ("sleep", "loop", "c")
MB = 1024 * 1024


@pytest.fixture(autouse=True)
def _tools(settings: Settings) -> None:
    settings.UAMP_SERVER_TOOLS = [*django_settings.UAMP_SERVER_TOOLS, *long_tools.PATHS]


class Worker:
    """A Celery worker in a process of its own, with two slots."""

    def __init__(self, process: Program, broker: Connection) -> None:
        self.process = process
        self._broker = broker

    def notify(self, call: ToolCall) -> None:
        """Have a call run."""
        app.send_task(str(run_tool_call.name), kwargs={"pk": call.pk}, connection=self._broker)

    def run(self, tool: str, arguments: dict[str, object]) -> ToolCall:
        """Run a call to its end and return its row."""
        call = queued_call(tool, arguments)
        self.notify(call)
        wait_for(lambda: ToolCall.objects.get(pk=call.pk).finished_at)
        return ended(call)

    def descendants(self) -> set[int]:
        """Return the processes that the worker has started, and those that they have."""
        descendants, pending_pids = set(), {self.process.pid}
        while pending_pids:
            pid = pending_pids.pop()
            children = {
                int(child)
                for path in Path(f"/proc/{pid}/task").glob("*/children")
                for child in path.read_text().split()
            }
            descendants |= children
            pending_pids |= children
        return descendants


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    """Run a worker whose tools have two seconds and 200 MB."""
    limits = {"UAMP_TOOL_SECONDS": "2", "UAMP_TOOL_MEMORY_MB": "200"}
    with worker_process(tmp_path, limits) as (process, broker):
        yield Worker(process, broker)


@pytest.fixture
def patient(tmp_path: Path) -> Iterator[Worker]:
    """Run a worker whose tools have much time."""
    with worker_process(tmp_path) as (process, broker):
        yield Worker(process, broker)


def hang(worker: Worker, journal: Path, how: str = "loop", tool: str = "hang") -> ToolCall:
    """Start a tool that hangs, and wait until it does."""
    call = queued_call(tool, {"how": how, "journal": str(journal)})
    worker.notify(call)
    wait_for(lambda: lines(journal))
    return call


def wait_for_end_of(pid: int) -> None:
    """Wait until a process is gone."""
    wait_for(lambda: not is_alive(pid))


def process_of(journal: Path) -> int:
    return int(lines(journal)[0])


@pytest.mark.any_database
def test_hanging_tools_are_killed_at_their_deadline_and_their_slots_are_free(
    worker: Worker, tmp_path: Path
) -> None:
    calls = [hang(worker, tmp_path / how, how) for how in HANGS]
    for call, how in zip(calls, HANGS, strict=True):
        row = ended(call)
        assert (row.status, row.is_error) == ("failed", True)
        assert row.result == "The tool took too long and was stopped."
        assert row.attempts == 1
        wait_for_end_of(process_of(tmp_path / how))
    assert worker.run("repeat", {"text": "x", "times": 2}).result == "xx"


@pytest.mark.sampled(1)
@pytest.mark.any_database
@pytest.mark.parametrize("how", HANGS)
def test_a_hanging_tool_is_killed_when_its_response_is_cancelled(
    patient: Worker, tmp_path: Path, how: str
) -> None:
    call = hang(patient, tmp_path / "j", how)
    responses.request_cancel(call.response_id)
    row = ended(call)
    assert (row.status, row.result) == ("cancelled", "The tool was cancelled.")
    wait_for(lambda: not is_alive(process_of(tmp_path / "j")))
    assert patient.run("repeat", {"text": "x", "times": 2}).result == "xx"


@pytest.mark.long
def test_what_a_killed_tool_did_is_unknown_when_it_has_effects(
    worker: Worker, tmp_path: Path
) -> None:
    row = ended(hang(worker, tmp_path / "j", tool="hang_once"))
    assert (row.status, row.is_error, row.attempts) == ("unknown", True, 1)
    assert row.result.startswith("Outcome unknown: the tool took too long and was stopped, and it")


@pytest.mark.any_database
def test_a_tool_that_eats_memory_fails_and_the_worker_survives(worker: Worker) -> None:
    assert worker.run("eat", {"mb": 100}).result == "100 MB"
    for mb in (300, 100_000):
        row = worker.run("eat", {"mb": mb})
        assert (row.status, row.is_error) == ("failed", True)
        assert row.result == "The tool used too much memory (limit 200 MB)."
    assert worker.process.poll() is None
    assert worker.run("repeat", {"text": "x", "times": 2}).result == "xx"


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("how", "result"),
    [
        ("SystemExit", "The tool failed. Its error is in the server's log."),
        ("KeyboardInterrupt", "The tool failed. Its error is in the server's log."),
        ("exit", "The tool's process ended before the tool did (exit status 3)."),
        ("kill", "The tool's process ended before the tool did (killed by SIGKILL)."),
        ("close", "The tool's process ended before the tool did (exit status 1)."),
    ],
)
def test_a_tool_that_ends_its_process_ends_its_call_only(how: str, result: str) -> None:
    call = queued_call("leave", {"how": how})
    run_tool_call(pk=call.pk)
    row = ended(call)
    assert (row.status, row.is_error, row.result) == ("failed", True, result)


def test_a_tool_with_effects_that_ends_its_process_is_unknown() -> None:
    call = queued_call("leave_once", {"how": "exit"})
    run_tool_call(pk=call.pk)
    row = ended(call)
    assert row.status == "unknown"
    assert row.result.startswith("Outcome unknown: the tool's process ended before the tool did")


@pytest.mark.any_database
def test_programs_that_a_tool_leaves_behind_end_with_its_call(tmp_path: Path) -> None:
    for tool in ("leave_child", "leave_child_and_die"):
        journal = tmp_path / tool
        call = queued_call(tool, {"journal": str(journal)})
        run_tool_call(pk=call.pk)
        assert ended(call).finished_at
        wait_for_end_of(process_of(journal))


@pytest.mark.long
@pytest.mark.any_database
@pytest.mark.parametrize("how", ["sleep", "c"])
def test_no_process_outlives_a_worker_that_is_killed(
    patient: Worker, tmp_path: Path, how: str
) -> None:
    call = hang(patient, tmp_path / "j", how)
    started = patient.descendants()
    assert process_of(tmp_path / "j") in started
    patient.process.end(signal.SIGKILL)
    wait_for(lambda: not any(map(is_alive, started)))
    # The row's lease ends, and the reaper sends its task again.
    wait_for(lambda: call.pk in requeue_lost_calls())


@pytest.mark.any_database
def test_no_process_outlives_a_worker_that_ends(worker: Worker, tmp_path: Path) -> None:
    call = hang(worker, tmp_path / "j")
    started = worker.descendants()
    worker.process.send_signal(signal.SIGTERM)
    worker.process.wait(timeout=120)
    wait_for(lambda: not any(map(is_alive, started)))
    assert ended(call).result == "The tool took too long and was stopped."


def test_a_large_result_reaches_the_chat_as_a_file_through_a_worker(
    tmp_path: Path, settings: Settings
) -> None:
    settings.MEDIA_ROOT = tmp_path / "content"
    size = 50 * MB
    with worker_process(tmp_path, {"UAMP_UPLOAD_BYTES": str(size)}) as parts:
        worker = Worker(*parts)
        row = worker.run("repeat", {"text": "x", "times": size})
        over = worker.run("repeat", {"text": "x", "times": size + 1})
    assert (row.status, row.is_error) == ("done", False)
    assert row.result.startswith(f"The result has {size} bytes, too many to show here.")
    chat_id = ToolCall.objects.select_related("response").get(pk=row.pk).response.chat_id
    data, _ = storage.read_in_chat(row.content_items[0]["content_id"], chat_id)
    assert len(data) == size
    assert (over.status, over.result) == ("failed", f"The file is larger than {size} bytes.")


@pytest.mark.parametrize(
    ("how", "status", "result"),
    [
        ("object", "failed", "The tool failed. Its error is in the server's log."),
        ("bytes outcome", "failed", "The tool failed. Its error is in the server's log."),
        ("nul", "done", "a\N{REPLACEMENT CHARACTER}b"),
        ("surrogate", "done", "a?b"),
        ("nothing", "done", "null"),
        ("nan", "done", "null"),
        ("no item", "failed", "The tool failed. Its error is in the server's log."),
    ],
)
def test_odd_results_are_stored_or_answered(how: str, status: str, result: str) -> None:
    call = queued_call("odd_result", {"how": how})
    run_tool_call(pk=call.pk)
    row = ended(call)
    assert (row.status, row.result) == (status, result)


def test_items_with_characters_that_no_database_takes_are_kept() -> None:
    call = queued_call("odd_result", {"how": "item"})
    run_tool_call(pk=call.pk)
    assert ended(call).content_items == [{"type": "text", "text": "a\N{REPLACEMENT CHARACTER}b?"}]


@pytest.mark.long
def test_calls_from_several_threads_of_a_tool_do_not_mix(tmp_path: Path) -> None:
    call = queued_call("threads", {"count": 8})
    run_tool_call(pk=call.pk)
    assert ended(call).result == "8 threads"


def test_a_tool_writes_to_the_database_with_a_connection_of_its_own() -> None:
    call = queued_call("count_calls")
    run_tool_call(pk=call.pk)
    assert ended(call).result == "1"


def test_a_tool_in_a_process_of_its_own_does_not_end_that_of_its_worker() -> None:
    call = queued_call("whoami")
    run_tool_call(pk=call.pk)
    pid, group = map(int, ended(call).result.split())
    assert pid == group != os.getpgid(0)

"""A process that has stopped serving ends, whatever its threads do."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from tests.programs import PROGRAM_SECONDS
from uamp_project.embedded import worker
from uamp_project.embedded.worker import WorkerSupervisor

HANGING = """
import threading
from concurrent.futures import ThreadPoolExecutor
from uamp_project.servers.process_end import end_within

{hang}
end_within(0.2)
"""


@pytest.mark.parametrize(
    ("hang", "name"),
    [
        ("threading.Thread(target=threading.Event().wait, name='pump').start()", "pump"),
        (
            "ThreadPoolExecutor(1, thread_name_prefix='exports').submit(threading.Event().wait)",
            "exports_0",
        ),
    ],
    ids=["thread", "executor"],
)
def test_a_process_that_a_thread_holds_up_is_ended_and_the_thread_named(
    hang: str, name: str
) -> None:
    done = subprocess.run(  # noqa: S603 our own code
        [sys.executable, "-c", HANGING.format(hang=hang)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PROGRAM_SECONDS,
    )
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if "did not end" in line]
    assert line.startswith("the process did not end within 0.2 s: ")
    assert name in line


def test_a_process_that_ends_is_not_disturbed() -> None:
    done = subprocess.run(  # noqa: S603 our own code
        [sys.executable, "-c", HANGING.format(hang="")],
        capture_output=True,
        check=False,
        timeout=PROGRAM_SECONDS,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_supervisor_of_a_worker_that_does_not_end_is_left_behind(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(worker, "STOP_SECONDS", 0.05)
    monkeypatch.setattr(worker, "KILL_SECONDS", 0.05)
    stuck = threading.Event()
    monkeypatch.setattr(WorkerSupervisor, "_supervise", lambda _: stuck.wait(60))
    supervisor = WorkerSupervisor("tools")
    supervisor.start()
    try:
        supervisor.stop()
        assert caplog.messages == ["the worker of tools (process None) does not end"]
    finally:
        stuck.set()
        supervisor._thread.join(60)

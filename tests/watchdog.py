"""Ends a test process that hangs, and records where.

`pytest-timeout` fails a test that takes too long, but it is disarmed once a phase of the test has
failed, and code may catch the exception it raises. The watchdog is a thread of `faulthandler`,
written in C: it dumps the stack of every thread and exits, whatever Python is doing. pytest-xdist
then reports the worker's test and replaces the worker.

Each process also writes its current activity, with a deadline, to a file in WATCHDOG_FOLDER.
`tests/run.py` reads these files and kills a process that its own watchdog cannot end.
"""

from __future__ import annotations

import faulthandler
import math
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

# On top of the test's own `timeout`, which has the better report.
MARGIN_SECONDS: Final = float(os.environ.get("WATCHDOG_MARGIN_SECONDS", "60"))
# The last teardown of a module or a session also ends what all of its tests shared.
TEARDOWN_SECONDS: Final = float(os.environ.get("WATCHDOG_TEARDOWN_SECONDS", "120"))
FINISH_SECONDS: Final = float(os.environ.get("WATCHDOG_FINISH_SECONDS", "60"))
FOLDER: Final = os.environ.get("WATCHDOG_FOLDER")
WORKER: Final = os.environ.get("PYTEST_XDIST_WORKER")


class Output:
    """The output for the stacks."""

    fd = 2


class Activity:
    """The current activity of a test process, from its file in WATCHDOG_FOLDER."""

    def __init__(self, file: Path) -> None:
        self.worker = file.name
        pid, until, self.text = file.read_text().splitlines()
        self.pid = int(pid)
        self.until = float(until)


def activities(folder: Path) -> Iterator[Activity]:
    """Yield the activity of each test process that has recorded one."""
    for file in sorted(folder.iterdir()):
        if not file.suffix:
            yield Activity(file)


def _watch(activity: str, seconds: float | None) -> None:
    """Arm the watchdog for an activity; None disarms it."""
    if FOLDER:
        file = Path(FOLDER) / (WORKER or "main")
        new_file = file.with_suffix(".new")
        new_file.write_text(f"{os.getpid()}\n{time.time() + (seconds or math.inf)}\n{activity}\n")
        # Tests replace Path.rename.
        os.replace(new_file, file)  # noqa: PTH105 as above
    if seconds is None:
        faulthandler.cancel_dump_traceback_later()
    else:
        faulthandler.dump_traceback_later(seconds, exit=True, file=Output.fd)


def pytest_configure() -> None:
    """Keep the real standard error: pytest captures file descriptor 2."""
    Output.fd = os.dup(2)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Watch a test, starting with its set-up."""
    marker = item.get_closest_marker("timeout")
    limit = marker.args[0] if marker and marker.args else item.config.getini("timeout")
    _watch(item.nodeid, float(limit) + MARGIN_SECONDS)
    try:
        return (yield)
    finally:
        # A worker may wait long for its next test.
        _watch(f"after {item.nodeid}", None)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Re-arm for the teardown: pytest disarms `faulthandler` when a test fails."""
    _watch(f"{item.nodeid} (teardown)", TEARDOWN_SECONDS)
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish() -> Generator[None, object, object]:
    """Watch the end of the session, and that of the process that started the workers.

    Workers are disarmed: they wait for each other, and the process that started them gives them ten
    seconds to exit.
    """
    _watch("the end of the session", FINISH_SECONDS)
    try:
        return (yield)
    finally:
        if WORKER:
            _watch("its exit", None)

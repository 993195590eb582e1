"""Programs started by tests: everything that waits for one has a limit."""

from __future__ import annotations

import subprocess
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM_SECONDS = 300
"""The time limit of a command that runs to its end."""
END_SECONDS = 60
"""The time limit of a program to end after it is terminated."""
OUTPUT_SECONDS = 60


def end_program(process: subprocess.Popen[Any], seconds: float = END_SECONDS) -> None:
    """Terminate a program; kill it if it does not end in time."""
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        kill_program(process)


def close_program(process: subprocess.Popen[Any]) -> None:
    """Close a program's input, which ends it; if it does not end, kill it and fail."""
    try:
        process.communicate(timeout=END_SECONDS)
    except subprocess.TimeoutExpired:
        kill_program(process)
        raise


def kill_program(process: subprocess.Popen[Any]) -> None:
    """Kill a program."""
    process.kill()
    process.wait(END_SECONDS)


@contextmanager
def limited_reads(
    process: subprocess.Popen[Any], seconds: float = OUTPUT_SECONDS
) -> Iterator[None]:
    """Read a program's pipes in a block; they have no timeout, so the program is killed.

    This closes its pipes, and the block fails.
    """
    has_expired = threading.Event()

    def expire() -> None:
        has_expired.set()
        process.kill()

    timer = threading.Timer(seconds, expire)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if has_expired.is_set():
            pytest.fail(f"{process.args!r} printed nothing for {seconds:g} s")

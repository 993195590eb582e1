"""Programs that tests start: everything that waits for one has a limit."""

from __future__ import annotations

import subprocess
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM_SECONDS = 300
"""How long a command may take that runs to its end."""
END_SECONDS = 60
"""How long a program may take to end after it is terminated."""
OUTPUT_SECONDS = 60


def end_program(process: subprocess.Popen[Any], seconds: float = END_SECONDS) -> None:
    """Terminate a program, and kill it when it does not end in time."""
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        kill_program(process)


def close_program(process: subprocess.Popen[Any]) -> None:
    """Close the input of a program, which ends it; kill it, and fail, when it does not."""
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
    """Read the pipes of a program in a block: they have no timeout, so the program is killed.

    Its pipes end then, and the block fails.
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

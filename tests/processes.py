"""Finds and ends the descendants of a process; only on Linux, elsewhere it finds nothing."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

PR_SET_CHILD_SUBREAPER: Final = 36
KILL_SECONDS: Final = 10.0


def adopt_orphans() -> None:
    """Adopt descendants whose own parent has ended, so that they can be found."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children(pid: int) -> list[int]:
    """Return the processes that a process has started or adopted."""
    pids: list[int] = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            pids += [int(child) for child in file.read_text().split()]
    return pids


def descendants(pid: int) -> list[int]:
    """Return all descendants of a process, nearest first."""
    pids = children(pid)
    for child in pids:
        pids += children(child)
    return pids


def is_running(pid: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def kill_all(pids: Iterable[int]) -> None:
    """Kill processes and wait up to KILL_SECONDS for them to end."""
    killed = list(pids)
    for pid in killed:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + KILL_SECONDS
    while any(map(is_running, killed)) and time.monotonic() < deadline:
        time.sleep(0.02)


def reap(spare: int = 0) -> None:
    """Reap ended children, except `spare`, whose status its own caller reads.

    An adopted process that is not reaped stays a zombie, and a test that waits for its end would
    time out.
    """
    for pid in children(os.getpid()):
        if pid != spare:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)

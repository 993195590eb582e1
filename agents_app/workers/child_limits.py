"""Limits that a child process of `child_processes` sets itself: memory, and CPU per request."""

from __future__ import annotations

import resource
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class CpuTimeError(BaseException):
    """The request has taken its CPU time; raised wherever the process is at work.

    No `except Exception` of a decoder catches it.
    """


def limit_memory(size: int) -> None:
    """Limit the memory of this process to `size` bytes; beyond it, allocations fail."""
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raise CpuTimeError when the block has taken that much CPU time; for the main thread."""
    before = signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _stop(*_: object) -> None:
    raise CpuTimeError

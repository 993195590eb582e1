"""Measuring sounds and PDFs in a few child processes, with limits on time and memory.

A file of 26 MB can keep a processor busy for seconds, and what it decodes to is not known before.
Pictures are not measured here: only their headers and checksums are read (docs/benchmarks.md).
The module is what the processes run; it imports neither Django nor the models.
"""

from __future__ import annotations

import sys
from typing import Final

from agents_app.workers.child_limits import CpuTimeError, cpu_limit, limit_memory
from agents_app.workers.child_processes import ChildProcesses, NoneFree, TooSlow, serve
from chat_app.contents.pdf.pages import max_pages
from chat_app.contents.sound.length import LONGEST_MS, longest_ms

UNMEASURED: Final = LONGEST_MS
"""The extent of a file that could not be measured within the limits, or has no upper bound."""
CPU_SECONDS: Final = 5.0
"""The processor time that a file may take."""
MEASURE_SECONDS: Final = 45.0
"""How long a process is waited for, which shares its processor with others."""
WAIT_SECONDS: Final = 10.0
"""How long a file waits for a free process."""
_MEMORY_BYTES: Final = 1024 * 1024 * 1024
_PDF: Final = "application/pdf"
_processes: Final = ChildProcesses("chat_app.contents.measures")


class MeasuringBusy(Exception):
    """No process became free in time; the file can be measured later."""


def measure(data: bytes, mime_type: str, *, asker: str) -> int:
    """Return the milliseconds of a sound or the pages of a PDF, at most; or UNMEASURED.

    Files of one asker are measured one after another. Raises MeasuringBusy. Blocks for at most
    WAIT_SECONDS plus MEASURE_SECONDS.
    """

    def request() -> bytes:
        return mime_type.encode() + b"\0" + data

    try:
        answer = _processes.ask(request, asker=asker, seconds=MEASURE_SECONDS, wait=WAIT_SECONDS)
    except NoneFree:
        raise MeasuringBusy from None
    except TooSlow:
        return UNMEASURED
    return int(answer)


def measure_here(data: bytes, mime_type: str) -> int:
    """Do the work of `measure`, without limits."""
    return max_pages(data) if mime_type == _PDF else longest_ms(data, mime_type)


def _measured(request: bytes) -> bytes:
    mime_type, _, data = request.partition(b"\0")
    try:
        with cpu_limit(CPU_SECONDS):
            extent = measure_here(data, mime_type.decode())
    except (CpuTimeError, MemoryError, RecursionError):
        extent = UNMEASURED
    return str(extent).encode()


if __name__ == "__main__":
    limit_memory(_MEMORY_BYTES)
    serve(_measured, sys.stdin.buffer, sys.stdout.buffer)

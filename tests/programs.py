"""Programs started by tests: everything that waits for one has a limit.

`Program` is a process that runs beside a test; a command that runs to its end is `subprocess.run`
with a timeout. test_programs.py refuses other ways.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

PROGRAM_SECONDS = 300
"""The time limit of a command that runs to its end."""
START_SECONDS = 120
"""The time limit of a program to become ready."""
END_SECONDS = 120
"""The time limit of a program to end after a signal."""
OUTPUT_SECONDS = 60


class Program(subprocess.Popen[str]):
    """A process that is ready or dead within a limit, is terminated, and then killed.

    Its output is dropped, or appended to the file `log`, unless the options of `Popen` say
    otherwise. A block ends it.
    """

    def __init__(self, *command: str | Path, log: Path | None = None, **options: Any) -> None:
        """Start it."""
        words = [str(word) for word in command]
        self.log = log
        with (log or Path(os.devnull)).open("a") as file:
            streams = {"stdout": file, "stderr": subprocess.STDOUT if log else None}
            super().__init__(words, text=True, **{**streams, **options})

    @property
    def output(self) -> str:
        """The log so far."""
        return "" if self.log is None else self.log.read_text()

    def wait_until(
        self,
        is_ready: Callable[[], object],
        what: str = "it is ready",
        seconds: float = START_SECONDS,
    ) -> None:
        """Wait for a condition; fail if the program ends before, or the time is over."""
        deadline = time.monotonic() + seconds
        while not is_ready():
            if self.poll() is not None:
                pytest.fail(
                    f"{self.args!r} ended with {self.returncode}, before {what}:\n{self.output}"
                )
            if time.monotonic() > deadline:
                pytest.fail(f"{self.args!r}: not within {seconds:g} s: {what}\n{self.output}")
            time.sleep(0.05)

    def end(self, number: int = signal.SIGTERM, seconds: float = END_SECONDS) -> int:
        """Send a signal if it runs, kill it if it does not end in time; return its exit status."""
        if self.poll() is None:
            self.send_signal(number)
        try:
            return self.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return self.wait(seconds)

    def close_input(self) -> None:
        """Close its input, which ends it; if it does not end, kill it and fail."""
        try:
            self.communicate(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            self.end(signal.SIGKILL)
            raise

    @contextmanager
    def limited_reads(self, seconds: float = OUTPUT_SECONDS) -> Iterator[None]:
        """Read its pipes in a block; they have no timeout, so the program is killed.

        This closes its pipes, and the block fails.
        """
        has_expired = threading.Event()

        def expire() -> None:
            has_expired.set()
            self.kill()

        timer = threading.Timer(seconds, expire)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            if has_expired.is_set():
                pytest.fail(f"{self.args!r} printed nothing for {seconds:g} s")

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """End it and close its pipes."""
        self.end()
        for pipe in (self.stdin, self.stdout, self.stderr):
            if pipe is not None:
                pipe.close()

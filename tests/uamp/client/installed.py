"""The client as people install it: the wheel with its extra, in an environment of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.programs import Program

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

SECONDS = 120


@dataclass(frozen=True)
class Installed:
    """The interpreter of the environment, and a home of its own for what is saved."""

    python: Path
    home: Path

    @property
    def command(self) -> Path:
        """The command `uamp`."""
        return self.python.with_name("uamp")

    def environment(self, **variables: str) -> dict[str, str]:
        """Return the environment of its processes."""
        return {
            "PATH": f"{self.python.parent}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "NO_PROXY": "*",
            **variables,
        }

    def run(
        self, *arguments: str | Path, stdin: str = "", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run the command to its end."""
        return subprocess.run(  # noqa: S603 our own command
            [str(self.command), *map(str, arguments)],
            env=self.environment(**variables),
            cwd=self.home,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    @contextlib.contextmanager
    def start(self, *arguments: str, **options: Any) -> Iterator[Program]:
        """Start the command, with pipes unless the options name others; kill it at the end."""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        variables = options.pop("variables", {})
        with _interruptible():
            program = Program(
                *(str(self.command), *arguments),
                env=self.environment(**variables),
                cwd=self.home,
                bufsize=1,
                **{**pipes, **options},
            )
        with program:
            yield program
            program.kill()


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Let processes that are started meanwhile receive Ctrl-C, as those of a terminal do.

    A shell without job control starts its background jobs with SIGINT ignored, and so would be
    every process that the tests start when they run as such a job.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def lines_of(output: str) -> Sequence[str]:
    """Return the lines of an output."""
    return output.splitlines()

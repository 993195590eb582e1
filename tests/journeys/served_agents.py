"""Daemons that serve agents, run as `python -m uap serve` from an installed wheel."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from tests.client import wait_until
from tests.programs import Program

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

COUNTING = """
import uap
from upp.providers.scripted import Pause, ScriptedProvider, Text


async def script(request):
    said = request.messages[-1].text
    numbers = 10_000 if "endlessly" in said else 30 if "slowly" in said else 3
    for number in range(1, 1 + numbers):
        yield Text(f"{number} ")
        yield Pause(0.2)
    yield Text("done")


agent = uap.agent(model=ScriptedProvider(scripts={"count": script})("count"))
"""


class ServedAgent:
    """A daemon in a separate process; its output is in `log`."""

    def __init__(self, folder: Path, python: Path, command: str, **environment: str) -> None:
        inherited = {name: value for name, value in os.environ.items() if name in {"HOME", "LANG"}}
        self.path = folder / f"daemon{len(list(folder.glob('daemon*')))}.log"
        # What the browser prints is for a shell.
        self.process = Program(
            *("/bin/sh", "-c", f"exec env {command}"),
            log=self.path,
            cwd=folder,
            env={**inherited, "PATH": f"{python.parent}:/usr/bin:/bin", **environment},
        )

    @property
    def log(self) -> str:
        """Its output so far."""
        return self.path.read_text()

    def wait_for(self, words: str, times: int = 1) -> None:
        """Wait until a text has appeared in its output a number of times."""
        wait_until(lambda: self.log.count(words) >= times, seconds=60)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Stop it with a signal and return its exit code."""
        return self.process.end(number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.end(signal.SIGKILL)

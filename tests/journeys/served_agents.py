"""Daemons that serve agents, run as `python -m uap serve` from an installed wheel."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

from tests.client import wait_until

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

COUNTING = """
import uap
from upp.providers.scripted import Pause, ScriptedProvider, Text


async def script(request):
    said = request.messages[-1].text
    for number in range(1, 1 + (30 if "slowly" in said else 3)):
        yield Text(f"{number} ")
        yield Pause(0.2)
    yield Text("done")


agent = uap.agent(model=ScriptedProvider(scripts={"count": script})("count"))
"""


class ServedAgent:
    """A daemon in a separate process; its output is in `log`."""

    def __init__(self, folder: Path, python: Path, command: str, **environment: str) -> None:
        kept = {name: value for name, value in os.environ.items() if name in {"HOME", "LANG"}}
        self.path = folder / f"daemon{len(list(folder.glob('daemon*')))}.log"
        with self.path.open("wb") as log:
            self.process = subprocess.Popen(  # noqa: S602 what the browser prints is for a shell
                f"exec env {command}",
                shell=True,
                cwd=folder,
                env={**kept, "PATH": f"{python.parent}:/usr/bin:/bin", **environment},
                stdout=subprocess.DEVNULL,
                stderr=log,
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
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout=60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.end(signal.SIGKILL)

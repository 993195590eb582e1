"""A terminal of its own for a command: what it writes is read as text, keys are typed into it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
from typing import TYPE_CHECKING, Final

from tests.client import WAIT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.programs import Program
    from tests.uamp.client.installed import Installed

CTRL_C: Final = "\x03"
CTRL_D: Final = "\x04"
ENTER: Final = "\r"
# Wide enough for every line: a line that is broken would have to be joined again.
_SIZE: Final = (50, 500)
_ESCAPE: Final = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()].|.)")


class Terminal:
    """The side of the person: reads what is shown, and types."""

    def __init__(self, side: int, process: Program) -> None:
        self._side, self.process = side, process
        self._raw = ""
        self._seen = 0

    def read_to(self, text: str) -> str:
        """Wait until something is shown that was not read before; return what came until then."""
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            screen_text = _ESCAPE.sub("", self._raw)
            at = screen_text.find(text, self._seen)
            if at >= 0:
                before = screen_text[self._seen : at + len(text)]
                self._seen = at + len(text)
                return before
            if time.monotonic() > deadline or not self._read(deadline):
                raise AssertionError(f"{text!r} was not shown, but {screen_text[self._seen :]!r}")

    def wait_until(self, holds: Callable[[], bool]) -> None:
        """Wait until a condition holds, and read meanwhile: a full terminal stops the command."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not holds():
            assert time.monotonic() < deadline, "it did not become true"
            self._read(time.monotonic() + 0.1)

    def type(self, keys: str) -> None:
        """Type keys."""
        os.write(self._side, keys.encode())

    def paste(self, text: str) -> None:
        """Paste a text of several lines, as terminals mark it."""
        self.type(f"\x1b[200~{text}\x1b[201~")

    def end(self) -> int:
        """Return the exit code of the command, once it ended; what it writes meanwhile is read."""
        deadline = time.monotonic() + WAIT_SECONDS
        while self.process.poll() is None and time.monotonic() < deadline:
            self._read(time.monotonic() + 0.2)
        return self.process.wait(timeout=WAIT_SECONDS)

    def _read(self, deadline: float) -> bool:
        """Read until a time; return whether there may be more."""
        ready, _, _ = select.select([self._side], [], [], max(0.0, deadline - time.monotonic()))
        try:
            piece = os.read(self._side, 65536) if ready else b""
        except OSError:  # Linux says so where the command has closed its side.
            piece = b""
        self._raw += piece.decode(errors="replace")
        return bool(piece)


@contextlib.contextmanager
def terminal(installed: Installed, *arguments: str, **variables: str) -> Iterator[Terminal]:
    """Start the command in a terminal."""
    side, command_side = pty.openpty()
    fcntl.ioctl(command_side, termios.TIOCSWINSZ, struct.pack("HHHH", *_SIZE, 0, 0))
    # The terminal does not say where its cursor is.
    environment = {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", **variables}
    try:
        with installed.start(
            *arguments,
            variables=environment,
            stdin=command_side,
            stdout=command_side,
            stderr=command_side,
            start_new_session=True,
        ) as process:
            os.close(command_side)
            yield Terminal(side, process)
    finally:
        os.close(side)

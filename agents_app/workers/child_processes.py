"""Child processes for work of unknown duration, killed when it takes too long.

Each request is sent over a pipe as a big-endian uint32 length followed by that many bytes; answers
come back in the same format. A killed process is replaced on the next request. The environment has
none of the server's secrets. Askers take turns (`fair_turns`): each has one process at a time.
Threads would not do, because they cannot be killed and a single regular expression can hold the
interpreter's lock for minutes.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from agents_app.workers.fair_turns import FairTurns, TooManyWait

if TYPE_CHECKING:
    from collections.abc import Callable

PROCESSES: Final = 2
START_SECONDS: Final = 30.0
KILL_SECONDS: Final = 10.0
# A process whose server was killed exits after this long, whatever it is doing.
_ORPHAN_SECONDS: Final = 60
_HEADER: Final = struct.Struct(">I")
_ROOT: Final = Path(__file__).resolve().parents[2]
_READY: Final = b"ready"

logger = logging.getLogger(__name__)


class TooSlow(Exception):
    """The request was not answered in time."""


class NoneFree(TooSlow):
    """No process became free in time."""


class ChildProcesses:
    """Up to PROCESSES processes that run one module, started on demand.

    Any thread may call `ask`, and tasks of any event loop `ask_from_loop`; `close` is called when
    the interpreter exits.
    """

    def __init__(self, module: str) -> None:
        self._module = module
        self._forget()
        atexit.register(self.close)
        # The pipes belong to the parent: two processes must not read from the same one.
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._turns: FairTurns[_ChildProcess | None] = FairTurns([None] * PROCESSES)
        # Its threads only work briefly, because the process waits for them when it exits.
        self._threads = ThreadPoolExecutor(PROCESSES, thread_name_prefix=self._module)
        self._lock = threading.Lock()
        self._all: set[_ChildProcess] = set()

    @property
    def free(self) -> int:
        """The number of processes, or slots for one, that are waiting for a request."""
        return len(self._turns.free)

    def ask(
        self,
        request: bytes | Callable[[], bytes],
        *,
        asker: str,
        seconds: float,
        wait: float | None = None,
    ) -> bytes:
        """Send a request to a process and return its answer.

        A function is called for the request once a process is free, so that large ones do not fill
        the memory while they wait; what it raises is raised here. Raises TooSlow `seconds` after a
        process received the request. Raises NoneFree if none became free within `wait` seconds
        (default: `seconds`) or if too many requests of this asker are waiting.
        """
        try:
            turn = self._turns.ask(asker)
        except TooManyWait:
            raise NoneFree from None
        try:
            process = turn.result(seconds if wait is None else wait)
        except BaseException as error:
            self._turns.give_up(asker, turn)
            if isinstance(error, TimeoutError):
                raise NoneFree from None
            raise
        if not isinstance(request, bytes):
            try:
                request = request()
            except BaseException:
                self._turns.give_back(asker, process)
                raise
        return self._answer(process, request, asker, seconds)

    async def ask_from_loop(
        self, request: bytes, *, asker: str, seconds: float, wait: float
    ) -> bytes:
        """Do the same as `ask`, without blocking the event loop."""
        try:
            turn = self._turns.ask(asker)
        except TooManyWait:
            raise NoneFree from None
        try:
            async with asyncio.timeout(wait):
                process = await asyncio.wrap_future(turn)
        except BaseException as error:
            self._turns.give_up(asker, turn)
            if isinstance(error, TimeoutError):
                raise NoneFree from None
            raise
        # The process is returned even if a task is cancelled; there is one thread per process.
        loop = asyncio.get_running_loop()
        return await asyncio.shield(
            loop.run_in_executor(self._threads, self._answer, process, request, asker, seconds)
        )

    def _answer(
        self, process: _ChildProcess | None, request: bytes, asker: str, seconds: float
    ) -> bytes:
        try:
            if process is not None:
                with suppress(OSError):
                    # It may have died since; a new process then gets the request.
                    return process.ask(request, time.monotonic() + seconds)
                self._end(process)
            process = self._start()
            return process.ask(request, time.monotonic() + seconds)
        except (TooSlow, OSError):
            if process is not None:
                self._end(process)
                process = None
            raise TooSlow from None
        finally:
            self._turns.give_back(asker, process)

    def _start(self) -> _ChildProcess:
        process = _ChildProcess(self._module)
        with self._lock:
            self._all.add(process)
        return process

    def close(self) -> None:
        """Kill all processes."""
        for process in list(self._all):
            self._end(process)

    def _end(self, process: _ChildProcess) -> None:
        with self._lock:
            self._all.discard(process)
        process.kill()


class _ChildProcess:
    """One process and the pipes to it.

    Only the thread whose turn it is calls `ask`; any thread may call `kill`.
    """

    def __init__(self, module: str) -> None:
        self._process = subprocess.Popen(  # noqa: S603 our own interpreter and module
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=_ROOT,
            env={"PATH": os.defpath, "PYTHONPATH": str(_ROOT)},
            # Ctrl-C in the terminal is for the parent, which ends the process itself.
            start_new_session=True,
        )
        try:
            self._read(time.monotonic() + START_SECONDS)  # _READY
        except (TooSlow, OSError):
            self.kill()
            raise

    def ask(self, request: bytes, deadline: float) -> bytes:
        """Send a request and return the answer; raises TooSlow and OSError."""
        stdin = self._process.stdin
        if stdin is None:
            raise OSError("the process has no input")
        # The process reads a request completely before it starts working, so this does not block.
        stdin.write(_HEADER.pack(len(request)))
        stdin.write(request)
        stdin.flush()
        return self._read(deadline)

    def kill(self) -> None:
        """Kill the process and close its pipes."""
        self._process.kill()
        try:
            self._process.wait(KILL_SECONDS)
        except subprocess.TimeoutExpired:
            logger.exception("a process could not be killed")
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def _read(self, deadline: float) -> bytes:
        (size,) = _HEADER.unpack(self._bytes(_HEADER.size, deadline))
        return self._bytes(size, deadline)

    def _bytes(self, size: int, deadline: float) -> bytes:
        stdout = self._process.stdout
        if stdout is None:
            raise OSError("the process has no output")
        data = b""
        while len(data) < size:
            remaining = deadline - time.monotonic()
            if remaining <= 0 or not select.select([stdout], [], [], remaining)[0]:
                raise TooSlow
            piece = os.read(stdout.fileno(), size - len(data))
            if not piece:
                raise OSError("the process ended")
            data += piece
        return data


def serve(answer: Callable[[bytes], bytes], requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until the server closes the pipe or exits; runs in the child process."""
    _answer(answers, _READY)
    while header := requests.read(_HEADER.size):
        (size,) = _HEADER.unpack(header)
        request = requests.read(size)
        signal.alarm(_ORPHAN_SECONDS)
        done = answer(request)
        signal.alarm(0)
        _answer(answers, done)


def _answer(answers: BinaryIO, data: bytes) -> None:
    answers.write(_HEADER.pack(len(data)) + data)
    answers.flush()

"""A thread that commits the turns of a process in groups.

It takes all turns queued while it wrote the previous group, up to a number of turns and of
characters, since the time of a write grows with its text.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

from django.db import close_old_connections, connections

from sessions_app.store.attempts import write_each
from sessions_app.store.lock_wait import is_lock_timeout, lock_wait
from sessions_app.store.records import Failed, Start
from telemetry import metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sessions_app.store.records import Finish

logger = logging.getLogger(__name__)

BATCH: Final = 256
BATCH_CHARS: Final = 1024 * 1024
"""A group stops growing at this amount of text; a single turn may exceed it."""
QUEUE: Final = 4096
IDLE_SECONDS: Final = 1.0
CLOSE_SECONDS: Final = 30.0
"""How long a closing thread may take for the turns in its queue."""

Turn = TypeVar("Turn")
Outcome = TypeVar("Outcome")


class TurnJob(Generic[Turn, Outcome]):
    """A turn waiting to be written; its future belongs to the event loop that created it."""

    __slots__ = ("asked_at", "chars", "future", "loop", "turn", "write")

    def __init__(self, turn: Turn, write: Callable[[Sequence[Turn]], list[Outcome]]) -> None:
        self.turn = turn
        self.write = write
        self.chars = text_chars(turn)
        self.asked_at = time.monotonic()
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Outcome] = self.loop.create_future()


AnyJob: TypeAlias = TurnJob[Any, Any]


class TurnWriter:
    """A thread that writes queued jobs, which any thread may add.

    Only this thread takes jobs from the queue; their futures are resolved on their own loops.
    `close` waits up to CLOSE_SECONDS for it; call it once.

    With a `patient` writer, turns wait at most `lock_milliseconds` for locks here and are then
    passed on to it.
    """

    def __init__(
        self,
        name: str,
        *,
        patient: TurnWriter | None = None,
        lock_milliseconds: int | None = None,
    ) -> None:
        self._name = name
        self._patient = patient
        self._lock_milliseconds = lock_milliseconds
        self._queue: queue.Queue[AnyJob | None] = queue.Queue(QUEUE)
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._closed = False
        # A job taken from the queue that starts the next group.
        self._first: AnyJob | None = None

    def put(self, job: AnyJob) -> bool:
        """Queue a job; return False if the queue is full or closed."""
        with self._lock:
            if self._closed:
                return False
            if self._thread is None:
                self._thread = threading.Thread(target=self._write, name=self._name, daemon=True)
                self._thread.start()
            try:
                self._queue.put_nowait(job)
            except queue.Full:
                return False
        return True

    def close(self) -> None:
        """Write the accepted jobs and accept no more; a hanging thread is abandoned."""
        with self._lock:
            self._closed = True
            thread, self._thread = self._thread, None
        if thread is None:
            return
        deadline = time.monotonic() + CLOSE_SECONDS
        with suppress(queue.Full):
            self._queue.put(None, timeout=CLOSE_SECONDS)
        thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            logger.error(
                "the writer of %s did not end within %g s; %d turns wait in its queue",
                self._name,
                CLOSE_SECONDS,
                self._queue.qsize(),
            )

    def _write(self) -> None:
        try:
            while (first := self._next()) is not None:
                jobs, last = self._drain(first)
                # In order of arrival, grouped by kind.
                for write in dict.fromkeys(job.write for job in jobs):
                    self._write_batch([job for job in jobs if job.write == write])
                if last:
                    return
        finally:
            connections.close_all()

    def _next(self) -> AnyJob | None:
        """Return the next job; an idle thread gives up its connection after a second."""
        if self._first is not None:
            first, self._first = self._first, None
            return first
        try:
            return self._queue.get(timeout=IDLE_SECONDS)
        except queue.Empty:
            try:
                close_old_connections()
            except Exception:
                # If the writer thread died, every turn of the process would hang.
                logger.exception("the connection of the idle writer was not given back")
            return self._queue.get()

    def _drain(self, first: AnyJob) -> tuple[list[AnyJob], bool]:
        jobs, chars = [first], first.chars
        while len(jobs) < BATCH and chars < BATCH_CHARS:
            try:
                job = self._queue.get_nowait()
            except queue.Empty:
                break
            if job is None:
                return jobs, True
            chars += job.chars
            if chars > BATCH_CHARS:
                self._first = job
                break
            jobs.append(job)
        return jobs, False

    def _write_batch(self, jobs: list[AnyJob]) -> None:
        try:
            with lock_wait(self._lock_milliseconds):
                outcomes = write_each(jobs[0].write, [job.turn for job in jobs])
        except Exception as error:
            # If the writer thread died, every turn of the process would hang.
            logger.exception("turns could not be written")
            outcomes = [Failed(error)] * len(jobs)
        metrics.TURN_GROUP_SIZE.observe(len(jobs))
        written = time.monotonic()
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[AnyJob, Any]]] = {}
        for job, outcome in zip(jobs, outcomes, strict=True):
            if not self._is_passed_on(job, outcome):
                metrics.TURN_WRITE_SECONDS.observe(written - job.asked_at)
                by_loop.setdefault(job.loop, []).append((job, outcome))
        for loop, settled in by_loop.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle, settled)

    def _is_passed_on(self, job: AnyJob, outcome: Any) -> bool:
        """Pass a turn that hit a lock timeout to the patient writer; return whether it was."""
        return (
            self._patient is not None
            and isinstance(outcome, Failed)
            and is_lock_timeout(outcome.error)
            and self._patient.put(job)
        )


def _settle(settled: Sequence[tuple[AnyJob, Any]]) -> None:
    for job, outcome in settled:
        if job.future.done():
            continue  # the caller was cancelled while waiting; the row is committed regardless
        if isinstance(outcome, Failed):
            job.future.set_exception(outcome.error)
        else:
            job.future.set_result(outcome)


def text_chars(turn: Start | Finish | Any) -> int:
    """Return the approximate number of characters in a turn's rows."""
    event = turn.message_event
    chars = 0 if event is None else _chars(event.payload)
    if not isinstance(turn, Start):
        return chars + _chars(turn.event.payload)
    if turn.responses:
        # All responses of a turn share the same request.
        chars += _chars(turn.responses[0].request) * len(turn.responses)
    return chars


def _chars(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_chars, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(_chars, value))
    return 0

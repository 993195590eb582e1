"""The turn store: callers await one turn, overlapping turns share one transaction.

Acknowledged means committed. A writer thread takes whatever has queued up while it wrote the batch
before; one bad turn fails alone, because a batch that raises is tried again turn by turn. Only data
errors are final: an operational error may hide a commit, so it is tried again with the same ids,
which the bodies recognise.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeVar

from django.conf import settings
from django.db import (
    DataError,
    IntegrityError,
    OperationalError,
    close_old_connections,
    connections,
)

from sessions_app import database
from sessions_app.store import orm, sql
from sessions_app.store.records import Failed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sessions_app.store.records import Finish, FinishOutcome, Start, StartOutcome

logger = logging.getLogger(__name__)

BATCH: Final = 256
QUEUE: Final = 4096
TRIES: Final = 3
IDLE_SECONDS: Final = 1.0
FAILURES: Final = (IntegrityError, DataError, ValueError, OperationalError, KeyError)
"""What a turn may run into; anything else is a defect."""

Turn = TypeVar("Turn")
Outcome = TypeVar("Outcome")


class StoreBusy(Exception):
    """More turns wait than the store takes; nothing was stored."""


class Bodies(NamedTuple):
    """The two functions that write, each a list in and a list of outcomes out."""

    start: Callable[[Sequence[Start]], list[StartOutcome]]
    finish: Callable[[Sequence[Finish]], list[FinishOutcome]]


SQL: Final = Bodies(sql.start_turns, sql.finish_turns)
ORM: Final = Bodies(orm.start_turns, orm.finish_turns)


class TurnStore(Protocol):
    """The two operations that the runner knows."""

    async def start(self, turn: Start) -> StartOutcome:
        """Return after COMMIT. Raises StoreBusy and database errors; then nothing was written."""

    async def finish(self, turn: Finish) -> FinishOutcome:
        """Return after COMMIT. Raises StoreBusy and database errors; then nothing was written."""

    def close(self) -> None:
        """Write what has been taken, and take no more."""


def write_each(
    write: Callable[[Sequence[Turn]], list[Outcome]], turns: Sequence[Turn]
) -> list[Outcome | Failed]:
    """Write turns together, or one by one when that raises; retry what a broken line may hide.

    The connection is the thread's, which keeps it while turns follow and no write raises.
    """
    try:
        return [*_with_retries(write, turns)]
    except Exception as error:
        # Whatever one of them raises, the others of its batch are not to blame.
        if len(turns) == 1:
            if not isinstance(error, FAILURES):
                logger.exception("a turn could not be written")
            return [Failed(error)]
    singly: list[Outcome | Failed] = []
    for turn in turns:
        alone = write_each(write, [turn])
        singly.extend(alone)
    return singly


def _with_retries(
    write: Callable[[Sequence[Turn]], list[Outcome]], turns: Sequence[Turn]
) -> list[Outcome]:
    for attempt in range(1, TRIES + 1):
        try:
            return database.kept(write, turns)
        except IntegrityError:
            # The same event on another process shows as a duplicate key: a second reading finds
            # what the first one wrote. Any other broken key stays broken.
            if attempt > 1 or len(turns) > 1:
                raise
        except OperationalError:
            if attempt == TRIES:
                raise
            logger.warning("writing %d turns failed, trying again", len(turns), exc_info=True)
            time.sleep(0.05 * attempt)
    raise AssertionError("unreachable")


def _settled(outcome: Any) -> Any:
    if isinstance(outcome, Failed):
        raise outcome.error
    return outcome


class DirectTurnStore:
    """Each turn in its own transaction on the shared database threads."""

    def __init__(self, bodies: Bodies = SQL) -> None:
        self._bodies = bodies

    async def start(self, turn: Start) -> StartOutcome:
        """See TurnStore."""
        outcome: StartOutcome = _settled(
            *await database.run(write_each, self._bodies.start, [turn])
        )
        return outcome

    async def finish(self, turn: Finish) -> FinishOutcome:
        """See TurnStore."""
        outcome: FinishOutcome = _settled(
            *await database.run(write_each, self._bodies.finish, [turn])
        )
        return outcome

    def close(self) -> None:
        """Nothing waits."""


class GroupTurnStore:
    """Overlapping turns of a process share a transaction on one writer thread."""

    def __init__(self, bodies: Bodies = SQL) -> None:
        self._bodies = bodies
        self._queue: queue.Queue[_Job[Any, Any] | None] = queue.Queue(QUEUE)
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._closed = False

    async def start(self, turn: Start) -> StartOutcome:
        """See TurnStore."""
        job: _Job[Start, StartOutcome] = _Job(turn, self._bodies.start)
        return await self._submit(job)

    async def finish(self, turn: Finish) -> FinishOutcome:
        """See TurnStore."""
        job: _Job[Finish, FinishOutcome] = _Job(turn, self._bodies.finish)
        return await self._submit(job)

    def close(self) -> None:
        """See TurnStore."""
        with self._lock:
            self._closed = True
            thread, self._thread = self._thread, None
        if thread is not None:
            self._queue.put(None)
            thread.join()

    async def _submit(self, job: _Job[Turn, Outcome]) -> Outcome:
        with self._lock:
            if self._closed:
                raise StoreBusy
            if self._thread is None:
                self._thread = threading.Thread(target=self._write, name="turns", daemon=True)
                self._thread.start()
            try:
                self._queue.put_nowait(job)
            except queue.Full:
                raise StoreBusy from None
        return await job.future

    def _write(self) -> None:
        try:
            while (first := self._next()) is not None:
                jobs, last = self._drain(first)
                for write in self._bodies:
                    self._write_batch([job for job in jobs if job.write is write])
                if last:
                    return
        finally:
            connections.close_all()

    def _next(self) -> _Job[Any, Any] | None:
        """Return the next turn; a thread without one gives its connection back after a second."""
        try:
            return self._queue.get(timeout=IDLE_SECONDS)
        except queue.Empty:
            try:
                close_old_connections()
            except Exception:
                # A writer thread that died would hang every turn of the process.
                logger.exception("the connection of the idle writer was not given back")
            return self._queue.get()

    def _drain(self, first: _Job[Any, Any]) -> tuple[list[_Job[Any, Any]], bool]:
        jobs = [first]
        while len(jobs) < BATCH:
            try:
                job = self._queue.get_nowait()
            except queue.Empty:
                break
            if job is None:
                return jobs, True
            jobs.append(job)
        return jobs, False

    def _write_batch(self, jobs: list[_Job[Any, Any]]) -> None:
        if not jobs:
            return
        try:
            outcomes = write_each(jobs[0].write, [job.turn for job in jobs])
        except Exception as error:
            # A writer thread that died would hang every turn of the process.
            logger.exception("turns could not be written")
            outcomes = [Failed(error)] * len(jobs)
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[_Job[Any, Any], Any]]] = {}
        for job, outcome in zip(jobs, outcomes, strict=True):
            by_loop.setdefault(job.loop, []).append((job, outcome))
        for loop, settled in by_loop.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle, settled)


class _Job(Generic[Turn, Outcome]):
    """A turn that waits for its transaction."""

    __slots__ = ("future", "loop", "turn", "write")

    def __init__(self, turn: Turn, write: Callable[[Sequence[Turn]], list[Outcome]]) -> None:
        self.turn = turn
        self.write = write
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Outcome] = self.loop.create_future()


def _settle(settled: Sequence[tuple[_Job[Any, Any], Any]]) -> None:
    for job, outcome in settled:
        if job.future.done():
            continue  # the caller was cancelled while it waited; the row is committed all the same
        if isinstance(outcome, Failed):
            job.future.set_exception(outcome.error)
        else:
            job.future.set_result(outcome)


def make_turn_store() -> TurnStore:
    """Return the store that settings.UAMP_TURN_STORE and UAMP_TURN_BODIES name."""
    bodies = ORM if settings.UAMP_TURN_BODIES == "orm" else SQL
    return (
        GroupTurnStore(bodies) if settings.UAMP_TURN_STORE == "group" else DirectTurnStore(bodies)
    )

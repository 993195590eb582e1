"""The turn store: callers await single turns, while concurrent turns share a transaction.

A turn is acknowledged only after it is committed. Two threads write: one takes turns of ordinary
size, the other takes those with much text and those that ran into another transaction's lock. So
neither a large turn nor a locked chat delays other turns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from django.conf import settings

from sessions_app import database
from sessions_app.store import orm, sql
from sessions_app.store.attempts import write_each
from sessions_app.store.records import Failed
from sessions_app.store.turn_writer import TurnJob, TurnWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sessions_app.store.records import Finish, FinishOutcome, Start, StartOutcome

LARGE_CHARS: Final = 16 * 1024
"""Turns with more text are written by the second thread."""
LOCK_MILLISECONDS: Final = 200
"""How long the first thread waits for a lock; the second is limited only by the database."""


class StoreBusy(Exception):
    """The store's queue is full; nothing was stored."""


class Bodies(NamedTuple):
    """The two write functions, each mapping a list of turns to a list of outcomes."""

    start: Callable[[Sequence[Start]], list[StartOutcome]]
    finish: Callable[[Sequence[Finish]], list[FinishOutcome]]


SQL: Final = Bodies(sql.start_turns, sql.finish_turns)
ORM: Final = Bodies(orm.start_turns, orm.finish_turns)


class TurnStore(Protocol):
    """The two operations available to the runner."""

    async def start(self, turn: Start) -> StartOutcome:
        """Return after COMMIT. After StoreBusy and database errors, nothing was written."""

    async def finish(self, turn: Finish) -> FinishOutcome:
        """Return after COMMIT. After StoreBusy and database errors, nothing was written."""

    def close(self) -> None:
        """Write the accepted turns and accept no more."""


def _settled(outcome: Any) -> Any:
    if isinstance(outcome, Failed):
        raise outcome.error
    return outcome


class DirectTurnStore:
    """Writes each turn in its own transaction on the shared database threads.

    Any task of any event loop may call it.
    """

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
        """Do nothing: no turns are queued."""


class GroupTurnStore:
    """Lets concurrent turns of a process share a transaction on one of two writer threads.

    Any task of any event loop may call `start` and `finish`. `close` waits for the writer threads;
    call it once, and not on an event loop's thread.
    """

    def __init__(self, bodies: Bodies = SQL) -> None:
        self._bodies = bodies
        self._large = TurnWriter("large turns")
        self._small = TurnWriter("turns", patient=self._large, lock_milliseconds=LOCK_MILLISECONDS)

    async def start(self, turn: Start) -> StartOutcome:
        """See TurnStore."""
        job: TurnJob[Start, StartOutcome] = TurnJob(turn, self._bodies.start)
        self._put(job)
        return await job.future

    async def finish(self, turn: Finish) -> FinishOutcome:
        """See TurnStore."""
        job: TurnJob[Finish, FinishOutcome] = TurnJob(turn, self._bodies.finish)
        self._put(job)
        return await job.future

    def close(self) -> None:
        """See TurnStore."""
        self._small.close()
        self._large.close()

    def _put(self, job: TurnJob[Any, Any]) -> None:
        writer = self._large if job.chars > LARGE_CHARS else self._small
        if not writer.put(job):
            raise StoreBusy


def make_turn_store() -> TurnStore:
    """Return the store selected by settings.UAMP_TURN_STORE and UAMP_TURN_BODIES."""
    bodies = ORM if settings.UAMP_TURN_BODIES == "orm" else SQL
    return (
        GroupTurnStore(bodies) if settings.UAMP_TURN_STORE == "group" else DirectTurnStore(bodies)
    )

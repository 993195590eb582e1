"""The turn store: callers await one turn, overlapping turns share one transaction.

Acknowledged means committed. Two threads write: one the turns of ordinary size, the other those
with much text, and those that met a lock of another transaction. So neither a large turn nor a
locked chat delays the turns of others.
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
"""A turn with more text is written by the second thread."""
LOCK_MILLISECONDS: Final = 200
"""How long the first thread waits for a lock; the second one, as long as the database lets it."""


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


def _settled(outcome: Any) -> Any:
    if isinstance(outcome, Failed):
        raise outcome.error
    return outcome


class DirectTurnStore:
    """Each turn in its own transaction on the shared database threads.

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
        """Nothing waits."""


class GroupTurnStore:
    """Overlapping turns of a process share a transaction on one of two writer threads.

    Any task of any event loop may call `start` and `finish`. `close` waits for the writer threads:
    it is called once, on another thread than a loop's.
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
    """Return the store that settings.UAMP_TURN_STORE and UAMP_TURN_BODIES name."""
    bodies = ORM if settings.UAMP_TURN_BODIES == "orm" else SQL
    return (
        GroupTurnStore(bodies) if settings.UAMP_TURN_STORE == "group" else DirectTurnStore(bodies)
    )

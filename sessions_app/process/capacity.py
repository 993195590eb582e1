"""Limits of running answers: of the process, each person or address, each session."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.conf import settings

from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessions_app.response.context import RunContext


class Capacity:
    """The live answers of a process, and those that a turn is about to start.

    A response that waits for a payment, for a client's result, for a person or for another agent is
    paused: it does not work, and leaves its room to others. Turns, runs and the registry call it,
    on the event loop of the process.
    """

    def __init__(self) -> None:
        self._paused: set[str] = set()
        self._live = 0
        self._of_session: Counter[str | None] = Counter()
        self._of_person: Counter[str] = Counter()

    @property
    def working(self) -> int:
        """How many answers work, or are about to."""
        return self._live - len(self._paused)

    def pause(self, response_id: str) -> None:
        """Count a response as one that only waits."""
        self._paused.add(response_id)

    def resume(self, response_id: str) -> None:
        """Count a response as one that works."""
        self._paused.discard(response_id)

    def add(self, context: RunContext) -> None:
        """Count an answer that begins here."""
        self._count(context.session_id, context.counted_as, 1)

    def remove(self, context: RunContext) -> None:
        """Count an answer no more: it ended, or another process has it."""
        self._count(context.session_id, context.counted_as, -1)

    def check(self, session_id: str | None, person: str, answers: int) -> None:
        """Raise RemoteProtocolError `busy` or `queue_full` where so many answers have no room."""
        if self.working + answers > settings.UAMP_RUNS_PER_PROCESS:
            raise busy()
        of_turn, of_session = settings.UAMP_RESPONSES_PER_TURN, settings.UAMP_RESPONSES_PER_SESSION
        if answers > of_turn:
            raise _queue_full(f"At most {of_turn} agents answer one message. Mention fewer.")
        running = self._of_session[session_id]
        # A chat may have more agents than a session has answers: alone, their turn is taken whole.
        if running >= of_session or running + answers > max(of_session, of_turn):
            raise _queue_full(
                f"{running} responses of this session are running. Wait for one, or cancel one."
            )
        running = self._of_person[person]
        if running + answers > settings.UAMP_RESPONSES_PER_PERSON:
            raise _queue_full(
                f"{running} of your responses are running. Wait for one, or cancel one."
            )

    @contextmanager
    def reserved(self, session_id: str | None, person: str, answers: int) -> Iterator[None]:
        """Keep room for the answers of a turn until they run; raises as `check` does.

        Turns that are written at the same time cannot take the same room.
        """
        self.check(session_id, person, answers)
        self._count(session_id, person, answers)
        try:
            yield
        finally:
            self._count(session_id, person, -answers)

    def _count(self, session_id: str | None, person: str, answers: int) -> None:
        self._live += answers
        self._of_session[session_id] += answers
        self._of_person[person] += answers
        if not self._of_session[session_id]:
            del self._of_session[session_id]
        if not self._of_person[person]:
            del self._of_person[person]


def busy() -> RemoteProtocolError:
    """Return the error of a turn for which the server has no room."""
    return RemoteProtocolError(
        ErrorCode.BUSY,
        "The server has no room for another response now. Try again in a moment.",
        details={"retry_after": 2},
    )


def _queue_full(message: str) -> RemoteProtocolError:
    return RemoteProtocolError(ErrorCode.QUEUE_FULL, message)

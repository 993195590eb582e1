"""Limits on running answers, per process, per person or address, and per session."""

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
    """The live answers of a process, including those that a turn is about to start.

    A response that waits for a payment, a client's result, a person or another agent is paused: it
    frees its capacity for others. Turns, runs and the registry call it on the process's event loop.
    """

    def __init__(self) -> None:
        self._paused: set[str] = set()
        self._live = 0
        self._of_session: Counter[str | None] = Counter()
        self._of_person: Counter[str] = Counter()

    @property
    def working(self) -> int:
        """The number of answers that are working or about to start."""
        return self._live - len(self._paused)

    def pause(self, response_id: str) -> None:
        """Count a response as waiting."""
        self._paused.add(response_id)

    def resume(self, response_id: str) -> None:
        """Count a response as working."""
        self._paused.discard(response_id)

    def add(self, context: RunContext) -> None:
        """Count an answer that starts here."""
        self._count(context.session_id, context.counted_as, 1)

    def remove(self, context: RunContext) -> None:
        """Uncount an answer that has ended or moved to another process."""
        self._count(context.session_id, context.counted_as, -1)

    def check(self, session_id: str | None, person: str, answers: int) -> None:
        """Raise RemoteProtocolError `busy` or `queue_full` if the answers exceed a limit."""
        if self.working + answers > settings.UAMP_RUNS_PER_PROCESS:
            raise busy()
        of_turn, of_session = settings.UAMP_RESPONSES_PER_TURN, settings.UAMP_RESPONSES_PER_SESSION
        if answers > of_turn:
            raise _queue_full(f"At most {of_turn} agents answer one message. Mention fewer.")
        running = self._of_session[session_id]
        # A chat may have more agents than a session may have answers; a turn on its own is accepted
        # whole.
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
        """Reserve capacity for the answers of a turn until they run; raises like `check`.

        Turns that are written concurrently cannot take the same capacity.
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
    """Return the error for a turn that exceeds the server's capacity."""
    return RemoteProtocolError(
        ErrorCode.BUSY,
        "The server is at capacity. Try again in a moment.",
        details={"retry_after": 2},
    )


def _queue_full(message: str) -> RemoteProtocolError:
    return RemoteProtocolError(ErrorCode.QUEUE_FULL, message)

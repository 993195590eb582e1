"""A subscription's items in its connection's queue: durable events and pieces of answers.

Reads must not overtake them: pieces between two events are not in the log.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sessions_app.connection.outgoing_queue import OutgoingQueue, Work


class QueuedParts:
    """Work that a subscription has queued and that has not run.

    A queue that falls behind drops all of it.
    """

    def __init__(self, outgoing: OutgoingQueue) -> None:
        self._outgoing = outgoing
        self._drops = outgoing.drops
        # The queued durable events in order: log position, and the response that starts, if any.
        self._events: deque[tuple[int, str]] = deque()
        # The number of queued texts and other frames per response.
        self._pieces: Counter[str] = Counter()

    def put_event(self, work: Work, seq: int, begins: str) -> None:
        """Queue a durable event; `begins` is the response that it starts, or ""."""
        if self._outgoing.put(work):
            self._forget_dropped()
            self._events.append((seq, begins))

    def put_piece(self, work: Work, response_id: str) -> None:
        """Queue text or another frame that is not stored, for a response or ""."""
        if self._outgoing.put(work):
            self._forget_dropped()
            self._pieces[response_id] += 1

    def take_event(self) -> None:
        """Record that the first event is running."""
        self._forget_dropped()
        self._events.popleft()

    def take_piece(self, response_id: str) -> None:
        """Record that a piece is running."""
        self._forget_dropped()
        self._pieces[response_id] -= 1
        if not self._pieces[response_id]:
            del self._pieces[response_id]

    def seqs(self) -> set[int]:
        """Return the log positions of the queued events."""
        self._forget_dropped()
        return {seq for seq, _ in self._events}

    def begins(self, response_id: str) -> bool:
        """Return whether the start of a response is queued."""
        self._forget_dropped()
        return any(begun == response_id for _, begun in self._events)

    def has_pieces(self, response_id: str) -> bool:
        """Return whether pieces of a response are queued."""
        self._forget_dropped()
        return response_id in self._pieces

    def _forget_dropped(self) -> None:
        if self._drops != self._outgoing.drops:
            self._drops = self._outgoing.drops
            self._events.clear()
            self._pieces.clear()

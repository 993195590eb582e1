"""One subscription's items in the queue of its connection: durable events, pieces of answers.

A reading may not overtake them: the log does not have the pieces that come between two events.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sessions_app.connection.outgoing_queue import OutgoingQueue, Work


class QueuedParts:
    """The work that a subscription has queued and that has not run yet.

    A queue that falls behind drops all of it: nothing is queued then.
    """

    def __init__(self, outgoing: OutgoingQueue) -> None:
        self._outgoing = outgoing
        self._drops = outgoing.drops
        # The durable events in the order of the queue: the place of each, and what it begins.
        self._events: deque[tuple[int, str]] = deque()
        # How many texts and other frames of each response.
        self._pieces: Counter[str] = Counter()

    def put_event(self, work: Work, seq: int, begins: str) -> None:
        """Queue a durable event, which begins a response or ''."""
        if self._outgoing.put(work):
            self._forget_dropped()
            self._events.append((seq, begins))

    def put_piece(self, work: Work, response_id: str) -> None:
        """Queue a text or another frame that is not kept, of a response or of none."""
        if self._outgoing.put(work):
            self._forget_dropped()
            self._pieces[response_id] += 1

    def take_event(self) -> None:
        """Note that the first event runs now."""
        self._forget_dropped()
        self._events.popleft()

    def take_piece(self, response_id: str) -> None:
        """Note that a piece runs now."""
        self._forget_dropped()
        self._pieces[response_id] -= 1
        if not self._pieces[response_id]:
            del self._pieces[response_id]

    def seqs(self) -> set[int]:
        """Return the places of the queued events in the log."""
        self._forget_dropped()
        return {seq for seq, _ in self._events}

    def begins(self, response_id: str) -> bool:
        """Return whether the beginning of a response is queued."""
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

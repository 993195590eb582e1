"""Fair queueing for a few shared slots: each caller holds one at a time, in turn.

Requests of one caller wait for each other, and do not delay those of other callers.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

T = TypeVar("T")

MAX_WAITING: Final = 64
"""The most waiting requests per asker."""


class TooManyWait(Exception):
    """The asker already has MAX_WAITING waiting requests."""


class FairTurns(Generic[T]):
    """Hands out slots as futures, to threads and event loops. Thread-safe."""

    def __init__(self, slots: Iterable[T]) -> None:
        self.free = list(slots)
        self._lock = threading.Lock()
        # The waiting askers, in the order of their turns.
        self._waiting: OrderedDict[str, deque[Future[T]]] = OrderedDict()
        self._busy: set[str] = set()

    def ask(self, asker: str) -> Future[T]:
        """Queue for a slot and return its future, to end with `give_back` or `give_up`.

        Raises TooManyWait.
        """
        turn: Future[T] = Future()
        with self._lock:
            waiting = self._waiting.setdefault(asker, deque())
            if len(waiting) >= MAX_WAITING:
                raise TooManyWait
            waiting.append(turn)
            self._hand_out()
        return turn

    def give_back(self, asker: str, slot: T) -> None:
        """Return a slot so that the next asker can have it."""
        with self._lock:
            self._busy.discard(asker)
            self.free.append(slot)
            self._hand_out()

    def give_up(self, asker: str, turn: Future[T]) -> None:
        """Stop waiting; a slot that the future has received in the meantime is returned."""
        if not turn.cancel():
            self.give_back(asker, turn.result())
            return
        with self._lock:
            waiting = self._waiting.get(asker)
            if waiting is not None and turn in waiting:
                waiting.remove(turn)
                if not waiting:
                    del self._waiting[asker]

    def _hand_out(self) -> None:
        while self.free:
            asker = next((name for name in self._waiting if name not in self._busy), None)
            if asker is None:
                return
            waiting = self._waiting[asker]
            turn = waiting.popleft()
            if waiting:
                self._waiting.move_to_end(asker)
            else:
                del self._waiting[asker]
            if turn.set_running_or_notify_cancel():
                self._busy.add(asker)
                turn.set_result(self.free.pop())

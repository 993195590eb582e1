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

MOST_WAITING: Final = 64
"""Requests of one asker that wait."""


class TooManyWait(Exception):
    """The asker has MOST_WAITING requests that wait."""


class FairTurns(Generic[T]):
    """Hands out things as futures, for threads and event loops; thread-safe."""

    def __init__(self, things: Iterable[T]) -> None:
        self.free = list(things)
        self._lock = threading.Lock()
        # The askers who wait; the one whose turn is next comes first.
        self._waiting: OrderedDict[str, deque[Future[T]]] = OrderedDict()
        self._busy: set[str] = set()

    def ask(self, asker: str) -> Future[T]:
        """Return a future of a thing, for `give_back` or `give_up`; raises TooManyWait."""
        turn: Future[T] = Future()
        with self._lock:
            waiting = self._waiting.setdefault(asker, deque())
            if len(waiting) >= MOST_WAITING:
                raise TooManyWait
            waiting.append(turn)
            self._hand_out()
        return turn

    def give_back(self, asker: str, thing: T) -> None:
        """Let the next asker have a thing."""
        with self._lock:
            self._busy.discard(asker)
            self.free.append(thing)
            self._hand_out()

    def give_up(self, asker: str, turn: Future[T]) -> None:
        """Wait no more; what the future got meanwhile is given back."""
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

"""The time that a session's client takes for its tool calls."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class ClientTime:
    """Measures how long the client had open calls of one response; overlapping calls count once.

    The tasks of the client's tools enter `of_call`.
    """

    def __init__(self) -> None:
        self._calls: set[int] = set()
        self._seconds = 0.0
        self._since: float | None = None
        self._left_one = False

    @property
    def is_running(self) -> bool:
        """Whether the client has an unanswered call."""
        return bool(self._calls)

    @contextmanager
    def of_call(self, pk: int, result: asyncio.Future[Any]) -> Iterator[None]:
        """Count the time of this block as a call's; `result` resolves when the client answers."""
        now = asyncio.get_running_loop().time
        self._calls.add(pk)
        if self._since is None:
            self._since = now()
        try:
            yield
        finally:
            self._left_one |= not result.done() or result.cancelled()
            self._calls.discard(pk)
            if not self._calls and self._since is not None:
                self._seconds += now() - self._since
                self._since = None

    def has_result(self, pk: int) -> None:
        """Record that a call has its result."""
        self._calls.discard(pk)

    def explains(self, seconds: float) -> bool:
        """Return whether the client caused an answer to exceed this many seconds.

        It did if it left a call unanswered or took more than half of the time for its results.
        """
        return self._left_one or self._seconds > seconds / 2

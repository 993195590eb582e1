"""Reads of a chat that many connections of the process need at once, made only once.

When two log entries arrive out of order, every member that follows the chat reads the log from the
same position. With a thousand members that is one query instead of a thousand.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from sessions_app import database

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

T = TypeVar("T")


class SharedReads:
    """Requested reads that have not started, by what they read.

    Any task on the process's loop may read. Callers share a read while it waits for a database
    thread. Once it has started, a new caller gets another read, since it may know of a later row.
    """

    def __init__(self) -> None:
        self._waiting: dict[Hashable, asyncio.Task[Any]] = {}

    async def read(self, function: Callable[..., T], *args: Hashable) -> T:
        """Return the result of `function(*args)` on a database thread, shared with other callers.

        Callers must not modify the result. Raises whatever the function raises.
        """
        key = (function, *args)
        task = self._waiting.get(key)
        if task is None:
            task = asyncio.create_task(self._read(key, function, args), name="shared read")
            task.add_done_callback(_take_note)
            self._waiting[key] = task
        # A cancelled caller leaves the read to the others.
        result: T = await asyncio.shield(task)
        return result

    async def _read(self, key: Hashable, function: Callable[..., T], args: tuple[Any, ...]) -> T:
        def begin() -> T:
            # From here on a new caller needs another read, which sees later rows.
            self._waiting.pop(key, None)
            return function(*args)

        try:
            return await database.run(begin)
        finally:
            if self._waiting.get(key) is asyncio.current_task():
                del self._waiting[key]


def _take_note(task: asyncio.Task[Any]) -> None:
    """Retrieve an error that no caller is left to receive."""
    if not task.cancelled():
        task.exception()

"""Reads of one chat that many connections of the process want at once, made once.

When two entries of a log arrive out of order, every member who follows the chat reads the log from
the same place; with a thousand members that is one query, and not a thousand.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from sessions_app import database

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

T = TypeVar("T")


class SharedReads:
    """The reads that have been asked for and have not begun, by what they read.

    Any task of the process's loop may read. Who asks while a read waits for a database thread
    shares it; who asks after it began gets another one, since they may know of a later row.
    """

    def __init__(self) -> None:
        self._waiting: dict[Hashable, asyncio.Task[Any]] = {}

    async def read(self, function: Callable[..., T], *args: Hashable) -> T:
        """Return what `function(*args)` returns on a database thread, as do others who ask now.

        Callers do not change what is returned. Raises what the function raises.
        """
        key = (function, *args)
        task = self._waiting.get(key)
        if task is None:
            task = asyncio.create_task(self._read(key, function, args), name="shared read")
            task.add_done_callback(_take_note)
            self._waiting[key] = task
        # One that is cancelled leaves the read to the others.
        result: T = await asyncio.shield(task)
        return result

    async def _read(self, key: Hashable, function: Callable[..., T], args: tuple[Any, ...]) -> T:
        def begin() -> T:
            # X
            self._waiting.pop(key, None)
            return function(*args)

        try:
            return await database.run(begin)
        finally:
            if self._waiting.get(key) is asyncio.current_task():
                del self._waiting[key]


def _take_note(task: asyncio.Task[Any]) -> None:
    """Retrieve an error that no caller is left to take."""
    if not task.cancelled():
        task.exception()

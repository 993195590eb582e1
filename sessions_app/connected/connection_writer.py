"""Writes the connections of daemons: those that register at the same time share a transaction.

After a restart, thousands of agents register within seconds.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from agents_app import connections
from sessions_app import database

if TYPE_CHECKING:
    from agents_app.connections import NewConnection

logger = logging.getLogger(__name__)

WRITTEN_AT_ONCE: Final = 64
"""A transaction locks the agents of its connections."""


class _Unwritten(NamedTuple):
    new: NewConnection
    key: asyncio.Future[int]


class ConnectionWriter:
    """The connections of a process that wait to be written, all on the process's loop."""

    def __init__(self, process: str) -> None:
        self._process = process
        self._waiting: list[_Unwritten] = []
        self._writing: asyncio.Task[None] | None = None

    async def write(self, new: NewConnection) -> int:
        """Return the key of the new row; raises connections.CannotRegister.

        If the caller is cancelled, the row is deleted.
        """
        waiting = _Unwritten(new, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write(), name="connections of daemons")
        return await waiting.key

    async def stop(self) -> None:
        """Wait until all connections have been written."""
        if self._writing is not None:
            await asyncio.wait([self._writing])

    async def _write(self) -> None:
        try:
            while self._waiting:
                written = self._waiting[:WRITTEN_AT_ONCE]
                del self._waiting[:WRITTEN_AT_ONCE]
                await self._write_together(written)
        finally:
            self._writing = None

    async def _write_together(self, written: list[_Unwritten]) -> None:
        opened = [waiting.new for waiting in written]
        try:
            results = await database.run(connections.open_connections, self._process, opened)
        except Exception as error:  # noqa: BLE001 it is raised for the callers
            for waiting in written:
                if not waiting.key.done():
                    waiting.key.set_exception(error)
            return
        abandoned = []
        for waiting, result in zip(written, results, strict=True):
            if waiting.key.done():
                abandoned.append(result)
            elif isinstance(result, int):
                waiting.key.set_result(result)
            else:
                waiting.key.set_exception(result)
        if keys := [result for result in abandoned if isinstance(result, int)]:
            try:
                await database.run(connections.close_connections, keys)
            except Exception:
                # Until the lease of this process expires, others consider the agents connected.
                logger.exception("%d connections of agents were not closed", len(keys))

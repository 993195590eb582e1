"""A port in front of a running server, whose connections a test cuts and mends."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CHUNK_BYTES = 65_536


class Cable:
    """The connections of a port; all of its methods are called in the loop that serves it."""

    def __init__(self, target: int) -> None:
        self.port = 0
        self._target = target
        self._is_cut = False
        self._ends: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """Close all connections, and each new one at once."""
        self._is_cut = True
        for end in self._ends:
            end.transport.abort()

    def mend(self) -> None:
        """Let new connections through."""
        self._is_cut = False

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on what both sides of a connection send."""
        if self._is_cut:
            writer.transport.abort()
            return
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        ends = {writer, back}
        self._ends |= ends
        await asyncio.gather(_copy(reader, back), _copy(there, writer))
        self._ends -= ends


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await source.read(CHUNK_BYTES):
            sink.write(data)
            await sink.drain()
    sink.close()


@asynccontextmanager
async def cable(target: int) -> AsyncIterator[Cable]:
    """Yield a cable to a port of this machine."""
    laid = Cable(target)
    server = await asyncio.start_server(laid.connected, "127.0.0.1", 0)
    laid.port = server.sockets[0].getsockname()[1]
    try:
        yield laid
    finally:
        server.close()
        laid.cut()

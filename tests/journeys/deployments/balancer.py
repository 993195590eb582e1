"""A port in front of several processes, each connection to the next one: no sticky routing.

Like a proxy, it skips processes that accept no connections.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from itertools import cycle
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

CHUNK_BYTES = 65_536


@asynccontextmanager
async def balanced(ports: Sequence[int]) -> AsyncIterator[int]:
    """Yield a port of 127.0.0.1 whose connections go to these ports in turn."""
    turns = cycle(ports)
    running: set[asyncio.Task[None]] = set()

    async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await source.read(CHUNK_BYTES):
                sink.write(data)
                await sink.drain()
        sink.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            running.add(task)
            task.add_done_callback(running.discard)
        for _ in ports:
            with suppress(ConnectionError):
                there, back = await asyncio.open_connection("127.0.0.1", next(turns))
                break
        else:
            writer.transport.abort()
            return
        await asyncio.gather(copy(reader, back), copy(there, writer))

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        port: int = server.sockets[0].getsockname()[1]
        yield port
    finally:
        server.close()
        for task in list(running):
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

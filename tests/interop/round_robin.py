"""One address for several servers: each request goes to the next of them."""

from __future__ import annotations

import asyncio
import itertools
import re
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.threads import join_threads

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_HEAD_BYTES = 1 << 20
CONNECTION_SECONDS = SERVER_SECONDS = 7200
_CONNECTION = re.compile(rb"\r\nconnection:[^\r]*", re.IGNORECASE)
_UPGRADE = re.compile(rb"\r\nupgrade:", re.IGNORECASE)


class RoundRobin:
    """A TCP server that passes each connection on, to the next of some ports.

    A request is the only one of its connection: its head is passed on with `Connection: close`, a
    WebSocket's as it is. Everything after the head is passed on unread, in both directions.
    """

    def __init__(self, ports: Sequence[int]) -> None:
        self._ports = itertools.cycle(ports)
        self.port = 0
        self.passed: dict[int, int] = dict.fromkeys(ports, 0)

    async def start(self) -> asyncio.Server:
        """Listen on a free port of 127.0.0.1."""
        server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0, limit=_HEAD_BYTES)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            # A client that opened a connection and had nothing to ask.
            writer.close()
            return
        port = next(self._ports)
        self.passed[port] += 1
        answer, request = await asyncio.open_connection("127.0.0.1", port)
        if not _UPGRADE.search(head):
            head = _CONNECTION.sub(b"", head).removesuffix(b"\r\n\r\n")
            head += b"\r\nConnection: close\r\n\r\n"
        request.write(head)
        ways = {
            asyncio.create_task(_copy(reader, request)),
            asyncio.create_task(_copy(answer, writer)),
        }
        # Whichever side ends first ends the other one.
        _, open_ways = await asyncio.wait(
            ways, timeout=CONNECTION_SECONDS, return_when=asyncio.FIRST_COMPLETED
        )
        for way in open_ways:
            way.cancel()
        for stream in (request, writer):
            stream.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        return


@contextmanager
def round_robin(ports: Sequence[int]) -> Iterator[RoundRobin]:
    """Run one on a thread until the end of the block."""
    balancer = RoundRobin(ports)
    started = threading.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        server = await balancer.start()
        started.set()
        await server.serve_forever()

    serving = loop.create_task(serve())

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(_until_cancelled(serving))

    thread = threading.Thread(target=run, name="round-robin")
    thread.start()
    assert started.wait(60)
    try:
        yield balancer
    finally:
        loop.call_soon_threadsafe(serving.cancel)
        join_threads([thread])


async def _until_cancelled(task: asyncio.Task[None]) -> None:
    await asyncio.wait({task}, timeout=SERVER_SECONDS)

"""A proxy that cuts the connection after a chosen number of frames, as a network does."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

Direction = Literal["up", "down"]
Unit = Literal["frame", "byte"]


class CuttingProxy:
    """Passes bytes on, and aborts both sides after the n-th unit of one direction.

    A unit is a WebSocket frame, or in an event stream an event; or a byte of an answer, of which
    those before the cut are passed on. `cuts` counts what it cut.
    """

    def __init__(self, port: int) -> None:
        self.url = ""
        self.cuts = 0
        self.refuse = False
        """Whether new connections are closed at once."""
        self._port = port
        self._ways: set[asyncio.Task[None]] = set()
        self._direction: Direction = "down"
        self._unit: Unit = "frame"
        self._over = 0
        self._left: int | None = None

    def cut_after(self, units: int, direction: Direction = "down", *, unit: Unit = "frame") -> None:
        """Cut once, after so many further units, whichever connection carries them."""
        self._left, self._direction, self._unit = units, direction, unit

    @property
    def is_armed(self) -> bool:
        """Whether a cut is still to come."""
        return self._left is not None

    def disarm(self) -> None:
        """Cut nothing any more."""
        self._left = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on one connection."""
        if self.refuse:
            writer.transport.abort()
            return
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        ways = [
            asyncio.create_task(self._pass(reader, back, "up")),
            asyncio.create_task(self._pass(there, writer, "down")),
        ]
        self._ways.update(ways)
        try:
            await asyncio.wait(ways, timeout=600, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
                self._ways.discard(way)
            for end in (writer, back):
                end.transport.abort()

    async def close(self) -> None:
        """Cut everything."""
        for way in list(self._ways):
            way.cancel()
        await asyncio.sleep(0.01)

    async def _pass(
        self, source: asyncio.StreamReader, to: asyncio.StreamWriter, direction: Direction
    ) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = await source.readuntil(b"\r\n\r\n")
            if self._cuts_bytes(head, direction):
                return
            to.write(head)
            if b"upgrade: websocket" in head.lower():
                await self._frames(source, to, direction)
            else:
                await self._lines(source, to, direction)

    async def _frames(
        self, source: asyncio.StreamReader, to: asyncio.StreamWriter, direction: Direction
    ) -> None:
        while True:
            head = await source.readexactly(2)
            size = head[1] & 0x7F
            more = await source.readexactly({126: 2, 127: 8}.get(size, 0))
            size = int.from_bytes(more) if more else size
            masked = 4 if head[1] & 0x80 else 0
            to.write(head + more + await source.readexactly(size + masked))
            await to.drain()
            if head[0] & 0x0F == 1 and self._is_last(direction):
                return

    async def _lines(
        self, source: asyncio.StreamReader, to: asyncio.StreamWriter, direction: Direction
    ) -> None:
        is_stream = False
        while piece := await source.read(4096):
            if self._cuts_bytes(piece, direction):
                to.write(piece[: len(piece) + self._over])
                await to.drain()
                return
            # A stream begins with this comment, on a connection that may have had other answers.
            is_stream = is_stream or (direction == "down" and b": stream open" in piece)
            to.write(piece)
            await to.drain()
            if b"upgrade: websocket" in piece.lower():
                # On a connection that had other requests; frames follow once both sides agree.
                await self._frames(source, to, direction)
                return
            units = piece.count(b"data: ") if is_stream else 0
            if any(self._is_last(direction) for _ in range(units)):
                return

    def _cuts_bytes(self, piece: bytes, direction: Direction) -> bool:
        if self._left is None or direction != self._direction or self._unit != "byte":
            return False
        self._left -= len(piece)
        if self._left > 0:
            return False
        self._over, self._left = self._left, None
        self.cuts += 1
        return True

    def _is_last(self, direction: Direction) -> bool:
        if self._left is None or direction != self._direction or self._unit != "frame":
            return False
        self._left -= 1
        if self._left > 0:
            return False
        self._left = None
        self.cuts += 1
        return True


@asynccontextmanager
async def cutting_proxy(port: int) -> AsyncIterator[CuttingProxy]:
    """Run a proxy before a port of this machine."""
    proxy = CuttingProxy(port)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
        await proxy.close()

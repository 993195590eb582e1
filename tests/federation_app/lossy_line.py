"""A proxy of UDP that drops datagrams, and whose address as the server sees it may change."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class LossyLine(asyncio.DatagramProtocol):
    """Passes datagrams of one client on to a server, and back; of `every` so many, one is lost.

    After each `moves_every` from the server, the address changes that the server sees.
    """

    def __init__(self, port: int, every: int, moves_every: int = 0) -> None:
        self.lost = self.passed = self.moves = 0
        self._moves_every = moves_every
        self._came_back = 0
        self._moving: asyncio.Task[None] | None = None
        self._server = ("127.0.0.1", port)
        self._every = every
        self._client: Any = None
        self._near: Any = None
        self._far: Any = None

    @property
    def port(self) -> int:
        """The port for the client."""
        port: int = self._near.get_extra_info("sockname")[1]
        return port

    async def open(self) -> None:
        """Listen for the client, and connect to the server."""
        loop = asyncio.get_running_loop()
        await loop.create_datagram_endpoint(lambda: self, local_addr=("127.0.0.1", 0))
        self._far = await self._new_far()

    async def _new_far(self) -> Any:
        loop = asyncio.get_running_loop()
        far, _ = await loop.create_datagram_endpoint(
            lambda: _FarEnd(self), remote_addr=self._server
        )
        return far

    async def _move(self) -> None:
        """Send from another port; nothing comes through the former one any more."""
        earlier, self._far = self._far, await self._new_far()
        earlier.close()
        self.moves += 1

    def close(self) -> None:
        """Close both ends."""
        self._near.close()
        self._far.close()

    def connection_made(self, transport: Any) -> None:
        """See DatagramProtocol."""
        self._near = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        """Pass a datagram of the client on."""
        self._client = addr
        if self._passes():
            self._far.sendto(data)

    def back(self, data: bytes) -> None:
        """Pass a datagram of the server back."""
        self._came_back += 1
        if self._moves_every and self._came_back % self._moves_every == 0:
            self._moving = asyncio.ensure_future(self._move())
        if self._client is not None and self._passes():
            self._near.sendto(data, self._client)

    def _passes(self) -> bool:
        self.passed += 1
        is_lost = self.passed % self._every == 0
        self.lost += is_lost
        return not is_lost


class _FarEnd(asyncio.DatagramProtocol):
    def __init__(self, line: LossyLine) -> None:
        self._line = line

    def datagram_received(self, data: bytes, addr: Any) -> None:
        del addr
        self._line.back(data)


@asynccontextmanager
async def lossy_line(port: int, *, every: int, moves_every: int = 0) -> AsyncIterator[LossyLine]:
    """Run a proxy before a port of this machine."""
    line = LossyLine(port, every, moves_every)
    await line.open()
    try:
        yield line
    finally:
        line.close()

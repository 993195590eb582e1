"""The client process of a shared chat: one person asks, the others read along.

`python -m benchmarks.room_client` reads one JSON line (see `RoomOrder`) and prints lines: `begin`
and `end` frame the measured time, the last line is the result as JSON.
"""

from __future__ import annotations

import asyncio
import json
import socket
import statistics
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.client import TIMEOUT_SECONDS, Order, Socket, allow_many_sockets, say

if TYPE_CHECKING:
    from collections.abc import Sequence

SMALL_BUFFER = 4096


@dataclass(frozen=True, kw_only=True)
class RoomOrder:
    """Who reads where: `members` are pairs of port and key; `asker` is one too, or None.

    The first `stalled` members stop reading when their session is open. `turns` ends the run after
    so many answers, however long they take; otherwise it ends after `seconds`.
    """

    chat: str
    members: Sequence[tuple[int, str]]
    asker: tuple[int, str] | None = None
    text: str = ""
    stalled: int = 0
    turns: int = 0
    warm: float = 1.0
    seconds: float = 3.0
    session: dict[str, Any] = field(default_factory=dict)


class Reader(Socket):
    """A member's socket: it counts deltas and bytes, and notes when each answer ended."""

    def __init__(self, order: Order, number: int) -> None:
        super().__init__(order, number)
        self.deltas = 0
        self.bytes = 0
        self.ends: list[float] = []
        self.most = 0
        self.finished = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        """Count what came."""
        self.bytes += len(data)
        super().data_received(data)

    def _event(self, payload: bytearray) -> None:
        if payload.startswith(b'{"type":"response.delta"'):
            self.deltas += 1
        elif payload.startswith(b'{"type":"response.done"'):
            self.ends.append(time.perf_counter())
            if len(self.ends) == self.most:
                self.finished.set()
        elif not self.opened.done():
            super()._event(payload)

    def stall(self) -> None:
        """Read nothing any more, with a small buffer in the kernel."""
        kernel: socket.socket = self._transport.get_extra_info("socket")
        kernel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
        self._transport.pause_reading()


class Asker(Socket):
    """The asker's socket: it notes when it asked."""

    def __init__(self, order: Order, number: int) -> None:
        super().__init__(order, number)
        self.asked: list[float] = []
        self.most = 0

    def ask(self) -> None:
        """Ask, unless that was done often enough."""
        if self.most and len(self.asked) >= self.most:
            self.running = False
            if not self.stopped.done():
                self.stopped.set_result(None)
            return
        self.asked.append(time.perf_counter())
        super().ask()


async def _open(make: Any, port: int, token: str, order: RoomOrder, number: int) -> Any:
    session = {"chat": order.chat, **order.session}
    wanted = Order(port=port, token=token, session=session, text=order.text)
    async with asyncio.timeout(TIMEOUT_SECONDS):
        _, opened = await asyncio.get_running_loop().create_connection(
            lambda: make(wanted, number), "127.0.0.1", port
        )
        await opened.opened
    return opened


async def run(order: RoomOrder) -> None:
    """Carry out an order."""
    readers: list[Reader] = [
        await _open(Reader, port, token, order, number)
        for number, (port, token) in enumerate(order.members)
    ]
    for reader in readers[: order.stalled]:
        reader.stall()
    healthy = readers[order.stalled :]
    for reader in healthy:
        reader.most = order.turns
    asker: Asker | None = None
    if order.asker is not None:
        asker = await _open(Asker, *order.asker, order, len(readers))
        asker.most = order.turns
        asker.running = True
        if not order.turns:
            asker.ask()
    await asyncio.sleep(order.warm)
    before = sum(reader.deltas for reader in healthy)
    bytes_before = sum(reader.bytes for reader in healthy)
    say("begin")
    began = time.perf_counter()
    if asker is not None and order.turns:
        asker.ask()
        await asker.stopped
    else:
        await asyncio.sleep(order.seconds)
    deltas = sum(reader.deltas for reader in healthy) - before
    size = sum(reader.bytes for reader in healthy) - bytes_before
    elapsed = time.perf_counter() - began
    say("end")
    if asker is not None and order.turns:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await asyncio.gather(*(reader.finished.wait() for reader in healthy))
    result = {
        "deltas": deltas,
        "bytes": size,
        "seconds": elapsed,
        "turns": len(asker.asked) if asker else 0,
        "answered_ms": _answered(asker, healthy),
    }
    # The server's memory is read before the sockets close.
    await asyncio.to_thread(sys.stdin.readline)
    for opened in [*readers, *([asker] if asker else [])]:
        opened.close()
    say(json.dumps(result))


def _answered(asker: Asker | None, readers: Sequence[Reader]) -> dict[str, float]:
    """Return how long after a question its whole answer was with the readers, in milliseconds."""
    if asker is None:
        return {}
    times = [
        (end - asked) * 1000
        for reader in readers
        for asked, end in zip(asker.asked, reader.ends, strict=False)
    ]
    if len(times) < 2:
        return {}
    cuts = statistics.quantiles(times, n=100, method="inclusive")
    return {"p50": cuts[49], "p99": cuts[98], "max": max(times)}


def main() -> None:
    """Read the order and carry it out."""
    allow_many_sockets()
    order = json.loads(sys.stdin.readline())
    asyncio.run(run(RoomOrder(**order)))


if __name__ == "__main__":
    main()

"""The client process of a shared chat: one person asks, the others read along.

`python -m benchmarks.clients.rooms` reads one line of JSON (see `RoomOrder`) and prints lines:
`begin` and `end` mark the measured time, and the last line is the result as JSON.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import statistics
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.clients.turns import (
    TIMEOUT_SECONDS,
    Order,
    Socket,
    allow_many_sockets,
    quantiles,
    say,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

SMALL_BUFFER = 4096
# This many readers record the arrival and size of each text; the others only count.
WATCHING = 20
DELTA = re.compile(rb'"response_id":"([^"]*)".*?"text":"([^"]*)".*?"offset":([0-9]+)')


@dataclass(frozen=True, kw_only=True)
class RoomOrder:
    """The readers of a room: `members` are pairs of port and key; `asker` is such a pair or None.

    The first `stalled` members stop reading once their session is open. `turns` ends the run after
    that many answers, however long they take; otherwise it ends after `seconds`.
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
    """A member's socket, which counts deltas and bytes and records when each answer ended."""

    def __init__(self, order: Order, number: int) -> None:
        super().__init__(order, number)
        self.deltas = 0
        self.bytes = 0
        self.is_watching = number < WATCHING
        # Code points of text, and the arrival of each text by offset, for readers that are
        # watching.
        self.text = 0
        self.came: dict[tuple[bytes, int], float] = {}
        self.ends: list[float] = []
        self.limit = 0
        self.finished = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        """Count the data received."""
        self.bytes += len(data)
        super().data_received(data)

    def _event(self, payload: bytearray) -> None:
        if payload.startswith(b'{"type":"response.delta"'):
            self.deltas += 1
            if self.is_watching:
                self._note(payload)
        elif payload.startswith(b'{"type":"response.done"'):
            self.ends.append(time.perf_counter())
            if len(self.ends) == self.limit:
                self.finished.set()
        elif not self.opened.done():
            super()._event(payload)

    def _note(self, payload: bytearray) -> None:
        place, text = _delta(payload)
        self.text += text
        self.came[place] = time.perf_counter()

    def stall(self) -> None:
        """Stop reading, with a small kernel buffer."""
        kernel: socket.socket = self._transport.get_extra_info("socket")
        kernel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
        self._transport.pause_reading()


class Asker(Socket):
    """The asker's socket, which records when it asked and when each text arrived."""

    def __init__(self, order: Order, number: int) -> None:
        super().__init__(order, number)
        self.ask_times: list[float] = []
        self.came: dict[tuple[bytes, int], float] = {}
        self.words = 0
        self.limit = 0

    def _event(self, payload: bytearray) -> None:
        if payload.startswith(b'{"type":"response.delta"'):
            self.words += 1
            place, _ = _delta(payload)
            self.came[place] = time.perf_counter()
        super()._event(payload)

    def ask(self) -> None:
        """Ask, unless the limit has been reached."""
        if self.limit and len(self.ask_times) >= self.limit:
            self.running = False
            if not self.stopped.done():
                self.stopped.set_result(None)
            return
        self.ask_times.append(time.perf_counter())
        super().ask()


async def open_session(make: Any, order: Order, number: int) -> Any:
    """Connect a `Socket` and wait until its session is open; raises TimeoutError."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        _, protocol = await asyncio.get_running_loop().create_connection(
            lambda: make(order, number), "127.0.0.1", order.port
        )
        await protocol.opened
    return protocol


async def _open(make: Any, port: int, token: str, order: RoomOrder, number: int) -> Any:
    session = {"chat": order.chat, **order.session}
    session_order = Order(port=port, token=token, session=session, text=order.text)
    return await open_session(make, session_order, number)


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
        reader.limit = order.turns
    asker: Asker | None = None
    if order.asker is not None:
        asker = await _open(Asker, *order.asker, order, len(readers))
        asker.limit = order.turns
        asker.running = True
        if not order.turns:
            asker.ask()
    await asyncio.sleep(order.warm)
    before = sum(reader.deltas for reader in healthy)
    bytes_before = sum(reader.bytes for reader in healthy)
    watching = [reader for reader in healthy if reader.is_watching]
    text_before = sum(reader.text for reader in watching)
    watched_before = sum(reader.bytes for reader in watching)
    words_before = asker.words if asker else 0
    say("begin")
    began = time.perf_counter()
    if asker is not None and order.turns:
        asker.ask()
        await asker.stopped
    else:
        await asyncio.sleep(order.seconds)
    deltas = sum(reader.deltas for reader in healthy) - before
    words = (asker.words if asker else 0) - words_before
    size = sum(reader.bytes for reader in healthy) - bytes_before
    text = sum(reader.text for reader in watching) - text_before
    watched = sum(reader.bytes for reader in watching) - watched_before
    elapsed = time.perf_counter() - began
    say("end")
    if asker is not None and order.turns:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await asyncio.gather(*(reader.finished.wait() for reader in healthy))
    result = {
        "deltas": deltas,
        "words": words,
        "bytes": size,
        "seconds": elapsed,
        "turns": len(asker.ask_times) if asker else 0,
        "answered_ms": _answered(asker, healthy),
        "behind_ms": _behind(asker, watching),
        "wire": watched / text if text else 0.0,
    }
    # The server's memory is read before the sockets close.
    await asyncio.to_thread(sys.stdin.readline)
    for client in [*readers, *([asker] if asker else [])]:
        client.close()
    say(json.dumps(result))


def _answered(asker: Asker | None, readers: Sequence[Reader]) -> dict[str, float]:
    """Return the time for which the readers waited for a whole answer, in milliseconds."""
    if asker is None:
        return {}
    times = [
        (end - start) * 1000
        for reader in readers
        for start, end in zip(asker.ask_times, reader.ends, strict=False)
    ]
    if len(times) < 2:
        return {}
    cuts = statistics.quantiles(times, n=100, method="inclusive")
    return {"p50": cuts[49], "p99": cuts[98], "max": max(times)}


def _behind(asker: Asker | None, readers: Sequence[Reader]) -> dict[str, float]:
    """Return the delay between the asker and the readers for the oldest text of a frame, in ms."""
    if asker is None:
        return {}
    times = [
        came - asker.came[place]
        for reader in readers
        for place, came in reader.came.items()
        if place in asker.came
    ]
    return quantiles(times)


def _delta(payload: bytearray) -> tuple[tuple[bytes, int], int]:
    """Return the answer and the offset of a text, and its length, in an ASCII frame."""
    match = DELTA.search(payload)
    if match is None:
        raise ValueError(payload.decode())
    return (match[1], int(match[3])), len(match[2])


def main() -> None:
    """Read the order and carry it out."""
    allow_many_sockets()
    order = json.loads(sys.stdin.readline())
    asyncio.run(run(RoomOrder(**order)))


if __name__ == "__main__":
    main()

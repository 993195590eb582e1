"""`python -m benchmarks.clients.daemons`: daemons of connected agents that answer with 20 deltas.

Reads one line of JSON (see `DaemonOrder`). Prints `ready SECONDS` once all are registered, and
`back SECONDS`, counted from the first loss, once all are registered again after sockets were lost.
Exits when its input ends.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

DELTAS = 20
AGAIN_SECONDS = 0.25
OPENING_AT_ONCE = 32


@dataclass(frozen=True, kw_only=True)
class DaemonOrder:
    """`daemons` sockets spread over `ports`, each with `agents` agents named after `prefix`.

    `tokens` has a token for the agents of each daemon.
    """

    ports: list[int]
    tokens: list[str]
    prefix: str = "bench"
    daemons: int = 1
    agents: int = 1


class Crowd:
    """All daemons of this process."""

    def __init__(self, order: DaemonOrder) -> None:
        self._order = order
        self._registered = 0
        self._opening = asyncio.Semaphore(OPENING_AT_ONCE)
        self._lost_at: float | None = time.perf_counter()
        self._word = "ready"

    async def run(self) -> None:
        """Keep all daemons registered, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for number in range(self._order.daemons):
                tasks.create_task(self._daemon(number))

    async def _daemon(self, number: int) -> None:
        tries = number
        headers = {"Authorization": f"Bearer {self._order.tokens[number]}"}
        while True:
            has = 0
            try:
                port = self._order.ports[tries % len(self._order.ports)]
                async with self._opening:
                    socket = await connect(
                        f"ws://127.0.0.1:{port}/ws",
                        # Without it, the socket would count as a visitor's.
                        additional_headers=headers,
                        compression=None,
                        open_timeout=60,
                    )
                async with socket:
                    async with self._opening:
                        for agent in range(self._order.agents):
                            await self._register(socket, number, agent)
                            has += 1
                            self._count(1)
                    async for text in socket:
                        await self._take(socket, json.loads(text))
            except (OSError, WebSocketException, TimeoutError):
                pass
            if has:
                self._count(-has)
            tries += 1
            await asyncio.sleep(AGAIN_SECONDS)

    async def _register(self, socket: Any, number: int, agent: int) -> None:
        order = self._order
        session = {"agent": f"{order.prefix}-{number}-{agent}", "token": order.tokens[number]}
        event = {"type": "session.create", "event_id": f"{number}-{agent}", "session": session}
        await socket.send(json.dumps(event))
        while True:
            frame = json.loads(await socket.recv())
            if frame["type"] == "session.error":
                raise RuntimeError(frame["error"])
            if frame["type"] == "session.created":
                return

    async def _take(self, socket: Any, frame: dict[str, Any]) -> None:
        if frame["type"] != "input.text":
            return
        session_fields = {"session_id": frame["session_id"]}
        for number in range(1, DELTAS + 1):
            delta = {"type": "text", "text": f"word{number:02} "}
            await socket.send(
                json.dumps({"type": "response.delta", **session_fields, "delta": delta})
            )
        await socket.send(json.dumps({"type": "response.done", **session_fields}))

    def _count(self, change: int) -> None:
        if change < 0 and self._lost_at is None:
            self._lost_at = time.perf_counter()
        self._registered += change
        if self._registered == self._order.daemons * self._order.agents:
            if self._lost_at is not None:
                print(f"{self._word} {time.perf_counter() - self._lost_at:.3f}", flush=True)
            self._word, self._lost_at = "back", None


async def main() -> None:
    """Run until the input ends."""
    order = DaemonOrder(**json.loads(sys.stdin.readline()))
    crowd = asyncio.create_task(Crowd(order).run())
    ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    await asyncio.wait([crowd, ended], return_when=asyncio.FIRST_COMPLETED)
    crowd.cancel()
    with suppress(asyncio.CancelledError):
        await crowd


if __name__ == "__main__":
    asyncio.run(main())

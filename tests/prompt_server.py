"""uvicorn for tests, stopping at once.

uvicorn checks every 0.1 s whether it has to stop, and pauses as long again before it waits for its
connections: together, longer than most tests take.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import uvicorn

if TYPE_CHECKING:
    import socket

TICK_SECONDS = 1.0
LOOK_SECONDS = 0.005


class PromptServer(uvicorn.Server):
    """A server that another thread stops with `stop`."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Stop the server, whether or not it has started or ended."""
        self.should_exit = True
        if self._loop is not None:
            # A closed loop runs no server.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stopped.set)

    async def main_loop(self) -> None:
        """Serve until `stop`; the headers contain the current date to the second."""
        self._loop = asyncio.get_running_loop()
        # uvicorn counts every tenth tick as a second.
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), TICK_SECONDS)

    async def shutdown(
        self,
        sockets: list[socket.socket] | None = None,  # noqa: ARG002 named by uvicorn
    ) -> None:
        """Close the connections, and cancel those still open after the configured time."""
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        try:
            async with asyncio.timeout(self.config.timeout_graceful_shutdown):
                while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110 sets
                    await asyncio.sleep(LOOK_SECONDS)
                for server in self.servers:
                    await server.wait_closed()
        except TimeoutError:
            for task in self.server_state.tasks:
                task.cancel(msg="the server of the test ends")

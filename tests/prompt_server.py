"""uvicorn for a test: it stops at once.

uvicorn looks every 0.1 s whether it has to end, and pauses as long before it waits for its
connections: together more than most tests take.
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
    """A server that another thread ends with `stop`."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Tell the server to end; it does not matter whether it has started, or ended."""
        self.should_exit = True
        if self._loop is not None:
            # A loop that has closed runs no server.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stopped.set)

    async def main_loop(self) -> None:
        """Serve until `stop`; the headers have a date of this second."""
        self._loop = asyncio.get_running_loop()
        # Each tenth tick is a second in the counter of uvicorn.
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), TICK_SECONDS)

    async def shutdown(
        self,
        sockets: list[socket.socket] | None = None,  # noqa: ARG002 uvicorn names it
    ) -> None:
        """Close the connections, and cancel what has not ended in the configured time."""
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

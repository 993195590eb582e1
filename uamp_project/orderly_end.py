"""An orderly end under uvicorn, which closes its connections before it says that it ends.

uvicorn sends `lifespan.shutdown` when every connection is closed: no answer could reach its client
any more. So its signals are taken when it has started. The first lets the application drain, with
the port and the sockets open, and uvicorn ends after that. A Ctrl-C a second later or more ends the
wait; the next one is uvicorn's own, which waits for nothing.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from typing import TYPE_CHECKING, Final

from uvicorn.server import HANDLED_SIGNALS, Server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

logger = logging.getLogger(__name__)

# A Ctrl-C that comes so long after the first signal ends the wait for running answers.
HURRY_AFTER_SECONDS: Final = 1.0


class OrderlyEnd:
    """Has the application drain before the server of this process ends."""

    def __init__(self, drain: Callable[[], Awaitable[None]]) -> None:
        self._drain = drain
        self._ending: asyncio.Task[None] | None = None
        self._may_hurry_at = 0.0

    def take_signals(self) -> None:
        """Take the signals of uvicorn; a server of another kind, or in a thread, keeps its own."""
        server = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
        if not isinstance(server, Server):
            return
        if threading.current_thread() is not threading.main_thread():
            return
        for signum in HANDLED_SIGNALS:
            asyncio.get_running_loop().add_signal_handler(signum, self._signalled, server, signum)

    def _signalled(self, server: Server, signum: int) -> None:
        """Begin the end; a signal that a parent passes on comes twice, and is one wish."""
        now = asyncio.get_running_loop().time()
        if self._ending is None:
            self._may_hurry_at = now + HURRY_AFTER_SECONDS
            self._ending = asyncio.ensure_future(self._end(server))
        elif signum == signal.SIGINT and now >= self._may_hurry_at:
            self._may_hurry_at = now + HURRY_AFTER_SECONDS
            if not self._ending.cancel():
                server.handle_exit(signum, None)

    async def _end(self, server: Server) -> None:
        try:
            await self._drain()
        except Exception:
            # The server has to end all the same; what it did not give back is taken over.
            logger.exception("the server could not drain")
        finally:
            server.should_exit = True

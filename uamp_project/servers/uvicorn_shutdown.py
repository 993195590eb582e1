"""Graceful shutdown under uvicorn: the application drains before connections are closed.

uvicorn sends `lifespan.shutdown` after every connection is closed, when no answer could reach its
client any more. GracefulShutdown therefore handles uvicorn's signals. The first one drains the
application, with the port and the sockets still open, and then stops uvicorn. A Ctrl-C at least a
second later ends the wait; the next one goes to uvicorn, which stops at once.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from typing import TYPE_CHECKING, Final

from uvicorn.server import HANDLED_SIGNALS, Server

from uamp_project.servers.process_end import end_within

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

logger = logging.getLogger(__name__)

# A Ctrl-C this long after the first signal ends the wait for running answers.
HURRY_AFTER_SECONDS: Final = 1.0


class GracefulShutdown:
    """Drains the application before the server of this process stops.

    All methods run on the event loop of the main thread.
    """

    def __init__(self, drain: Callable[[], Awaitable[None]]) -> None:
        self._drain = drain
        self._ending: asyncio.Task[None] | None = None
        self._may_hurry_at = 0.0

    def take_signals(self) -> None:
        """Take over uvicorn's signals; other servers, or one in a thread, keep theirs."""
        server = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
        if not isinstance(server, Server):
            return
        if threading.current_thread() is not threading.main_thread():
            return
        for signum in HANDLED_SIGNALS:
            asyncio.get_running_loop().add_signal_handler(signum, self._signalled, server, signum)

    def _signalled(self, server: Server, signum: int) -> None:
        """Start draining; a signal that a parent forwards arrives twice but counts once."""
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
            # The server stops all the same; other processes take over what was not handed back.
            logger.exception("the server could not drain")
        finally:
            server.should_exit = True
            end_within()

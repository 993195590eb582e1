"""The base of Daphne's connections: the gate that sends wait at, and the watching server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

from twisted.internet.interfaces import IPushProducer
from zope.interface.declarations import implementer

if TYPE_CHECKING:
    from collections.abc import Callable

    from uamp_project.edge.arrivals import Arrival

# How long a peer has to answer a close frame, and applications to end after their sockets.
CLOSE_SECONDS: Final = 5.0


class WatchingServer(Protocol):
    """The server, as its connections use it."""

    def arrival(self, address: Callable[[], str] | None, cut: Callable[[str], None]) -> Arrival:
        """Return the watcher of a connection; without `address`, it checks deadlines only."""


@implementer(IPushProducer)
class WriteGate:
    """Closed by the transport while more than 64 KiB wait to be written; opened when none do."""

    def __init__(self, opens: Callable[[], None] = lambda: None) -> None:
        self._opened = asyncio.Event()
        self._opened.set()
        self._opens = opens

    @property
    def is_open(self) -> bool:
        """Whether the transport accepts more data."""
        return self._opened.is_set()

    async def passed(self, *, within: float) -> bool:
        """Wait up to `within` seconds for the gate to open; return whether it is open."""
        if self.is_open:
            # Avoids a timer for each frame to a client that keeps reading.
            return True
        try:
            async with asyncio.timeout(within):
                await self._opened.wait()
        except TimeoutError:
            return False
        return True

    def pauseProducing(self) -> None:  # noqa: N802 the names of IPushProducer
        """Close the gate; called by the transport."""
        self._opened.clear()

    def resumeProducing(self) -> None:  # noqa: N802 as above
        """Open the gate, and call `opens`; called by the transport."""
        self._opened.set()
        self._opens()

    def stopProducing(self) -> None:  # noqa: N802 as above
        """Open the gate for good, because the connection is gone and accepts everything."""
        self._opened.set()

"""The base of Daphne's connections: the gate at which a send waits, and what watches them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

from twisted.internet.interfaces import IPushProducer
from zope.interface.declarations import implementer

if TYPE_CHECKING:
    from collections.abc import Callable

    from uamp_project.edge.arrivals import Arrival

# How long a peer may take to answer a close frame, and applications to end after their sockets.
CLOSE_SECONDS: Final = 5.0


class WatchingServer(Protocol):
    """The server as its connections need it."""

    def arrival(self, address: Callable[[], str] | None, cut: Callable[[str], None]) -> Arrival:
        """Return what watches over one connection; without `address` its time only."""


@implementer(IPushProducer)
class WriteGate:
    """Shut by the transport while more than 64 KiB wait to be written; opened when none does."""

    def __init__(self, opens: Callable[[], None] = lambda: None) -> None:
        self._opened = asyncio.Event()
        self._opened.set()
        self._opens = opens

    @property
    def is_open(self) -> bool:
        """Whether the transport takes more."""
        return self._opened.is_set()

    async def passed(self, *, within: float) -> bool:
        """Wait until the gate is open, for `within` seconds; return whether it is."""
        if self.is_open:
            # No timer for each frame of a client that reads.
            return True
        try:
            async with asyncio.timeout(within):
                await self._opened.wait()
        except TimeoutError:
            return False
        return True

    def pauseProducing(self) -> None:  # noqa: N802 the names of IPushProducer
        """Shut the gate; called by the transport."""
        self._opened.clear()

    def resumeProducing(self) -> None:  # noqa: N802 as above
        """Open the gate, and call `opens`; called by the transport."""
        self._opened.set()
        self._opens()

    def stopProducing(self) -> None:  # noqa: N802 as above
        """Open the gate for good: the connection is gone and takes everything."""
        self._opened.set()

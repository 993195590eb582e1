"""Requests of a page that a test holds back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from playwright.async_api import Route

WAIT_SECONDS: Final = 60


class HeldRequest:
    """Holds back the requests of an address until they are let go."""

    def __init__(self) -> None:
        self._sent = asyncio.Event()
        self._gone = asyncio.Event()
        self._is_refused = False

    async def take(self, route: Route) -> None:
        """Hold a request back; a handler of Playwright's `route`."""
        self._sent.set()
        await asyncio.wait_for(self._gone.wait(), WAIT_SECONDS)
        await (route.abort() if self._is_refused else route.continue_())

    async def sent(self) -> None:
        """Wait until the page has sent one."""
        await asyncio.wait_for(self._sent.wait(), WAIT_SECONDS)

    def let_go(self) -> None:
        """Let all of them go, and those to come."""
        self._gone.set()

    def refuse(self) -> None:
        """Let all of them fail as without a connection, and those to come."""
        self._is_refused = True
        self._gone.set()

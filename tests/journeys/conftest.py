"""The fixtures of the tests on sockets, and the browser of the journeys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest_asyncio

from tests.journeys.product import running_browser
from tests.live_server import alice, bob, demo, dial, impatience, mallory, web

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser

__all__ = ["alice", "bob", "demo", "dial", "impatience", "mallory", "web"]


@pytest_asyncio.fixture(scope="session", loop_scope="session", name="chromium")
async def shared_chromium(chromium: str) -> AsyncIterator[Browser]:
    """Run one browser for all journeys of a worker; their tests share its event loop."""
    async with running_browser(chromium) as running:
        yield running

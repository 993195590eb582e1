"""Where one is in the messages of a chat, and how much of the page they take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from playwright.async_api import Page

NODES: Final = 5_000
"""More elements than a page may have at any place of a chat."""
SHOWN: Final = (
    """() => Array.from(document.querySelectorAll("chat-message"), (view) => view.entry.seq)"""
)


async def nodes(page: Page) -> int:
    """Return how many elements a page has."""
    count: int = await page.evaluate("document.getElementsByTagName('*').length")
    return count


async def scrolled(page: Page, key: str, until: int) -> None:
    """Scroll by key until a place is shown; the page stays small on the way."""
    log = page.locator(".log")
    await log.focus()
    while True:
        shown = await page.evaluate(SHOWN)
        assert shown == list(range(shown[0], shown[-1] + 1))
        assert await nodes(page) < NODES
        if shown[0] <= until <= shown[-1]:
            return
        # What is loaded arrives before the end of what is here, or one waits for it there.
        await page.keyboard.press(key)
        place = "document.querySelector('.log').scrollTop"
        before = await page.evaluate(place)
        await page.keyboard.press(key)
        if await page.evaluate(place) == before:
            await page.wait_for_timeout(20)

"""The position in a chat's messages, and the size of the page that shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from playwright.async_api import Page

NODES: Final = 5_000
"""No page may have this many elements at any position of a chat."""
SHOWN: Final = (
    """() => Array.from(document.querySelectorAll("chat-message"), (view) => view.entry.seq)"""
)


async def nodes(page: Page) -> int:
    """Return the number of elements in a page."""
    count: int = await page.evaluate("document.getElementsByTagName('*').length")
    return count


async def scrolled(page: Page, key: str, until: int) -> None:
    """Scroll with a key until a message is shown; the page stays small on the way."""
    log = page.locator(".log")
    await log.focus()
    while True:
        numbers = await page.evaluate(SHOWN)
        assert numbers == list(range(numbers[0], numbers[-1] + 1))
        assert await nodes(page) < NODES
        if numbers[0] <= until <= numbers[-1]:
            return
        # More messages load before the end is reached, or else the end is where to wait for them.
        await page.keyboard.press(key)
        place = "document.querySelector('.log').scrollTop"
        before = await page.evaluate(place)
        await page.keyboard.press(key)
        if await page.evaluate(place) == before:
            await page.wait_for_timeout(20)

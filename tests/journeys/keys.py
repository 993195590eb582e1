"""Navigating a page with the keyboard only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.async_api import expect

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

MAX_TABS = 60
HAS_FOCUS = "one => one === document.activeElement"


async def tab_to(page: Page, place: Locator, key: str = "Tab") -> None:
    """Press Tab until an element has the focus, at most MAX_TABS times."""
    await expect(place).to_be_visible()
    for _ in range(MAX_TABS):
        if await place.evaluate(HAS_FOCUS):
            return
        await page.keyboard.press(key)
    raise AssertionError(f"{place} was not reached")

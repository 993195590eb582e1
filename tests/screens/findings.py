"""Findings of axe on a page: violations of WCAG 2.2 AA, and a page wider than its window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from axe_playwright_python.async_playwright import Axe

if TYPE_CHECKING:
    from playwright.async_api import Page

RULES: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
OPTIONS: Final = {"runOnly": {"type": "tag", "values": RULES}, "resultTypes": ["violations"]}
# The places at which a rule is broken, to be read in a failure.
SHOWN_PLACES: Final = 3
TOO_WIDE: Final = "() => document.documentElement.scrollWidth > innerWidth"


async def findings(page: Page) -> list[str]:
    """Return one line for each rule that the page breaks, with the first places."""
    violations: list[dict[str, Any]] = (await Axe().run(page, options=OPTIONS)).response[
        "violations"
    ]
    lines = [
        f"{found['id']}: {found['help']}: "
        + "; ".join(node["html"][:160] for node in found["nodes"][:SHOWN_PLACES])
        for found in violations
    ]
    if await page.evaluate(TOO_WIDE):
        lines.append("the page is wider than its window")
    return lines

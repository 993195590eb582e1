"""The style page shows every component and class of its styles, in legible colours.

Anything missing there was forgotten: new components must be added to `static/style/`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from playwright.async_api import expect

from tests.journeys.product import running_product
from tests.screens.pages import style_page
from tests.screens.stage import Stage

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = [
    # Drawing every component takes a minute of CPU.
    pytest.mark.long,
    pytest.mark.browser,
    pytest.mark.any_database,
    pytest.mark.asyncio(loop_scope="session"),
]

STATIC: Final = Path(__file__).resolve().parents[2] / "static"
SHEETS: Final = [
    *(sheet for sheet in (STATIC / "chat/styles").glob("*.css") if sheet.name != "login.css"),
    STATIC / "money/money.css",
]
CLASS: Final = re.compile(r"\.([a-z][\w-]*)")
DEFINED: Final = re.compile(r'customElements\.define\("([\w-]+)"')
# The frames of pages, each of which is a page itself and occurs once in its template.
FRAMES: Final = {
    "app", "brand", "chat-page", "has-no-chat", "has-sidebar", "is-back",
    "logo", "main", "money-head", "money-me", "money-page", "noscript",
    "sidebar", "sidebar-account", "sidebar-foot", "sidebar-head", "sidebar-me", "skip-link",
}  # fmt: skip
# Temporary states that the page does not play.
MOMENTS: Final = {
    "approval-media", "call-button", "call-device", "chat-loading", "chat-none",
    "diagram-problem", "is-dropping", "is-large",
    "is-low", "is-marked", "is-recording", "is-up", "link-address", "log-bottom", "message-quick",
    "part-error",
    "picker-none",
    "quiet-hours", "receipt-wait", "secret-row", "setting-links", "sound-failed", "tick",
    "is-read", "is-removed", "tray-sound",
    "version-arrow", "versions", "viewer-note", "voice-dot", "voice-level",
    "voice-strip", "voice-time",
}  # fmt: skip
# Code highlighting, classes of the server's renderer, and classes for each of a list of tones.
KINDS: Final = re.compile(
    r"hljs-.*|[a-z]{1,2}\d?|cpf|err|is-plain|align-\w+|remote-image.*|tone-\d+|shape-\d"
)
# Each pair of colours in both schemes, and the lowest acceptable contrast.
PAIRS: Final = 2 * 46
SHAPE: Final = 3
SHOWN: Final = """
() => [...document.querySelectorAll('*')].flatMap(one => [one.localName, ...one.classList])
"""


def _selectors(sheet: str) -> str:
    """Return the selectors of a style sheet."""
    rules = re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL)
    return " ".join(
        selector
        for selector in re.findall(r"([^{}]+){", rules)
        if not selector.strip().startswith("@")
    )


def wanted_classes() -> set[str]:
    """Return the classes of all components, from the style sheets."""
    class_names = {
        name for sheet in SHEETS for name in CLASS.findall(_selectors(sheet.read_text()))
    }
    return {name for name in class_names - FRAMES - MOMENTS if not KINDS.fullmatch(name)}


def wanted_elements() -> set[str]:
    """Return the custom elements of all scripts, except the chat page itself."""
    scripts = (path for path in STATIC.rglob("*.js") if not {"dist", "vendor"} & set(path.parts))
    return {name for path in scripts for name in DEFINED.findall(path.read_text())} - {"chat-app"}


async def _shown(page: Page) -> set[str]:
    """Return the elements and classes on the page, opening each dialog and menu once."""
    names = set(await page.evaluate(SHOWN))
    openers = page.locator("[data-opens]")
    for number in range(await openers.count()):
        opener = openers.nth(number)
        part = page.locator(await opener.get_attribute("data-opens") or "")
        await opener.click()
        opened = part.locator("dialog[open], [popover]:popover-open")
        await expect(opened).to_have_count(1)
        await expect(opened.locator(".spinner, progress")).to_have_count(0)
        names |= set(await page.evaluate(SHOWN))
        await opened.evaluate("one => (one.close ? one.close() : one.hidePopover())")
    return names


async def test_the_style_page_shows_every_component(chromium: Browser, tmp_path: Path) -> None:
    with running_product(tmp_path) as product:
        page = await style_page(Stage(product, chromium, tmp_path))

        # Cards of links are fetched once their message is in view.
        await page.locator("link-cards").first.scroll_into_view_if_needed()
        await expect(page.locator(".link-card").first).to_be_visible()
        names = await _shown(page)

        assert wanted_elements() - names == set()
        assert wanted_classes() - names == set()
        # A tool's price is shown in stored answers as in live ones.
        paid = page.locator("chat-message", has_text="An answer with a price.").locator("tool-call")
        await expect(paid).to_contain_text("$0.05")
        # A pair with too little contrast is labelled after its figure; an unmeasured pair has none.
        ratios = await page.locator(".style-ratio").all_inner_texts()
        assert len(ratios) == PAIRS
        assert all(float(ratio) >= SHAPE for ratio in ratios)
        await page.context.close()

"""The first visit of a chat: few requests, nothing that moves, and no use that comes too early.

`python -m benchmarks first_visit` measures how long it takes.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import pytest
from playwright.async_api import expect

from tests.journeys.held_requests import WAIT_SECONDS, HeldRequest
from tests.journeys.product import Product, browser, no_complaints, running_product, signed_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.async_api import Browser, Page, WebSocket, WebSocketRoute

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

PHONE: Final = {"width": 390, "height": 844}
DESKTOP: Final = {"width": 1280, "height": 800}
MESSAGES: Final = 24
LATER: Final = re.compile(r"/static/dist/later-\w+\.js$")
SCRIPT: Final = re.compile(r"/static/dist/app-\w+\.js$")
HISTORY: Final = re.compile(r"/messages\?limit=")
WATCH_SHIFTS: Final = """
window.shifted = 0;
window.count = (entries) => {
  for (const { hadRecentInput, value } of entries) if (!hadRecentInput) window.shifted += value;
};
window.shifts = new PerformanceObserver((list) => window.count(list.getEntries()));
window.shifts.observe({ type: "layout-shift", buffered: true });
"""
SHIFTED: Final = """async () => {
  // What came last is painted.
  for (let frame = 0; frame < 3; frame += 1) await new Promise(requestAnimationFrame);
  await new Promise((go) => setTimeout(go));
  window.count(window.shifts.takeRecords());
  return window.shifted;
}"""
# A file of less fits into the packet of its headers.
SMALL_BYTES: Final = 1000
# What is written in the head of the chat comes with the chat. A good page stays below 0.1.
MAX_LAYOUT_SHIFT: Final = 0.005
# Modules, styles, words and icon; what REST is asked; the formulas with their fonts.
MAX_REQUESTS: Final = 40


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("product")) as running:
        for number in range(MESSAGES):
            with running.api("bob" if number % 3 else "alice") as client:
                path = f"/api/v1/chats/{running.chat_id}/messages"
                client.post(path, json={"content": f"Message {number}"}).raise_for_status()
        yield running


def without_reads(route: WebSocketRoute) -> None:
    """Pass on what a page sends, but not that it has read messages."""
    server = route.connect_to_server()

    def pass_on(message: str | bytes) -> None:
        if json.loads(message)["type"] != "message.read":
            server.send(message)

    route.on_message(pass_on)


async def new_page(
    running: Browser, product: Product, viewport: dict[str, int] | None = None
) -> Page:
    """Return a page in which alice is signed in, before it opens the chat."""
    context = await running.new_context(viewport=viewport or PHONE)  # type: ignore[arg-type]  # a TypedDict
    page = await signed_in(context, product, "alice")
    # A sign-in by the form leads to the list of chats.
    await page.goto("about:blank")
    return page


@pytest.mark.parametrize(
    "viewport",
    [
        pytest.param(PHONE, id="phone"),
        pytest.param(DESKTOP, id="desktop", marks=pytest.mark.long),
    ],
)
async def test_a_first_visit_takes_few_requests_and_moves_nothing(
    product: Product, chromium: Browser, viewport: dict[str, int]
) -> None:
    async with browser(chromium) as running:
        page = await new_page(running, product, viewport)
        # One read while the list of chats is loading makes the page read its chat again.
        await page.route_web_socket("**/uamp", without_reads)
        await page.add_init_script(WATCH_SHIFTS)
        paths: Counter[str] = Counter()
        page.on("request", lambda request: paths.update([request.url]))
        await page.goto(f"{product.url}/chats/{product.chat_id}")
        await expect(page.locator("chat-message").last).to_contain_text(f"Message {MESSAGES - 1}")
        await expect(page.get_by_test_id("composer")).to_be_enabled()
        await page.wait_for_function("() => customElements.get('settings-dialog')")

        assert await page.evaluate(SHIFTED) < MAX_LAYOUT_SHIFT
        assert len(paths) < MAX_REQUESTS
        scripts = [path for path in paths if urlsplit(path).path.endswith(".js")]
        assert [path for path in scripts if "/static/dist/" not in path] == []
        # A preload that the scripts do not use is fetched twice.
        twice = {path for path, count in paths.items() if count > 1}
        assert not [path for path in twice if product.chat_id in path or "/static/" in path]
        no_complaints(page)


@pytest.mark.long
async def test_files_of_the_bundle_are_packed_and_kept_for_good(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        page = await new_page(running, product)
        await page.goto(f"{product.url}/chats/{product.chat_id}")
        addresses = await page.locator("[href*='/dist/'], [src*='/dist/']").evaluate_all(
            "all => all.map((one) => one.href || one.src)"
        )
        assert len(addresses) > 3
        for address in addresses:
            for coding in ("br", "gzip"):
                headers = {"Accept-Encoding": coding}
                answer = await page.request.get(address, headers=headers)
                is_packed = "content-encoding" in answer.headers
                assert is_packed == (len(await answer.body()) > SMALL_BYTES), address
                assert answer.headers["cache-control"] == "max-age=315360000, public, immutable"


@pytest.mark.long
async def test_rows_are_drawn_once_the_history_is_there(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        page = await new_page(running, product)
        history = HeldRequest()
        replayed = asyncio.Event()

        def look(frame: str | bytes) -> None:
            if f"Message {MESSAGES - 1}" in str(frame):
                replayed.set()

        def listen(socket: WebSocket) -> None:
            socket.on("framereceived", look)

        await page.route(HISTORY, history.take)
        page.on("websocket", listen)
        await page.goto(f"{product.url}/chats/{product.chat_id}", wait_until="commit")
        await asyncio.wait_for(replayed.wait(), WAIT_SECONDS)
        await expect(page.get_by_test_id("composer")).to_be_enabled()
        await expect(page.locator("message-list .spinner")).to_be_visible()
        await expect(page.locator("chat-message")).to_have_count(0)

        history.let_go()

        await expect(page.locator("chat-message")).to_have_count(MESSAGES)
        no_complaints(page)


@pytest.mark.long
async def test_a_placeholder_is_shown_until_the_scripts_are_loaded(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        page = await new_page(running, product)
        scripts = HeldRequest()
        await page.route(SCRIPT, scripts.take)
        await page.goto(f"{product.url}/chats/{product.chat_id}", wait_until="commit")
        await expect(page.locator(".chat-loading")).to_be_visible()
        scripts.let_go()

        await expect(page.locator("chat-message")).to_have_count(MESSAGES)
        await expect(page.locator(".chat-loading")).to_be_hidden()
        no_complaints(page)


@pytest.mark.parametrize(
    ("use", "part"),
    [
        ("click", "settings-dialog dialog[open]"),
        pytest.param("Control+k", "command-palette dialog[open]", marks=pytest.mark.long),
        pytest.param("Control+Shift+F", "search-dialog dialog[open]", marks=pytest.mark.long),
        pytest.param("Control+Shift+L", "threads-dialog dialog[open]", marks=pytest.mark.long),
        ("?", "shortcuts-dialog dialog[open]"),
    ],
)
async def test_an_early_click_reaches_its_part_once_it_is_loaded(
    product: Product, chromium: Browser, use: str, part: str
) -> None:
    async with browser(chromium) as running:
        page = await new_page(running, product, DESKTOP)
        later = HeldRequest()
        await page.route(LATER, later.take)
        await page.goto(f"{product.url}/chats/{product.chat_id}")
        await expect(page.locator("chat-message")).to_have_count(MESSAGES)
        if use == "click":
            await page.get_by_test_id("settings").click()
        else:
            await page.locator("message-list .log").press(use)
        assert not await page.evaluate("customElements.get('settings-dialog')")
        later.let_go()

        await expect(page.locator(part)).to_be_visible()
        await expect(page.locator("dialog[open]")).to_have_count(1)
        no_complaints(page)


@pytest.mark.long
async def test_a_part_that_was_not_reached_is_loaded_by_the_next_use(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        page = await new_page(running, product, DESKTOP)
        await page.route(LATER, lambda route: route.abort())
        await page.goto(f"{product.url}/chats/{product.chat_id}")
        await expect(page.locator("chat-message")).to_have_count(MESSAGES)
        await page.get_by_test_id("settings").click()
        await expect(page.get_by_text("You're offline.")).to_be_visible()
        await page.unroute(LATER)
        await page.get_by_test_id("settings").click()

        await expect(page.locator("settings-dialog dialog[open]")).to_be_visible()

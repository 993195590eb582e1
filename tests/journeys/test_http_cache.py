"""The HTTP cache of a browser on its disk, which no page can look into."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import pytest
from playwright.async_api import async_playwright, expect

from tests import factories, services
from tests.journeys.product import BROWSER_ARGUMENTS, Product, fill_in_login, running_product

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from playwright.async_api import BrowserContext

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

LOGIN: Final = re.compile(r"/login(\?|$)")
IS_SHOWN: Final = (
    "() => [...document.querySelectorAll('chat-message img')].some((one) => one.naturalWidth)"
)
SECRET: Final = "A secret of bob and alice"


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("product")) as running:
        yield running


@asynccontextmanager
async def a_profile(folder: Path) -> AsyncIterator[BrowserContext]:
    """Run a browser that keeps everything in a folder, until the end of the block."""
    path = services.chromium()
    if path is None:
        pytest.skip("no Chromium: set CHROMIUM or install chromium")
    async with async_playwright() as playwright:
        context = await playwright.chromium.launch_persistent_context(
            folder, executable_path=path, args=BROWSER_ARGUMENTS
        )
        try:
            yield context
        finally:
            await context.close()


def cached(folder: Path) -> bytes:
    """Return everything in the HTTP cache of a browser that has ended."""
    files = (folder / "Default" / "Cache").rglob("*")
    return b"".join(file.read_bytes() for file in files if file.is_file())


@pytest.mark.long
async def test_the_cache_has_no_chat_and_after_a_sign_out_no_file(
    product: Product, tmp_path: Path
) -> None:
    with product.api("bob") as client:
        files = {"file": ("a.png", factories.png(), "image/png")}
        response = client.post("/api/v1/contents", files=files)
        picture = response.raise_for_status().json()["content_id"]
        path = f"/api/v1/chats/{product.chat_id}/messages"
        body = {"content": SECRET, "attachments": [picture]}
        client.post(path, json=body).raise_for_status()
    chat_url = f"{product.url}/chats/{product.chat_id}"
    async with a_profile(tmp_path) as context:
        page = await context.new_page()
        await page.goto(chat_url)
        await fill_in_login(page, product, "alice")
        await page.goto(chat_url)
        await expect(page.locator("chat-message").last).to_contain_text(SECRET)
        # A function: the page's CSP refuses to evaluate the text of an expression.
        await page.wait_for_function(IS_SHOWN)
    cache = cached(tmp_path)
    assert picture.encode() in cache
    assert SECRET.encode() not in cache

    async with a_profile(tmp_path) as context:
        page = await context.new_page()
        await page.goto(chat_url)
        await page.get_by_role("button", name="Sign out").click()
        await page.wait_for_url(LOGIN)
    assert picture.encode() not in cached(tmp_path)

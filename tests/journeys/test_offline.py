"""The chats as an app: they can be installed, and open without a connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from playwright.async_api import expect

from tests.journeys.product import Product, browser, no_complaints, running_product, sign_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.async_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

WORKER_IS_ACTIVE: Final = """async () => {
  const { active } = await navigator.serviceWorker.ready;
  return active.state === "activated";
}"""


@pytest.fixture
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("product")) as running:
        yield running


async def wait_for_worker(page: Page) -> None:
    """Wait until the service worker answers for pages."""
    await page.wait_for_function(WORKER_IS_ACTIVE)


async def test_the_chats_can_be_installed(product: Product, chromium: Browser) -> None:
    async with browser(chromium) as running:
        context = await running.new_context()
        page = await sign_in(context, product, "alice")
        await wait_for_worker(page)
        devtools = await context.new_cdp_session(page)

        answer = await devtools.send("Page.getInstallabilityErrors")
        manifest = await devtools.send("Page.getAppManifest")

        errors = [one["errorId"] for one in answer["installabilityErrors"]]
        # A context of its own is what a browser calls a private window.
        assert [one for one in errors if one != "in-incognito"] == []
        assert manifest["url"] == f"{product.url}/manifest/en.webmanifest"
        assert manifest["errors"] == []
        no_complaints(page)


async def test_a_page_that_is_not_kept_says_that_there_is_no_connection(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        context = await running.new_context()
        page = await sign_in(context, product, "alice")
        await wait_for_worker(page)
        product.stop()

        await page.goto(f"{product.url}/money")

        await expect(page.get_by_role("heading", name="You're offline")).to_be_visible()
        color = await page.get_by_role("link", name="Open your chats").evaluate(
            "(one) => getComputedStyle(one).backgroundColor"
        )
        assert color != "rgba(0, 0, 0, 0)"
        no_complaints(page)

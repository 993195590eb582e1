"""Members see a linked page's description of itself; their browsers do not request the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.chat_app.link_cards.test_cards import Site
from tests.http_server import serving
from tests.journeys.product import (
    Product,
    browser,
    no_complaints,
    running_product,
    sign_in,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.async_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

# A worker starts, and the page polls at growing intervals.
READING_MS = 90_000


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with serving(Site()) as running:
        yield running


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory, site: Site) -> Iterator[Product]:
    allowed = site.origin.removeprefix("http://")
    with running_product(
        tmp_path_factory.mktemp("product"),
        has_workers=True,
        UAMP_LINK_CARDS="1",
        UAMP_FETCH_ALLOW_HOSTS=allowed,
    ) as running:
        yield running


@pytest.mark.long
async def test_a_link_has_a_card_that_a_worker_read(
    product: Product, chromium: Browser, site: Site
) -> None:
    async with browser(chromium) as running:
        pages = [
            await sign_in(await running.new_context(), product, name) for name in ("alice", "bob")
        ]
        await write(pages[0], f"Read {site.origin}/page please")
        for page in pages:
            card = page.get_by_test_id("link-card")
            await expect(card).to_contain_text("A page", timeout=READING_MS)
            await expect(card).to_contain_text("About it")
            assert await card.get_attribute("href") == f"{site.origin}/page"
        assert site.asked == ["/page"]
        no_complaints(*pages)

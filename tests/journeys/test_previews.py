"""Pictures that browsers do not show are seen as the server draws them, or downloaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from PIL import Image
from playwright.async_api import expect

from tests.journeys.attachments import photo
from tests.journeys.product import Product, browser, no_complaints, running_product, sign_in, write

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.async_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

WIDTH = "image => image.naturalWidth"


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("data")) as running:
        yield running


async def test_a_scan_is_seen_in_the_chat_and_one_that_cannot_be_drawn_is_downloaded(
    product: Product, chromium: Browser, tmp_path: Path
) -> None:
    scan = photo(tmp_path / "scan.tif", 2_400, 1_200)
    broken = tmp_path / "broken.tif"
    broken.write_bytes(scan.read_bytes()[:50_000])
    Image.new("RGB", (40, 30), "red").save(tmp_path / "second.bmp")
    files = [scan, broken, tmp_path / "second.bmp"]
    async with browser(chromium) as running:
        page = await sign_in(await running.new_context(), product, "alice")
        await page.get_by_test_id("file-input").set_input_files(files)
        attached = page.get_by_test_id("attachment")
        await expect(attached).to_have_count(len(files))
        await expect(attached.get_by_role("progressbar")).to_have_count(0)
        await write(page, "The scan")

        seen = page.get_by_role("link", name="Open scan.tif")
        picture = seen.get_by_role("img", name="scan.tif")
        await expect(picture).to_be_visible()
        await expect(picture).to_have_js_property("complete", value=True)
        assert await picture.evaluate(WIDTH) == 1_600
        await expect(page.get_by_role("link", name="broken.tif")).to_contain_text(
            "Download to view"
        )

        await seen.click()
        viewer = page.get_by_test_id("viewer")
        await expect(viewer.get_by_role("img", name="scan.tif")).to_be_visible()
        async with page.expect_download() as download:
            await viewer.get_by_role("link", name="Download").click()
        assert (await (await download.value).path()).read_bytes() == scan.read_bytes()
        await viewer.get_by_role("button", name="Next picture").click()
        await expect(viewer.get_by_role("img", name="second.bmp")).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(seen).to_be_focused()
        no_complaints(page)

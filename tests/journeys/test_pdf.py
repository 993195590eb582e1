"""PDF files are read in the page, under a policy that forbids everything that is not needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.journeys.pdf_files import JAPANESE, pdf
from tests.journeys.product import Product, browser, no_complaints, running_product, sign_in, write

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.async_api import Browser, Locator

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

RED, BLUE = [255, 0, 0], [0, 0, 255]
EMPTY: list[int] = []
# The colour of a page at a point, in PDF points; empty if the page is not drawn.
COLOUR = """(canvas, [x, y]) => canvas.width < 2 ? [] : [...canvas.getContext("2d").getImageData(
  x * canvas.width / 612, (792 - y) * canvas.height / 792, 1, 1,
).data].slice(0, 3)"""
AT_END = """sheet => {
  const place = sheet.closest(".viewer-place");
  return place.scrollTop + place.clientHeight > place.scrollHeight - 2;
}"""
BAR, PICTURE = [300, 80], [110, 260]
# Requested from the server only for the first file.
FETCHED_LATE = ("pdf/pdf.js", "pdf-worker.js", "openjpeg_nowasm_fallback.js", "90ms-RKSJ-H.bcmap")


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("data")) as running:
        yield running


async def drawn(page: Locator, *, at: list[int], as_: list[int]) -> None:
    """Wait until a page of the file has a colour at a point."""
    canvas = page.locator("canvas")
    await expect(canvas).to_be_attached()
    await page.page.wait_for_function(
        f"([canvas, at, wanted]) => String(({COLOUR})(canvas, at)) === String(wanted)",
        arg=[await canvas.element_handle(), at, as_],
        # Looking in each frame, the test itself can keep the page from drawing.
        polling=100,
    )


async def test_a_pdf_is_read_by_keyboard_and_one_that_cannot_be_says_why(
    product: Product, chromium: Browser, tmp_path: Path
) -> None:
    files = {
        "report.pdf": pdf("Quarterly report", JAPANESE, *map(str, range(3, 9))),
        "locked.pdf": pdf("Secret", has_password=True),
        "broken.pdf": b"%PDF-1.7\n" + b"nothing that a reader could use " * 40,
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    async with browser(chromium) as running:
        page = await sign_in(await running.new_context(), product, "alice")
        fetched: list[str] = []
        page.on("request", lambda request: fetched.append(request.url))
        await page.get_by_test_id("file-input").set_input_files([tmp_path / name for name in files])
        await expect(page.get_by_test_id("attachment")).to_have_count(3)
        await expect(page.get_by_test_id("attachment").get_by_role("progressbar")).to_have_count(0)
        await write(page, "Please read")
        chip, viewer = page.get_by_label("Preview report.pdf"), page.get_by_test_id("viewer")
        await expect(chip).to_be_visible()
        assert not any("vendor/pdf" in url for url in fetched)

        await chip.focus()
        await page.keyboard.press("Enter")
        sheets = viewer.locator(".pdf-page")
        await expect(sheets).to_have_count(8)
        for number, text in enumerate(("Quarterly report", JAPANESE)):
            sheet = sheets.nth(number)
            await sheet.scroll_into_view_if_needed()
            await expect(sheet.get_by_role("img", name=f"Page {number + 1} of 8")).to_be_visible()
            await expect(sheet.locator("p")).to_have_text(text)
            await drawn(sheet, at=BAR, as_=RED)
            await drawn(sheet, at=PICTURE, as_=BLUE)
        await page.keyboard.press("End")
        await drawn(sheets.last, at=BAR, as_=RED)
        # A distant page keeps no picture.
        await drawn(sheets.first, at=BAR, as_=EMPTY)
        # A key pressed while the page still scrolls would be lost.
        await page.wait_for_function(AT_END, arg=await sheets.last.element_handle())
        await page.keyboard.press("Home")
        await drawn(sheets.first, at=BAR, as_=RED)
        width = "figure => figure.getBoundingClientRect().width"
        before = await sheets.first.evaluate(width)
        await page.keyboard.press("+")
        assert await sheets.first.evaluate(width) == pytest.approx(before * 1.5, abs=2)
        await page.keyboard.press("Escape")
        await expect(viewer).to_be_hidden()
        await expect(chip).to_be_focused()
        assert all(any(url.endswith(name) for url in fetched) for name in FETCHED_LATE)

        for name, reason in (
            ("locked.pdf", "This file is password-protected. Download it to open it."),
            ("broken.pdf", "No preview for this file. Download it to open it."),
        ):
            await page.get_by_label(f"Preview {name}").press("Enter")
            await expect(viewer.get_by_role("alert")).to_have_text(reason)
            await expect(viewer.get_by_role("link", name="Download")).to_be_visible()
            await page.keyboard.press("Escape")
            await expect(viewer).to_be_hidden()
        no_complaints(page)

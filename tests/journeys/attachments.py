"""Pictures attached in the browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PIL import Image
from playwright.async_api import expect

from tests.journeys.product import (
    write,
)

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Page

WORK_MS = 40_000


def photo(path: Path, width: int, height: int) -> Path:
    """Write a colourful picture; editing a large one takes the darkroom a while."""
    bands = [Image.linear_gradient("L").rotate(angle) for angle in (0, 90, 180)]
    Image.merge("RGB", bands).resize((width, height)).save(path)
    return path


async def attach(page: Page, picture: Path, text: str) -> None:
    """Attach a picture and send it with a text."""
    await page.get_by_test_id("file-input").set_input_files(picture)
    attached = page.get_by_test_id("attachment")
    await expect(attached).to_have_count(1)
    await expect(attached.get_by_role("progressbar")).to_have_count(0)
    await write(page, text)

"""The screens of what becomes of messages: queued, edited, answered again, pinned; and of files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playwright.async_api import expect

from tests.journeys.pdf_files import pdf
from tests.journeys.product import write
from tests.screens.screen import Screen

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

    from tests.screens.stage import Stage


def _message(page: Page, text: str) -> Locator:
    return page.get_by_test_id("message").filter(has_text=text).last


async def _said(stage: Stage, title: str, text: str, *, agent: str = "echo") -> Page:
    """Write in a new chat, so that it is on no other screen."""
    page = await stage.page(chat_id=stage.chat(title, agents=(agent,), users=("bob",)))
    await write(page, text)
    await expect(page.get_by_test_id("message").first).to_be_visible()
    return page


async def _queue(stage: Stage) -> Page:
    page = await _said(stage, "Plans", "@slow count, please", agent="slow")
    await expect(page.get_by_test_id("live-response")).to_contain_text("word2")
    for text in ("And then for Sunday?", "@slow once more"):
        await page.get_by_test_id("composer").fill(text)
        await page.keyboard.press("Alt+Enter")
    await expect(page.get_by_test_id("queue-item")).to_have_count(2)
    return page


async def _versions(stage: Stage) -> Page:
    page = await _said(stage, "Rivers", "@echo rivers")
    answer = page.locator(".message.from-agent:not([data-testid=live-response])")
    await expect(answer).to_have_count(1)
    await answer.focus()
    await page.keyboard.press("g")
    await expect(page.get_by_test_id("version")).to_have_text("2 of 2")
    return page


async def _revisions(stage: Stage) -> Page:
    page = await _said(stage, "Notes", "The first wording")
    await _message(page, "The first wording").focus()
    await page.keyboard.press("e")
    await page.get_by_test_id("editor").fill("The second wording")
    await page.keyboard.press("Enter")
    message = _message(page, "The second wording")
    await expect(message).to_contain_text("Edited")
    await message.focus()
    await page.keyboard.press("m")
    await page.get_by_test_id("message-menu").get_by_test_id("revisions").click()
    await expect(page.get_by_test_id("revisions-list").get_by_role("listitem")).to_have_count(2)
    return page


async def _pinned(stage: Stage) -> Page:
    page = await _said(stage, "Tickets", "The tickets are at the counter")
    await _message(page, "The tickets").focus()
    await page.keyboard.press("p")
    await page.get_by_test_id("pins").click()
    await expect(page.get_by_test_id("pinned-list")).to_contain_text("at the counter")
    return page


async def _pdf(stage: Stage) -> Page:
    path = stage.folder / "timetable.pdf"
    path.write_bytes(pdf("Timetable", "Fares"))
    page = await stage.page(chat_id=stage.chat("Trains", users=("bob",)))
    await page.get_by_test_id("file-input").set_input_files(path)
    await expect(page.get_by_test_id("attachment")).to_have_count(1)
    await expect(page.get_by_test_id("attachment").get_by_role("progressbar")).to_have_count(0)
    await write(page, "The timetable")
    await page.get_by_label("Preview timetable.pdf").click()
    sheet = page.get_by_test_id("viewer").locator(".pdf-page").first
    await expect(sheet.locator("p")).to_have_text("Timetable")
    return page


SCREENS: Final = (
    Screen("queue", _queue),
    Screen("versions", _versions),
    Screen("revisions", _revisions),
    Screen("pinned", _pinned),
    Screen("viewer-pdf", _pdf),
)

"""The first operator sets up a server, connects a model and talks to the assistant."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest
from playwright.async_api import expect

from tests import databases, services
from tests.journeys.product import Product, browser

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

PHONE: Final = {"width": 360, "height": 740}
PASSWORD: Final = "correct horse battery"


async def test_the_first_operator_sets_up_a_server_on_a_phone(
    tmp_path: Path, chromium: Browser
) -> None:
    databases.copy_migrated(tmp_path)
    product = Product(tmp_path, services.free_port(), has_workers=False)
    product.manage("migrate", "-v", "0")
    product.start()
    try:
        async with browser(chromium) as engine:
            context = await engine.new_context(viewport=PHONE)  # type: ignore[arg-type]
            page = await context.new_page()
            errors: list[str] = []
            page.on("pageerror", lambda error: errors.append(str(error)))
            token = (tmp_path / "setup_token").read_text()
            await page.goto(f"{product.url}/setup?token={token}")

            await expect(page.get_by_label("Username")).to_be_focused()
            await page.keyboard.type("olga")
            await page.get_by_label("Password").fill("short")
            await page.keyboard.press("Enter")
            await expect(page.get_by_role("alert")).to_contain_text("too short")
            await expect(page.get_by_label("Username")).to_have_value("olga")
            await page.get_by_label("Password").fill(PASSWORD)
            await expect(page.get_by_label("Name of this server")).to_have_value("UAMP")
            await page.get_by_label("Name of this server").fill("Harbour")
            await page.keyboard.press("Enter")

            await expect(page.get_by_role("heading", name="Harbour is ready")).to_be_visible()
            await page.get_by_role("button", name="Create an invite link").press("Enter")
            link = page.get_by_label("Invite link")
            await expect(link).to_be_focused()
            await _join(engine, await link.input_value())
            assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
            await page.get_by_role("link", name="Open the chat").press("Enter")
            await page.wait_for_url(re.compile(r"/chats/"))
            await expect(page.get_by_text("I answer everything you write here.")).to_be_visible()
            hint = page.get_by_test_id("needs-model").get_by_role("link")
            await expect(hint).to_have_attribute("href", "/connect-model")
            await page.get_by_test_id("try-ask").click()
            await expect(page.get_by_test_id("composer")).to_have_value("What can you do?")
            await page.keyboard.press("Enter")
            await expect(page).to_have_title("Welcome · Harbour")
            await expect(hint).to_have_count(0)
            await _open_models(page)
            await page.get_by_label("Anthropic, with your API key").check()
            await page.get_by_role("button", name="Connect").press("Enter")
            await expect(page.get_by_role("alert")).to_contain_text("Enter the key.")
            assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
            assert errors == []
    finally:
        product.close()
        product.stop()


async def _open_models(page: Page) -> None:
    await page.get_by_role("button", name="Show chats").press("Enter")
    await page.get_by_role("button", name="Settings").press("Enter")
    await page.get_by_role("tab", name="Account").click()
    await page.get_by_role("link", name="Connect a model").press("Enter")


async def _join(engine: Browser, address: str) -> None:
    """Join by an invitation, as a visitor without an account."""
    page = await engine.new_page()
    await page.goto(address)
    await expect(page).to_have_title(re.compile(r"· Harbour$"))
    await page.get_by_label("Choose a username").fill("vera")
    await page.get_by_label("Choose a password").fill(PASSWORD)
    await page.keyboard.press("Enter")
    await page.wait_for_url(re.compile(r"/chats/"))
    await expect(page).to_have_title("Welcome · Harbour")
    await page.close()

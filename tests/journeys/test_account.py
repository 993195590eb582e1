"""A person creates a key, revokes it and changes their password, by keyboard and on a phone.

Runs against the product as started by `make run`: daphne, SQLite, a Celery child.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest
from playwright.async_api import expect

from tests.journeys.product import browser, no_complaints, running_product, sign_in

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Browser, Page

    from tests.journeys.product import Product

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

PHONE = {"width": 360, "height": 740}
NEW = "correct horse battery"


def status_of(product: Product, secret: str) -> int:
    """Return the status of a REST request with this key."""
    headers = {"Authorization": f"Bearer {secret}"}
    return httpx.get(f"{product.url}/api/v1/me", headers=headers, trust_env=False).status_code


async def press_on(page: Page, role: str, name: str) -> None:
    """Act like a person without a mouse: focus an element and press Enter."""
    await page.locator(f"{role}:has-text('{name}')").first.focus()
    await page.keyboard.press("Enter")


async def fits(page: Page) -> bool:
    """Return whether nothing is wider than the screen."""
    wide: bool = await page.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    return wide


async def change_password(page: Page, old: str) -> None:
    for name, value in (("old_password", old), ("new_password1", NEW), ("new_password2", NEW)):
        await page.fill(f"input[name={name}]", value)
    await page.keyboard.press("Enter")


async def make_reader(page: Page, product: Product, folder: Path) -> None:
    """Create a key with few rights, which its page shows."""
    key_field = page.get_by_label("The new key")
    await page.get_by_label("Name of the program").fill("reader")
    await press_on(page, "summary", "Restrict what it may do")
    await page.get_by_label("Only these rights:").check()
    await page.get_by_label("Read your chats").check()
    await page.get_by_label("OpenAI Chat Completions").check()
    await page.get_by_label("Spending limit").fill("2,50")
    await page.get_by_label("Period").select_option("a day")
    await page.get_by_label("Expires").select_option("In 30 days")
    assert await fits(page)
    await page.screenshot(path=str(folder / "limits.png"), full_page=True)
    await page.get_by_role("button", name="Create a key").click()
    assert status_of(product, await key_field.input_value()) == 403
    (reader,) = await page.locator(".keys li", has_text="reader").all()
    await expect(reader).to_contain_text("Rights: chats:read")
    await expect(reader).to_contain_text("Budget $2.50 a day, $0.00 used")
    assert await fits(page)
    await page.screenshot(path=str(folder / "keys.png"), full_page=True)


async def test_a_person_keeps_their_account_on_a_phone(tmp_path: Path, chromium: Browser) -> None:
    with running_product(tmp_path / "data") as product:
        async with browser(chromium) as engine:
            context = await engine.new_context(viewport=PHONE, color_scheme="dark")  # type: ignore[arg-type]
            await context.grant_permissions(["clipboard-read", "clipboard-write"])
            page = await sign_in(context, product, "alice")
            await page.get_by_role("button", name="Chats").click()
            await page.get_by_role("link", name="alice Account").click()
            await expect(page.get_by_role("heading", name="API keys")).to_be_visible()

            await page.get_by_label("Name of the program").fill("phone of alice")
            await page.keyboard.press("Enter")
            key_field = page.get_by_label("The new key")
            await expect(key_field).to_be_focused()
            secret = await key_field.input_value()
            assert status_of(product, secret) == 200
            assert await fits(page)
            await page.screenshot(path=str(tmp_path / "key.png"), full_page=True)
            await page.get_by_role("button", name="Copy").click()
            await expect(page.locator("#copied")).to_have_text("Copied.")

            # A new secret: the previous one is revoked at once.
            await press_on(page, "summary", "New secret phone of alice")
            await press_on(page, "button", "Create a new secret for phone of alice")
            await expect(key_field).to_be_focused()
            before, secret = secret, await key_field.input_value()
            assert (status_of(product, before), status_of(product, secret)) == (401, 200)

            await make_reader(page, product, tmp_path)

            await press_on(page, "summary", "Revoke phone of alice")
            await expect(
                page.get_by_role("button", name="Revoke phone of alice now")
            ).to_be_visible()
            await page.screenshot(path=str(tmp_path / "revoke.png"), full_page=True)
            await press_on(page, "button", "Revoke phone of alice now")
            await expect(page.get_by_text("The key was revoked.")).to_be_visible()
            assert status_of(product, secret) == 401

            await page.get_by_role("link", name="Change password").click()
            await change_password(page, "wrong")
            old = page.get_by_label("Old password")
            await expect(old).to_have_attribute("aria-invalid", "true")
            assert await fits(page)
            await page.screenshot(path=str(tmp_path / "password.png"), full_page=True)
            await change_password(page, product.people["alice"]["password"])
            await expect(page.get_by_text("Your password was changed.")).to_be_visible()
            await expect(page.get_by_text("You have no keys.")).to_be_visible()
            assert status_of(product, product.people["alice"]["api_key"]) == 401
            await page.get_by_role("link", name="Chats").click()
            await expect(page.get_by_role("button", name="Sign out")).to_be_attached()
            no_complaints(page)

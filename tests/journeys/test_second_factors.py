"""A person on a phone adds an authenticator app and a passkey, and signs in with each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.journeys.product import browser, no_complaints, running_product
from tests.journeys.test_account import PHONE, fits
from tests.uamp_project.account_security.people import code

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Browser, BrowserContext, Page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def add_authenticator(context: BrowserContext, page: Page) -> None:
    """Give the browser an authenticator that verifies its person, as a phone has one."""
    tools = await context.new_cdp_session(page)
    await tools.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    await tools.send("WebAuthn.addVirtualAuthenticator", {"options": options})


async def sign_out(page: Page, url: str) -> None:
    await page.goto(url)
    await page.get_by_role("button", name="Chats").click()
    await page.get_by_role("button", name="Sign out").click()
    await page.wait_for_url(f"{url}/login")


async def add_app(page: Page, password: str, folder: Path) -> str:
    """Add an authenticator app on the page of one's security, and return its key."""
    await page.get_by_role("link", name="Add an app").click()
    # Changes need the password again.
    await page.fill("input[name=password]", password)
    await page.keyboard.press("Enter")
    key = await page.locator("#totp-key").inner_text()
    await expect(page.get_by_alt_text("QR code with the key below")).to_be_visible()
    assert await page.evaluate("document.querySelector('.qr-code').naturalWidth > 0")
    assert await fits(page)
    await page.screenshot(path=str(folder / "app.png"), full_page=True)
    await page.get_by_label("Code").fill(code(key))
    await page.keyboard.press("Enter")
    await expect(page.locator(".recovery-codes li")).to_have_count(10)
    assert await fits(page)
    await page.screenshot(path=str(folder / "codes.png"), full_page=True)
    await page.get_by_role("link", name="I have saved them").click()
    return key


async def add_passkey(page: Page, folder: Path) -> None:
    await page.get_by_role("link", name="Add a passkey").click()
    await page.get_by_label("Name of the passkey").fill("my phone")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("The passkey was added.")).to_be_visible()
    await expect(page.get_by_role("link", name="Remove my phone")).to_be_visible()
    assert await fits(page)
    await page.screenshot(path=str(folder / "security.png"), full_page=True)


async def test_a_person_signs_in_with_an_app_and_with_a_passkey(
    tmp_path: Path, chromium: Browser
) -> None:
    async with browser(chromium) as engine:
        with running_product(tmp_path / "data", UAMP_MAIL="file") as product:
            # Passkeys are for the host of UAMP_ISSUER.
            url = f"http://localhost:{product.port}"
            password = product.people["alice"]["password"]
            context = await engine.new_context(viewport=PHONE, color_scheme="dark")  # type: ignore[arg-type]
            page = await context.new_page()
            complaints: list[str] = []
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on(
                "console",
                lambda line: (
                    complaints.append(line.text) if "Content Security" in line.text else None
                ),
            )
            page.complaints = complaints  # type: ignore[attr-defined]  # read by `no_complaints`
            await add_authenticator(context, page)

            await page.goto(f"{url}/login?next=/account/security")
            await expect(page.get_by_role("link", name="Forgot your password?")).to_be_visible()
            await page.fill("input[name=username]", "alice")
            await page.fill("input[name=password]", password)
            await page.keyboard.press("Enter")
            await expect(page.get_by_role("link", name="Add an app")).to_be_visible()
            assert await fits(page)
            key = await add_app(page, password, tmp_path)
            await add_passkey(page, tmp_path)

            await sign_out(page, url)
            await page.fill("input[name=username]", "alice")
            await page.fill("input[name=password]", password)
            await page.keyboard.press("Enter")
            field = page.get_by_label("Code from your authenticator app, or a recovery code")
            await expect(field).to_be_focused()
            assert await fits(page)
            await page.screenshot(path=str(tmp_path / "factor.png"), full_page=True)
            await field.fill(code(key, later=1))
            await page.keyboard.press("Enter")
            await page.wait_for_url(f"{url}/")

            await sign_out(page, url)
            await expect(page.get_by_role("button", name="Use a passkey")).to_be_visible()
            assert await fits(page)
            await page.screenshot(path=str(tmp_path / "login.png"), full_page=True)
            await page.get_by_role("button", name="Use a passkey").click()
            await page.wait_for_url(f"{url}/")
            no_complaints(page)

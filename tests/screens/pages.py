"""The screens beside the chat: sign-in, account, money, agents, and the operator's own pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.journeys.product import fill_in_login
from tests.screens.screen import Screen

if TYPE_CHECKING:
    from playwright.async_api import Page

    from tests.screens.screen import Reach
    from tests.screens.stage import Stage


def _visit(path: str, *, username: str = "alice", heading: str = "h1") -> Reach:
    """Return a function that opens a path as a person, or as a stranger if the name is empty."""

    async def reach(stage: Stage) -> Page:
        page = await stage.page("")
        if username:
            await fill_in_login(page, stage.product, username)
        await page.goto(stage.product.url + path)
        await page.locator(heading).first.wait_for()
        return page

    return reach


async def _wrong_password(stage: Stage) -> Page:
    page = await stage.page("")
    await page.goto(f"{stage.product.url}/login")
    await page.fill("input[name=username]", "stranger")
    await page.fill("input[name=password]", "wrong")
    await page.keyboard.press("Enter")
    await page.locator("[role=alert]").first.wait_for()
    return page


async def style_page(stage: Stage) -> Page:
    """Open the page that shows every component, as the operator."""
    page = await _visit("/style/", username="admin")(stage)
    await page.locator("style-page[data-ready]").wait_for()
    # Its chat scrolls to a message, which the head of the page would cover in part.
    await page.evaluate("scrollTo(0, 0)")
    return page


def _first_row(path: str) -> Reach:
    """Return a function that opens the first row of a list of the admin as the operator."""

    async def reach(stage: Stage) -> Page:
        page = await _visit(path, username="admin")(stage)
        await page.locator("#result_list tbody th a").first.click()
        await page.locator("#content form").first.wait_for()
        return page

    return reach


SCREENS: Final = (
    Screen("sign-in", _visit("/login", username="")),
    Screen("sign-in-refused", _wrong_password),
    Screen("not-found", _visit("/nothing-here")),
    Screen("account", _visit("/account")),
    Screen("own-agents", _visit("/account/agents")),
    Screen("password", _visit("/account/password")),
    Screen("money", _visit("/money")),
    Screen("agents", _visit("/agents")),
    Screen("agent", _visit("/agents/report")),
    Screen("style", style_page),
    Screen("admin", _visit("/admin/", username="admin")),
    Screen("admin-list", _visit("/admin/sessions_app/response/", username="admin")),
    Screen("admin-form", _first_row("/admin/agents_app/agent/")),
    Screen("admin-payments", _visit("/admin/payments_app/", username="admin")),
    Screen("admin-audit", _visit("/admin/audit_app/auditrecord/", username="admin")),
    Screen("admin-search", _visit("/admin/find/?q=welcome", username="admin")),
)

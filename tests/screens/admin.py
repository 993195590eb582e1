"""Every page of the admin that has rows: lists, rows, new rows, timelines and operations.

They are found from the operators' home of the running product, so that a new list is looked at.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tests.journeys.product import SESSION_COOKIE, fill_in_login
from tests.screens.screen import Screen

if TYPE_CHECKING:
    from playwright.async_api import Page

    from tests.screens.screen import Reach
    from tests.screens.stage import Stage

NAME: Final = "admin-pages"
"""What stands for all of them where screens are named."""
_LIST: Final = re.compile(r"/admin/(\w+/\w+)/$")
_ADD: Final = re.compile(r"/admin/(\w+/\w+/add)/$")
_FURTHER: Final = re.compile(r"/(operate|timeline|try|statement|history|dashboard)/")
HREFS: Final = "(links) => links.map((link) => new URL(link.href).pathname)"


def visit(path: str) -> Reach:
    """Return a function that opens a page of the admin as the operator."""

    async def reach(stage: Stage) -> Page:
        page = await stage.page("")
        await _sign_in(page, stage)
        await page.goto(stage.product.url + path)
        await page.locator("h1, #site-name").first.wait_for()
        return page

    return reach


async def _sign_in(page: Page, stage: Stage) -> None:
    """Sign the operator in: by the form at first, later with its cookie."""
    person, url = stage.product.people["admin"], stage.product.url
    if SESSION_COOKIE in person:
        await page.context.add_cookies(
            [{"name": SESSION_COOKIE, "value": person[SESSION_COOKIE], "url": url}]
        )
        return
    await fill_in_login(page, stage.product, "admin")
    found = await page.context.cookies(url)
    person[SESSION_COOKIE] = next(
        cookie["value"] for cookie in found if cookie["name"] == SESSION_COOKIE
    )


async def admin_screens(stage: Stage) -> list[Screen]:
    """Return each list, its first row with what leads on from there, and each form of a new row."""
    page = await visit("/admin/")(stage)
    found = {"home": "/admin/"}
    links = await page.locator("#content a").evaluate_all(HREFS)
    for path in dict.fromkeys(links):
        if match := _LIST.search(path) or _ADD.search(path):
            found[match[1]] = path
    for path in [path for path in found.values() if _LIST.search(path)]:
        found.update(await rows_of(page, stage.product.url, path))
    await page.context.close()
    return [
        Screen(f"admin-{name.strip('/').replace('/', '-')}", visit(path), is_sampled=False)
        for name, path in found.items()
    ]


async def rows_of(page: Page, origin: str, path: str) -> dict[str, str]:
    """Return the first row of a list, and the pages to which that leads, by their names."""
    await page.goto(origin + path)
    name = path.removeprefix("/admin/").strip("/")
    rows = await page.locator("#result_list tbody th a").evaluate_all(HREFS)
    if not rows:
        return {}
    found = {f"{name}/row": rows[0]}
    await page.goto(origin + rows[0])
    for link in dict.fromkeys(await page.locator(".object-tools a").evaluate_all(HREFS)):
        if match := _FURTHER.search(link):
            operation = link.rstrip("/").rpartition("/")[2] if match[1] == "operate" else ""
            found[f"{name}/{match[1]}/{operation}".rstrip("/")] = link
    return found

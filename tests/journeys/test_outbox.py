"""Unsent messages outlive their tab, and each is stored once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.journeys.product import (
    Product,
    browser,
    running_product,
    sign_in,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.async_api import Browser, Dialog, Page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@pytest.fixture
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("product")) as running:
        yield running


async def write_alone(product: Product, page: Page, text: str) -> None:
    """Write while the server is down."""
    product.stop()
    await expect(page.get_by_test_id("banner")).to_be_visible()
    await write(page, text)
    await expect(page.get_by_test_id("pending")).to_contain_text(text)


async def test_what_a_closed_tab_left_is_sent_once_by_the_next(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        context = await running.new_context()
        page = await sign_in(context, product, "alice")
        await write_alone(product, page, "Written before the tab was closed")
        await page.close()
        product.start()
        pages = [await context.new_page() for _ in range(2)]
        for tab in pages:
            await tab.goto(f"{product.url}/")
        await pages[1].goto(f"{product.url}/chats/{product.chat_id}")
        message = pages[1].locator("chat-message", has_text="Written before")
        await expect(message).to_have_count(1)
        await expect(pages[1].get_by_test_id("pending")).to_have_count(0)
        stored = [m["content"] for m in product.messages() if "Written before" in m["content"]]
        assert stored == ["Written before the tab was closed"]


@pytest.mark.long
async def test_what_was_unfolded_before_it_was_sent_stays_so(
    product: Product, chromium: Browser
) -> None:
    text = "\n\n".join(f"line {number} " + "x" * 80 for number in range(200))
    async with browser(chromium) as running:
        context = await running.new_context()
        page = await sign_in(context, product, "alice")
        product.stop()
        await expect(page.get_by_test_id("banner")).to_be_visible()
        await write(page, text)
        pending = page.get_by_test_id("pending").get_by_test_id("message-body")
        await pending.get_by_test_id("show-all").click()
        await expect(pending.locator("p")).to_have_count(200)
        product.start()
        await expect(page.get_by_test_id("pending")).to_have_count(0, timeout=60_000)
        message_body = page.locator("chat-message", has_text="line 1 ").get_by_test_id(
            "message-body"
        )
        await expect(message_body.locator("p")).to_have_count(200)
        # Once read from history, it is folded like other long messages.
        await page.reload()
        await expect(message_body.get_by_test_id("show-all")).to_be_visible()


@pytest.mark.long
async def test_signing_out_asks_about_unsent_messages(product: Product, chromium: Browser) -> None:
    async with browser(chromium) as running:
        context = await running.new_context()
        page = await sign_in(context, product, "alice")
        await write_alone(product, page, "Never sent")
        dialog_texts: list[str] = []

        async def refuse(dialog: Dialog) -> None:
            dialog_texts.append(dialog.message)
            await dialog.dismiss()

        page.once("dialog", refuse)
        await page.get_by_role("button", name="Sign out").click()
        assert dialog_texts == ["1 message hasn't been sent yet. Sign out and discard it?"]
        await expect(page.get_by_test_id("pending")).to_contain_text("Never sent")
        outbox_keys = "Object.keys(localStorage).filter((key) => key.startsWith('uamp.outbox'))"
        assert len(await page.evaluate(outbox_keys)) == 1
        page.once("dialog", lambda dialog: dialog.accept())
        await page.evaluate(
            'document.querySelector("form[action$=logout]").addEventListener'
            "('submit', (event) => event.preventDefault())"
        )
        await page.get_by_role("button", name="Sign out").click()
        await page.wait_for_function(f"() => {outbox_keys}.length === 0")

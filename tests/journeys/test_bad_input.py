"""Trouble while people write: input methods, other tabs, lost connections, wrong clocks."""

from __future__ import annotations

import asyncio
import re
import time
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.journeys.attachments import photo
from tests.journeys.product import Product, browser, no_complaints, running_product, sign_in, write

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.async_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

DAY_SECONDS = 24 * 3600
# The width of a small phone.
WIDTH = 360
COMPOSED = """field => field.dispatchEvent(new KeyboardEvent("keydown", {
    key: "Enter", isComposing: true, bubbles: true, cancelable: true,
}))"""


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("product")) as running:
        yield running


async def test_texts_of_input_methods_and_of_emoji_arrive_whole(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        context = await running.new_context(viewport={"width": WIDTH, "height": 740})
        alice = await sign_in(context, product, "alice")
        composer, messages = alice.get_by_test_id("composer"), alice.get_by_test_id("message")
        await composer.fill("日本")
        # Enter chooses a word of the input method and sends nothing.
        await composer.evaluate(COMPOSED)
        await expect(composer).to_have_value("日本")
        await expect(messages).to_have_count(0)
        await composer.press("Enter")
        await expect(messages.last).to_contain_text("日本")
        await write(alice, "\U0001f642" * 1_000)
        await expect(messages.last.locator(".bubble")).to_have_text("\U0001f642" * 1_000)
        width = await alice.evaluate("document.documentElement.scrollWidth")
        assert width == WIDTH
        no_complaints(alice)


@pytest.mark.long
async def test_two_tabs_that_edit_one_message_lose_neither_text(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        context = await running.new_context()
        first = await sign_in(context, product, "alice")
        second = await sign_in(context, product, "alice")
        await write(first, "as it was")
        for tab in (first, second):
            await expect(tab.get_by_test_id("message").last).to_contain_text("as it was")
            await tab.get_by_test_id("composer").press("ArrowUp")
            await expect(tab.get_by_test_id("editor")).to_be_focused()
        await second.get_by_test_id("editor").fill("from the second tab")
        await second.keyboard.press("Enter")
        await expect(second.get_by_test_id("message").last).to_contain_text("from the second tab")
        await first.get_by_test_id("editor").fill("from the first tab")
        await first.keyboard.press("Enter")
        for tab in (first, second):
            await expect(tab.get_by_test_id("message").last).to_contain_text("from the first tab")
        # Both are in the history that all members of the chat can read.
        await second.get_by_test_id("edited").last.click()
        revisions = second.locator("revisions-dialog")
        for text in ("as it was", "from the second tab", "from the first tab"):
            await expect(revisions).to_contain_text(text)
        no_complaints(first, second)


@pytest.mark.long
async def test_a_member_removed_while_writing_sees_it_and_sends_nothing(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), product, "alice")
        bob = await sign_in(await running.new_context(), product, "bob")
        # A signal is sent once: both pages have a session when each shows the other's message.
        for page, reader, text in ((bob, alice, "From bob"), (alice, bob, "From alice")):
            await write(page, text)
            await expect(reader.get_by_test_id("message").last).to_contain_text(text)
        await asyncio.gather(
            expect(alice.get_by_test_id("typing")).to_contain_text("bob"),
            bob.get_by_test_id("composer").press_sequentially("I am wri", delay=50),
        )
        panel = alice.locator("members-panel")
        await panel.get_by_role("button", name="Settings for bob").click()
        dialog = alice.get_by_test_id("member-dialog")
        await dialog.get_by_test_id("remove-member").click()
        await dialog.get_by_role("button", name="Remove").last.click()
        await expect(alice.get_by_test_id("typing")).not_to_have_class(re.compile("is-on"))
        await expect(bob.get_by_test_id("chat-item")).to_have_count(0)
        await expect(bob.get_by_text("You're no longer in this chat")).to_be_visible()
        await expect(bob.get_by_test_id("composer")).to_have_count(0)
        assert all("I am wri" not in message["content"] for message in product.messages())
        no_complaints(alice, bob)


@pytest.mark.long
async def test_a_file_is_attached_again_after_the_connection_was_lost(
    product: Product, chromium: Browser, tmp_path: Path
) -> None:
    async with browser(chromium) as running:
        context = await running.new_context()
        alice = await sign_in(context, product, "alice")
        await context.set_offline(True)
        await alice.get_by_test_id("file-input").set_input_files(photo(tmp_path / "a.png", 20, 20))
        await expect(alice.get_by_test_id("attachment")).to_contain_text("Upload failed")
        await alice.get_by_test_id("composer").fill("with a picture")
        await context.set_offline(False)
        await alice.get_by_role("button", name="Remove a.png").click()
        await expect(alice.get_by_test_id("attachment")).to_have_count(0)
        await alice.get_by_test_id("file-input").set_input_files(photo(tmp_path / "b.png", 20, 20))
        await expect(alice.get_by_test_id("attachment")).to_have_count(1)
        await expect(alice.get_by_role("progressbar")).to_have_count(0)
        await alice.get_by_test_id("composer").press("Enter")
        last = alice.get_by_test_id("message").last
        await expect(last).to_contain_text("with a picture")
        await expect(last.locator(".media-image img")).to_be_visible()
        no_complaints(alice)


@pytest.mark.long
async def test_a_page_that_lost_the_connection_loads_formulas_again(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        context = await running.new_context()
        # The style sheet of formulas, which the page loads when it is idle.
        await context.route("**/katex.css", lambda route: route.abort())
        failed_urls: list[str] = []
        context.on("requestfailed", lambda request: failed_urls.append(request.url))
        alice = await sign_in(context, product, "alice")
        async with asyncio.timeout(60):
            while not any(url.endswith("katex.css") for url in failed_urls):
                await alice.evaluate("() => new Promise((go) => requestAnimationFrame(go))")
        await context.unroute("**/katex.css")
        await write(alice, "A formula: $x^2$")
        await expect(alice.locator(".math.is-drawn").last).to_be_visible()
        no_complaints(alice)


@pytest.mark.long
async def test_a_clock_that_is_wrong_by_a_day_changes_no_order(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        context = await running.new_context()
        await context.clock.install(time=time.time() - DAY_SECONDS)
        alice = await sign_in(context, product, "alice")
        right = await sign_in(await running.new_context(), product, "alice")
        texts = ["from a day before", "from today", "once more"]
        for page, text in zip((alice, right, alice), texts, strict=True):
            await write(page, text)
            # A page shows its own text before it is stored, and other texts only once they are
            # stored.
            for reader in (alice, right):
                await expect(reader.get_by_test_id("message").last).to_contain_text(text)
        for page in (alice, right):
            bubbles = page.get_by_test_id("message").locator(".bubble")
            assert (await bubbles.all_inner_texts())[-len(texts) :] == texts
        no_complaints(alice, right)

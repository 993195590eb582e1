"""Two agents work on one picture in a shared chat, and a person approves a tool or refuses it.

Runs against the product as started by `make run`: daphne, SQLite, a Celery child.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from PIL import Image
from playwright.async_api import expect

from tests.journeys.attachments import WORK_MS, attach, photo
from tests.journeys.product import (
    Product,
    browser,
    no_complaints,
    running_product,
    sign_in,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.async_api import Browser


pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SHOWS = "rome.png, turned by 270°, black and white, contrast 1.6"
# The texts of the newest card's progress bar, recorded whenever they change.
WATCH_BAR = """() => {
  window.seen = [];
  const look = () => {
    const bars = document.querySelectorAll(".tool [role=progressbar][aria-valuenow]");
    const bar = bars[bars.length - 1];
    const value = bar && bar.offsetParent ? Number(bar.getAttribute("aria-valuenow")) : null;
    if (value !== null && value !== window.seen.at(-1)) window.seen.push(value);
  };
  new MutationObserver(look).observe(document.body, {
    subtree: true, childList: true, attributes: true, attributeFilter: ["aria-valuenow"],
  });
}"""


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("product"), has_workers=True) as running:
        with running.api("alice") as client:
            for agent in ("studio", "darkroom", "careful"):
                path = f"/api/v1/chats/{running.chat_id}/participants"
                client.post(path, json={"agent": agent}).raise_for_status()
        yield running


def picture_of(product: Product, source: str) -> Image.Image:
    """Return a picture shown on the page."""
    with product.api("bob") as client:
        return Image.open(io.BytesIO(client.get(source).raise_for_status().content))


async def test_two_agents_edit_a_picture_and_everybody_watches(
    product: Product, chromium: Browser, tmp_path: Path
) -> None:
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), product, "alice")
        bob = await sign_in(await running.new_context(), product, "bob")
        for page in (alice, bob):
            await page.evaluate(WATCH_BAR)
        before = await alice.get_by_test_id("message").count()
        large = photo(tmp_path / "rome.png", 4200, 3200)
        await attach(alice, large, "@studio turn it left, black and white, more contrast")

        for page in (alice, bob):
            work = page.get_by_test_id("tool").filter(has_text="darkroom").first
            await expect(work.get_by_role("progressbar")).to_be_visible(timeout=WORK_MS)
            await expect(work).to_contain_text("working…")
        for page in (alice, bob):
            answer = page.get_by_test_id("message").nth(before + 1)
            await expect(answer).to_contain_text("Here it is.", timeout=WORK_MS)
            await expect(page.get_by_test_id("live-response")).to_have_count(0)
            picture = answer.locator(".parts > .media-image img")
            await expect(picture).to_have_count(1)
            await expect(picture).to_have_attribute("alt", SHOWS)
            assert await picture.evaluate("image => image.decode().then(() => image.naturalWidth)")
            seen = await page.evaluate("window.seen")
            assert len(seen) > 5, seen
            assert seen == sorted(seen)

        source = await picture.get_attribute("src")
        assert source is not None
        red, green, blue = (b.tobytes() for b in picture_of(product, source).convert("RGB").split())
        assert red == green == blue

        reported = await answer.locator(".bubble").text_content()
        await bob.reload()
        again = bob.get_by_test_id("message").nth(before + 1)
        await expect(again.locator(".parts > .media-image img")).to_have_attribute("src", source)
        await expect(again.locator(".bubble")).to_have_text(reported or "")
        no_complaints(alice, bob)


async def test_a_person_allows_a_tool_by_click_and_refuses_it_by_keyboard(
    product: Product, chromium: Browser, tmp_path: Path
) -> None:
    small = photo(tmp_path / "oslo.png", 300, 200)
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), product, "alice")
        bob = await sign_in(await running.new_context(), product, "bob")
        await attach(bob, small, "@careful make it black and white")
        for page in (alice, bob):
            card = page.get_by_test_id("approval")
            await expect(card).to_contain_text("careful asks to use edit_picture")
            await expect(card).to_contain_text("grayscale")
            await expect(page.locator("#announcer")).to_contain_text("asks to use edit_picture")
            entry = page.locator("members-panel li").filter(has_text="careful")
            await expect(entry.get_by_test_id("agent-state")).to_have_text(
                "Waiting for bob to approve edit_picture"
            )
        # A person who is writing is not interrupted.
        await expect(bob.get_by_test_id("composer")).to_be_focused()
        # It is still there for a member who arrives later; an owner may decide for the asker.
        await alice.reload()
        # It shows the picture in question, not its id.
        await expect(alice.get_by_test_id("approval").locator("img")).to_have_count(1)
        await alice.get_by_test_id("allow").focus()
        await alice.keyboard.press("Enter")
        # The button is gone, and the focus stays in the chat.
        await expect(alice.get_by_role("log")).to_be_focused()
        for page in (alice, bob):
            await expect(page.get_by_test_id("allow")).to_have_count(0)
            answer = page.get_by_test_id("message").last
            await expect(answer).to_contain_text("The new picture is black", timeout=WORK_MS)
            await expect(page.get_by_test_id("approval")).to_have_count(0)
            entry = page.locator("members-panel li").filter(has_text="careful")
            await expect(entry.get_by_test_id("agent-state")).to_have_text("Ready")

        await write(bob, "@careful turn it left")
        await expect(bob.get_by_test_id("refuse")).to_be_visible()
        # Backwards from the composer, past the readable elements.
        for _ in range(12):
            await bob.keyboard.press("Shift+Tab")
            if await bob.get_by_test_id("approval-reason").evaluate(
                "field => field === document.activeElement"
            ):
                break
        await bob.keyboard.type("not this one")
        await bob.keyboard.press("Enter")
        for page in (alice, bob):
            answer = page.get_by_test_id("message").last
            await expect(answer).to_contain_text("They say: not this one", timeout=WORK_MS)
        await expect(alice.get_by_test_id("approval")).to_have_count(0)
        # Members who may not decide see whose approval the answer is waiting for.
        await write(alice, "@careful turn it right")
        waiting = bob.get_by_test_id("waits-for")
        await expect(waiting).to_have_text("Waiting for approval by alice or an owner of the chat.")
        await alice.get_by_test_id("refuse").click()
        await expect(waiting).to_have_count(0)

        await write(bob, "@careful make it smaller")
        await bob.get_by_test_id("allow").focus()
        await bob.keyboard.press("Enter")
        answer = bob.get_by_test_id("message").last
        await expect(answer).to_contain_text("The new picture is at most", timeout=WORK_MS)
        no_complaints(alice, bob)

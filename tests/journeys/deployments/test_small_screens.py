"""A phone and a tablet: one sees what one writes, the list is a drawer, nothing goes sideways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import expect

from tests.journeys.attachments import photo
from tests.journeys.deployments.chats import new_chat
from tests.journeys.product import Product, browser, no_complaints, sign_in, write

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Browser, Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

# Each with the height that is left above its keyboard: the page is resized (interactive-widget).
SCREENS = {"phone": (360, 740, 400), "tablet": (820, 1180, 700)}
WIDE = "\n\n".join(
    (
        "https://example.org/" + "0123456789" * 30,
        "| " + " | ".join(f"column {n}" for n in range(20)) + " |\n" + "|---" * 20 + "|",
        "```\n" + "code " * 80 + "\n```",
        "$$\n" + " + ".join(f"x_{{{n}}}^2" for n in range(60)) + "\n$$",
        "W" * 400,
    )
)
# What is wider than the screen, and the log, which scrolls by itself, and could sideways.
SIDEWAYS = """() => [document.documentElement, document.body, ...document.querySelectorAll(
  ".log, .main, .sidebar, dialog[open], members-panel, .panel-body, .dialog-body")]
  .filter((one) => one.scrollWidth > one.clientWidth + 1 && one.checkVisibility())
  .map((one) => `${one.localName}.${one.className} ${one.scrollWidth} > ${one.clientWidth}`)"""
WIDE_AGENT = """
from agents_app.models import Agent
Agent.objects.get_or_create(name="w" * 64, defaults={"is_public": True, "description": "W" * 200,
    "options": {"script": "echo"}, "tools": ["t" * 60]})
"""
WHOLE = """(one) => {
  const { top, bottom, left, right, height } = one.getBoundingClientRect();
  return height > 0 && top >= 0 && left >= 0 && bottom <= innerHeight && right <= innerWidth;
}"""


async def assert_no_sideways_scroll(page: Page) -> None:
    """Assert that nothing on the page scrolls sideways."""
    assert await page.evaluate(SIDEWAYS) == [], page.url


async def is_whole(*places: Locator) -> None:
    """Assert that places are on the screen, with all of their edges."""
    for place in places:
        await expect(place).to_be_in_viewport(ratio=0.99)
        assert await place.evaluate(WHOLE), place


async def with_the_keyboard_open(page: Page, other: Page, height: int) -> None:
    """Write while the keyboard covers the lower half: the field and the newest words are seen."""
    composer, send = page.get_by_test_id("composer"), page.get_by_test_id("send")
    size = page.viewport_size
    assert size is not None
    await composer.tap()
    await expect(composer).to_be_focused()
    await page.set_viewport_size({"width": size["width"], "height": height})
    await is_whole(composer, send)
    await composer.fill("one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\neleven")
    await is_whole(composer, send)
    await send.tap()
    await expect(other.get_by_test_id("message").last).to_contain_text("eleven")
    await write(other, "What is new?")
    newest = page.get_by_test_id("message").last
    await expect(newest).to_contain_text("What is new?")
    await is_whole(newest.locator(".bubble"), composer)
    await assert_no_sideways_scroll(page)
    await page.set_viewport_size(size)
    await is_whole(newest.locator(".bubble"), composer)


async def through_the_drawer(page: Page) -> None:
    """On a phone the list of chats is a drawer over the chat, of which one is out of reach."""
    sidebar, chat = page.locator(".sidebar"), page.locator(".main")
    assert await sidebar.evaluate("one => one.inert")
    await page.get_by_role("button", name="Chats").tap()
    item = page.get_by_test_id("chat-item").filter(has_text="Small")
    await is_whole(item.first)
    assert await chat.evaluate("one => one.inert")
    assert not await sidebar.evaluate("one => one.inert")
    await assert_no_sideways_scroll(page)
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Chats").tap()
    await item.first.tap()
    await is_whole(page.get_by_test_id("composer"))
    assert not await chat.evaluate("one => one.inert")


async def through_the_panels(page: Page) -> None:
    """Open each panel and dialog: none is wider than the screen."""
    await page.get_by_test_id("members").tap()
    await expect(page.locator("members-panel")).to_be_visible()
    await assert_no_sideways_scroll(page)
    dialog = page.locator("dialog[open]")
    for button in ("share-button", "chat-settings-button"):
        await page.get_by_test_id(button).tap()
        await expect(dialog).to_be_visible()
        await assert_no_sideways_scroll(page)
        await page.keyboard.press("Escape")
        await expect(dialog).to_have_count(0)
        if not await page.locator("members-panel").is_visible():
            await page.get_by_test_id("members").tap()
    await page.locator("members-panel").get_by_role("button", name="Close the member list").tap()
    for keys in ("Control+k", "Control+Shift+F"):
        await page.keyboard.press(keys)
        await expect(dialog).to_be_visible()
        await assert_no_sideways_scroll(page)
        await page.keyboard.press("Escape")
        await expect(dialog).to_have_count(0)


@pytest.mark.parametrize("screen", ["phone", pytest.param("tablet", marks=pytest.mark.long)])
async def test_a_small_screen_shows_what_one_writes_and_nothing_sideways(
    deployment: Product, chromium: Browser, tmp_path: Path, screen: str
) -> None:
    chat_id = new_chat(deployment, f"Small {screen} " + "W" * 60, agents=("paid-echo",))
    deployment.run(WIDE_AGENT)
    width, height, above_keyboard = SCREENS[screen]
    options: dict[str, Any] = {"viewport": {"width": width, "height": height}}
    async with browser(chromium) as running:
        context = await running.new_context(**options, has_touch=True, is_mobile=True)
        page = await sign_in(context, deployment, "alice", chat_id)
        bob = await sign_in(await running.new_context(), deployment, "bob", chat_id)
        await write(bob, WIDE)
        messages = page.get_by_test_id("message")
        await expect(messages).to_have_count(1)
        picture = photo(tmp_path / f"{'w' * 80}.png", 2_000, 100)
        await page.get_by_test_id("file-input").set_input_files(picture)
        await expect(page.get_by_test_id("attachment")).to_have_count(1)
        await expect(page.get_by_role("progressbar")).to_have_count(0)
        await assert_no_sideways_scroll(page)
        await page.get_by_test_id("send").tap()
        await expect(messages).to_have_count(2)
        await write(bob, "@paid-echo ask")
        await assert_no_sideways_scroll(page)
        await with_the_keyboard_open(page, bob, above_keyboard)
        if screen == "phone":
            await through_the_drawer(page)
        await through_the_panels(page)
        for path in ("money", "account", "agents", f"agents/{'w' * 64}"):
            await page.goto(f"{deployment.url}/{path}")
            await assert_no_sideways_scroll(page)
        no_complaints(page, bob)

"""Everything from signing in to paying, without a mouse: keys alone, from where the focus is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.journeys.attachments import attach, photo
from tests.journeys.deployments.chats import messages, new_chat
from tests.journeys.keys import HAS_FOCUS, tab_to
from tests.journeys.product import Product, browser, no_complaints, sign_in

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Browser, Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

ROUNDS = 3
CODE = "print('typed')"
# What can be used in what lies on top: of radio buttons of one name Tab reaches one.
CONTROLS = """() => {
  const open = document.querySelectorAll("dialog[open], [popover]:popover-open");
  const top = [...open].at(-1);
  return [...top.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")]
    .filter((one) => one.checkVisibility({ visibilityProperty: true }))
    .filter((one) => one.tabIndex >= 0 && !one.disabled)
    .map((one) => {
      one.dataset.control ??= one.type === "radio" ? one.name : one.outerHTML.slice(0, 300);
      return one.dataset.control;
    });
}"""
FOCUSED = "document.activeElement.dataset.control ?? ''"
MENU = "[role=menuitem]"


async def type_and_send(page: Page, text: str) -> None:
    """Type a message where the focus is, and send it."""
    await page.keyboard.type(text)
    await page.keyboard.press("Enter")


async def sign_in_by_keys(page: Page, product: Product) -> None:
    """Sign in: the first field has the focus."""
    await page.goto(f"{product.next_url()}/login")
    # A browser gives it the focus with its first frame, which may come after the page has loaded.
    await expect(page.get_by_label("Username")).to_be_focused()
    await page.keyboard.type("alice")
    await page.keyboard.press("Tab")
    await page.keyboard.type(product.people["alice"]["password"])
    await page.keyboard.press("Enter")
    await page.get_by_test_id("chat-item").first.wait_for()


async def compose_japanese(page: Page) -> None:
    """Type by an input method: its Enter takes the word, and sends nothing."""
    keys = await page.context.new_cdp_session(page)
    # As browsers say it while a word is composed: Enter, of which only the code differs.
    enter_key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 229}
    await keys.send(
        "Input.imeSetComposition", {"text": "にほん", "selectionStart": 3, "selectionEnd": 3}
    )
    await keys.send("Input.dispatchKeyEvent", {"type": "rawKeyDown", **enter_key})
    await keys.send("Input.insertText", {"text": "日本"})
    await keys.send("Input.dispatchKeyEvent", {"type": "keyUp", **enter_key})
    await expect(page.get_by_test_id("composer")).to_have_value("日本")


async def test_a_person_without_a_mouse_does_everything_in_a_chat(
    deployment: Product, chromium: Browser
) -> None:
    chat_id = new_chat(deployment, "By keys", agents=("echo", "slow", "paid-echo"))
    async with browser(chromium) as running:
        clipboard = ["clipboard-read", "clipboard-write"]
        context = await running.new_context(permissions=clipboard)
        bob = await sign_in(await running.new_context(), deployment, "bob", chat_id)
        page = await context.new_page()
        page.complaints = complaints = []  # type: ignore[attr-defined]  # as `sign_in` does
        page.on("pageerror", lambda error: complaints.append(str(error)))
        await sign_in_by_keys(page, deployment)

        await tab_to(page, page.locator(f"[data-chat={chat_id}]"))
        await page.keyboard.press("Enter")
        composer, log = page.get_by_test_id("composer"), page.locator("chat-view .log")
        await expect(composer).to_be_focused()
        await compose_japanese(page)
        assert messages(deployment, chat_id) == []
        await page.keyboard.press("Enter")
        await expect(bob.get_by_test_id("message")).to_contain_text("日本")

        await type_and_send(page, "@slow count")
        await expect(page.get_by_test_id("live-response")).to_contain_text("word2 ")
        await page.keyboard.press("Escape")
        for reader in (page, bob):
            await expect(reader.locator(".message-ending")).to_contain_text("topped")

        # A later announcement would take the place of what copying says.
        await expect(page.locator("#announcer")).to_contain_text("answer stopped")
        await copy_code(page, composer)
        await pay(page, composer, bob)

        await tab_to(page, log, "Shift+Tab")
        await page.keyboard.press("?")
        await expect(page.get_by_test_id("shortcuts")).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(page.get_by_test_id("shortcuts")).to_be_hidden()
        await expect(log).to_be_focused()
        no_complaints(page, bob)


async def copy_code(page: Page, composer: Locator) -> None:
    """Write code in two lines, go to it with the arrow keys, and copy it."""
    await expect(composer).to_be_focused()
    await page.keyboard.type("```python")
    await page.keyboard.press("Shift+Enter")
    await page.keyboard.type(CODE)
    await page.keyboard.press("Shift+Enter")
    await type_and_send(page, "```")
    button = page.get_by_role("button", name="Copy").last
    # Until the server has it, it stands in the place of a message that is being sent.
    await expect(page.get_by_test_id("message").locator(".code-block")).to_have_count(1)
    await expect(page.locator(".code-block")).to_have_count(1)
    await tab_to(page, button, "Shift+Tab")
    await page.keyboard.press("Enter")
    await expect(page.locator("#announcer")).to_have_text("Code copied.")
    assert (await page.evaluate("navigator.clipboard.readText()")).strip() == CODE
    await tab_to(page, composer)


async def pay(page: Page, composer: Locator, bob: Page) -> None:
    """Ask an agent that has a price, and pay from the card."""
    await type_and_send(page, "@paid-echo one two")
    await tab_to(page, page.get_by_test_id("pay"), "Shift+Tab")
    await page.keyboard.press("Enter")
    for reader in (page, bob):
        await expect(reader.get_by_test_id("receipt")).to_have_count(1)
    # The card went away, and the focus with it did not go to the top of the page.
    assert await page.evaluate("document.activeElement !== document.body")
    await tab_to(page, composer)


async def walk(page: Page) -> None:
    """Press Tab until everything that can be used had the focus."""
    reached: set[str] = {await page.evaluate(FOCUSED)}
    left: set[str] = set()
    for _ in range(ROUNDS):
        # What a dialog shows may be drawn anew while it loads: what is there at the end counts.
        for _ in range(2 * len(await page.evaluate(CONTROLS)) + 10):
            await page.keyboard.press("Tab")
            reached.add(await page.evaluate(FOCUSED))
        left = set(await page.evaluate(CONTROLS)) - reached
        if not left:
            return
    assert left == set()


async def opens(page: Page, locator: Locator, *keys: str, walked: bool = True) -> None:
    """Open something by keys, walk through it, and close it: the focus goes back."""
    before = await page.evaluate_handle("document.activeElement")
    for key in keys:
        await page.keyboard.press(key)
    await expect(locator.first).to_be_visible()
    if walked:
        await walk(page)
    else:
        # In a menu the arrows lead from item to item, and Tab out of it.
        for _ in range(await locator.count()):
            await page.keyboard.press("ArrowDown")
            assert await page.evaluate("document.activeElement.matches('[role=menuitem]')")
    await page.keyboard.press("Escape")
    await expect(locator.first).to_be_hidden()
    assert await before.evaluate(HAS_FOCUS), keys


@pytest.mark.long
async def test_every_dialog_is_opened_walked_through_and_closed_by_keys(
    deployment: Product, chromium: Browser, tmp_path: Path
) -> None:
    chat_id = new_chat(deployment, "Dialogs", agents=("echo",))
    async with browser(chromium) as running:
        page = await sign_in(await running.new_context(), deployment, "alice", chat_id)
        await attach(page, photo(tmp_path / "small.png", 60, 40), "Look")
        row = page.get_by_test_id("message").first
        await expect(row.locator("a.media-image")).to_be_visible()
        dialog = page.locator("dialog[open]")

        # From a message.
        await tab_to(page, page.locator("chat-view .log"), "Shift+Tab")
        await page.keyboard.press("ArrowUp")
        await expect(row).to_be_focused()
        await opens(page, page.get_by_test_id("message-menu").locator(MENU), "m", walked=False)
        await opens(page, page.get_by_test_id("emoji-picker"), "+")
        await opens(page, page.get_by_test_id("delete-now"), "Delete")
        await page.keyboard.press("t")
        await expect(page.locator("thread-panel").get_by_test_id("composer")).to_be_focused()
        await page.keyboard.press("Escape")
        await expect(row).to_be_focused()
        await opens(page, page.get_by_test_id("console"), "m", "v", "Enter")
        for keys in ("Control+k", "Control+Shift+F", "?"):
            await opens(page, dialog, keys)
        await tab_to(page, row.locator("a.media-image"))
        await opens(page, page.get_by_test_id("viewer"), "Enter")

        # From the buttons around it.
        panel = page.locator("members-panel")
        for button in (
            panel.get_by_role("button", name="Settings for alice"),
            panel.get_by_role("button", name="Settings for echo"),
            panel.get_by_role("button", name="Add people or agents"),
            page.get_by_test_id("share-button"),
            page.get_by_test_id("chat-settings-button"),
            page.get_by_test_id("new-chat"),
            page.get_by_test_id("settings"),
        ):
            await tab_to(page, button)
            await opens(page, dialog, "Enter")
        no_complaints(page)

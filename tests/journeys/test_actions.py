"""Everything people do with a message: answer, react, pin, edit, delete, link and find it.

Runs against the product as started by `make run`: daphne, SQLite, a Celery child.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.journeys.log_places import SHOWN, scrolled
from tests.journeys.long_chat import COUNT, long_chat
from tests.journeys.product import Product, browser, no_complaints, running_product, sign_in, write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.async_api import Browser, Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

PARTY = "\N{PARTY POPPER}"
PHONE = {"width": 360, "height": 740}
# The id of the first message that is fully visible in the middle of the page.
READ = """() => [...document.querySelectorAll("chat-message")].find((one) => {
    const { top, bottom } = one.getBoundingClientRect();
    return top > 150 && bottom < innerHeight - 150;
}).dataset.id"""
IN_VIEW = """(row) => {
  const [place, log] = [row.getBoundingClientRect(), row.closest(".log").getBoundingClientRect()];
  return place.bottom > log.top && place.top < log.bottom;
}"""
# The answer to the last message but one is running or has failed; its line is where it ended.
ANSWER = """async (status) => {
  const { page } = await import("/static/chat/context.js");
  const { LiveResponse } = await import("/static/uamp/live-response.js");
  const before = page.state.entries.at(-2);
  const response = new LiveResponse("resp_1", { message_id: before.id });
  Object.assign(response, { status, seq: before.seq });
  page.dispatch({ type: "response", response });
}"""
PRESS = """async (bubble) => {
  const { x, y } = bubble.getBoundingClientRect();
  const touch = { bubbles: true, pointerType: "touch", clientX: x + 5, clientY: y + 5 };
  bubble.dispatchEvent(new PointerEvent("pointerdown", touch));
}"""


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    # The modules one by one: what a test imports is then the instance of the page.
    folder = tmp_path_factory.mktemp("product")
    with running_product(folder, UAMP_BUNDLED_PAGES="0") as running:
        yield running


def message(page: Page, text: str) -> Locator:
    # Not the message that quotes it.
    body = page.get_by_test_id("message-body").get_by_text(text, exact=True)
    return page.get_by_test_id("message").filter(has=body).last


async def answer_with_a_quote(alice: Page, bob: Page) -> None:
    """Bob answers with a long press; the quote leads alice to the message he answers."""
    await message(bob, "First question").locator(".bubble").evaluate(PRESS)
    await expect(bob.get_by_test_id("message-menu")).to_be_visible()
    await expect(bob.get_by_test_id("edit")).to_have_count(0)
    await bob.get_by_test_id("reply").click()
    await expect(bob.get_by_test_id("reply-preview")).to_contain_text("First question")
    await write(bob, "My answer")
    await expect(bob.get_by_test_id("reply-preview")).to_have_count(0)
    for page in (bob, alice):
        quote = message(page, "My answer").get_by_test_id("quote")
        await expect(quote).to_contain_text("alice First question")
    await quote.click()
    await expect(alice.locator(".is-marked")).to_contain_text("First question")
    await expect(message(alice, "First question")).to_be_focused()


async def react(alice: Page, bob: Page) -> None:
    """Both react, one removes the reaction, and text that is not an emoji is refused."""
    await alice.keyboard.press("ArrowDown")
    answer = message(alice, "My answer")
    await expect(answer).to_be_focused()
    await alice.keyboard.press("m")
    await expect(alice.get_by_role("menuitem", name="React…")).to_be_focused()
    await alice.keyboard.press("Enter")
    await alice.get_by_role("button", name="party").click()
    for page, pressed in ((alice, "true"), (bob, "false")):
        chip = message(page, "My answer").get_by_test_id("reaction")
        await expect(chip).to_have_attribute("aria-pressed", pressed)
    await expect(chip).to_have_attribute("aria-label", f"{PARTY} 1: alice")
    await chip.click()
    await expect(answer.get_by_test_id("reaction")).to_have_attribute("title", "You and bob")
    await answer.get_by_test_id("reaction").click()
    await expect(chip).to_have_attribute("aria-label", f"{PARTY} 1: You")
    await answer.focus()
    await alice.keyboard.press("+")
    await alice.get_by_role("searchbox", name="Find an emoji").fill("word")
    await alice.keyboard.press("Enter")
    await expect(alice.locator(".composer-note")).to_contain_text("Not an emoji")


async def edit(alice: Page, bob: Page) -> None:
    """Edit with the up arrow in an empty composer; Escape discards, Enter saves."""
    await alice.get_by_test_id("composer").focus()
    await alice.keyboard.press("ArrowUp")
    await alice.get_by_test_id("editor").fill("dropped")
    await alice.keyboard.press("Escape")
    await expect(message(alice, "First question")).to_be_focused()
    await alice.keyboard.press("e")
    await alice.get_by_test_id("editor").fill("Second question")
    await alice.keyboard.press("Enter")
    for page in (alice, bob):
        await expect(message(page, "Second question").get_by_test_id("edited")).to_be_visible()
        quote = message(page, "My answer").get_by_test_id("quote")
        await expect(quote).to_contain_text("Second question")
    await bob.get_by_test_id("edited").click()
    versions = bob.get_by_test_id("revisions-list").get_by_role("listitem")
    await expect(versions).to_have_count(2)
    await expect(versions.last).to_contain_text("First question")
    await bob.keyboard.press("Escape")


async def test_people_answer_react_pin_edit_and_delete(product: Product, chromium: Browser) -> None:
    async with browser(chromium) as running:
        clipboard = ["clipboard-read", "clipboard-write"]
        alice = await sign_in(await running.new_context(permissions=clipboard), product, "alice")
        phone = await running.new_context(viewport=PHONE, has_touch=True)  # type: ignore[arg-type]
        bob = await sign_in(phone, product, "bob")
        await write(alice, "First question")
        await answer_with_a_quote(alice, bob)
        await react(alice, bob)
        await edit(alice, bob)

        # Pins are shown at the top to everyone.
        question = message(alice, "Second question")
        await question.focus()
        await alice.keyboard.press("p")
        await bob.get_by_test_id("pins").click()
        pinned = bob.get_by_test_id("pinned-list")
        await expect(pinned.get_by_role("listitem")).to_contain_text("Second question")
        await pinned.get_by_text("Second question").click()
        await expect(bob.locator(".is-marked")).to_contain_text("Second question")

        # After a reload everything is unchanged; a link opens its message.
        await question.focus()
        await alice.keyboard.press("l")
        await expect(alice.locator("#announcer")).to_have_text("Link copied.")
        await bob.goto(await alice.evaluate("navigator.clipboard.readText()"))
        await expect(bob.locator(".is-marked")).to_contain_text("Second question")
        await expect(bob.get_by_test_id("pins")).to_have_attribute("title", "1 pinned message")
        answer = message(bob, "My answer")
        await expect(answer.get_by_test_id("quote")).to_be_visible()
        await expect(answer.get_by_test_id("reaction")).to_have_attribute(
            "aria-label", f"{PARTY} 1: You"
        )

        # Deletion removes the text for everyone: from the quote, the pins, and after a reload.
        await question.focus()
        await alice.keyboard.press("Delete")
        await alice.get_by_test_id("delete-now").click()
        for page in (alice, bob):
            await expect(page.get_by_test_id("deleted")).to_have_count(1)
            await expect(page.get_by_text("Second question")).to_have_count(0)
            await expect(page.get_by_test_id("pins")).to_have_count(0)
        await bob.reload()
        await expect(bob.get_by_test_id("deleted")).to_have_count(1)
        await expect(bob.get_by_text("Second question")).to_have_count(0)
        await answer_again(alice, bob)
        no_complaints(alice, bob)


async def answer_again(alice: Page, bob: Page) -> None:
    """Regenerate the asker's answer in place; earlier versions can be read."""
    await write(alice, "@echo one two")
    for page in (alice, bob):
        await expect(page.locator("chat-message.from-agent")).to_have_count(1)
    answer = alice.locator("chat-message.from-agent")
    await answer.focus()
    await alice.keyboard.press("g")
    for page in (alice, bob):
        await expect(page.get_by_test_id("version")).to_have_text("2 of 2")
        await expect(page.locator("chat-message.from-agent")).to_have_count(1)
        await page.reload()
        await expect(page.locator("chat-message.from-agent")).to_have_count(1)
    await former_versions(bob)
    # The question is edited and asked again: the new answer is shown in the same place.
    await message(alice, "@echo one two").focus()
    await alice.keyboard.press("e")
    await alice.get_by_test_id("editor").fill("@echo three")
    await alice.get_by_test_id("save-and-ask").click()
    await expect(alice.get_by_test_id("editor")).to_have_count(0)
    for page in (alice, bob):
        await expect(page.get_by_test_id("version")).to_have_text("3 of 3")
        await expect(message(page, "@echo three").get_by_test_id("edited")).to_be_visible()
        await expect(page.locator("chat-message.from-agent")).to_have_count(1)
        await expect(page.locator("chat-message.from-agent")).to_contain_text("three")
    await bob.get_by_test_id("version-before").click()
    await expect(bob.locator("chat-message.from-agent")).to_contain_text("one two")
    await bob.get_by_test_id("version-after").click()
    # Other members did not ask, and a later question ends this option for the asker.
    await bob.locator("chat-message.from-agent").focus()
    await bob.keyboard.press("m")
    await expect(bob.get_by_role("menuitem", name="Pin")).to_be_visible()
    await expect(bob.get_by_role("menuitem", name="Regenerate")).to_have_count(0)
    await bob.keyboard.press("Escape")
    await write(alice, "thank you")
    await expect(message(alice, "thank you")).to_be_visible()
    await answer.focus()
    await alice.keyboard.press("m")
    await expect(alice.get_by_role("menuitem", name="Pin")).to_be_visible()
    await expect(alice.get_by_role("menuitem", name="Regenerate")).to_have_count(0)
    await alice.keyboard.press("Escape")
    await message(alice, "@echo three").focus()
    await alice.keyboard.press("e")
    await expect(alice.get_by_test_id("save-edit")).to_be_visible()
    await expect(alice.get_by_test_id("save-and-ask")).to_have_count(0)


async def former_versions(bob: Page) -> None:
    """Each reader steps through the versions in place, by keyboard too; the newest comes first."""
    answer = bob.locator("chat-message.from-agent")
    newest = await answer.locator("time").get_attribute("datetime")
    at = answer.get_by_test_id("version")
    await expect(at).to_have_text("2 of 2")
    before = answer.get_by_role("button", name="Earlier version")
    after = answer.get_by_role("button", name="Later version")
    await expect(after).to_have_attribute("aria-disabled", "true")
    await before.press("Enter")
    await expect(at).to_have_text("1 of 2")
    await expect(bob.locator("#announcer")).to_have_text("Version 1 of 2")
    await expect(answer.locator("time")).not_to_have_attribute("datetime", newest or "")
    await expect(before).to_be_focused()
    await expect(before).to_have_attribute("aria-disabled", "true")
    # Earlier versions are read-only: they can be neither pinned nor answered.
    await answer.focus()
    await bob.keyboard.press("m")
    await expect(bob.get_by_test_id("copy-text")).to_be_visible()
    await expect(bob.get_by_test_id("pin")).to_have_count(0)
    await bob.keyboard.press("Escape")
    await after.press("Enter")
    await expect(at).to_have_text("2 of 2")
    await expect(answer.locator("time")).to_have_attribute("datetime", newest or "")


async def settled(page: Page) -> list[int]:
    """Return the messages on the page once scrolling no longer changes them."""
    previous: list[int] = []
    while (numbers := await page.evaluate(SHOWN)) != previous:
        previous = numbers
        await page.wait_for_timeout(500)
    return previous


@pytest.mark.long
async def test_a_message_keeps_the_focus_where_a_line_comes_before_it(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), product, "alice")
        for text in ("One", "Two"):
            await write(alice, text)
            await expect(message(alice, text)).to_be_visible()
        await alice.evaluate(ANSWER, "running")
        await expect(alice.locator("live-response")).to_have_count(1)
        button = message(alice, "Two").get_by_test_id("message-more")
        await button.focus()
        await alice.evaluate(ANSWER, "failed")
        order = "live-response + chat-message"
        await expect(alice.locator(order)).to_contain_text("Two")
        await expect(button).to_be_focused()


@pytest.mark.long
async def test_a_long_chat_is_small_on_the_page_at_every_place(
    product: Product, chromium: Browser
) -> None:
    chat_id = long_chat(product)
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), product, "alice", chat_id)
        bob = await sign_in(await running.new_context(), product, "bob", chat_id)
        assert (await alice.evaluate(SHOWN))[-1] == COUNT
        await scrolled(alice, "PageUp", COUNT - 400)
        assert (await settled(alice))[-1] < COUNT
        read_message = alice.locator(f"chat-message[data-id={await alice.evaluate(READ)}]")
        # New messages are counted while the reader stays in place.
        await write(bob, "What is new?")
        jump = alice.get_by_test_id("jump")
        await expect(jump).to_have_text("1 new message")
        assert await read_message.evaluate(IN_VIEW)
        assert (await alice.evaluate(SHOWN))[-1] < COUNT
        await jump.click()
        await expect(message(alice, "What is new?")).to_be_visible()
        await expect(jump).to_be_hidden()
        await bob.close()

        # A search with a filter leads to an old message, highlighted in its place.
        await alice.get_by_test_id("composer").focus()
        await alice.keyboard.press("Control+Shift+F")
        await alice.keyboard.type("in:long 49999")
        results = alice.get_by_test_id("search-result")
        await expect(results).to_have_count(1)
        await expect(results.locator("b")).to_have_text("You")
        await alice.keyboard.press("Control+A")
        await alice.keyboard.type("50001")
        await expect(results.locator("b")).to_have_text("bob")
        await expect(results).to_have_count(1)
        await expect(alice.get_by_test_id("search-chip")).to_contain_text("in: long")
        await expect(results.locator("mark")).to_have_text("50001")
        await alice.keyboard.press("ArrowDown")
        await alice.keyboard.press("Enter")
        target = alice.locator("chat-message[data-id=msg_long_50001]")
        await expect(target).to_be_focused()
        assert await target.evaluate(IN_VIEW)
        assert alice.url.endswith(f"/chats/{chat_id}?message=msg_long_50001")
        await scrolled(alice, "PageDown", 50_200)
        assert 50_001 not in await alice.evaluate(SHOWN)
        await scrolled(alice, "PageUp", 49_900)
        # Its URL leads there again, and an invalid one to the end of the chat.
        await alice.goto(f"{product.url}/chats/{chat_id}?message=msg_long_7")
        await expect(alice.locator("chat-message[data-id=msg_long_7]")).to_be_focused()
        assert (await alice.evaluate(SHOWN))[0] == 1
        await alice.goto(f"{product.url}/chats/{chat_id}?message=msg_wrong")
        await expect(alice.locator(".composer-note")).to_contain_text("isn't in this chat")
        await expect(message(alice, "What is new?")).to_be_visible()
        no_complaints(alice)

"""A person's first hour: text that stays put, focus that follows, no surprises."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest
from playwright.async_api import expect

from tests.journeys.chats_with_bob import last, new_chat
from tests.journeys.product import (
    Product,
    browser,
    no_complaints,
    running_product,
    sign_in,
    signed_in,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.async_api import Browser, Locator

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

LONG: Final = " ".join(f"word{number}" for number in range(80))
# A browser without a screen denies notifications unasked.
UNDECIDED: Final = "Object.defineProperty(Notification, 'permission', { get: () => 'default' })"
COUNT_SHIFTS: Final = """
window.shifted = 0;
new PerformanceObserver((list) => {
  for (const { value, hadRecentInput } of list.getEntries()) {
    if (!hadRecentInput) window.shifted += value;
  }
}).observe({ type: "layout-shift", buffered: true });
"""
MAX_SHIFT: Final = 0.05
POCKET: Final = {"width": 360, "height": 740}
BOX: Final = "element => [element.offsetWidth, element.offsetHeight]"


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("product")) as running:
        yield running


@pytest.mark.long
async def test_text_keeps_its_lines_under_the_pointer(product: Product, chromium: Browser) -> None:
    async with browser(chromium) as running:
        chat_id = new_chat(product, "Lines", agents=("echo",))
        alice = await sign_in(await running.new_context(), product, "alice", chat_id)
        await write(alice, f"@echo {LONG}")
        answer = alice.locator("chat-message.from-agent")
        await expect(answer).to_contain_text("word79")
        for row in (alice.locator("chat-message.is-mine"), answer):
            bubble = row.locator(".bubble")
            await alice.mouse.move(0, 0)
            before = await bubble.evaluate(BOX)
            await bubble.hover(position={"x": 60, "y": 40})
            await expect(row.get_by_test_id("quick-react")).to_be_visible()
            assert await bubble.evaluate(BOX) == before
        no_complaints(alice)


async def test_an_answer_is_copied_and_made_again_below_it(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        chat_id = new_chat(product, "Below", agents=("echo",))
        context = await running.new_context(permissions=["clipboard-read", "clipboard-write"])
        alice = await sign_in(context, product, "alice", chat_id)
        await write(alice, "@echo one **two**")
        below = alice.locator("chat-message.from-agent").locator(".answer-tools")
        await below.get_by_role("button", name="Copy text").click()
        assert await alice.evaluate("navigator.clipboard.readText()") == "one **two**"
        await below.get_by_role("button", name="Regenerate").click()
        await expect(alice.get_by_text("2 of 2")).to_be_visible()
        await write(alice, "thank you")
        await expect(below.get_by_role("button", name="Copy text")).to_be_visible()
        await expect(below.get_by_role("button", name="Regenerate")).to_have_count(0)
        no_complaints(alice)


async def test_a_card_shows_a_member_as_they_are_now_and_leads_to_a_chat_with_them(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        chat_id = new_chat(product, "Members", agents=("echo",))
        with product.api("bob") as client:
            response = client.post(f"/api/v1/chats/{chat_id}/messages", json={"content": "hello"})
            response.raise_for_status()
            alice = await sign_in(await running.new_context(), product, "alice", chat_id)
            body = {"display_name": "Bob Builder", "status_text": "On the train"}
            client.patch("/api/v1/me", json=body).raise_for_status()
        card = alice.get_by_test_id("profile-card")
        await alice.locator("members-panel").get_by_role("button", name="echo", exact=True).click()
        await expect(card).to_contain_text("Free")
        await alice.keyboard.press("Escape")
        await expect(last(alice).locator(".message-name")).to_have_text("Bob Builder")
        await last(alice).get_by_test_id("open-profile").click()
        for text in ("Bob Builder", "@bob", "person", "On the train", "In this chat since"):
            await expect(card).to_contain_text(text)
        await card.get_by_test_id("message-profile").click()
        await expect(alice.locator(".chat-title h1")).to_have_text("Bob Builder")
        await expect(alice.get_by_test_id("composer")).to_be_focused()
        with product.api("bob") as client:
            client.patch("/api/v1/me", json={"display_name": "", "status_text": ""})
        await expect(alice.locator(".chat-title h1")).to_have_text("bob")
        no_complaints(alice)


async def test_a_mention_stands_out_and_is_read_with_its_text(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        chat_id = new_chat(product, "Mentions")
        alice = await sign_in(await running.new_context(), product, "alice", chat_id)
        bob = await sign_in(await running.new_context(), product, "bob", chat_id)
        # A message from before his session was open would be shown, but not read aloud.
        await write(bob, "I am here")
        await expect(last(alice)).to_contain_text("I am here")
        await write(alice, "**Hi** @bob and @alice")
        await expect(last(bob).locator(".mention.is-me")).to_have_text("@bob")
        await expect(last(bob)).to_have_class(re.compile("is-for-me"))
        await expect(last(alice).locator(".mention.is-me")).to_have_text("@alice")
        await expect(last(alice)).not_to_have_class(re.compile("is-for-me"))
        label = re.compile("^alice: Hi @bob and @alice, ")
        await expect(last(bob)).to_have_attribute("aria-label", label)
        await expect(bob.locator("#announcer")).to_have_text("alice: Hi @bob and @alice")
        no_complaints(alice, bob)


@pytest.mark.long
async def test_the_question_about_notifications_moves_nothing_and_comes_with_a_message(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        chat_id = new_chat(product, "Question")
        context = await running.new_context()
        await context.add_init_script(UNDECIDED)
        alice = await sign_in(context, product, "alice", chat_id)
        question = alice.get_by_test_id("notification-banner")
        await expect(question).to_have_count(0)
        item = alice.get_by_test_id("chat-item").first
        before = await item.bounding_box()
        await write(alice, "first")
        await expect(question).to_be_visible()
        assert await item.bounding_box() == before
        await question.get_by_role("button", name="Not now").click()
        await write(alice, "second")
        await expect(last(alice)).to_contain_text("second")
        await expect(question).to_have_count(0)
        no_complaints(alice)


async def test_on_a_phone_nothing_covers_or_cuts_what_people_read(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        chat_id = new_chat(product, "Pocket", agents=("echo",))
        context = await running.new_context(viewport=POCKET, has_touch=True)  # type: ignore[arg-type]
        await context.add_init_script(UNDECIDED)
        alice = await sign_in(context, product, "alice", chat_id)
        await write(alice, f"@echo {LONG} {LONG}")
        question = alice.get_by_test_id("notification-banner")
        await expect(question).to_be_visible()
        await expect(alice.locator("chat-message.from-agent")).to_contain_text("word79")
        await expect(alice.locator("chat-message.from-agent .answer-tools")).to_be_visible()
        banner, log = await edges(question), await edges(alice.locator(".log"))
        assert banner["bottom"] <= log["top"]
        await expect(last(alice).locator(".answer-tools")).to_be_in_viewport()
        await question.get_by_role("button", name="Not now").click()

        await alice.locator("chat-message.is-mine .message-more").click()
        await alice.get_by_role("menuitem", name="Edit").click()
        await expect(alice.get_by_test_id("save-and-ask")).to_be_visible()
        save = await edges(alice.get_by_test_id("save-edit"))
        cancel = await edges(alice.get_by_role("button", name="Cancel", exact=True))
        assert save["top"] == cancel["top"]
        await alice.get_by_role("button", name="Cancel", exact=True).click()

        await alice.get_by_role("button", name="Show chats").click()
        await alice.get_by_test_id("settings").click()
        for tab in await alice.get_by_role("tab").all():
            assert (await edges(tab))["right"] <= POCKET["width"]
        # Escape closes the dialog, and the list behind it stays open.
        await alice.keyboard.press("Escape")
        await alice.get_by_test_id("new-chat").click()
        # A screen reader pauses between the name and the number.
        counted = re.compile(r"^Agents, \d+$")
        await expect(alice.get_by_role("heading", name=counted)).to_be_visible()
        no_complaints(alice)


async def edges(locator: Locator) -> dict[str, float]:
    """Return the edges of an element on the screen."""
    where: dict[str, float] = await locator.evaluate("one => one.getBoundingClientRect().toJSON()")
    return where


async def test_the_first_chat_opens_by_itself_with_three_things_to_try(
    tmp_path: Path, chromium: Browser
) -> None:
    with running_product(tmp_path) as fresh:
        async with browser(chromium) as running:
            phone = await running.new_context(viewport={"width": 390, "height": 844})
            alice = await signed_in(phone, fresh, "alice")
            await alice.add_init_script(COUNT_SHIFTS)
            await alice.goto(f"{fresh.url}/")
            await expect(alice.get_by_role("heading", name="Hi, I'm assistant.")).to_be_visible()
            await alice.wait_for_load_state("networkidle")
            assert await alice.evaluate("window.shifted") < MAX_SHIFT
            hint = alice.get_by_test_id("needs-model")
            await expect(hint).to_contain_text("An operator of this server can connect one.")
            async with alice.expect_file_chooser() as chooser:
                await alice.get_by_test_id("try-file").click()
            assert (await chooser.value).is_multiple()
            await alice.get_by_test_id("try-invite").click()
            dialog = alice.get_by_test_id("links-dialog")
            await expect(dialog).to_contain_text("Invite")
            await alice.keyboard.press("Escape")
            await alice.get_by_test_id("try-ask").click()
            await expect(alice.get_by_test_id("composer")).to_be_focused()
            await alice.keyboard.press("Enter")
            answer = alice.locator("chat-message.from-agent")
            await expect(answer).to_contain_text("No model is connected to me yet")
            await expect(alice.get_by_test_id("try-ask")).to_have_count(0)
            # With room beside the list, the only chat opens on a device that never opened one.
            desk = await signed_in(await running.new_context(), fresh, "alice")
            await desk.goto(f"{fresh.url}/")
            await expect(desk.locator("chat-message.from-agent")).to_be_visible()
            no_complaints(alice, desk)


async def test_an_invited_person_makes_an_account_and_writes(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        chat_id = new_chat(product, "Picnic")
        with product.api("alice") as client:
            response = client.post(f"/api/v1/chats/{chat_id}/invite-links", json={})
        phone = await running.new_context(viewport={"width": 360, "height": 740})
        page = await phone.new_page()
        await page.goto(response.raise_for_status().json()["url"])
        await expect(page.get_by_role("heading", name="Picnic")).to_be_visible()
        await expect(page.get_by_text("alice invites you")).to_be_visible()
        await page.get_by_label("Choose a username").fill("bob")
        await page.get_by_label("Choose a password").fill("a basket of apples")
        await page.get_by_role("button", name="Create account and join").click()
        await expect(page.get_by_role("alert")).to_contain_text("This name is taken.")
        await page.get_by_label("Choose a username").fill("wendy")
        await page.get_by_label("Choose a password").fill("a basket of apples")
        await page.get_by_role("button", name="Create account and join").click()
        await page.wait_for_url(f"{product.url}/chats/{chat_id}")
        await write(page, "I bring the cake")
        await expect(last(page)).to_contain_text("I bring the cake")


async def test_an_emoji_is_found_by_its_name_and_written_by_it(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        chat_id = new_chat(product, "Emoji")
        alice = await sign_in(await running.new_context(), product, "alice", chat_id)
        composer = alice.get_by_test_id("composer")
        await composer.press_sequentially("To the moon :rocket: ")
        await expect(composer).to_have_value("To the moon \N{ROCKET} ")
        await alice.get_by_test_id("emoji").click()
        search = alice.get_by_role("searchbox", name="Find an emoji")
        await expect(search).to_be_focused()
        await search.fill("birthday")
        await alice.keyboard.press("ArrowDown")
        await alice.keyboard.press("Enter")
        await expect(composer).to_be_focused()
        await alice.keyboard.press("Enter")
        await expect(last(alice)).to_contain_text("To the moon \N{ROCKET}")
        await last(alice).hover()
        await last(alice).get_by_test_id("quick-react").click()
        await search.fill("tada")
        await alice.keyboard.press("Enter")
        reaction = last(alice).get_by_test_id("reaction")
        await expect(reaction).to_contain_text("\N{PARTY POPPER}")
        no_complaints(alice)


async def test_a_deleted_message_can_be_kept(product: Product, chromium: Browser) -> None:
    async with browser(chromium) as running:
        chat_id = new_chat(product, "Undo")
        alice = await sign_in(await running.new_context(), product, "alice", chat_id)
        bob = await sign_in(await running.new_context(), product, "bob", chat_id)
        await write(alice, "keep me")
        row = alice.get_by_test_id("message").filter(has_text="keep me")

        async def delete() -> None:
            await row.focus()
            await alice.keyboard.press("Delete")
            await alice.get_by_test_id("delete-now").click()
            await expect(alice.get_by_test_id("undo")).to_be_focused()

        await delete()
        await expect(row).to_be_hidden()
        preview = alice.locator("chat-list [aria-current]")
        await expect(preview).not_to_contain_text("keep me")
        await alice.keyboard.press("Enter")
        await expect(preview).to_contain_text("You: keep me")
        await expect(row).to_be_visible()
        await expect(alice.get_by_test_id("undo-bar")).to_have_count(0)
        await expect(last(bob)).to_contain_text("keep me")
        await delete()
        # Leaving the page ends the wait.
        await alice.goto(f"{product.url}/money")
        await expect(last(bob)).to_contain_text("This message was deleted.")
        await alice.goto(f"{product.url}/chats/{chat_id}")
        await write(alice, "gone soon")
        await expect(row.or_(last(alice))).to_contain_text("gone soon")
        await last(alice).focus()
        await alice.keyboard.press("Delete")
        await alice.get_by_test_id("delete-now").click()
        # Without a word the wait ends by itself, and the place of the message is shown.
        await expect(alice.get_by_test_id("deleted")).to_have_count(2)
        await expect(alice.get_by_test_id("deleted").last).to_be_visible()
        no_complaints(alice, bob)


@pytest.mark.long
@pytest.mark.parametrize("width", [390, pytest.param(1280, marks=pytest.mark.long)])
async def test_nothing_moves_while_the_money_page_fills(
    product: Product, chromium: Browser, width: int
) -> None:
    async with browser(chromium) as running:
        context = await running.new_context(viewport={"width": width, "height": 800})
        alice = await signed_in(context, product, "alice")
        await alice.add_init_script(COUNT_SHIFTS)
        await alice.goto(f"{product.url}/money")
        await expect(alice.locator("money-statement")).to_contain_text("Top-up")
        await expect(alice.locator("money-tokens form")).to_be_visible()
        await expect(alice.locator("money-limits form")).to_be_visible()
        await alice.wait_for_load_state("networkidle")
        assert await alice.evaluate("window.shifted") < MAX_SHIFT
        no_complaints(alice)

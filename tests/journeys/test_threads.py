"""Threads in the browser: two people and an agent in one, on a wide page and on a phone.

Runs against the product as started by `make run`: daphne, SQLite, a Celery child.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.journeys.kept_notifications import listening, notified
from tests.journeys.product import Product, browser, no_complaints, running_product, sign_in, write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.async_api import Browser, Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

PHONE = {"width": 375, "height": 740}


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("product")) as running:
        yield running


def message(view: Locator, text: str) -> Locator:
    body = view.page.get_by_test_id("message-body").get_by_text(text, exact=True)
    return view.get_by_test_id("message").filter(has=body).last


def chat(page: Page) -> Locator:
    return page.locator("chat-view")


def panel(page: Page) -> Locator:
    return page.locator("thread-panel")


async def reply(page: Page, text: str) -> None:
    await panel(page).get_by_test_id("composer").fill(text)
    await page.keyboard.press("Enter")


async def begin_by_keyboard(alice: Page, bob: Page) -> None:
    """Bob opens a thread with T and replies; alice sees it only below her message."""
    await write(alice, "Is the release ready?")
    root = message(chat(bob), "Is the release ready?")
    await root.focus()
    await bob.keyboard.press("t")
    await expect(panel(bob).get_by_label("Reply in the thread")).to_be_focused()
    await reply(bob, "Nearly.")
    await expect(message(panel(bob), "Nearly.")).to_be_visible()
    strip = message(chat(alice), "Is the release ready?").get_by_test_id("reply-strip")
    await expect(strip).to_contain_text("1 reply")
    # It is new to her, as the message's author, and counts in the list of chats.
    await expect(strip).to_contain_text("New")
    await expect(alice.get_by_test_id("unread-replies")).to_have_text("1")
    await expect(message(chat(alice), "Nearly.")).to_have_count(0)


async def ask_an_agent_there(alice: Page, bob: Page) -> None:
    """Alice reads and asks; the answer grows in the panels, and not in the chat."""
    await message(chat(alice), "Is the release ready?").get_by_test_id("reply-strip").click()
    await expect(message(panel(alice), "Nearly.")).to_be_visible()
    await expect(alice.get_by_test_id("unread-replies")).to_have_count(0)
    await reply(alice, "@slow count")
    live = panel(bob).get_by_test_id("live-response")
    await expect(live).to_contain_text("word2")
    await expect(chat(bob).get_by_test_id("live-response")).to_have_count(0)
    await panel(bob).get_by_test_id("stop-answer").click()
    answer = panel(alice).get_by_test_id("message").last
    await expect(answer).to_contain_text("Stopped by bob")
    await reply(alice, "@echo fine")
    for page in (alice, bob):
        await expect(panel(page).get_by_test_id("message").last).to_contain_text("fine")
        await expect(chat(page).get_by_test_id("message")).to_have_count(1)
        strip = chat(page).get_by_test_id("reply-strip")
        await expect(strip).to_contain_text("5 replies")


async def close_and_reopen(alice: Page, bob: Page, product: Product) -> None:
    """Escape closes it and returns the focus; a draft stays; the URL opens the thread."""
    await panel(alice).get_by_test_id("composer").fill("half a thought")
    link = alice.url
    await alice.keyboard.press("Escape")
    await expect(panel(alice)).to_be_hidden()
    await expect(chat(alice).get_by_test_id("reply-strip")).to_be_focused()
    await alice.keyboard.press("Enter")
    await expect(panel(alice).get_by_test_id("composer")).to_have_value("half a thought")
    await expect(chat(alice).get_by_test_id("composer")).to_have_value("")
    await expect(panel(alice).get_by_test_id("message").last).to_contain_text("fine")
    # Replies missed while the connection was lost appear in order once it is back.
    await alice.context.set_offline(offline=True)
    await reply(bob, "while you were away")
    await alice.context.set_offline(offline=False)
    await expect(message(panel(alice), "while you were away")).to_have_count(1)
    await alice.goto(f"{product.url}/")
    await alice.goto(link)
    await expect(message(panel(alice), "while you were away")).to_be_visible()
    await expect(panel(alice).locator(".is-replies")).to_contain_text("6 replies")


async def send_to_the_chat_too(alice: Page, bob: Page) -> None:
    """Bob sends a reply to the chat too, where it links to its thread."""
    await panel(bob).get_by_test_id("also-in-chat").check()
    await reply(bob, "Friday it is")
    message_in_chat = message(chat(alice), "Friday it is")
    await expect(message_in_chat.get_by_test_id("from-thread")).to_be_visible()
    await expect(message(panel(bob), "Friday it is")).to_contain_text("Also sent to the chat")
    await expect(panel(bob).get_by_test_id("also-in-chat")).not_to_be_checked()


async def test_two_people_and_an_agent_talk_in_a_thread(
    chromium: Browser, product: Product
) -> None:
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), product, "alice")
        bob = await sign_in(await running.new_context(), product, "bob")
        await begin_by_keyboard(alice, bob)
        await ask_an_agent_there(alice, bob)
        await close_and_reopen(alice, bob, product)
        await send_to_the_chat_too(alice, bob)
        pocket = await running.new_context(viewport=PHONE, has_touch=True)  # type: ignore[arg-type]
        phone = await sign_in(pocket, product, "bob")
        await phone.goto(alice.url)
        await expect(message(panel(phone), "Nearly.")).to_be_visible()
        box = await panel(phone).bounding_box()
        assert box is not None
        assert (box["x"], box["width"]) == (0, PHONE["width"])
        await phone.get_by_test_id("close-thread").click()
        await expect(message(chat(phone), "Friday it is")).to_be_visible()
        no_complaints(alice, bob)


@pytest.mark.long
async def test_replies_count_and_notify_without_another_read_of_the_chat(
    chromium: Browser, product: Product
) -> None:
    async with browser(chromium) as running:
        context = await running.new_context()
        alice = await sign_in(context, product, "alice")
        bob = await sign_in(await running.new_context(), product, "bob")
        await write(alice, "Who books the room?")
        await alice.close()
        tab = await listening(context, product, "alice")
        reads: list[str] = []
        path = f"/api/v1/chats/{product.chat_id}"
        tab.on("request", lambda r: reads.append(r.url) if r.url.endswith(path) else None)
        root = message(chat(bob), "Who books the room?")
        await root.focus()
        await bob.keyboard.press("t")
        badge = tab.get_by_test_id("unread-replies")
        for count, text in enumerate(("I do.", "It is *done*."), start=1):
            await reply(bob, text)
            await expect(badge).to_have_text(str(count))
        await tab.wait_for_function("() => shownNotifications.length === 2")
        title = "bob replied in a thread in Welcome"
        assert await notified(tab) == [(title, "I do."), (title, "It is done.")]
        # When the thread is read in one tab, the counts in the others go down.
        reading = await context.new_page()
        await reading.goto(bob.url.replace("&message=", "&ignored="))
        await expect(message(panel(reading), "I do.")).to_be_visible()
        await expect(badge).to_have_count(0)
        assert reads == []
        await reading.close()
        # A click on a notification opens the thread at the reply.
        await tab.evaluate("shownNotifications[1].onclick()")
        await expect(panel(tab).get_by_test_id("message").last).to_contain_text("It is done.")
        no_complaints(tab, bob)


@pytest.mark.long
async def test_the_threads_of_a_person_are_listed_by_keyboard(
    chromium: Browser, product: Product
) -> None:
    async with browser(chromium) as running:
        with product.api("bob") as client:
            body = {"title": "Lunch", "users": ["admin"]}
            lunch = client.post("/api/v1/chats", json=body).raise_for_status().json()["id"]
        admin = await sign_in(await running.new_context(), product, "admin", lunch)
        bob = await sign_in(await running.new_context(), product, "bob", lunch)
        # An empty list explains how to begin.
        await admin.get_by_test_id("threads").click()
        dialog = admin.get_by_test_id("threads-dialog")
        await expect(dialog.get_by_test_id("threads-none")).to_contain_text("press T")
        await admin.keyboard.press("Escape")
        await expect(dialog).to_be_hidden()
        await expect(admin.get_by_test_id("threads")).to_be_focused()
        await write(bob, "Soup or salad?")
        root = message(chat(bob), "Soup or salad?")
        await root.focus()
        await bob.keyboard.press("t")
        await reply(bob, "Soup, @admin?")
        await expect(message(panel(bob), "Soup, @admin?")).to_be_visible()
        await admin.keyboard.press("Control+k")
        await admin.get_by_test_id("palette-text").fill("threads")
        await admin.keyboard.press("Enter")
        item = dialog.get_by_test_id("thread-item")
        await expect(item).to_contain_text("Soup or salad?")
        await expect(item).to_contain_text("Lunch")
        await expect(item.get_by_test_id("thread-news")).to_have_text("1 new")
        await admin.keyboard.press("ArrowDown")
        await expect(item).to_be_focused()
        await admin.keyboard.press("Enter")
        await expect(message(panel(admin), "Soup, @admin?")).to_be_visible()
        assert f"/chats/{lunch}?thread=" in admin.url
        await expect(admin.get_by_test_id("unread-replies")).to_have_count(0)
        await admin.keyboard.press("Control+Shift+l")
        await expect(item).to_contain_text("1 reply")
        await expect(item.get_by_test_id("thread-news")).to_have_count(0)
        no_complaints(admin, bob)

"""Personal matters: settings, a profile, private reading, notifications, muting.

Runs against the product as started by `make run`: daphne, SQLite, a Celery child.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import expect

from tests import factories
from tests.journeys.kept_notifications import listening, notified
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

    from playwright.async_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

# The place at which each line of the labels of buttons begins.
LINE_STARTS = """(buttons) => buttons.flatMap((button) => {
  const range = document.createRange();
  return [...button.childNodes].filter((node) => node.nodeType === 3 && node.data.trim())
    .flatMap((node) => { range.selectNode(node); return [...range.getClientRects()]; })
    .map((line) => line.left);
})"""


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("product")) as running:
        yield running


def change_settings(product: Product, username: str, **values: Any) -> None:
    with product.api(username) as client:
        assert client.patch("/api/v1/me/settings", json=values).status_code == 200


async def open_settings(page: Page, section: str) -> None:
    await page.get_by_test_id("settings").click()
    await page.get_by_role("tab", name=section).click()


async def labels_wrap_well(page: Page) -> None:
    """In the members panel, wrapped labels begin where others do, and facts have their lines."""
    panel = page.locator("members-panel")
    agent = panel.locator("li").filter(has_text="paid-echo")
    facts: list[str | re.Pattern[str]] = [
        "Bereit",
        "Antwortet auf Erwähnungen",
        re.compile("^0,02.*pro Antwort"),
    ]
    await expect(agent.locator("small")).to_have_text(facts)
    for width in (1280, 390):
        await page.set_viewport_size({"width": width, "height": 800})
        if not await panel.is_visible():
            await page.get_by_test_id("members").click()
        await expect(panel).to_be_visible()
        starts = await panel.locator(".panel-body > .button").evaluate_all(LINE_STARTS)
        assert len(starts) > 3
        assert max(starts) - min(starts) < 1, (width, starts)
    await page.set_viewport_size({"width": 1280, "height": 720})


async def test_settings_are_the_same_on_all_devices_and_in_the_first_frame(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        laptop = await sign_in(await running.new_context(color_scheme="light"), product, "alice")
        other_tab = await laptop.context.new_page()
        await other_tab.goto(f"{product.url}/money")
        await open_settings(laptop, "Appearance")
        dialog = laptop.get_by_test_id("settings-dialog")
        await dialog.get_by_role("radio", name="Dark").check()
        await expect(laptop.locator("html")).to_have_attribute("data-theme", "dark")
        await expect(other_tab.locator("html")).to_have_attribute("data-theme", "dark")
        await dialog.get_by_role("radio", name="Compact").check()
        await expect(laptop.locator("html")).to_have_attribute("data-density", "compact")
        # The arrow keys move through the sections.
        await dialog.get_by_role("tab", name="Appearance").focus()
        await laptop.keyboard.press("ArrowDown")
        await expect(dialog.get_by_role("tab", name="Writing")).to_be_focused()
        await dialog.get_by_role("radio", name="Ctrl+Enter sends").check()
        await laptop.keyboard.press("Escape")
        await expect(dialog).to_be_hidden()
        await expect(laptop.get_by_test_id("settings")).to_be_focused()
        phone = await sign_in(
            await running.new_context(viewport={"width": 375, "height": 760}), product, "alice"
        )
        await expect(phone.locator("html")).to_have_attribute("data-density", "compact")
        # They are in the markup before any script runs, and on the browser's login page too.
        for path in ("/", "/account", "/money"):
            answer = await phone.request.get(f"{product.url}{path}")
            assert 'data-theme="dark"' in await answer.text(), path
        await phone.get_by_test_id("composer").fill("one")
        await phone.keyboard.press("Enter")
        await phone.keyboard.type("two")
        await expect(phone.get_by_test_id("composer")).to_have_value("one\ntwo")
        await phone.keyboard.press("Control+Enter")
        await expect(phone.get_by_test_id("message").last).to_contain_text("two")
        change_settings(product, "alice", theme="system", density="comfortable", send_key="enter")
        # The draft written in the previous language is still there.
        await laptop.get_by_test_id("composer").fill("not sent")
        await open_settings(laptop, "Appearance")
        await dialog.get_by_role("button", name="Deutsch").click()
        await expect(laptop.locator("html")).to_have_attribute("lang", "de")
        await expect(laptop.get_by_test_id("composer")).to_have_value("not sent")
        await expect(laptop.get_by_role("heading", name="Chats")).to_be_visible()
        await labels_wrap_well(laptop)
        # It is stored in the account, so the phone's next page has it too.
        await phone.reload()
        await expect(phone.locator("html")).to_have_attribute("lang", "de")
        change_settings(product, "alice", language="")
        no_complaints(laptop, phone)


async def test_a_profile_has_a_name_and_a_picture_that_others_see(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), product, "alice")
        await open_settings(alice, "Profile")
        dialog = alice.get_by_test_id("settings-dialog")
        await dialog.get_by_label("Display name").fill("b.o.b")
        await dialog.get_by_test_id("save-profile").click()
        await expect(dialog.get_by_role("alert")).to_contain_text("has this name")
        await dialog.get_by_label("Display name").fill("Alice \u202e Liddell")
        await dialog.get_by_label("Status").fill("Down the hole")
        await dialog.get_by_test_id("save-profile").click()
        await expect(alice.locator(".sidebar-account b")).to_have_text("Alice Liddell")
        file = {"name": "me.png", "mimeType": "image/png", "buffer": factories.png(40, 20)}
        await dialog.get_by_test_id("picture-input").set_input_files(file)  # type: ignore[arg-type]
        await expect(alice.locator(".sidebar-account img")).to_be_visible()
        bad = {"name": "me.png", "mimeType": "image/png", "buffer": b"<svg onload=alert(1)>"}
        await dialog.get_by_test_id("picture-input").set_input_files(bad)  # type: ignore[arg-type]
        await expect(dialog.get_by_role("alert")).to_contain_text("PNG, JPEG, WebP or GIF")
        await alice.keyboard.press("Escape")
        await write(alice, "We are all mad here")
        bob = await sign_in(await running.new_context(), product, "bob")
        message = bob.get_by_test_id("message").last
        await expect(message).to_contain_text("Alice Liddell")
        await expect(message.locator(".message-side img")).to_be_attached()
        panel = bob.locator("members-panel")
        await expect(panel).to_contain_text("@alice")
        await expect(panel).to_contain_text("Down the hole")
        with product.api("alice") as client:
            client.delete("/api/v1/me/picture")
            client.patch("/api/v1/me", json={"display_name": "", "status_text": ""})
        no_complaints(alice, bob)


@pytest.mark.long
async def test_a_private_reader_shows_no_marker(product: Product, chromium: Browser) -> None:
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), product, "alice")
        bob = await sign_in(await running.new_context(), product, "bob")
        await write(alice, "Read in public?")
        await expect(alice.get_by_text("Read by bob")).to_have_count(1)
        await open_settings(bob, "Privacy")
        async with bob.expect_response("**/api/v1/me/settings"):
            await bob.get_by_role("switch", name="Show others what I've read").uncheck()
        async with bob.expect_response("**/api/v1/me/settings"):
            await bob.get_by_role("switch", name="Show when I'm typing").uncheck()
        await bob.keyboard.press("Escape")
        await write(alice, "Read in private?")
        await expect(bob.get_by_test_id("message").last).to_contain_text("Read in private?")
        # The marker moved for bob's own devices; typing is not sent.
        await bob.get_by_test_id("composer").fill("I type")
        with product.api("bob") as client:
            path = f"/api/v1/chats/{product.chat_id}"
            await expect(bob.locator(".unread")).to_have_count(0)
            assert client.get(path).json()["unread"] == 0
        await write(alice, "Last")
        await expect(alice.get_by_test_id("message").last).to_contain_text("Last")
        await expect(alice.get_by_test_id("typing")).to_be_empty()
        last = alice.get_by_test_id("message").filter(has_text="private?")
        await expect(last.get_by_text("Read by")).to_have_count(0)
        await bob.get_by_test_id("composer").fill("")
        change_settings(product, "bob", read_receipts=True, typing_notices=True)
        no_complaints(alice, bob)


async def test_a_browser_notifies_once_and_only_of_what_the_person_wants(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        context = await running.new_context()
        first = await listening(context, product, "alice")
        second = await context.new_page()
        await second.goto(f"{product.url}/")
        await second.get_by_test_id("chat-item").first.wait_for()
        bob = await sign_in(await running.new_context(), product, "bob")
        title = "bob · Welcome"

        async def says(text: str) -> None:
            await write(bob, text)
            for page in (first, second):
                await expect(page.locator(".chat-preview").first).to_contain_text(text)

        await says("nothing for her")
        await says("look here, @alice please")
        await says("nothing again")
        assert await notified(first, second) == [(title, "look here, @alice please")]
        # Hidden text, quiet hours, everything.
        change_settings(product, "alice", notification_text=False)
        for page in (first, second):
            await page.reload()
            await page.get_by_test_id("chat-item").first.wait_for()
        await says("a secret for @alice alone")
        await says("and another one")
        (notification,) = await notified(first, second)
        assert notification == ("New message", "You were mentioned")
        change_settings(
            product, "alice", notification_text=True, notifications="all",
            quiet_from="00:00", quiet_until="23:59", time_zone="UTC",
        )  # fmt: skip
        for page in (first, second):
            await page.reload()
            await page.get_by_test_id("chat-item").first.wait_for()
        await says("@alice at night")
        assert await notified(first, second) == []
        change_settings(product, "alice", quiet_from="", quiet_until="")
        await second.close()
        await first.reload()
        await first.get_by_test_id("chat-item").first.wait_for()
        await says_to(bob, first, "anything at all")
        await first.wait_for_function("() => shownNotifications.length === 1")
        # A click opens the chat at the message; a visible chat does not notify.
        await first.evaluate("shownNotifications[0].onclick()")
        await expect(first.get_by_test_id("message").last).to_contain_text("anything at all")
        assert f"/chats/{product.chat_id}?message=msg_" in first.url
        await write(bob, "seen at once")
        await expect(first.get_by_test_id("message").last).to_contain_text("seen at once")
        assert len(await notified(first)) == 1
        change_settings(product, "alice", notifications="mentions")
        no_complaints(first, bob)


async def says_to(speaker: Page, listener: Page, text: str) -> None:
    """Write a message, and wait until another person's list shows it."""
    await write(speaker, text)
    await expect(listener.locator(".chat-preview").first).to_contain_text(text)


@pytest.mark.long
async def test_a_muted_chat_is_grey_and_counts_its_mentions_alone(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        context = await running.new_context()
        change_settings(product, "alice", notifications="all")
        alice = await sign_in(context, product, "alice")
        await alice.get_by_test_id("chat-settings-button").click()
        dialog = alice.get_by_test_id("chat-settings")
        await dialog.get_by_role("checkbox", name="Mute for me").check()
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog).to_be_hidden()
        # Messages of an open chat count as read.
        await alice.close()
        alice = await listening(context, product, "alice")
        bob = await sign_in(await running.new_context(), product, "bob")
        unread = alice.locator(".unread")
        await says_to(bob, alice, "much noise")
        await expect(unread).to_have_class("unread is-muted")
        assert not (await alice.title()).startswith("(")
        await says_to(bob, alice, "but @alice look")
        mention = alice.get_by_test_id("unread-mentions")
        await expect(mention).to_have_accessible_name("1 mention of you")
        await expect(unread).to_have_text("@1")
        await expect(alice).to_have_title("(1) Chats · UAMP")
        with product.api("alice") as client:
            body = {"notifications": "none"}
            client.put(f"/api/v1/chats/{product.chat_id}/mute", json=body).raise_for_status()
        await expect(unread).to_have_class("unread is-muted")
        await expect(alice).to_have_title("Chats · UAMP")
        assert await notified(alice) == []
        with product.api("alice") as client:
            body = {"muted": False, "notifications": ""}  # type: ignore[dict-item]
            client.put(f"/api/v1/chats/{product.chat_id}/mute", json=body).raise_for_status()
        change_settings(product, "alice", notifications="mentions")
        no_complaints(alice, bob)


@pytest.mark.long
async def test_a_new_chat_appears_in_every_tab_and_counts_its_mentions_alike(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        context = await running.new_context()
        tabs = [await listening(context, product, "alice") for _ in range(2)]
        with product.api("bob") as client:
            body = {"title": "Harvest", "users": ["alice"], "agents": []}
            chat = client.post("/api/v1/chats", json=body).raise_for_status().json()
        items = [tab.locator(f"[data-chat='{chat['id']}']") for tab in tabs]
        for item in items:
            await expect(item).to_contain_text("Harvest")
        bob = await sign_in(await running.new_context(), product, "bob", chat["id"])
        for text in ("much to do", "@alice come and help"):
            await write(bob, text)
        for item in items:
            mentions = item.get_by_test_id("unread-mentions")
            await expect(mentions).to_have_accessible_name("1 mention of you")
            await expect(item.get_by_role("img", name="2 unread")).to_be_visible()
        await tabs[1].reload()
        await expect(items[1].get_by_test_id("unread-mentions")).to_have_text("@1")
        await items[0].click()
        for item in items:
            await expect(item.locator(".unread")).to_have_count(0)
        with product.api("bob") as client:
            path = f"/api/v1/chats/{chat['id']}/participants"
            rows = client.get(f"/api/v1/chats/{chat['id']}").json()["participants"]
            alice = next(row for row in rows if row["name"] == "alice")
            client.delete(f"{path}/{alice['participant_id']}").raise_for_status()
        await expect(items[1]).to_have_count(0)
        no_complaints(*tabs, bob)


@pytest.mark.long
async def test_a_chat_has_a_picture_that_stays_and_falls_back(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), product, "alice")
        await alice.get_by_test_id("chat-settings-button").click()
        dialog = alice.get_by_test_id("chat-settings")
        file = {"name": "chat.png", "mimeType": "image/png", "buffer": factories.png(40, 20)}
        await dialog.get_by_test_id("chat-picture-input").set_input_files(file)  # type: ignore[arg-type]
        await expect(dialog.locator(".profile-face img")).to_be_visible()
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog).to_be_hidden()
        item = alice.get_by_test_id("chat-item").first
        await expect(item.locator("img")).to_be_visible()
        # A missing picture is replaced by the initials.
        await alice.route("**/api/content/**", lambda route: route.fulfill(status=404))
        await alice.reload()
        await expect(item.locator("img")).to_be_hidden()
        await expect(item.locator(".avatar-text")).to_have_text("WE")
        await alice.unroute("**/api/content/**")
        await alice.get_by_test_id("chat-settings-button").click()
        await dialog.get_by_role("radio", name="Teal").check(force=True)
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog).to_be_hidden()
        with product.api("bob") as client:
            chat = client.get(f"/api/v1/chats/{product.chat_id}").json()
        assert chat["avatar"] == "#007696", json.dumps(chat)
        assert alice.complaints == []  # type: ignore[attr-defined]

"""Chats that people find, begin, arrange, leave and delete."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

    from playwright.async_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("product")) as running:
        yield running


async def test_what_is_typed_after_choosing_a_chat_arrives_in_it(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        new_chat(product, "Palette")
        alice = await sign_in(await running.new_context(), product, "alice")
        addresses = []
        for _ in range(2):
            await alice.get_by_test_id("new-chat").click()
            dialog = alice.get_by_test_id("new-chat-dialog")
            await dialog.locator("label").filter(has_text="bob").click()
            await dialog.get_by_role("button", name="Start chat").click()
            await expect(dialog).to_be_hidden()
            await expect(alice.get_by_test_id("composer")).to_be_focused()
            addresses.append(alice.url)
        # Two people have one chat: choosing bob again leads to it.
        assert addresses[0] == addresses[1]
        await alice.keyboard.type("hello")
        await alice.keyboard.press("Enter")
        await expect(last(alice)).to_contain_text("hello")
        await alice.goto(f"{product.url}/")
        await alice.get_by_test_id("chat-item").first.wait_for()
        await alice.keyboard.press("Control+k")
        await alice.get_by_test_id("palette-text").fill("Palette")
        await alice.keyboard.press("Enter")
        await expect(alice.get_by_test_id("composer")).to_be_focused()
        no_complaints(alice)


async def test_a_removed_person_learns_of_it_and_is_back_when_added(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        chat_id = new_chat(product, "Removal")
        bob = await sign_in(await running.new_context(), product, "bob", chat_id)
        path = f"/api/v1/chats/{chat_id}/participants"
        with product.api("alice") as client:
            client.post(f"/api/v1/chats/{chat_id}/messages", json={"content": "a secret"})
            await expect(last(bob)).to_contain_text("a secret")
            rows = client.get(path).json()["data"]
            place = next(row["participant_id"] for row in rows if row["name"] == "bob")
            assert client.delete(f"{path}/{place}").is_success
            await expect(bob.get_by_text("You're no longer in this chat")).to_be_visible()
            await expect(bob.get_by_test_id("message")).to_have_count(0)
            await expect(bob.get_by_test_id("composer")).to_have_count(0)
            assert client.post(path, json={"user": "bob"}).is_success
        await expect(last(bob)).to_contain_text("a secret")
        await write(bob, "I am back")
        await expect(last(bob)).to_contain_text("I am back")
        await expect(bob.get_by_text("no longer in this chat")).to_have_count(0)
        no_complaints(bob)


@pytest.mark.long
async def test_leaving_a_chat_leads_to_the_start_page(product: Product, chromium: Browser) -> None:
    async with browser(chromium) as running:
        chat_id = new_chat(product, "Leaving")
        bob = await sign_in(await running.new_context(), product, "bob", chat_id)
        members = bob.locator("members-panel")
        await members.get_by_role("button", name="Settings for bob").click()
        await bob.get_by_test_id("remove-member").click()
        await bob.get_by_test_id("confirm-removal").click()
        await bob.wait_for_url(f"{product.url}/")
        await expect(bob.get_by_test_id("composer")).to_have_count(0)
        await expect(bob.locator(f"[data-chat='{chat_id}']")).to_have_count(0)
        no_complaints(bob)


@pytest.mark.long
async def test_the_start_page_opens_the_last_chat_again(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        context = await running.new_context()
        alice = await signed_in(context, product, "alice")
        chat = f"{product.url}/chats/{product.chat_id}"
        await alice.goto(chat)
        await expect(alice.get_by_test_id("composer")).to_be_visible()

        await alice.goto(f"{product.url}/")
        await expect(alice.get_by_test_id("composer")).to_be_visible()
        assert alice.url == chat

        # On a phone the list comes first.
        await alice.set_viewport_size({"width": 390, "height": 844})
        await alice.goto(f"{product.url}/")
        await expect(alice.get_by_test_id("chat-item").first).to_be_visible()
        assert alice.url == f"{product.url}/"
        no_complaints(alice)


async def test_an_agent_is_found_and_a_chat_with_it_begins(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        alice = await signed_in(await running.new_context(), product, "alice")
        await alice.goto(f"{product.url}/agents")
        rows = alice.get_by_test_id("agents").get_by_role("listitem")
        await expect(rows.filter(has_text="slow").locator(".avatar")).to_be_visible()
        await alice.get_by_role("searchbox", name="Find an agent").fill("repeats your words, one")
        await expect(rows.filter(visible=True)).to_have_count(1)
        await rows.filter(visible=True).get_by_role("button", name="Start chat").click()
        await expect(alice.get_by_test_id("composer")).to_be_visible()
        await write(alice, "no mention is needed")
        answer = alice.locator("chat-message.from-agent")
        await expect(answer).to_contain_text("no mention is needed")
        await alice.goto(f"{product.url}/agents/echo")
        await expect(alice.get_by_role("button", name="Start chat")).to_be_visible()
        await expect(alice.get_by_text("Call it from a program")).to_be_hidden()
        await alice.get_by_role("tab", name="For developers").click()
        await expect(alice.get_by_text("Call it from a program")).to_be_visible()
        await expect(alice.get_by_role("button", name="Start chat")).to_be_hidden()
        no_complaints(alice)


async def test_chats_are_pinned_marked_archived_and_left_from_the_list(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        chat_id = new_chat(product, "Listed")
        alice = await sign_in(await running.new_context(), product, "alice")
        row = alice.locator(".chat-row").filter(has_text="Listed")

        async def choose(action: str) -> None:
            await row.get_by_test_id("chat-item").click(button="right")
            await alice.get_by_test_id("chat-menu").get_by_role("menuitem", name=action).click()

        await choose("Pin")
        pinned = alice.get_by_role("list", name="Pinned")
        await expect(pinned.locator(".chat-row")).to_have_count(1)
        await expect(pinned).to_contain_text("Listed")
        await choose("Mark as unread")
        await expect(row.get_by_test_id("marked-unread")).to_be_visible()
        await row.get_by_test_id("chat-item").click()
        await expect(row.get_by_test_id("marked-unread")).to_have_count(0)
        await choose("Archive")
        archive = alice.get_by_test_id("archived")
        await expect(row).to_be_hidden()
        with product.api("bob") as client:
            news = client.post(f"/api/v1/chats/{chat_id}/messages", json={"content": "news"})
            assert news.is_success
        await expect(pinned).to_contain_text("Listed")
        await expect(archive).to_have_count(0)
        alice.once("dialog", lambda dialog: dialog.accept())
        # By keyboard, the button of the row opens the menu.
        await row.get_by_test_id("chat-more").focus()
        await alice.keyboard.press("Enter")
        with product.api("alice") as client:
            path = f"/api/v1/chats/{chat_id}/participants"
            rows = client.get(path).json()["data"]
            place = next(
                participant["participant_id"]
                for participant in rows
                if participant["name"] == "bob"
            )
            change = client.patch(f"{path}/{place}", json={"role": "owner"})
            assert change.is_success
        await alice.get_by_role("menuitem", name="Leave").click()
        await alice.wait_for_url(f"{product.url}/")
        await expect(row).to_have_count(0)
        no_complaints(alice)


async def test_an_owner_deletes_a_chat_for_everyone(product: Product, chromium: Browser) -> None:
    async with browser(chromium) as running:
        chat_id = new_chat(product, "Doomed")
        alice = await sign_in(await running.new_context(), product, "alice", chat_id)
        bob = await sign_in(await running.new_context(), product, "bob", chat_id)
        menus = [page.get_by_test_id("chat-menu") for page in (alice, bob)]
        for page in (bob, alice):
            row = page.locator(".chat-row").filter(has_text="Doomed")
            await row.get_by_test_id("chat-item").click(button="right")
        await expect(menus[1].get_by_role("menuitem", name="Leave")).to_be_visible()
        await expect(menus[1].get_by_role("menuitem", name="Delete for everyone")).to_have_count(0)
        await bob.keyboard.press("Escape")
        alice.once("dialog", lambda dialog: dialog.accept())
        await menus[0].get_by_role("menuitem", name="Delete for everyone").click()
        await alice.wait_for_url(f"{product.url}/")
        for page in (alice, bob):
            row = page.locator(".chat-row").filter(has_text="Doomed")
            await expect(row).to_have_count(0)
        await expect(bob.get_by_text("You're no longer in this chat")).to_be_visible()
        with product.api("alice") as client:
            assert client.get(f"/api/v1/chats/{chat_id}").status_code == 404
        no_complaints(alice)

"""Members of a chat: mentioning a non-member, a new member, and what survives a reload.

Runs against the product as started by `make run`: daphne, SQLite, a Celery child.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.journeys.product import (
    Product,
    browser,
    fill_in_login,
    no_complaints,
    running_product,
    sign_in,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.async_api import Browser, Route

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

ANSWER_MS = 20_000


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("product")) as running:
        yield running


@pytest.mark.long
async def test_an_agent_that_is_not_in_the_chat_is_added_where_it_is_mentioned(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), product, "alice")
        bob = await sign_in(await running.new_context(), product, "bob")
        composer, hint = alice.get_by_test_id("composer"), alice.get_by_test_id("mention-hint")
        await composer.fill("@nemo what is this?")
        await expect(hint).to_contain_text("No agent or person is called @nemo.")
        await composer.fill("@fail what is this?")
        await expect(hint).to_contain_text("fail isn't in this chat.")
        await hint.get_by_role("button", name="Add fail").click()
        await expect(hint).to_have_count(0)
        await expect(composer).to_be_focused()
        for page, author in ((alice, "You"), (bob, "alice")):
            await expect(page.get_by_test_id("change")).to_have_text([f"{author} added fail"])
            # A member who was just added can be mentioned.
            await page.get_by_test_id("composer").fill("@fa")
            await expect(page.get_by_role("option", name="fail")).to_be_visible()
        await composer.fill("")
        await write(alice, "@fail what is this?")
        for page in (alice, bob):
            ending = page.locator(".message-ending")
            await expect(ending).to_contain_text("The model failed", timeout=ANSWER_MS)
        await write(bob, "never mind")
        # The log now has more events than a session replays.
        for number in range(12):
            await write(bob, f"Number {number}")
        await expect(bob.get_by_test_id("message").last).to_contain_text("Number 11")
        # The draft is kept, and so are the reason of the failure and the added member.
        await alice.get_by_test_id("composer").fill("not finished yet")
        await alice.reload()
        await expect(alice.get_by_test_id("composer")).to_have_value("not finished yet")
        await expect(alice.locator(".message-ending")).to_contain_text("The model failed")
        await expect(alice.get_by_test_id("change")).to_have_text(["You added fail"])
        no_complaints(alice, bob)


async def test_an_owner_sets_members_and_the_chat_and_quiets_the_agents(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), product, "alice")
        bob = await sign_in(await running.new_context(), product, "bob")
        # A page this wide shows the members from the start.
        panel, theirs = alice.locator("members-panel"), bob.locator("members-panel")
        await panel.get_by_role("button", name="Settings for bob").click()
        dialog = alice.get_by_test_id("member-dialog")
        await dialog.get_by_role("radio", name="Admin").check()
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog).to_be_hidden()
        await expect(theirs).to_contain_text("admin")
        await expect(bob.get_by_test_id("change").last).to_have_text("alice made you an admin")
        # The admin names the chat and silences the agents, and the chat says so.
        await bob.get_by_test_id("chat-settings-button").click()
        settings = bob.get_by_test_id("chat-settings")
        await settings.get_by_label("Name", exact=True).fill("Trip to Lyon")
        await settings.get_by_label("Description").fill("Where we plan")
        await settings.get_by_role("button", name="Save").click()
        await expect(settings).to_be_hidden()
        await expect(alice.get_by_role("heading", name="Trip to Lyon")).to_be_visible()
        await expect(panel).to_contain_text("Where we plan")
        await alice.get_by_test_id("quiet-agents").click()
        await expect(theirs.get_by_test_id("agents-quiet")).to_be_visible()
        await write(bob, "@echo hello")
        for page in (alice, bob):
            await expect(page.get_by_test_id("change").last).to_contain_text(
                "the agents of this chat are paused"
            )
        await theirs.get_by_role("button", name="Resume agents").click()
        await expect(panel.get_by_test_id("agents-quiet")).to_have_count(0)
        await panel.get_by_role("button", name="Settings for echo").click()
        await dialog.get_by_label("Answers").select_option("keyword")
        await dialog.get_by_label("Keywords").fill("repeat, say again")
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog).to_be_hidden()
        await expect(panel).to_contain_text("Answers mentions and keywords")
        await write(bob, "please repeat")
        answer = alice.locator(".message.from-agent").last
        await expect(answer).to_contain_text("please repeat", timeout=ANSWER_MS)
        no_complaints(alice, bob)


@pytest.mark.long
async def test_what_is_sent_while_a_chat_is_loaded_goes_once_it_is(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), product, "alice")
        loaded = asyncio.Event()

        async def later(route: Route) -> None:
            await asyncio.wait_for(loaded.wait(), 60)
            await route.continue_()

        await alice.route(f"**/api/v1/chats/{product.chat_id}", later)
        await alice.reload()
        await write(alice, "Too early")
        await expect(alice.locator(".composer-note")).to_have_text(
            "Loading the chat. Your message will be sent automatically."
        )
        loaded.set()
        await expect(alice.get_by_test_id("message").last).to_contain_text("Too early")
        await expect(alice.get_by_test_id("composer")).to_have_value("")
        await expect(alice.locator(".composer-note")).to_have_text("")
        await alice.unroute_all()
        no_complaints(alice)


@pytest.mark.long
async def test_members_see_an_agent_that_is_switched_off_and_on(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), product, "alice")
        state = (
            alice.locator("members-panel li").filter(has_text="slow").get_by_test_id("agent-state")
        )
        await expect(state).to_have_text("Ready")
        operator = await (await running.new_context()).new_page()
        await fill_in_login(operator, product, "admin")
        await operator.goto(f"{product.url}/admin/agents_app/agent/?q=slow")
        await operator.get_by_role("link", name="slow", exact=True).click()
        form = operator.url
        await operator.get_by_label("Is enabled").uncheck()
        await operator.get_by_role("button", name="Save", exact=True).click()
        await expect(state).to_have_text("Offline: can't answer right now")
        await alice.get_by_test_id("composer").fill("@slow are you there? ")
        await expect(alice.get_by_test_id("offline-hint")).to_have_text(
            "slow is offline and can't answer right now."
        )
        await alice.reload()
        await expect(state).to_contain_text("Offline")
        await operator.goto(form)
        await operator.get_by_label("Is enabled").check()
        await operator.get_by_role("button", name="Save", exact=True).click()
        await expect(state).to_have_text("Ready")
        await expect(alice.get_by_test_id("offline-hint")).to_have_count(0)
        no_complaints(alice)


async def test_a_chat_is_shared_by_links_and_downloaded(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), product, "alice")
        bob = await sign_in(await running.new_context(), product, "bob")
        await write(alice, "We meet at the station")
        dialog = alice.get_by_test_id("links-dialog")
        await alice.get_by_test_id("share-button").click()
        await dialog.get_by_test_id("make-share").click()
        shared = await dialog.get_by_test_id("link-address").input_value()
        stranger = await (await running.new_context()).new_page()
        await stranger.goto(shared)
        await expect(stranger.get_by_text("We meet at the station")).to_be_visible()
        await dialog.get_by_test_id("make-invite").click()
        await expect(dialog.get_by_test_id("invite-links")).to_contain_text("0 joined")
        invite = await dialog.get_by_test_id("link-address").input_value()
        async with alice.expect_download() as download:
            await dialog.get_by_test_id("export-markdown").click()
        file = await (await download.value).path()
        assert "We meet at the station" in file.read_text()
        await dialog.get_by_test_id("share-links").get_by_role("button", name="Revoke").click()
        await expect(dialog.get_by_test_id("share-links")).to_have_count(0)
        gone = await stranger.goto(shared)
        assert gone is not None
        assert gone.status == 404
        await alice.keyboard.press("Escape")
        await expect(alice.get_by_test_id("share-button")).to_be_focused()
        admin = await (await running.new_context()).new_page()
        await fill_in_login(admin, product, "admin")
        await admin.goto(invite)
        await admin.get_by_role("button", name="Join").click()
        await expect(admin.get_by_test_id("message").last).to_contain_text("at the station")
        for page, author in ((alice, "You"), (bob, "alice")):
            texts = [
                f"{author} created a public link to this chat so far",
                f"{author} created an invite link",
                f"{author} revoked a public link",
                "admin joined",
            ]
            lines = page.get_by_test_id("change")
            await expect(lines.last).to_have_text(texts[-1])
            assert [await line.inner_text() for line in (await lines.all())[-4:]] == texts
        no_complaints(alice, bob)

"""Members of a chat: a name that is not in it, who was just added, and what a reload keeps.

Everything here runs against the product as `make run` starts it: daphne, SQLite, a Celery child.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

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

    from playwright.async_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

ANSWER_MS = 20_000


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("product")) as running:
        yield running


async def test_an_agent_that_is_not_in_the_chat_is_added_where_it_is_mentioned(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), product, "alice")
        bob = await sign_in(await running.new_context(), product, "bob")
        composer, hint = alice.get_by_test_id("composer"), alice.get_by_test_id("mention-hint")
        await composer.fill("@nemo what is this?")
        await expect(hint).to_contain_text("There is no agent or person called @nemo.")
        await composer.fill("@fail what is this?")
        await expect(hint).to_contain_text("fail is not in this chat.")
        await hint.get_by_role("button", name="Add fail").click()
        await expect(hint).to_have_count(0)
        await expect(composer).to_be_focused()
        for page in (alice, bob):
            await expect(page.get_by_test_id("change")).to_have_text(["alice added fail"])
            # One who was just added can be mentioned.
            await page.get_by_test_id("composer").fill("@fa")
            await expect(page.get_by_role("option", name="fail")).to_be_visible()
        await composer.fill("")
        await write(alice, "@fail what is this?")
        for page in (alice, bob):
            ending = page.locator(".message-ending")
            await expect(ending).to_contain_text("The model failed", timeout=ANSWER_MS)
        await write(bob, "never mind")
        # The log has more events now than a session replays.
        for number in range(12):
            await write(bob, f"Number {number}")
        await expect(bob.get_by_test_id("message").last).to_contain_text("Number 11")
        # What was written is kept, and so are the reason of the failure and who was added.
        await alice.get_by_test_id("composer").fill("not finished yet")
        await alice.reload()
        await expect(alice.get_by_test_id("composer")).to_have_value("not finished yet")
        await expect(alice.locator(".message-ending")).to_contain_text("The model failed")
        await expect(alice.get_by_test_id("change")).to_have_text(["alice added fail"])
        no_complaints(alice, bob)


async def test_an_owner_sets_members_and_the_chat_and_quiets_the_agents(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), product, "alice")
        bob = await sign_in(await running.new_context(), product, "bob")
        # A page as wide as this one shows the members from the start.
        panel, theirs = alice.locator("members-panel"), bob.locator("members-panel")
        await panel.get_by_role("button", name="Settings of bob").click()
        dialog = alice.get_by_test_id("member-dialog")
        await dialog.get_by_role("radio", name="Admin").check()
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog).to_be_hidden()
        await expect(theirs).to_contain_text("admin")
        await expect(bob.get_by_test_id("change").last).to_have_text("alice made bob an admin")
        # The admin names the chat; the agents are quiet, which the chat says.
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
                "the agents of this chat are quiet"
            )
        await theirs.get_by_role("button", name="Let them answer").click()
        await expect(panel.get_by_test_id("agents-quiet")).to_have_count(0)
        await panel.get_by_role("button", name="Settings of echo").click()
        await dialog.get_by_label("Answers").select_option("keyword")
        await dialog.get_by_label("Keywords").fill("repeat, say again")
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog).to_be_hidden()
        await expect(panel).to_contain_text("Answers mentions and keywords")
        await write(bob, "please repeat")
        answer = alice.locator(".message.from-agent").last
        await expect(answer).to_contain_text("please repeat", timeout=ANSWER_MS)
        no_complaints(alice, bob)

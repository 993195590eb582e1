"""Messages queued behind a running answer: all members see them, none is lost or duplicated."""

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
from tests.journeys.team_chats import chat_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.async_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("product")) as running:
        yield running


async def test_messages_wait_for_an_answer_and_all_members_see_them(
    deployment: Product, chromium: Browser
) -> None:
    agents: dict[str, dict[str, object]] = {
        "long-talk": {"script": "slow", "words": 5000},
        "queue-echo": {"script": "echo"},
    }
    chat_id = chat_of(deployment, "Queue", **agents)
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), deployment, "alice", chat_id)
        bob = await sign_in(await running.new_context(), deployment, "bob", chat_id)
        await write(alice, "@long-talk tell me")
        await expect(bob.get_by_test_id("live-response")).to_contain_text("word10 ")
        # By keyboard only.
        await bob.get_by_test_id("composer").fill("@queue-echo first of bob")
        await bob.keyboard.press("Alt+Enter")
        await alice.get_by_test_id("composer").fill("@queue-echo of alice")
        await alice.get_by_test_id("send-later").click()
        await bob.get_by_test_id("composer").fill("@queue-echo second of bob")
        await bob.get_by_test_id("send-later").click()
        for page in (alice, bob):
            await expect(page.get_by_test_id("queue-item")).to_have_count(3)
            await expect(page.get_by_test_id("pending")).to_have_count(0)
        # After a reload, they are still visible.
        await bob.reload()
        items = bob.get_by_test_id("queue-item")
        await expect(items).to_have_count(3)
        await expect(items.nth(1).get_by_test_id("queue-start")).to_have_count(0)
        await items.nth(2).get_by_test_id("queue-edit").click()
        await expect(bob.get_by_test_id("composer")).to_have_value("@queue-echo second of bob")
        await expect(alice.get_by_test_id("queue-item")).to_have_count(2)
        await alice.get_by_test_id("queue-item").nth(1).get_by_test_id("queue-remove").click()
        await expect(bob.get_by_test_id("queue-item")).to_have_count(1)
        await alice.keyboard.press("Escape")
        await expect(alice.get_by_test_id("queue")).to_have_count(0)
        answer = alice.locator("chat-message.from-agent", has_text="first of bob")
        await expect(answer).to_have_count(1)
        message = alice.locator("chat-message.from-user", has_text="of bob")
        await expect(message).to_have_count(1)
        await expect(alice.locator("chat-message", has_text="of alice")).to_have_count(0)
        no_complaints(alice, bob)

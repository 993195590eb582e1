"""What a person is writing survives whatever the page loads meanwhile."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest
from playwright.async_api import expect

from tests.journeys.held_requests import HeldRequest
from tests.journeys.product import (
    Product,
    browser,
    no_complaints,
    running_product,
    sign_in,
    signed_in,
    write,
)
from tests.journeys.team_chats import chat_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.async_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

THREE_FRAMES: Final = """async () => {
  for (let frame = 0; frame < 3; frame += 1) await new Promise(requestAnimationFrame);
}"""
QUEUED: Final = re.compile(r"/queue/[^/]+$")


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("product")) as running:
        yield running


async def test_a_text_written_before_the_chat_is_loaded_survives_a_failed_load(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        page = await signed_in(await running.new_context(), product, "alice")
        chat = re.compile(rf"/api/v1/chats/{product.chat_id}$")
        loading, again = HeldRequest(), HeldRequest()
        await page.route(chat, loading.take)
        await page.goto(f"{product.url}/chats/{product.chat_id}")
        await loading.sent()
        await page.get_by_test_id("composer").fill("Early words")
        loading.refuse()
        await expect(page.get_by_test_id("composer")).to_have_count(0)
        await page.unroute(chat)
        await page.route(chat, again.take)
        await page.get_by_role("button", name="Try again").click()

        await expect(page.get_by_test_id("composer")).to_have_value("Early words")
        await page.get_by_test_id("composer").press_sequentially("!")
        again.let_go()
        await expect(page.get_by_test_id("no-messages")).to_be_visible()
        await expect(page.get_by_test_id("composer")).to_have_value("Early words!")
        no_complaints(page)


async def test_a_stored_draft_is_there_before_the_chat_is(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        page = await sign_in(await running.new_context(), product, "alice")
        await page.get_by_test_id("composer").fill("A long letter")
        loading = HeldRequest()
        await page.route(re.compile(rf"/api/v1/chats/{product.chat_id}$"), loading.take)
        await page.reload()
        await loading.sent()
        await expect(page.get_by_test_id("composer")).to_have_value("A long letter")
        # Words written now are added to it, and do not replace it.
        await page.get_by_test_id("composer").press("End")
        await page.get_by_test_id("composer").press_sequentially(", continued")
        loading.let_go()

        await expect(page.get_by_test_id("no-messages")).to_be_visible()
        await expect(page.get_by_test_id("composer")).to_have_value("A long letter, continued")
        no_complaints(page)


async def test_a_button_of_an_empty_chat_stays_under_the_finger_when_someone_joins(
    product: Product, chromium: Browser
) -> None:
    chat_id = chat_of(product, "Harbour", greeter={"script": "echo"})
    async with browser(chromium) as running:
        context = await running.new_context(viewport={"width": 360, "height": 740})
        page = await sign_in(context, product, "bob", chat_id)
        button = page.get_by_test_id("try-ask")
        before = await button.bounding_box()
        assert before is not None
        await page.mouse.move(before["x"] + before["width"] / 2, before["y"] + before["height"] - 2)
        await page.mouse.down()
        with product.api("alice") as client:
            path = f"/api/v1/chats/{chat_id}/participants"
            client.post(path, json={"agent": "echo"}).raise_for_status()
        await expect(page.get_by_test_id("change")).to_have_count(1)
        await page.evaluate(THREE_FRAMES)
        assert await button.bounding_box() == before
        await page.mouse.up()
        await expect(page.get_by_test_id("composer")).to_have_value(re.compile("What can you do"))
        no_complaints(page)


async def test_a_queued_message_that_is_edited_joins_what_was_written_meanwhile(
    product: Product, chromium: Browser
) -> None:
    chat_id = chat_of(product, "Queue", talker={"script": "slow", "words": 5000})
    async with browser(chromium) as running:
        page = await sign_in(await running.new_context(), product, "alice", chat_id)
        await write(page, "@talker tell me")
        await expect(page.get_by_test_id("live-response")).to_contain_text("word10 ")
        composer = page.get_by_test_id("composer")
        await composer.fill("Queued words")
        await composer.press("Alt+Enter")
        removal = HeldRequest()
        await page.route(QUEUED, removal.take)
        await page.get_by_test_id("queue-edit").click()
        await removal.sent()
        await composer.fill("New words")
        removal.let_go()

        await expect(composer).to_have_value("Queued words\nNew words")
        await expect(page.get_by_test_id("queue-item")).to_have_count(0)
        no_complaints(page)

"""Money in the browser: price, card, receipt, balance, top-up, refund.

Runs against the product as started by `make run`: daphne, SQLite, a Celery child. Amounts are
chosen so that every figure on the page can be checked by mental arithmetic.
"""

from __future__ import annotations

import asyncio
import json
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from django.contrib.admin.utils import quote
from playwright.async_api import expect

from tests.journeys.paying_person import PayingPerson
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

    from playwright.async_api import Browser, Page, WebSocketRoute

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

# A small reservation, so that a long answer has to be topped up.
ENVIRONMENT = {"UAMP_RESERVE_TOKENS": "100"}


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    folder = tmp_path_factory.mktemp("product")
    with running_product(folder, has_workers=False, **ENVIRONMENT) as running:
        yield running


async def charged_once(payer: PayingPerson, page: Page, *, left: str) -> None:
    """Wait for one answer with its receipt, and assert that it was paid for once."""
    await expect(page.get_by_test_id("receipt")).to_have_count(1)
    await expect(page.get_by_test_id("payment")).to_have_count(0)
    assert len(payer.answers) == 1
    assert (payer.has["available"], payer.has["held"]) == (left, "0")


async def test_a_price_is_shown_and_paid_once_and_the_receipt_stays(
    deployment: Product, chromium: Browser
) -> None:
    payer = PayingPerson(deployment, money="10")
    async with browser(chromium) as running:
        page = await payer.open(running)
        other = await payer.open(running)
        await expect(page.get_by_test_id("balance")).to_have_text("$10.00")
        await page.get_by_test_id("composer").fill("Hello")
        line = page.get_by_test_id("price-line")
        await expect(line).to_have_text(
            f"{payer.agent}: $1.00 per answer, charged in full even if stopped — you pay."
        )
        await page.keyboard.press("Enter")
        for tab in (page, other):
            card = tab.get_by_test_id("payment")
            await expect(card).to_contain_text(f"{payer.agent} asks for $1.00")
            await expect(card).to_contain_text("Balance $10.00 → $9.00 after this answer")
            await expect(tab.locator("#announcer")).to_contain_text("asks for $1.00")
        # A person who is writing is not interrupted, and the card is back after a reload.
        await expect(page.get_by_test_id("composer")).to_be_focused()
        await page.reload()
        await page.get_by_test_id("pay").dblclick()
        await expect(page.get_by_test_id("receipt")).to_contain_text("$1.00")
        await charged_once(payer, page, left="9")
        for tab in (page, other):
            await expect(tab.get_by_test_id("payment")).to_have_count(0)
            await expect(tab.get_by_test_id("balance")).to_have_text("$9.00")
        await expect(other.get_by_test_id("receipt")).to_have_count(1)
        await page.reload()
        chip = page.get_by_test_id("receipt")
        await chip.locator("summary").click()
        await expect(chip).to_contain_text("Paid by You")
        await expect(chip).to_contain_text("Transfer")
        no_complaints(page, other)


async def test_a_refund_in_the_admin_shows_in_the_chat(
    deployment: Product, chromium: Browser
) -> None:
    payer = PayingPerson(deployment, money="10")
    async with browser(chromium) as running:
        page = await payer.open(running)
        await write(page, "Hello")
        await page.get_by_test_id("pay").click()
        await charged_once(payer, page, left="9")
        await page.get_by_test_id("receipt").locator("summary").click()
        last_field = page.get_by_test_id("receipt").locator("dd").last
        # The admin has its own encoding of `_` in paths.
        address = quote(await last_field.inner_text())
        operator = await (await running.new_context()).new_page()
        await fill_in_login(operator, deployment, "admin")
        await operator.goto(f"{deployment.url}/admin/payments_app/transfer/{address}/operate/")
        await operator.fill("[name=reason]", "it was wrong")
        await operator.locator("input[type=submit], button[type=submit]").last.click()
        await operator.wait_for_url(lambda url: not url.endswith("/operate/"))
        await page.reload()
        await expect(page.get_by_test_id("receipt")).to_contain_text("refunded")
        await expect(page.get_by_test_id("balance")).to_have_text("$10.00")


@pytest.mark.long
async def test_two_tabs_send_at_once_on_money_for_one(
    deployment: Product, chromium: Browser
) -> None:
    payer = PayingPerson(deployment, money="1")
    async with browser(chromium) as running:
        tabs = [await payer.open(running) for _ in range(2)]
        await asyncio.gather(*(write(tab, f"Number {i}") for i, tab in enumerate(tabs)))
        for tab in tabs:
            await expect(tab.get_by_test_id("payment")).to_have_count(2)
        # Each tab pays for a different answer: the two may show them in different orders.
        cards = await tabs[0].get_by_test_id("payment").all()
        titles = [await card.get_attribute("aria-labelledby") for card in cards]
        clicks = [
            tab.locator(f"[aria-labelledby='{title}']").get_by_test_id("pay").click()
            for tab, title in zip(tabs, titles, strict=True)
        ]
        await asyncio.gather(*clicks)
        for tab in tabs:
            await expect(tab.get_by_test_id("receipt")).to_have_count(1)
            await expect(tab.get_by_test_id("payment")).to_have_count(1)
        has_error = [False, False]
        async with asyncio.timeout(30):
            while not any(has_error):
                errors = [tab.get_by_test_id("payment-error") for tab in tabs]
                has_error = [await error.is_visible() for error in errors]
        assert sorted(has_error) == [False, True]
        loser = tabs[has_error.index(True)]
        link = loser.get_by_test_id("top-up-link")
        assert await link.get_attribute("href") == "/money#top-up"
        assert len(payer.answers) == 1
        assert (payer.has["available"], payer.has["held"]) == ("0", "0")
        await loser.get_by_test_id("pay-cancel").click()
        for tab in tabs:
            await expect(tab.get_by_test_id("payment")).to_have_count(0)
        no_complaints(*tabs)


@pytest.mark.long
@pytest.mark.sampled(1)
@pytest.mark.parametrize("lost", ["the answer", "the payment"])
async def test_a_payment_that_met_a_lost_connection_is_taken_once(
    deployment: Product, chromium: Browser, lost: str
) -> None:
    payer = PayingPerson(deployment, money="10")
    event_ids: list[str] = []
    cuts: list[asyncio.Future[None]] = []

    def through(socket: WebSocketRoute) -> None:
        server = socket.connect_to_server()

        def pass_on(frame: str | bytes) -> None:
            text = str(frame)
            if '"payment.submit"' in text:
                event_ids.append(json.loads(text)["event_id"])
                if len(event_ids) == 1:
                    if lost == "the answer":
                        server.send(frame)
                    cuts.append(asyncio.ensure_future(socket.close(code=4000, reason="cut")))
                    return
            server.send(frame)

        socket.on_message(pass_on)

    async with browser(chromium) as running:
        context = await running.new_context()
        await context.route_web_socket("**/uamp", through)
        page = await sign_in(context, deployment, payer.name, chat_id=payer.chat_id)
        await write(page, "Hello")
        await page.get_by_test_id("pay").click()
        await charged_once(payer, page, left="9")
        assert len(set(event_ids)) == 1
        assert len(cuts) == 1
        assert len(event_ids) == 2
        no_complaints(page)


async def test_a_low_balance_warns_and_an_empty_one_says_what_to_do(
    deployment: Product, chromium: Browser
) -> None:
    payer = PayingPerson(deployment, money="1.5")
    async with browser(chromium) as running:
        page = await payer.open(running)
        await write(page, "Hello")
        await page.get_by_test_id("pay").click()
        await expect(page.get_by_test_id("receipt")).to_have_count(1)
        balance = page.get_by_test_id("balance")
        await expect(balance).to_have_text("$0.50")
        await expect(balance).to_have_accessible_name("Balance $0.50, low. Top up")
        await write(page, "Again")
        card = page.get_by_test_id("payment")
        await expect(card).to_contain_text("Balance too low: you have $0.50, $0.50 short.")
        await expect(card.get_by_test_id("payment-question")).to_have_text("Again")
        await expect(page.get_by_test_id("pay")).to_be_disabled()
        await expect(card.get_by_text("Top up")).to_have_count(1)
        waits = page.get_by_test_id("live-response").get_by_test_id("waits-for")
        await expect(waits).to_have_text("Waiting for your payment")
        await page.get_by_test_id("top-up-link").click()
        await expect(page.get_by_test_id("available")).to_have_text("$0.50")
        # The way back leads to the chat that asked.
        await page.get_by_role("link", name="Chats").click()
        await expect(card).to_be_visible()
        await page.goto(f"{deployment.url}/money")
        assert len(payer.answers) == 1
        no_complaints(page)


@pytest.mark.long
async def test_an_answer_that_outgrows_its_reservation_is_topped_up_and_loses_no_word(
    deployment: Product, chromium: Browser
) -> None:
    payer = PayingPerson(deployment, money="10", script="slow", output_per_1k="1")
    async with browser(chromium) as running:
        page = await payer.open(running)
        await write(page, "Count")
        await page.get_by_test_id("pay").click()
        card = page.get_by_test_id("payment")
        topped_up = 0
        ended = page.get_by_test_id("receipt")
        while True:
            await expect(card.or_(ended).first).to_be_visible(timeout=30_000)
            if await ended.count():
                break
            await expect(card).to_contain_text("It is paused here and continues")
            # Standing approval would have to cover the existing reservation, too.
            pay_amount = Decimal(
                (await page.get_by_test_id("pay").inner_text()).removeprefix("Pay $")
            )
            enough = Decimal(await page.get_by_test_id("pay-up-to").input_value())
            # Both are rounded up to the cent.
            assert 0 <= pay_amount + Decimal(payer.has["held"]) - enough < Decimal("0.01")
            before = await page.get_by_test_id("live-response").locator(".parts").text_content()
            topped_up += 1
            await page.get_by_test_id("pay").click()
            await expect(card).to_have_count(0)
            assert before
        assert topped_up >= 1
        (answer,) = payer.answers
        assert answer.split() == [f"word{n}" for n in range(1, 201)]
        assert (payer.has["available"], payer.has["held"]) == ("9.8", "0")
        no_complaints(page)

"""The money page, standing approvals and the pool, as a person sets them.

Runs against the product as test_money.py does, with the same amounts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import expect

from tests.journeys.paying_person import PayingPerson
from tests.journeys.product import Product, browser, no_complaints, running_product, write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.async_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

# A small reservation, so that a long answer has to be topped up.
ENVIRONMENT = {"UAMP_RESERVE_TOKENS": "100"}


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    folder = tmp_path_factory.mktemp("product")
    with running_product(folder, has_workers=False, **ENVIRONMENT) as running:
        yield running


async def test_an_agent_may_be_allowed_for_good_and_asked_again_later(
    product: Product, chromium: Browser
) -> None:
    payer = PayingPerson(product, money="10")
    async with browser(chromium) as running:
        page = await payer.open(running)
        await write(page, "Hello")
        await page.get_by_test_id("pay-always").focus()
        await page.keyboard.press("Enter")
        await expect(page.get_by_test_id("receipt")).to_have_count(1)
        await write(page, "Again")
        await expect(page.get_by_test_id("receipt")).to_have_count(2)
        await page.get_by_test_id("balance").focus()
        await page.keyboard.press("Enter")
        await page.get_by_test_id("withdraw").click()
        await expect(page.get_by_test_id("withdraw")).to_have_count(0)
        await payer.come_back(page)
        await write(page, "Once more")
        await expect(page.get_by_test_id("payment")).to_have_count(1)
        await page.get_by_test_id("pay-cancel").click()
        await expect(page.get_by_test_id("payment")).to_have_count(0)
        assert payer.has["available"] == "8"
        no_complaints(page)


async def test_the_money_page_shows_what_there_is_and_sets_limits_and_makes_tokens(
    product: Product, chromium: Browser
) -> None:
    payer = PayingPerson(product, money="10")
    phone: dict[str, Any] = {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"}
    async with browser(chromium) as running:
        page = await payer.open(running, **phone)
        await write(page, "Hello")
        await page.get_by_test_id("pay").click()
        await expect(page.get_by_test_id("receipt")).to_have_count(1)
        await page.goto(f"{product.url}/money")
        await expect(page.get_by_test_id("available")).to_have_text("$9.00")
        await expect(page.get_by_test_id("spent")).to_have_text("$1.00")
        await expect(page.locator(".agent-bars")).to_contain_text(str(payer.agent))
        await expect(page.get_by_test_id("statement").locator("tbody tr")).to_have_count(2)
        await page.get_by_test_id("token-amount").fill("2")
        await page.get_by_test_id("token-day").fill("0.75")
        await page.get_by_test_id("token-make").click()
        secret = await page.get_by_test_id("token-secret").input_value()
        assert secret.startswith("ptok_")
        await expect(page.get_by_test_id("available")).to_have_text("$7.00")
        await page.reload()
        await expect(page.get_by_test_id("token-revoke")).to_have_count(1)
        await expect(page.locator("money-limits")).to_contain_text("$0.75")
        assert secret not in await page.content()
        await page.get_by_test_id("token-revoke").click()
        await expect(page.get_by_test_id("available")).to_have_text("$9.00")
        await page.get_by_test_id("limit-day").fill("1.5")
        # Typed text stays when the page updates in the meantime.
        field = page.get_by_test_id("limit-day")
        await page.locator("money-limits").evaluate("part => part.load()")
        await expect(field).to_have_value("1.5")
        await page.get_by_role("button", name="Save limits").click()
        await expect(page.locator("money-limits")).to_contain_text("$0.50 left until")
        # An expired token no longer has a limit.
        await expect(page.locator("money-limits")).not_to_contain_text("$0.75")
        sideways = "document.documentElement.scrollWidth > innerWidth"
        assert not await page.evaluate(sideways)
        await payer.come_back(page)
        await write(page, "Again")
        await page.get_by_test_id("pay").click()
        await expect(page.get_by_test_id("payment-error")).to_contain_text("limit per day")
        link = page.get_by_test_id("limits-link")
        assert await link.get_attribute("href") == "/money#limits"
        assert not await page.evaluate(sideways)
        assert payer.has["available"] == "9"
        no_complaints(page)


@pytest.mark.long
async def test_no_token_makes_the_money_page_wider_than_a_phone(
    product: Product, chromium: Browser
) -> None:
    payer = PayingPerson(product, money="10")
    phone: dict[str, Any] = {"viewport": {"width": 360, "height": 740}}
    async with browser(chromium) as running:
        page = await payer.open(running, **phone)
        await page.goto(f"{product.url}/money")
        rows = page.locator("money-tokens tbody tr")
        for number, name in enumerate(("", "n" * 100), start=1):
            await page.get_by_test_id("token-amount").fill("1")
            await page.get_by_test_id("token-day").fill("0.5")
            await page.locator("money-tokens").get_by_label("Name").fill(name)
            await page.get_by_test_id("token-make").click()
            await expect(rows).to_have_count(number)
            await expect(page.locator("money-limits tbody tr")).to_have_count(number)
        # The shortened id expands to the whole one.
        for part in ("money-tokens", "money-limits"):
            short = page.locator(part).locator("tbody summary")
            token_id = await short.get_attribute("title") or ""
            await expect(short).to_have_text(f"{token_id[:12]}…")
            await short.click()
            await expect(page.locator(part).locator("tbody details > code")).to_have_text(token_id)
            await expect(page.locator(part).locator("tbody details > code")).to_be_visible()
        too_wide = "all => all.filter((one) => one.scrollWidth > one.clientWidth).length"
        assert await page.locator(".table-scroll, html").evaluate_all(too_wide) == 0
        no_complaints(page)


@pytest.mark.long
async def test_a_refusal_is_explained_and_the_focus_stays(
    product: Product, chromium: Browser
) -> None:
    payer = PayingPerson(product, money="10")
    async with browser(chromium) as running:
        page = await payer.open(running)
        await write(page, "Hello")
        # A payer who allows less than the amount due does not pay it.
        for up_to, hint in (("0.5", "allow at least that"), ("abc", "digits and a decimal point")):
            await page.get_by_test_id("pay-up-to").fill(up_to)
            await page.keyboard.press("Enter")
            await expect(page.get_by_test_id("payment-error")).to_contain_text(hint)
        assert payer.has["available"] == "10"
        await page.get_by_test_id("pay-cancel").click()
        await page.goto(f"{product.url}/money")
        await page.get_by_test_id("token-amount").fill("100")
        await page.get_by_test_id("token-make").press("Enter")
        said_of_token = page.locator("money-tokens").get_by_role("alert")
        await expect(said_of_token).to_have_text("This needs $100.00, and you have $10.00.")
        await expect(page.get_by_test_id("token-make")).to_be_focused()
        await page.get_by_test_id("limit-day").fill("-1")
        await page.keyboard.press("Enter")
        limits = page.locator("money-limits")
        await expect(limits.get_by_role("alert")).to_have_text("An amount must not have a sign.")
        await page.get_by_test_id("limit-day").fill("5")
        save = page.get_by_role("button", name="Save limits")
        await save.press("Enter")
        await expect(limits).to_contain_text("$5.00 left until")
        await expect(save).to_be_focused()
        no_complaints(page)


async def test_an_owner_fills_the_pool_and_lets_it_pay(product: Product, chromium: Browser) -> None:
    payer = PayingPerson(product, money="10")
    async with browser(chromium) as running:
        page = await payer.open(running)
        if not await page.locator("members-panel").is_visible():
            await page.get_by_test_id("members").click()
        await page.get_by_test_id("payer").get_by_role("button").click()
        await expect(page.get_by_test_id("pool")).to_have_text("Pool: $0.00")
        await page.get_by_test_id("pool-amount").fill("2")
        await page.get_by_test_id("pool-fill").dblclick()
        await expect(page.get_by_test_id("pool")).to_have_text("Pool: $2.00")
        await page.get_by_role("radio", name="pool").check()
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_test_id("payer")).to_contain_text("s pool")
        # A dialog that closes returns the focus to the button that opened it.
        await expect(page.get_by_test_id("payer-dialog")).to_be_hidden()
        await write(page, "Hello")
        receipt = page.get_by_test_id("receipt")
        await expect(receipt).to_have_count(1)
        await receipt.locator("summary").click()
        await expect(receipt).to_contain_text("s pool")
        assert payer.has["available"] == "8"
        no_complaints(page)

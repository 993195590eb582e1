"""An agent delegates work to one with a price: the asker pays, and sees what it was for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.journeys.attachments import WORK_MS, attach, photo
from tests.journeys.product import Product, browser, no_complaints, running_product, sign_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.async_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

PRICE = """
from agents_app.models import Agent
Agent.objects.filter(name="darkroom").update(pricing={"per_answer": "0.50"})
"""


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("product"), has_workers=True) as running:
        running.run(PRICE)
        with running.api("alice") as client:
            path = f"/api/v1/chats/{running.chat_id}/participants"
            client.post(path, json={"agent": "studio"}).raise_for_status()
        yield running


async def test_delegated_work_is_paid_where_it_was_asked_for(
    product: Product, chromium: Browser, tmp_path: Path
) -> None:
    async with browser(chromium) as running:
        page = await sign_in(await running.new_context(), product, "alice")
        other = await sign_in(await running.new_context(), product, "bob")
        await expect(page.get_by_test_id("balance")).to_have_text("$5.00")
        await attach(page, photo(tmp_path / "rome.png", 60, 40), "@studio black and white, please")
        card = page.get_by_test_id("payment")
        await expect(card).to_contain_text("darkroom asks for $0.50", timeout=WORK_MS)
        await expect(other.get_by_test_id("payment")).to_have_count(0)
        await page.get_by_test_id("pay").click()
        await expect(page.get_by_test_id("payment")).to_have_count(0)
        await expect(page.get_by_test_id("balance")).to_have_text("$4.50")
        chip = page.get_by_test_id("receipt")
        await expect(chip).to_contain_text("$0.50", timeout=WORK_MS)
        await chip.locator("summary").click()
        await expect(chip).to_contain_text("Passed on to darkroom: $0.50")
        await expect(chip).to_contain_text("Paid by You")
        # The other member sees the cost, and it is still there after a reload.
        for tab in (other, page):
            await tab.reload()
            await expect(tab.get_by_test_id("receipt")).to_contain_text("$0.50")
        no_complaints(page, other)


async def test_delegated_work_is_refused_and_the_card_goes(
    product: Product, chromium: Browser, tmp_path: Path
) -> None:
    async with browser(chromium) as running:
        page = await sign_in(await running.new_context(), product, "bob")
        await attach(page, photo(tmp_path / "rome.png", 60, 40), "@studio black and white, please")
        await expect(page.get_by_test_id("payment")).to_contain_text(
            "darkroom asks for $0.50", timeout=WORK_MS
        )
        await page.get_by_test_id("pay-cancel").click()
        await expect(page.get_by_test_id("payment")).to_have_count(0)
        stopped = page.get_by_text("darkroom was stopped")
        await expect(stopped.first).to_be_attached(timeout=WORK_MS)
        await expect(page.get_by_test_id("balance")).to_have_text("$5.00")
        no_complaints(page)

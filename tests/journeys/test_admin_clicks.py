"""Clicks of common tasks in the admin, as docs/admin.md states them, each with a role's rights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.journeys.product import browser, running_product, sign_in, write
from tests.journeys.test_admin import HELD_CALL, PEOPLE, ROLES, at_work, number_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.async_api import Browser

    from tests.journeys.product import Product

CHAT_WITH_BROKEN = """
from agents_app.models import Agent
from chat_app.members.chats import create_chat
from django.contrib.auth.models import User
alice = User.objects.get(username="alice")
print(create_chat(title="Broken chat", created_by_id=alice.pk, user_ids=[alice.pk],
    agents=[(Agent.objects.get(name="broken").pk, "always")]).pk)
"""

pytestmark = [pytest.mark.browser, pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("product"), has_workers=True) as running:
        running.run(PEOPLE.format(roles=ROLES))
        running.people |= {role: {"username": role, "password": "password"} for role in ROLES}
        yield running


async def test_finance_adjusts_a_balance_and_sees_the_charges_of_each_day(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        desk = await at_work(product, running, "Finance")
        await desk.start()
        await expect(desk.page.get_by_text("Charged per day, by agent").first).to_be_visible()
        await desk.find("alice")
        await desk.click("Account", exact=True)
        await desk.open_first_row()
        await desk.click("Adjust", exact=True)
        await desk.page.get_by_label("Direction").select_option("credit")
        await desk.page.get_by_label("Amount").fill("2")
        await desk.page.get_by_label("Reason").fill("paid in cash")
        await desk.page.keyboard.press("Enter")
        await expect(desk.page.locator("#content")).to_contain_text("available balance changes")
        await desk.page.get_by_role("button", name="Confirm").click()
        desk.clicks += 1
        await expect(desk.page.locator(".messagelist")).to_contain_text("Adjust: 2 USD")
        assert desk.is_done_within(4)


async def test_an_operator_cancels_a_tool_call_and_an_auditor_finds_who_did(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        asker = await sign_in(await running.new_context(), product, "alice")
        await write(asker, "I am here")
        # The call is made in the session that the message opened.
        await expect(asker.locator(".message.is-pending")).to_have_count(0)
        await expect(asker.get_by_test_id("message").last).to_contain_text("I am here")
        call = product.run(HELD_CALL).strip()
        desk = await at_work(product, running, "Operator")
        await desk.start()
        await desk.open_list("toolcall")
        await desk.open_first_row()
        await desk.click("Cancel call")
        await desk.confirm("Cancel call: cancelled")
        assert desk.is_done_within(3)
        assert number_of(product, f"ToolCall.objects.get(pk={call}).status") == "cancelled"

        auditor = await at_work(product, running, "Auditor")
        await auditor.start()
        await auditor.open_list("toolcall")
        await auditor.open_first_row()
        await auditor.click("Audit", exact=True)
        rows = auditor.page.locator("#result_list tbody tr", has_text="tool.cancelled")
        await expect(rows).to_have_count(1)
        await expect(rows).to_contain_text("Operator")
        await expect(rows).to_contain_text("it hung")
        assert auditor.is_done_within(3)


async def test_support_finds_why_an_answer_failed_in_a_chat(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        asker = await sign_in(await running.new_context(), product, "alice")
        chat = product.run(CHAT_WITH_BROKEN).strip()
        await asker.goto(f"{product.url}/chats/{chat}")
        await write(asker, "Are you there?")
        await expect(asker.get_by_text("The model refused the request.").first).to_be_visible()
        desk = await at_work(product, running, "Support")
        await desk.start()
        await desk.open_list("chat", app="chat_app")
        await desk.click("Broken chat", within="#result_list")
        await desk.click("Timeline", exact=True)
        await expect(desk.page.locator("#timeline-items")).to_contain_text("its base_url")
        assert desk.is_done_within(3)


async def test_a_developer_makes_an_agent_that_was_tried(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        desk = await at_work(product, running, "Developer")
        await desk.start()
        await desk.open_list("agent", app="agents_app")
        await desk.click("Add agent")
        await desk.page.locator("#id_name").fill("parrot")
        await desk.page.get_by_label("Script", exact=True).select_option("echo")
        await desk.page.locator("#id_pricing__per_answer").fill("0.5")
        await desk.page.get_by_label("csv_report").first.check()
        desk.clicks += 1
        await desk.page.get_by_label("Prompt", exact=True).fill("Say it")
        await desk.page.get_by_role("button", name="Ask").click()
        desk.clicks += 1
        await expect(desk.page.locator("#trial-text")).to_have_text("Say it")
        await desk.page.get_by_role("button", name="Save", exact=True).click()
        desk.clicks += 1
        await expect(desk.page.locator(".messagelist")).to_contain_text("parrot")
        assert desk.is_done_within(5)
        setup = "from agents_app.models import Agent\na = Agent.objects.get(name='parrot')\n"
        output = product.run(f"{setup}print(a.tools, a.pricing, a.options)").strip()
        assert output == "['csv_report'] {'per_answer': '0.5'} {'script': 'echo'}"

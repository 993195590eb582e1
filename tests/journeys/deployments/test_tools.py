"""A long tool: members watch how far it is, and who asked for it stops it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.journeys.attachments import WORK_MS
from tests.journeys.deployments.chats import new_chat
from tests.journeys.product import (
    Product,
    browser,
    no_complaints,
    sign_in,
    write,
)
from tests.sessions_app.turn.team_tools import order

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Browser, Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

STEPS = 5
# More than a journey lasts.
MANY_STEPS = 4_000
DOER = """
from agents_app.models import Agent
Agent.objects.get_or_create(name="doer", defaults={"is_public": True,
    "options": {"script": "doer"}, "tools": ["steps", "refuse"]})
"""
# What the bar of the newest card showed, each time that it showed something else.
WATCH_BAR = """() => {
  window.seen = [];
  const look = () => {
    const bar = [...document.querySelectorAll(".tool [role=progressbar]")].at(-1);
    if (!bar?.offsetParent) return;
    const value = (of) => bar.getAttribute(`aria-value${of}`);
    const [least, now, most] = ["min", "now", "max"].map(value);
    const said = bar.parentElement.querySelector(".tool-stage").textContent.trim();
    const { width } = bar.firstElementChild.style;
    const shown = [least, now, most, width, said].join(" | ");
    if (now !== null && width && shown !== window.seen.at(-1)) window.seen.push(shown);
  };
  new MutationObserver(look).observe(document.body, {
    subtree: true, childList: true, attributes: true, characterData: true,
  });
}"""


def chat_with_doer(product: Product) -> str:
    """Make a chat with an agent that calls the tools that messages name."""
    product.run(DOER)
    return new_chat(product, "Tools", agents=("doer",))


def newest_tool(page: Page) -> Locator:
    return page.get_by_test_id("tool").last


async def state_is(state: str, *pages: Page) -> None:
    """Wait until the newest tool is in a state on all pages."""
    for page in pages:
        await expect(newest_tool(page)).to_have_attribute("data-state", state, timeout=WORK_MS)


async def reports_all(alice: Page, bob: Page, journal: Path) -> None:
    """Have a tool report five steps: the bar of each page goes to 100 percent over the same."""
    for page in (alice, bob):
        await page.evaluate(WATCH_BAR)
    steps = {"steps": STEPS, "pause": 0.4, "journal": str(journal)}
    await write(alice, f"@doer {order(call='steps', arguments=steps)}")
    await state_is("done", alice, bob)
    for page in (alice, bob):
        reports = await page.evaluate("window.seen")
        percents = [100 * step // STEPS for step in range(1, STEPS + 1)]
        assert reports == [
            f"0 | {percent} | 100 | {percent}% | {percent} % · Step {number} of {STEPS} · on"
            for number, percent in enumerate(percents, start=1)
        ]


async def test_members_watch_a_tool_and_who_asked_stops_it(
    deployment: Product, chromium: Browser, tmp_path: Path
) -> None:
    chat_id = chat_with_doer(deployment)
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), deployment, "alice", chat_id)
        bob = await sign_in(await running.new_context(), deployment, "bob", chat_id)
        await reports_all(alice, bob, tmp_path / "first")

        # What a tool could not do is read without opening the card, and again after a reload.
        await write(bob, f"@doer {order(call='refuse')}")
        await state_is("failed", alice, bob)
        await alice.reload()
        await state_is("failed", alice)
        for page in (alice, bob):
            tool_error = newest_tool(page).locator(".tool-error")
            await expect(tool_error).to_have_text(
                "There is no column 'price'. Name one of: cost, date."
            )
            await expect(tool_error).to_be_in_viewport()
            await expect(newest_tool(page).locator(".tool-status")).to_contain_text("failed")

        journal = tmp_path / "second"
        steps = {"steps": MANY_STEPS, "pause": 0.05, "journal": str(journal)}
        await write(alice, f"@doer {order(call='steps', arguments=steps)}")
        for page in (alice, bob):
            bar = newest_tool(page).get_by_role("progressbar", name="Progress of steps")
            await expect(bar).to_be_visible(timeout=WORK_MS)
        await alice.get_by_test_id("stop").click()
        await state_is("stopped", alice, bob)
        for page in (alice, bob):
            await expect(newest_tool(page).get_by_role("progressbar")).to_have_count(0)
        # The worker is free for the next tool, and the one that was stopped does no more steps.
        await write(bob, f"@doer {order(call='refuse')}")
        await state_is("failed", alice, bob)
        done = journal.read_text()
        await write(bob, f"@doer {order(call='refuse')}")
        await expect(alice.get_by_test_id("tool")).to_have_count(5)
        await state_is("failed", alice, bob)
        assert journal.read_text() == done
        no_complaints(alice, bob)

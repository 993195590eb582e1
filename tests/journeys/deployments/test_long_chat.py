"""A chat of 5,000 messages: it opens, scrolls, and an answer streams at 200 deltas a second.

How fast it does is measured by `python -m benchmarks browser`; here only what there is counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.journeys.attachments import WORK_MS
from tests.journeys.log_places import NODES, SHOWN, nodes, scrolled
from tests.journeys.long_chat import long_chat
from tests.journeys.product import Product, browser, no_complaints, sign_in, write

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

COUNT = 5_000
RAPID = """
from agents_app.models import Agent
from chat_app.models import Participant
agent, _ = Agent.objects.get_or_create(name="rapid", defaults={{"is_public": True,
    "options": {{"script": "echo", "delay": 0.005}}}})
Participant.objects.create(chat_id={chat!r}, agent=agent)
"""
# As many as it has pieces: each word is one.
WORDS = " ".join(f"word{number}" for number in range(1_000))
# The most elements that the page had in any frame, and how many texts it showed.
COUNT_NODES = """() => {
  window.most = 0;
  window.texts = new Set();
  const look = () => {
    window.most = Math.max(window.most, document.getElementsByTagName("*").length);
    const live = document.querySelector("[data-testid=live-response] [data-testid=message-body]");
    if (live) window.texts.add(live.textContent.length);
    requestAnimationFrame(look);
  };
  look();
}"""


async def test_a_chat_of_5000_messages_stays_small_while_one_reads_and_an_answer_streams(
    deployment: Product, chromium: Browser
) -> None:
    chat_id = long_chat(deployment, COUNT)
    deployment.run(RAPID.format(chat=chat_id))
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), deployment, "alice", chat_id)
        bob = await sign_in(await running.new_context(), deployment, "bob", chat_id)
        for page in (alice, bob):
            numbers = await page.evaluate(SHOWN)
            assert numbers[-1] == COUNT
            assert len(numbers) < COUNT / 10
            assert await nodes(page) < NODES
        await scrolled(alice, "PageUp", COUNT - 300)
        await scrolled(bob, "PageUp", COUNT - 60)

        # Bob reads an older place, alice the end, while the answer grows.
        for page in (alice, bob):
            await page.evaluate(COUNT_NODES)
        await write(alice, f"@rapid {WORDS}")
        answer = alice.locator(".message.from-agent:not([data-testid=live-response])")
        await expect(answer).to_have_count(1, timeout=WORK_MS)
        await bob.get_by_test_id("jump").click()
        for page in (alice, bob):
            body = page.get_by_test_id("message-body").last
            await expect(body).to_have_text(WORDS)
            assert await page.evaluate("window.most") < NODES
        # It grew on the page, it did not come at once.
        assert len(await alice.evaluate("[...window.texts]")) > 20
        no_complaints(alice, bob)

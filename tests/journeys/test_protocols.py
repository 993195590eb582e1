"""Programs using other protocols in chats that people have open in their browsers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx
import pytest
from playwright.async_api import expect

from tests.journeys.product import Product, browser, no_complaints, running_product, sign_in, write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.async_api import Browser, Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

STREAM_MS = 20_000
STEADY_AGENT = """
from agents_app.models import Agent
options = {"script": "slow", "delay": 0.15}
Agent.objects.get_or_create(name="steady", defaults={"is_public": True, "options": options})
"""


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("product")) as running:
        running.run(STEADY_AGENT)
        with running.api("alice") as client:
            path = f"/api/v1/chats/{running.chat_id}/participants"
            client.post(path, json={"agent": "steady"}).raise_for_status()
        yield running


async def ask(product: Product, text: str, *, words: int) -> str:
    """Ask an agent in the shared chat with Chat Completions; leave after `words` words."""
    headers = {
        "Authorization": f"Bearer {product.people['alice']['api_key']}",
        "X-Chat-Id": product.chat_id,
    }
    body = {"stream": True, "messages": [{"role": "user", "content": text}]}
    received = ""
    async with (
        httpx.AsyncClient(base_url=product.url, trust_env=False, timeout=30) as client,
        client.stream(
            "POST", "/agents/steady/chat/completions", json=body, headers=headers
        ) as answer,
    ):
        assert answer.status_code == httpx.codes.OK
        async for line in answer.aiter_lines():
            received += line
            if f"word{words}" in received:
                break
    return received


def badge_of(message: Locator) -> Locator:
    """Return the badge that names a message's protocol."""
    return message.get_by_test_id("transport")


def last_of(page: Page, name: str) -> Locator:
    """Return a member's newest stored message."""
    return page.get_by_test_id("message").filter(has=page.get_by_text(name, exact=True)).last


async def test_a_message_of_chat_completions_is_live_in_two_browsers_with_its_badge(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), product, "alice")
        bob = await sign_in(await running.new_context(), product, "bob")
        await write(bob, "Over the page")
        # Messages from a page have no badge.
        await expect(last_of(alice, "bob")).to_contain_text("Over the page")
        await expect(badge_of(last_of(alice, "bob"))).to_have_count(0)

        # The program leaves early: an answer in a chat continues.
        program = asyncio.create_task(ask(product, "count from a program", words=3))
        for page in (alice, bob):
            live = page.get_by_test_id("live-response")
            await expect(live.get_by_test_id("message-body")).to_contain_text(
                "word2 ", timeout=STREAM_MS
            )
            await expect(badge_of(live)).to_have_text("asked through Completions")
            message = page.get_by_test_id("message").filter(has_text="count from a program")
            await expect(badge_of(message)).to_have_text("sent through Completions")
            await expect(badge_of(message)).to_be_visible()
            await expect(badge_of(message)).to_have_attribute(
                "title", "Sent through OpenAI Chat Completions"
            )
        assert "word3" in await program

        # A page that opens in the middle of the answer shows it as well.
        await bob.reload()
        await expect(badge_of(bob.get_by_test_id("live-response"))).to_have_text(
            "asked through Completions"
        )
        await alice.get_by_test_id("stop").click()
        for page in (alice, bob):
            await expect(page.get_by_test_id("live-response")).to_have_count(0)
            await expect(badge_of(page.get_by_test_id("message").last)).to_have_text(
                "asked through Completions"
            )
        await alice.reload()
        await expect(badge_of(alice.get_by_test_id("message").last)).to_have_text(
            "asked through Completions"
        )
        rows = [(m["name"], m["transport"]) for m in product.messages()[-3:]]
        assert rows == [("bob", "websocket"), ("alice", "completions"), ("steady", "completions")]
        no_complaints(alice, bob)


async def chosen(page: Page) -> str | None:
    """Return the tab that is selected and has the focus."""
    text: str | None = await page.evaluate(
        "document.activeElement.ariaSelected === 'true' ? document.activeElement.textContent : null"
    )
    return text and text.strip()


@pytest.mark.long
async def test_a_message_is_shown_in_each_protocol_by_keyboard(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        context = await running.new_context(permissions=["clipboard-read", "clipboard-write"])
        alice = await sign_in(context, product, "alice")
        await write(alice, "@echo show me")
        answer = alice.get_by_test_id("message").filter(has=alice.get_by_text("echo", exact=True))
        more = answer.last.get_by_role("button", name="More actions for echo's message")
        await more.focus()
        await alice.keyboard.press("Enter")
        await expect(alice.get_by_role("menuitem").first).to_be_focused()
        await alice.keyboard.press("v")
        await expect(alice.get_by_role("menuitem", name="View as…")).to_be_focused()
        await alice.keyboard.press("Escape")
        await expect(alice.get_by_role("menu")).to_be_hidden()
        await expect(more).to_be_focused()
        await alice.keyboard.press("Enter")
        await expect(alice.get_by_role("menuitem").first).to_be_focused()
        await alice.keyboard.press("v")
        await alice.keyboard.press("Enter")

        console = alice.get_by_role("dialog", name="View as…")
        visible_frames = console.get_by_test_id("frames").and_(console.locator(":visible"))
        frames = {
            "UAMP": '"type": "response.done"',
            "Completions": "chat.completion.chunk",
            "Responses": "response.completed",
            "Messages": "message_stop",
            "AG-UI": "RUN_FINISHED",
            "A2A": "TASK_STATE_COMPLETED",
            "ACP": "end_turn",
        }
        for label, text in frames.items():
            await expect(visible_frames).to_contain_text(text)
            assert await chosen(alice) == label
            await alice.keyboard.press("ArrowRight")
        # From the last tab to the first one, and on to the second.
        await alice.keyboard.press("ArrowRight")
        await (
            console.get_by_role("button", name="Copy as curl")
            .and_(console.locator(":visible"))
            .click()
        )
        copied = await alice.evaluate("navigator.clipboard.readText()")
        assert copied.startswith("curl -sN ")
        assert f"X-Chat-ID: {product.chat_id}" in copied
        assert "Bearer $KEY" in copied
        await alice.keyboard.press("Escape")
        await expect(console).to_be_hidden()
        await expect(more).to_be_focused()
        no_complaints(alice)


async def test_a_person_finds_an_agent_and_copies_a_call(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        context = await running.new_context(permissions=["clipboard-read", "clipboard-write"])
        alice = await sign_in(context, product, "alice")
        await alice.get_by_role("link", name="Agents").click()
        await alice.get_by_role("link", name="paid-echo", exact=True).click()
        await expect(alice.get_by_text("$0.02 per answer")).to_be_visible()
        await alice.get_by_role("tab", name="For developers").click()

        completions = alice.locator("[data-protocol=completions]")
        await expect(completions.get_by_role("tabpanel")).to_contain_text("curl -sN")
        await completions.get_by_role("tab", name="curl").focus()
        await alice.keyboard.press("ArrowRight")
        # The language is chosen once, for all protocols.
        for key in ("uamp", "completions", "responses", "anthropic", "ag-ui", "a2a", "acp"):
            tab = alice.locator(f"[data-protocol={key}]").get_by_role("tab", selected=True)
            await expect(tab).to_have_text("Python")
        await completions.get_by_role("button", name="Copy").click()
        copied = await alice.evaluate("navigator.clipboard.readText()")
        assert copied.startswith("import json")
        await alice.get_by_role("link", name="Agents").click()
        await alice.get_by_role("link", name="Chats").click()
        await alice.wait_for_url(f"{product.url}/")
        no_complaints(alice)

"""A text written without a connection outlives a reload, and is sent once and in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.journeys.deployments.balancer import balanced
from tests.journeys.deployments.chats import messages, new_chat
from tests.journeys.product import Product, browser, no_complaints, sign_in, write

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page, WebSocketRoute

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


class Wire:
    """The sockets of a page: they go through until they are cut, and again when they are mended."""

    def __init__(self) -> None:
        self._open: list[WebSocketRoute] = []
        self._is_cut = False

    async def take(self, route: WebSocketRoute) -> None:
        """Take a socket that the page opens."""
        if self._is_cut:
            await route.close(code=4000, reason="cut")
            return
        route.connect_to_server()
        self._open.append(route)

    async def cut(self) -> None:
        """Close all sockets, and each new one at once."""
        self._is_cut = True
        for route in self._open:
            await route.close(code=4000, reason="cut")
        self._open.clear()

    def mend(self) -> None:
        """Let new sockets through."""
        self._is_cut = False


async def write_while_away(page: Page, *texts: str) -> None:
    """Write messages that cannot be sent now."""
    for number, text in enumerate(texts, start=1):
        await write(page, text)
        await expect(page.get_by_test_id("pending")).to_have_count(number)


async def arrived(reader: Page, product: Product, chat_id: str, *texts: str) -> None:
    """Wait until another person has the messages, and assert that each is stored once, in order."""
    bubbles = reader.get_by_test_id("message").locator(".bubble")
    await expect(bubbles).to_have_text(list(texts))
    assert messages(product, chat_id) == list(texts)


async def test_what_is_written_offline_is_sent_once_and_in_order(
    deployment: Product, chromium: Browser
) -> None:
    chat_id = new_chat(deployment, "Offline")
    wire = Wire()
    # Each connection of alice, and so each reload, is on another process than the one before.
    async with (
        balanced([deployment.port, *deployment.further_ports]) as port,
        browser(chromium) as running,
    ):
        here = Product(deployment.data_dir, port, people=deployment.people)
        alices = await running.new_context()
        await alices.route_web_socket("**/uamp", wire.take)
        alice = await sign_in(alices, here, "alice", chat_id)
        bob = await sign_in(await running.new_context(), deployment, "bob", chat_id)
        pending, banner = alice.get_by_test_id("pending"), alice.get_by_test_id("banner")

        # The page is there, its socket is not: messages that wait are shown again after a reload.
        await wire.cut()
        await expect(banner).to_be_visible()
        await write_while_away(alice, "first", "second", "second")
        await alice.reload()
        await expect(pending).to_have_count(3)
        await expect(pending.locator(".bubble")).to_have_text(["first", "second", "second"])
        await expect(bob.get_by_test_id("message")).to_have_count(0)
        wire.mend()
        await expect(pending).to_have_count(0)
        texts = ["first", "second", "second"]
        await arrived(bob, deployment, chat_id, *texts)

        # There is no network at all: the page that the browser keeps shows the waiting messages.
        await alices.set_offline(True)
        await wire.cut()
        await expect(banner).to_contain_text("You're offline.")
        await write_while_away(alice, "third", "fourth")
        await alice.reload()
        await expect(pending.locator(".bubble")).to_have_text(["third", "fourth"])
        await alices.set_offline(False)
        wire.mend()
        texts += ["third", "fourth"]
        await arrived(alice, deployment, chat_id, *texts)
        await arrived(bob, deployment, chat_id, *texts)
        await expect(pending).to_have_count(0)
        # Nothing is sent a second time by a page that is opened later.
        await alice.reload()
        await arrived(alice, deployment, chat_id, *texts)
        await write(alice, "last")
        await arrived(bob, deployment, chat_id, *texts, "last")
        no_complaints(alice, bob)

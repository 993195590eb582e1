"""Notifications that the service worker shows when a push service delivers them."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

import pytest
import pytest_asyncio

from tests import services
from tests.journeys.product import (
    Product,
    no_complaints,
    running_browser,
    running_product,
    sign_in,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from playwright.async_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

WAIT_SECONDS: Final = 120
IS_ACTIVE: Final = """async () => {
  const { active } = await navigator.serviceWorker.ready;
  return active.state === "activated";
}"""
SHOWN: Final = """async () => {
  const shown = await (await navigator.serviceWorker.ready).getNotifications();
  return shown.map(({ title, body, data }) => [title, body, data.messageId]);
}"""
HAS_SHOWN: Final = """async (message) => {
  const shown = await (await navigator.serviceWorker.ready).getNotifications();
  return shown.some(({ data }) => data.messageId === message);
}"""
IS_IN_VIEW: Final = """async (chat) => {
  const { held } = await navigator.locks.query();
  return held.some(({ name }) => name.startsWith("uamp.viewing.") && name.endsWith(chat));
}"""


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("product")) as running:
        yield running


async def until(page: Page, holds: str, argument: str = "") -> None:
    """Wait until an async function of the page returns true; Playwright does not ask it again."""
    waiting = f"""async (argument) => {{
      while (!(await ({holds})(argument))) await new Promise((go) => setTimeout(go, 100));
    }}"""
    await asyncio.wait_for(page.evaluate(waiting, argument), WAIT_SECONDS)


async def deliver(page: Page, origin: str, message: dict[str, Any]) -> None:
    """Deliver a message to the service worker, as the browser does once it has decrypted it."""
    devtools = await page.context.new_cdp_session(page)
    registration_future: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def note(event: dict[str, Any]) -> None:
        for item in event["registrations"]:
            if not registration_future.done():
                registration_future.set_result(item["registrationId"])

    devtools.on("ServiceWorker.workerRegistrationUpdated", note)
    await devtools.send("ServiceWorker.enable")
    registration = await asyncio.wait_for(registration_future, WAIT_SECONDS)
    data = {"origin": origin, "registrationId": registration, "data": json.dumps(message)}
    await devtools.send("ServiceWorker.deliverPushMessage", data)
    await devtools.detach()


@pytest_asyncio.fixture(loop_scope="session", name="notified")
async def notified_browser() -> AsyncIterator[Browser]:
    """Run a full Chromium: the headless shell shows no notifications."""
    path = services.chromium(for_calls=True)
    if path is None:
        pytest.skip("no Chromium: set CHROMIUM or install chromium")
    async with running_browser(path) as running:
        yield running


async def test_the_worker_shows_a_message_unless_its_chat_is_in_view(
    product: Product, notified: Browser
) -> None:
    context = await notified.new_context()
    await context.grant_permissions(["notifications"], origin=product.url)
    page = await sign_in(context, product, "alice")
    await until(page, IS_ACTIVE)
    await until(page, IS_IN_VIEW, product.chat_id)
    in_view = {"title": "bob", "body": "seen", "chat": product.chat_id, "message": "msg_1"}
    other = {"title": "bob", "body": "Lunch?", "chat": "chat_other", "message": "msg_2"}

    await deliver(page, product.url, in_view)
    await deliver(page, product.url, other)
    await until(page, HAS_SHOWN, "msg_2")

    assert await page.evaluate(SHOWN) == [["bob", "Lunch?", "msg_2"]]
    no_complaints(page)

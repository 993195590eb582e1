"""The chats as an app: they can be installed, and open without a connection."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import shutil
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest
from playwright.async_api import expect

from tests.journeys.cable import Cable, cable
from tests.journeys.product import (
    ROOT,
    Product,
    browser,
    fill_in_login,
    no_complaints,
    running_product,
    sign_in,
    signed_in,
    write,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from playwright.async_api import Browser, BrowserContext, Page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

LOGIN: Final = re.compile(r"/login(\?|$)")
WAIT_SECONDS: Final = 120
WORKER_IS_ACTIVE: Final = """async () => {
  const { active } = await navigator.serviceWorker.ready;
  return active.state === "activated";
}"""

STORED: Final = """async () => {
  const texts = [JSON.stringify({ ...localStorage }), JSON.stringify({ ...sessionStorage })];
  for (const name of (await caches.keys()).filter((one) => !one.startsWith("uamp.files."))) {
    const cache = await caches.open(name);
    texts.push(name);
    for (const request of await cache.keys()) {
      texts.push(request.url, await (await cache.match(request)).text());
    }
  }
  return texts.join("\\n");
}"""
IS_STORED: Final = f"async (word) => (await ({STORED})()).includes(word)"
IS_NOT_STORED: Final = f"async (word) => !(await ({STORED})()).includes(word)"
# The page, and something that was read.
IS_KEPT: Final = """async (path) => {
  const page = await caches.match("/", { cacheName: "uamp.page", ignoreVary: true });
  return Boolean(page && (await caches.match(path)));
}"""
IS_KEPT_OF_NEXT: Final = """async () => {
  const kept = await caches.match("/", { cacheName: "uamp.page", ignoreVary: true });
  return Boolean(kept) && (await kept.text()).includes("/app-AAAAAAAA.js");
}"""
NEXT_SCRIPT: Final = "app-AAAAAAAA.js"
# The page's own listener was added before, and is called before this one.
LISTEN: Final = """() => {
  const channel = new BroadcastChannel("uamp.sign-out");
  globalThis.signedOut = new Promise((go) => channel.addEventListener("message", () => go(true)));
}"""
UNREGISTER: Final = "async () => (await navigator.serviceWorker.ready).unregister()"


def say(product: Product, username: str, text: str) -> None:
    """Send a message to the shared chat."""
    with product.api(username) as client:
        path = f"/api/v1/chats/{product.chat_id}/messages"
        client.post(path, json={"content": text}).raise_for_status()


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("product")) as running:
        yield running


@dataclass
class Device:
    """A browser of its own, and the server as it reaches it."""

    context: BrowserContext
    server: Product
    cable: Cable

    async def sign_in(self, username: str) -> Page:
        """Sign in, open the shared chat, and wait until the device keeps it with its page."""
        page = await sign_in(self.context, self.server, username)
        await until(page, IS_KEPT, f"/kept/chats/{self.server.chat_id}")
        return page

    @property
    def chat_url(self) -> str:
        """The address of the shared chat."""
        return f"{self.server.url}/chats/{self.server.chat_id}"


@asynccontextmanager
async def a_device(chromium: Browser, product: Product) -> AsyncIterator[Device]:
    """Use a browser whose connections can be cut."""
    async with cable(product.port) as laid, browser(chromium) as running:
        here = Product(product.data_dir, laid.port, people=product.people, chat_id=product.chat_id)
        yield Device(await running.new_context(), here, laid)


async def until(page: Page, holds: str, argument: str = "") -> None:
    """Wait until an async function of the page returns true; Playwright does not ask it again."""
    waiting = f"""async (argument) => {{
      while (!(await ({holds})(argument))) await new Promise((go) => setTimeout(go, 100));
    }}"""
    try:
        await asyncio.wait_for(page.evaluate(waiting, argument), WAIT_SECONDS)
    except TimeoutError:
        raise AssertionError(f"{argument!r}: {await stored(page)}"[:4_000]) from None


async def stored(page: Page) -> str:
    """Return everything that the device stores, as one text."""
    text: str = await page.evaluate(STORED)
    return text


@pytest.mark.long
async def test_the_chats_can_be_installed(product: Product, chromium: Browser) -> None:
    async with a_device(chromium, product) as device:
        page = await sign_in(device.context, device.server, "alice")
        await until(page, WORKER_IS_ACTIVE)
        devtools = await device.context.new_cdp_session(page)

        answer = await devtools.send("Page.getInstallabilityErrors")
        manifest = await devtools.send("Page.getAppManifest")

        errors = [error["errorId"] for error in answer["installabilityErrors"]]
        # A context of its own is what a browser calls a private window.
        assert [error for error in errors if error != "in-incognito"] == []
        assert manifest["url"] == f"{device.server.url}/manifest/en.webmanifest"
        assert manifest["errors"] == []
        no_complaints(page)


@pytest.mark.long
async def test_a_page_that_is_not_kept_reports_the_lost_connection(
    product: Product, chromium: Browser
) -> None:
    async with a_device(chromium, product) as device:
        page = await sign_in(device.context, device.server, "alice")
        await until(page, WORKER_IS_ACTIVE)
        device.cable.cut()

        await page.goto(f"{device.server.url}/money")

        await expect(page.get_by_role("heading", name="You're offline")).to_be_visible()
        colour = await page.get_by_role("link", name="Open your chats").evaluate(
            "(one) => getComputedStyle(one).backgroundColor"
        )
        assert colour != "rgba(0, 0, 0, 0)"
        no_complaints(page)


async def test_a_chat_that_was_read_opens_without_a_connection(
    product: Product, chromium: Browser
) -> None:
    say(product, "bob", "What **alice** has read")
    async with a_device(chromium, product) as device:
        page = await device.sign_in("alice")
        say(product, "bob", "What came live")
        await expect(page.locator("chat-message").last).to_contain_text("What came live")
        await until(page, IS_STORED, "What came live")
        device.cable.cut()

        await page.reload()

        messages = page.locator("chat-message")
        await expect(messages.last).to_contain_text("What came live")
        await expect(messages.filter(has_text="has read").locator("strong")).to_have_text("alice")
        await expect(page.get_by_test_id("chat-item").first).to_be_visible()
        banner = page.get_by_test_id("banner")
        await expect(banner).to_contain_text("This is the chat as you last saw it.")
        no_complaints(page)


async def test_what_is_written_without_a_connection_is_sent_once_after_a_reload(
    product: Product, chromium: Browser
) -> None:
    say(product, "bob", "To be deleted")
    async with a_device(chromium, product) as device:
        page = await device.sign_in("alice")
        device.cable.cut()
        await page.reload()
        await expect(page.locator("chat-message").last).to_contain_text("To be deleted")
        await write(page, "Written in a tunnel")
        pending = page.get_by_test_id("pending")
        await expect(pending).to_contain_text("Written in a tunnel")
        await page.reload()
        await expect(pending).to_contain_text("Written in a tunnel")
        # Meanwhile the chat goes on.
        with product.api("bob") as client:
            client.delete(f"/api/v1/messages/{product.messages()[-1]['id']}").raise_for_status()
        say(product, "bob", "Said meanwhile")

        device.cable.mend()

        await expect(pending).to_have_count(0, timeout=60_000)
        messages = page.locator("chat-message")
        await expect(messages.last).to_contain_text("Written in a tunnel")
        await expect(messages.filter(has_text="Written in a tunnel")).to_have_count(1)
        await expect(messages.filter(has_text="Said meanwhile")).to_have_count(1)
        await expect(messages.filter(has_text="To be deleted")).to_have_count(0)
        texts = [
            message["content"] for message in product.messages() if "tunnel" in message["content"]
        ]
        assert texts == ["Written in a tunnel"]
        await expect(page.get_by_test_id("banner")).to_be_hidden()
        no_complaints(page)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("has_worker", [True, False], ids=["worker", "header"])
async def test_a_sign_out_leaves_nothing_on_the_device(
    product: Product, chromium: Browser, *, has_worker: bool
) -> None:
    """The worker deletes it, and so does the browser at the word of the server."""
    say(product, "bob", "A secret of bob and alice")
    async with a_device(chromium, product) as device:
        # The session that other tests share goes on.
        page = await signed_in(device.context, device.server, "alice", by_form=True)
        await page.goto(device.chat_url)
        await page.get_by_test_id("composer").fill("A draft")
        other = await device.context.new_page()
        await other.goto(device.chat_url)
        await other.get_by_test_id("composer").fill("A draft elsewhere")
        await other.evaluate(LISTEN)
        await until(page, IS_KEPT, f"/kept/chats/{product.chat_id}")
        await until(page, IS_STORED, "A secret")
        if not has_worker:
            await page.evaluate(UNREGISTER)

        await page.get_by_role("button", name="Sign out").click()

        await page.wait_for_url(LOGIN)
        assert await asyncio.wait_for(other.evaluate("signedOut"), WAIT_SECONDS)
        await other.goto("about:blank")
        for word in ("secret", "draft", "uamp.page", "kept/chats"):
            await until(page, IS_NOT_STORED, word)


@pytest.mark.long
async def test_a_sign_out_without_a_connection_deletes_what_the_device_keeps(
    product: Product, chromium: Browser
) -> None:
    say(product, "bob", "A secret of bob and alice")
    async with a_device(chromium, product) as device:
        page = await device.sign_in("alice")
        await until(page, IS_STORED, "A secret")
        device.cable.cut()
        await page.reload()
        await expect(page.locator("chat-message").last).to_contain_text("A secret")

        await page.get_by_role("button", name="Sign out").click()

        await expect(page.get_by_text("Sign out again when you're back online.")).to_be_visible()
        assert "secret" not in await stored(page)
        await page.goto(device.chat_url)
        await expect(page.get_by_role("heading", name="You're offline")).to_be_visible()


async def test_the_next_person_finds_nothing_of_the_one_before(
    product: Product, chromium: Browser
) -> None:
    """The session of alice ended without a sign-out: it expired, or an operator ended it."""
    say(product, "bob", "A secret of bob and alice")
    async with a_device(chromium, product) as device:
        page = await device.sign_in("alice")
        await until(page, IS_STORED, "A secret")
        await page.get_by_test_id("composer").fill("A draft of mine")
        await page.goto("about:blank")
        await device.context.clear_cookies()
        await page.goto(device.chat_url)
        await page.wait_for_url(LOGIN)
        # Her drafts wait for her; what the server has is not on the device any more.
        left = await stored(page)
        assert "A draft of mine" in left
        assert "secret" not in left
        assert "uamp.page" not in left

        await fill_in_login(page, device.server, "admin")

        await until(page, IS_KEPT, "/kept/chats")
        left = await stored(page)
        assert "A draft of mine" not in left
        assert "secret" not in left
        device.cable.cut()
        await page.goto(device.chat_url)
        await expect(page.get_by_text("admin").first).to_be_visible()
        assert "secret" not in await page.content()


@pytest.mark.long
async def test_a_change_of_person_without_the_login_page_deletes_too(
    product: Product, chromium: Browser
) -> None:
    say(product, "bob", "A secret of bob and alice")
    async with a_device(chromium, product) as device:
        before = await device.sign_in("alice")
        await until(before, IS_STORED, "A secret")
        page = await signed_in(device.context, device.server, "admin")

        await page.goto(f"{device.server.url}/")

        await until(page, IS_NOT_STORED, "secret")
        await until(page, IS_KEPT, "/kept/chats")
        device.cable.cut()
        await page.reload()
        await expect(page.get_by_text("admin").first).to_be_visible()


def next_release(folder: Path) -> Path:
    """Copy the code, with another first script in its bundle, which says so."""
    ignored = shutil.ignore_patterns(".git", ".venv", "tests", "docs", "var", "__pycache__")
    shutil.copytree(ROOT, folder, ignore=ignored)
    dist = folder / "static" / "dist"
    manifest = json.loads((dist / "manifest.json").read_text())
    (old,) = (name for name in manifest["files"] if name.startswith("app-"))
    script = (dist / old).read_bytes() + b"\nglobalThis.isNextRelease = true;\n"
    (dist / NEXT_SCRIPT).write_bytes(script)
    for path in dist.glob(f"{old}*"):
        path.unlink()
    del manifest["files"][old]
    manifest["files"][NEXT_SCRIPT] = hashlib.sha256(script).hexdigest()
    manifest["entries"] = {
        source: [NEXT_SCRIPT if name == old else name for name in names]
        for source, names in manifest["entries"].items()
    }
    (dist / "manifest.json").write_text(json.dumps(manifest))
    return folder


@pytest.mark.long
async def test_the_page_of_the_next_release_takes_the_place_of_the_one_before(
    product: Product, chromium: Browser, tmp_path: Path
) -> None:
    async with a_device(chromium, product) as device:
        page = await device.sign_in("alice")
        device.cable.cut()
        # The page of the release before comes with all of its files, until the next one was seen.
        await page.reload()
        await expect(page.get_by_test_id("composer")).to_be_enabled()
        assert not await page.evaluate("globalThis.isNextRelease ?? false")
        product.stop()
        product.folder = next_release(tmp_path / "next")
        product.start()
        device.cable.mend()
        await page.reload(wait_until="commit")
        await expect(page.get_by_test_id("composer")).to_be_enabled()
        await until(page, IS_KEPT_OF_NEXT)
        assert await page.evaluate("globalThis.isNextRelease")
        no_complaints(page)

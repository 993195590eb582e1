"""Members verify a chat in their browser, which says what it found and what it could not verify."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.client import wait_until
from tests.journeys.changed_rows import (
    CHEAPER,
    MESSAGE,
    OTHER_EVENT,
    OTHER_RECORD,
    REWRITTEN_LOG,
    REWRITTEN_TREE,
)
from tests.journeys.paying_person import PayingPerson
from tests.journeys.product import Product, browser, no_complaints, running_product, write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.async_api import Browser, Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

# A new key signs the head of the log.
ROTATE_LOG = """
from chat_app.log.checkpoints import checkpoint_of
from chat_app.models import LogCheckpoint
from signing_app import owner_keys
owner_keys.rotate(owner_keys.LOG)
LogCheckpoint.objects.filter(chat_id="{chat}").delete()
checkpoint_of("{chat}")
print("KID", owner_keys.signing_key(owner_keys.LOG).kid)
"""
# The newest message, which the log has.
REMOVE = """
from chat_app.models import Message
Message.objects.filter(chat_id="{chat}").latest("seq").delete()
"""
IN_TREE = "The end of the log is in the server's checkpoint."
TREE_CONTINUES = "The server's checkpoint continues the one that this browser saw on"
LOG_CONTINUES = "The log continues the one that you checked on"
NOT_SENT = """
document.querySelector("form[action$=logout]")
  .addEventListener("submit", (event) => event.preventDefault())
"""
NO_CRYPTOGRAPHY = "Object.defineProperty(crypto, 'subtle', { value: undefined })"

# What the page says of each change when the chat is verified.
CHANGES = {
    OTHER_EVENT: {"This log entry was changed or inserted later."},
    OTHER_RECORD: {
        (
            "The message is exactly what the agent signed, but the stored answer that"
            " other programs read was changed."
        )
    },
    CHEAPER: {"The agent signed a different price: $1.00."},
    MESSAGE: {
        "This message differs from the one in the log.",
        "The question isn't the one that was answered.",
    },
}


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("product")) as running:
        yield running


async def signed_page(payer: PayingPerson, running: Browser) -> Page:
    """Return a page with an answer that was paid and signed."""
    page = await payer.open(running)
    await write(page, "A house of wood")
    await page.get_by_test_id("pay").click()
    badge = page.get_by_test_id("signature")
    await expect(badge).to_have_attribute("data-state", "valid")
    return page


async def verify_chat(
    page: Page, *facts: str, verdict: str | None = None, text: str = ""
) -> list[str]:
    """Verify the open chat, and return the sentences of the problems.

    `facts` are shown below them, `text` begins the verdict.
    """
    await page.get_by_test_id("signature").click()
    await page.get_by_test_id("signature-details").get_by_test_id("verify-chat").click()
    dialog = page.get_by_test_id("verify-dialog")
    line = dialog.get_by_test_id("verify-verdict")
    await expect(line).to_be_visible()
    rows = dialog.get_by_test_id("verify-problem").locator("span")
    sentences = await rows.all_inner_texts()
    await expect(line).to_have_attribute("data-problems", str(len(sentences)))
    state = verdict or ("changed" if sentences else "unchanged")
    await expect(line).to_have_attribute("data-verdict", state)
    await expect(line).to_contain_text(text)
    for fact in ("signed the end of the log", *facts):
        await expect(dialog).to_contain_text(fact)
    await dialog.get_by_role("button", name="Close").click()
    return sentences


async def test_each_row_that_is_changed_shows_when_the_chat_is_verified(
    product: Product, chromium: Browser
) -> None:
    payer = PayingPerson(product, money="10")
    async with browser(chromium) as running:
        page = await signed_page(payer, running)
        assert await verify_chat(page) == []
        expected: set[str] = set()
        for change, sentences in CHANGES.items():
            product.run(change.replace("{chat}", payer.chat_id))
            expected |= sentences
            assert set(await verify_chat(page)) == expected
        no_complaints(page)


async def test_a_head_that_a_new_key_signed_is_not_a_change(
    product: Product, chromium: Browser
) -> None:
    payer = PayingPerson(product, money="10")
    async with browser(chromium) as running:
        page = await signed_page(payer, running)
        assert await verify_chat(page) == []
        printed = product.run(ROTATE_LOG.replace("{chat}", payer.chat_id))
        kid = printed.split("KID ")[1].split()[0]
        with product.api(payer.name) as client:
            wait_until(lambda: kid in client.get("/.well-known/jwks.json").text)
        # The browser has the keys of the first check in its cache.
        assert await verify_chat(page) == []
        no_complaints(page)


def describe(payer: PayingPerson, description: str) -> None:
    """Write an entry to the log of the chat."""
    with payer.product.api(payer.name) as client:
        path = f"/api/v1/chats/{payer.chat_id}"
        client.patch(path, json={"description": description}).raise_for_status()


async def test_a_log_that_was_rewritten_since_the_last_check_shows(
    product: Product, chromium: Browser
) -> None:
    """The server computed the whole chain anew, signed its end and added it to the tree."""
    payer = PayingPerson(product, money="10")
    async with browser(chromium) as running:
        page = await signed_page(payer, running)
        assert await verify_chat(page, IN_TREE) == []
        describe(payer, "Houses")
        await page.reload()
        assert await verify_chat(page, IN_TREE, LOG_CONTINUES, TREE_CONTINUES) == []
        product.run(REWRITTEN_LOG.replace("{chat}", payer.chat_id))
        text = "This chat's history was rewritten since you checked it on"
        # It is the same again: the browser still expects the log that it verified.
        for _ in range(2):
            (sentence,) = await verify_chat(page, IN_TREE, verdict="rewritten", text=text)
            assert sentence.startswith("This entry differs from the one that was here on")
        # Another browser has nothing to compare.
        other = await payer.open(running)
        assert await verify_chat(other, IN_TREE) == []
        no_complaints(page)


async def test_a_checkpoint_that_does_not_continue_the_last_one_shows(
    product: Product, chromium: Browser
) -> None:
    payer = PayingPerson(product, money="10")
    async with browser(chromium) as running:
        page = await signed_page(payer, running)
        assert await verify_chat(page, IN_TREE) == []
        product.run(REWRITTEN_TREE.replace("{chat}", payer.chat_id))
        describe(payer, "Houses")
        (sentence,) = await verify_chat(page, LOG_CONTINUES)
        assert sentence.startswith("The server's checkpoint doesn't continue the one")
        no_complaints(page)


async def test_a_sign_out_forgets_what_was_checked(product: Product, chromium: Browser) -> None:
    """The page does so by itself, without the server's `Clear-Site-Data`."""
    payer = PayingPerson(product, money="10")
    checked = "Object.keys(localStorage).filter((key) => key.startsWith('uamp.checked-logs'))"
    async with browser(chromium) as running:
        page = await signed_page(payer, running)
        assert await verify_chat(page) == []
        assert len(await page.evaluate(checked)) == 1
        await page.evaluate(NOT_SENT)
        await page.get_by_role("button", name="Sign out").click()
        assert await page.evaluate(checked) == []


async def verify_from_the_list(page: Page) -> Locator:
    """Begin to verify the chat, and return the dialog."""
    await page.get_by_test_id("chat-item").filter(has_text="Payments").click(button="right")
    await page.get_by_test_id("chat-menu").get_by_role("menuitem", name="Verify…").click()
    return page.get_by_test_id("verify-dialog")


async def test_a_check_says_what_it_could_not_verify(product: Product, chromium: Browser) -> None:
    payer = PayingPerson(product, money="10")
    async with browser(chromium) as running:
        page = await signed_page(payer, running)
        product.run(REMOVE.replace("{chat}", payer.chat_id))
        dialog = await verify_from_the_list(page)
        verdict = dialog.get_by_test_id("verify-verdict")
        await expect(verdict).to_have_attribute("data-verdict", "incomplete")
        await expect(verdict).to_have_text(
            "No change was found, but not everything could be verified."
        )
        await expect(dialog.get_by_test_id("verify-gaps")).to_contain_text(
            "Messages that the log has and the chat doesn't: 1."
        )
        no_complaints(page)


async def test_a_check_that_fails_says_why(product: Product, chromium: Browser) -> None:
    payer = PayingPerson(product, money="10")
    async with browser(chromium) as running:
        page = await payer.open(running)
        await write(page, "A house of wood")
        await page.get_by_test_id("pay").wait_for()

        async def fails(text: str) -> None:
            dialog = await verify_from_the_list(page)
            await expect(dialog.get_by_role("alert")).to_have_text(text)
            await expect(dialog.get_by_role("progressbar")).to_have_count(0)
            await dialog.get_by_role("button", name="Close").click()

        await page.route("**/export?*", lambda route: route.fulfill(body='{"type": "chat"'))
        await fails("The chat couldn't be read to the end.")
        await page.unroute("**/export?*")
        await page.route("**/jwks.json", lambda route: route.abort())
        await fails("Couldn't reach the server.")
        await page.unroute("**/jwks.json")
        no_complaints(page)
        # A key that no one can read.
        keys = {"keys": [{"uamp_owner": "log", "kty": "OKP", "crv": "Ed25519", "x": "!"}]}
        await page.route("**/jwks.json", lambda route: route.fulfill(json=keys))
        await fails("The check failed.")
        assert page.complaints.pop()  # type: ignore[attr-defined]
        no_complaints(page)
        await page.unroute("**/jwks.json")
        # Such as over http without a TLS proxy.
        await page.add_init_script(NO_CRYPTOGRAPHY)
        await page.reload()
        await page.get_by_test_id("message").first.wait_for()
        await fails("This browser can't verify the chat here. It needs an https address.")
        no_complaints(page)

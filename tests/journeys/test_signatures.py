"""The badge of an answer: the browser verifies the agent's signature."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from playwright.async_api import expect

from tests.journeys.changed_rows import CHEAPER, OTHER_RECORD
from tests.journeys.paying_person import PayingPerson
from tests.journeys.product import (
    Product,
    browser,
    no_complaints,
    running_product,
    sign_in,
    write,
)
from uamp.command_line.program import program

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.async_api import Browser, Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

# A person with access only to the database changes one letter of a stored text. The log has it too:
# a page that opens reads the history, and the session repeats the newest entries of the log.
CHANGE = """
from chat_app.models import ChatEvent, Message
row = Message.objects.filter({which}).order_by("-seq").first()
text = row.content.replace("wood", "food")
Message.objects.filter(pk=row.pk).update(content=text)
entry = ChatEvent.objects.get(chat_id=row.chat_id, seq=row.seq)
entry.payload["message"]["content"] = text
entry.save()
"""
KEYS = """
from signing_app import owner_keys
from signing_app.models import PublishedKey
{act}
"""
ROTATE = "for owner in owner_keys.owners(): owner_keys.rotate(owner)"
WITHDRAW = "for key in PublishedKey.objects.all(): owner_keys.withdraw(key.pk)"
FORGET = """
from chat_app.models import ChatEvent
row = ChatEvent.objects.filter(type="response.done").order_by("-seq").first()
row.payload.pop("signature")
row.save()
"""


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("product")) as running:
        yield running


def badge_of(page: Page) -> Locator:
    """Return the badge of the newest answer that has one."""
    return page.get_by_test_id("signature").last


async def shows(page: Page, state: str, text: str, request: str = "same") -> None:
    await expect(badge_of(page)).to_have_attribute("data-state", state)
    await expect(badge_of(page)).to_have_attribute("data-request", request)
    await expect(badge_of(page)).to_have_text(text)


async def is_marked_as_agent(page: Page) -> None:
    """Check that people see an agent in its answer, and on its card among the members."""
    head = page.locator(".message-head", has_text="echo").last
    await expect(head.locator(".badge").first).to_have_text("agent")
    panel = page.locator("members-panel")
    if not await panel.is_visible():
        await page.get_by_test_id("members").click()
    await expect(panel.get_by_role("heading", name="Agents")).to_be_visible()
    await panel.get_by_role("button", name="echo", exact=True).click()
    card = page.get_by_test_id("profile-card")
    await expect(card.locator(".badge", has_text="agent")).to_be_visible()
    await page.keyboard.press("Escape")


async def covers_no_answer(page: Page) -> None:
    """Check that the open details are in the column of the log, and not over their answer."""
    details = await page.get_by_test_id("signature-details").bounding_box()
    answer = await page.locator("chat-message .bubble").last.bounding_box()
    column = await page.locator("chat-view").bounding_box()
    assert details is not None
    assert answer is not None
    assert column is not None
    assert column["x"] <= details["x"]
    assert details["x"] + details["width"] <= column["x"] + column["width"]
    is_above = details["y"] + details["height"] <= answer["y"]
    assert is_above or details["y"] >= answer["y"] + answer["height"]


async def reads_what_was_signed(page: Page) -> None:
    """Open and close the details of the newest badge by keyboard."""
    await badge_of(page).press("Enter")
    details = page.get_by_test_id("signature-details")
    for text in ("exactly what the agent signed", "is the one that was answered", "Made by AI"):
        await expect(details).to_contain_text(text)
    await expect(details.locator("dd").first).to_have_text("echo")
    await covers_no_answer(page)
    await details.press("Escape")
    await expect(details).to_have_count(0)
    await expect(badge_of(page)).to_be_focused()
    # A second click closes what the first one opened.
    for is_open in (True, False):
        await badge_of(page).click()
        await expect(details).to_have_count(int(is_open))
        await expect(badge_of(page)).to_have_attribute("aria-expanded", str(is_open).lower())


async def saved_proof(page: Page, folder: Path) -> Path:
    """Download the proof of the newest answer."""
    await page.get_by_role("button", name="More actions for echo's message").last.click()
    async with page.expect_download() as download:
        await page.get_by_role("menuitem", name="Download proof").click()
    file = folder / (await download.value).suggested_filename
    await (await download.value).save_as(file)
    return file


def verified(file: Path) -> int:
    return CliRunner().invoke(program, ["verify", str(file)]).exit_code


async def test_the_badge_shows_what_became_of_an_answer(
    product: Product, chromium: Browser, tmp_path: Path
) -> None:
    async with browser(chromium) as running:
        page = await sign_in(await running.new_context(), product, "alice")
        await write(page, "@echo a house of wood")
        # Live, from the event that ended the answer, and again from history.
        await shows(page, "valid", "Signed")
        await is_marked_as_agent(page)
        await page.reload()
        await shows(page, "valid", "Signed")
        assert verified(await saved_proof(page, tmp_path)) == 0
        await reads_what_was_signed(page)

        product.run(CHANGE.format(which='role="assistant"'))
        await page.reload()
        await shows(page, "changed", "Changed")

        await write(page, "@echo of wood again")
        await shows(page, "valid", "Signed")
        product.run(OTHER_RECORD)
        await page.reload()
        await shows(page, "changed", "Stored copy changed")

        await write(page, "@echo of wood once more")
        await shows(page, "valid", "Signed")
        product.run(KEYS.format(act=ROTATE))
        # The browser caches keys for minutes; another browser reads them anew.
        other = await sign_in(await running.new_context(), product, "alice")
        await shows(other, "rotated", "Signed, key rotated")
        product.run(CHANGE.format(which='role="user"'))
        await other.reload()
        await shows(other, "rotated", "Question changed", request="changed")
        product.run(KEYS.format(act=WITHDRAW))
        third = await sign_in(await running.new_context(), product, "alice")
        await shows(third, "unknown_key", "Key unknown", request="absent")
        product.run(FORGET)
        await third.reload()
        await shows(third, "unsigned", "Unsigned", request="absent")
        no_complaints(page, other, third)


@pytest.mark.long
async def test_a_receipt_is_downloaded_and_shows_a_price_that_was_changed(
    product: Product, chromium: Browser, tmp_path: Path
) -> None:
    payer = PayingPerson(product, money="10")
    async with browser(chromium) as running:
        page = await payer.open(running)
        await write(page, "Hello")
        await page.get_by_test_id("pay").click()
        receipt = page.get_by_test_id("receipt")
        await receipt.locator("summary").click()
        badge = page.get_by_test_id("receipt-signature")
        await expect(badge).to_have_attribute("data-state", "valid")
        async with page.expect_download() as download:
            await page.get_by_test_id("save-receipt").click()
        file = tmp_path / "receipt.json"
        await (await download.value).save_as(file)
        done = CliRunner().invoke(program, ["verify", str(file)])
        assert (done.exit_code, done.output.startswith("1 USD for an answer by ")) == (0, True)
        product.run(CHEAPER)
        await page.reload()
        await receipt.locator("summary").click()
        await expect(badge).to_have_attribute("data-state", "changed")
        await expect(badge).to_have_text(
            "Receipt changed. The agent signed a different price: $1.00."
        )
        no_complaints(page)


async def test_the_receipt_of_a_deleted_answer_stays_valid(
    product: Product, chromium: Browser, tmp_path: Path
) -> None:
    payer = PayingPerson(product, money="10")
    async with browser(chromium) as running:
        page = await payer.open(running)
        await write(page, "Hello")
        await page.get_by_test_id("pay").click()
        receipt = page.get_by_test_id("receipt")
        await receipt.locator("summary").click()
        badge = page.get_by_test_id("receipt-signature")
        await expect(badge).to_have_attribute("data-state", "valid")
        with product.api(payer.name) as client:
            rows = client.get(f"/api/v1/chats/{payer.chat_id}/messages").json()["data"]
            answer = next(row for row in rows if row["sender_kind"] == "agent")
            client.delete(f"/api/v1/messages/{answer['id']}").raise_for_status()
        await expect(page.get_by_test_id("deleted")).to_have_count(1)
        await expect(badge).to_have_attribute("data-state", "valid")
        # Back in the window, the page reads a receipt that no longer names the signature.
        document = "document.querySelector('receipt-badge').receipt.document"
        before = await page.evaluate(document)
        await page.evaluate("dispatchEvent(new Event('focus'))")
        await page.wait_for_function(f"before => {document} !== before", arg=before)
        await expect(badge).to_have_attribute("data-state", "valid")
        async with page.expect_download() as download:
            await page.get_by_test_id("save-receipt").click()
        file = tmp_path / "receipt.json"
        await (await download.value).save_as(file)
        done = CliRunner().invoke(program, ["verify", str(file)])
        assert done.exit_code == 0, done.output
        no_complaints(page)

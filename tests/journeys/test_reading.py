"""Reading and writing in the page: positions, focus, and help.

Runs against the product as started by `make run`: daphne, SQLite, a Celery child.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.journeys.attachments import WORK_MS, attach, photo
from tests.journeys.paying_person import PayingPerson
from tests.journeys.product import (
    Product,
    browser,
    fill_in_login,
    no_complaints,
    running_product,
    sign_in,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.async_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

ARABIC = "مرحبا بالعالم"
LONG = "\n\n".join(f"Paragraph {number}" for number in range(1, 41))
# The page shrinks and grows in one frame, as when an answer is replaced by its stored message.
SHRINK_AND_GROW = """async (goesOn) => {
  const list = document.querySelector("message-list");
  const place = list.querySelector(".log-messages");
  const frames = async () => {
    for (let i = 0; i < 4; i += 1) await new Promise(requestAnimationFrame);
    // What comes now is a task of its own: its scrolling is reported before its sizes are observed.
    await new Promise((go) => setTimeout(go));
  };
  const grow = (height) => {
    const box = document.createElement("div");
    box.style.height = `${height}px`;
    place.append(box);
    return box;
  };
  const answer = grow(900);
  await frames();
  answer.remove();
  const log = list.querySelector(".log");
  if (goesOn) {
    list.toBottom();
    grow(400);
    list.toBottom();
    grow(300);
  } else {
    // Reading it, the browser scrolls up to the end that there is.
    log.scrollHeight;
    grow(1500);
  }
  await frames();
  return log.scrollHeight - log.scrollTop - log.clientHeight;
}"""
ORDER = """() => Array.from(document.querySelectorAll("chat-message, live-response"), (view) =>
  (view.querySelector(".message-ending") || view.querySelector(".markdown")).textContent.trim())"""


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("product"), has_workers=True) as running:
        with running.api("alice") as client:
            path = f"/api/v1/chats/{running.chat_id}/participants"
            for agent in ("fail", "careful"):
                client.post(path, json={"agent": agent}).raise_for_status()
        yield running


async def focused(page: Page) -> str | None:
    """Return the name of the focused element."""
    name: str | None = await page.evaluate(
        "document.activeElement.getAttribute('aria-label') || document.activeElement.localName"
    )
    return name


async def test_the_page_follows_an_answer_and_scrolls_nowhere_else(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), product, "alice")
        bob = await sign_in(await running.new_context(), product, "bob")
        await write(alice, f"@echo {LONG}")
        await expect(alice.get_by_test_id("message-body").last).to_contain_text("Paragraph 40")
        await expect(alice.get_by_text("Read by bob")).to_have_count(1)
        for goes_on in (True, False):
            assert await alice.evaluate(SHRINK_AND_GROW, goes_on) < 60
        await expect(alice.get_by_test_id("jump")).to_be_hidden()
        # Text for screen readers only must not make the page taller than the window.
        for page in (alice, bob):
            await page.get_by_test_id("message").first.evaluate("view => view.scrollIntoView()")
            assert await page.evaluate("document.scrollingElement.scrollHeight <= innerHeight")
        # The button disappears once pressed, and the focus stays in the chat.
        jump = bob.get_by_test_id("jump")
        await expect(jump).to_be_visible()
        await jump.focus()
        await bob.keyboard.press("Enter")
        await expect(jump).to_be_hidden()
        assert await focused(bob) == "Messages"
        no_complaints(alice, bob)


@pytest.mark.long
async def test_a_question_stays_in_sight_for_who_reads_its_answer_from_there(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        # A low window, in which ten seconds of an answer do not fit.
        low = await running.new_context(viewport={"width": 1000, "height": 420})
        alice = await sign_in(low, product, "alice")
        await alice.get_by_test_id("settings").click()
        await alice.locator("#settings-tab-appearance").click()
        await alice.get_by_role("switch", name="Follow an answer as it's written").click()
        await alice.keyboard.press("Escape")
        # Other members' views of the same chat still follow.
        bob = await sign_in(await running.new_context(), product, "bob")
        question = alice.get_by_test_id("message").filter(has_text="count, please").last
        await write(alice, "@slow count, please")
        jump = alice.get_by_test_id("jump")
        await expect(jump).to_be_visible(timeout=WORK_MS)
        await expect(bob.get_by_test_id("jump")).to_be_hidden()
        at = "view => view.getBoundingClientRect().top"
        top = await alice.locator("chat-view .log").evaluate(at)
        place = await question.evaluate(at)
        assert place == pytest.approx(top, abs=2)
        # A reader who jumps to the end follows the answer again.
        await jump.click()
        await expect(jump).to_be_hidden()
        before = await question.evaluate(at)
        await alice.wait_for_function(
            f"([view, before]) => ({at})(view) < before - 60",
            arg=[await question.element_handle(), before],
        )
        await expect(jump).to_be_hidden()
        await alice.get_by_test_id("stop").click()
        no_complaints(alice, bob)


async def test_each_block_is_written_in_its_own_direction(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        page = await sign_in(await running.new_context(), product, "alice")
        await page.get_by_test_id("composer").fill(ARABIC)
        direction = "element => getComputedStyle(element).direction"
        assert await page.get_by_test_id("composer").evaluate(direction) == "rtl"
        await write(page, f"{ARABIC}\n\n- {ARABIC}\n\nEnglish\n\n```\ncode\n```")
        message = page.get_by_test_id("message").last
        await expect(message.locator("pre")).to_have_text("code")
        expected = {"p >> nth=0": "rtl", "ul": "rtl", "p >> nth=1": "ltr", "pre": "ltr"}
        for selector, expected_direction in expected.items():
            assert await message.locator(selector).evaluate(direction) == expected_direction
        no_complaints(page)


@pytest.mark.long
async def test_a_page_from_right_to_left_fits_a_phone(product: Product, chromium: Browser) -> None:
    async with browser(chromium) as running:
        context = await running.new_context(viewport={"width": 390, "height": 780})
        page = await sign_in(context, product, "alice")
        await page.evaluate("document.documentElement.dir = 'rtl'")
        await expect(page.get_by_test_id("composer")).to_be_visible()
        # It is hidden beyond the edge at which lines begin, and does not make the page scroll.
        sides = "all => all.map((one) => Math.round(one.getBoundingClientRect().left))"
        await expect(page.locator(".sidebar")).not_to_be_in_viewport()
        assert min(await page.locator(".sidebar").evaluate_all(sides)) >= 390
        too_wide = "document.documentElement.scrollWidth > innerWidth"
        assert not await page.evaluate(too_wide)
        await page.get_by_test_id("members").click()
        await expect(page.locator("members-panel")).to_be_visible()
        assert await page.locator("members-panel").evaluate_all(sides) == [0]
        assert not await page.evaluate(too_wide)
        no_complaints(page)


@pytest.mark.long
async def test_an_answer_that_was_not_paid_stays_where_it_was_asked_for(
    product: Product, chromium: Browser
) -> None:
    payer = PayingPerson(product, money="10")
    async with browser(chromium) as running:
        page = await payer.open(running)
        ended = page.locator(".message-ending")
        for count, text in enumerate(("First", "Second"), start=1):
            await write(page, text)
            await page.get_by_test_id("pay-cancel").click()
            await expect(ended).to_have_count(count)
        expected = ["First", "Stopped by you", "Second", "Stopped by you"]
        assert await page.evaluate(ORDER) == expected
        await page.reload()
        await expect(ended).to_have_count(2)
        assert await page.evaluate(ORDER) == expected
        no_complaints(page)


@pytest.mark.long
async def test_a_question_whose_answer_failed_can_be_asked_again(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), product, "alice")
        bob = await sign_in(await running.new_context(), product, "bob")
        await write(alice, "@fail a question to fail at")
        again = alice.get_by_test_id("ask-again")
        await expect(alice.locator("#announcer")).to_contain_text("answer failed. The model failed")
        # The stored message replaces the live answer.
        await expect(alice.get_by_test_id("live-response")).to_have_count(0)
        await expect(again).to_have_count(1)
        await again.click()
        await expect(alice.get_by_test_id("composer")).to_have_value("@fail a question to fail at")
        await expect(alice.get_by_test_id("composer")).to_be_focused()
        await alice.reload()
        await expect(again).to_have_count(1)
        # Other members cannot ask again.
        last = bob.get_by_test_id("message").last
        await expect(last.locator(".message-ending")).to_have_count(1)
        await expect(bob.get_by_test_id("ask-again")).to_have_count(0)
        no_complaints(alice, bob)


@pytest.mark.long
async def test_a_stopped_tool_is_not_shown_as_done(
    product: Product, chromium: Browser, tmp_path: Path
) -> None:
    async with browser(chromium) as running:
        page = await sign_in(await running.new_context(), product, "alice")
        await attach(page, photo(tmp_path / "rome.png", 60, 40), "@careful turn it left")
        await expect(page.get_by_test_id("approval")).to_have_count(1)
        await page.get_by_test_id("stop").click()
        await expect(page.get_by_test_id("live-response")).to_have_count(0)
        tool = page.get_by_test_id("tool").last
        await expect(tool).to_contain_text("stopped")
        await page.reload()
        await expect(tool).to_contain_text("stopped")
        no_complaints(page)


@pytest.mark.long
async def test_the_focus_moves_to_the_next_thing_to_do(product: Product, chromium: Browser) -> None:
    async with browser(chromium) as running:
        page = await sign_in(await running.new_context(), product, "alice")
        # A chat that has been chosen is ready to write in.
        await page.get_by_test_id("chat-item").first.focus()
        await page.keyboard.press("Enter")
        await expect(page.get_by_test_id("composer")).to_be_focused()
        button = page.get_by_test_id("members")
        await expect(button).to_have_attribute("aria-expanded", "true")
        await page.get_by_role("button", name="Close the member list").focus()
        await page.keyboard.press("Enter")
        await expect(button).to_have_attribute("aria-expanded", "false")
        await expect(button).to_be_focused()
        await page.get_by_test_id("new-chat").focus()
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("textbox", name="Name")).to_be_focused()
        await page.keyboard.press("Escape")
        await expect(page.get_by_test_id("new-chat")).to_be_focused()
        no_complaints(page)


@pytest.mark.long
async def test_operators_find_the_admin(product: Product, chromium: Browser) -> None:
    async with browser(chromium) as running:
        page = await (await running.new_context()).new_page()
        for name, links in (("admin", 1), ("alice", 0)):
            await page.context.clear_cookies()
            await fill_in_login(page, product, name)
            await expect(page.get_by_role("link", name="Admin", exact=True)).to_have_count(links)


def send_speech(product: Product, samples: bytes) -> None:
    """Send PCM speech samples to the chat."""
    events = [
        {"type": "session.create", "uamp_version": "1.0", "chat": product.chat_id, "session": {}},
        {
            "type": "input.audio",
            "audio": base64.b64encode(samples).decode(),
            "format": "pcm16",
            "is_final": True,
        },
        {"type": "response.create"},
    ]
    with product.api("bob") as client:
        frames = client.post("/uamp", json=events).raise_for_status().json()
    assert not any(frame["type"].endswith("error") for frame in frames), frames


@pytest.mark.long
async def test_sound_plays(product: Product, chromium: Browser) -> None:
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), product, "alice")
        send_speech(product, b"\x00\x10\x00\xf0" * 24_000)

        player = alice.get_by_test_id("sound")
        await player.get_by_test_id("play").click()
        await expect(player).to_have_attribute("data-state", "playing")
        # It lasts two seconds and can then be played again.
        await expect(player).to_have_attribute("data-state", "paused")
        await expect(player.locator("input[type=range]")).to_have_attribute("max", "2")
        no_complaints(alice)

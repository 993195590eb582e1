"""The main job: people in real browsers talk in one chat with an agent that streams to all.

Runs against the product as started by `make run`: daphne, SQLite, a Celery child.
"""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.journeys.product import (
    Product,
    browser,
    no_complaints,
    running_product,
    sign_in,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.async_api import Browser, Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

WORDS = " ".join(f"word{number}" for number in range(1, 201))
RELOADS = 10
STEADY_AGENT = """
from agents_app.models import Agent
options = {"script": "slow", "delay": 0.15}
Agent.objects.get_or_create(name="steady", defaults={"is_public": True, "options": options})
"""
STREAM_MS = 40_000
NOTES = """() => {
  window.said = [];
  const note = document.querySelector(".composer-note");
  new MutationObserver(() => window.said.push(note.textContent)).observe(
    note, { childList: true, characterData: true, subtree: true },
  );
}"""


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("product"), has_workers=True) as running:
        yield running


def make_steady(product: Product) -> None:
    """Add an agent slow enough to watch its answer grow even on a busy machine."""
    product.run(STEADY_AGENT)
    with product.api("alice") as client:
        path = f"/api/v1/chats/{product.chat_id}/participants"
        client.post(path, json={"agent": "steady"}).raise_for_status()


async def last_text(page: Page) -> str:
    """Return the text of the newest answer as shown on the page."""
    text = await page.get_by_test_id("message-body").last.text_content()
    return (text or "").strip()


@pytest.mark.long
async def test_a_refresh_at_ten_points_of_a_stream_loses_and_doubles_nothing(
    deployment: Product, chromium: Browser
) -> None:
    make_steady(deployment)
    before = len(deployment.messages())
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), deployment, "alice")
        bob = await sign_in(await running.new_context(), deployment, "bob")
        await write(alice, "@steady count, please")

        seen: list[str] = []
        for _ in range(RELOADS):
            live = bob.get_by_test_id("live-response").get_by_test_id("message-body")
            # At each point, there is more to lose than at the one before.
            further = f"word{len(seen[-1].split()) + 1}" if seen else "word1"
            await expect(live).to_contain_text(further, timeout=STREAM_MS)
            seen.append(await last_text(bob))
            await bob.reload()
            await asyncio.sleep(0.25)
        for page in (alice, bob):
            await expect(page.get_by_test_id("live-response")).to_have_count(0, timeout=STREAM_MS)

        # The text on the page at each point is a prefix of the answer, to the letter.
        assert [text for text in seen if not WORDS.startswith(text)] == []
        assert seen == sorted(seen, key=len)
        assert len(set(seen)) == RELOADS
        stored = deployment.messages()[-1]
        assert stored["content"] == WORDS
        assert [await last_text(page) for page in (alice, bob)] == [WORDS, WORDS]
        assert len(deployment.messages()) == before + 2
        await expect(bob.get_by_test_id("message")).to_have_count(len(deployment.messages()))
        no_complaints(alice, bob)


async def test_both_browsers_see_an_answer_grow(deployment: Product, chromium: Browser) -> None:
    make_steady(deployment)
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), deployment, "alice")
        bob = await sign_in(await running.new_context(), deployment, "bob")
        await write(bob, "@steady again")
        for page in (alice, bob):
            live = page.get_by_test_id("live-response").get_by_test_id("message-body")
            await expect(live).to_contain_text("word10 ", timeout=STREAM_MS)
            assert WORDS.startswith(await last_text(page))

        await bob.get_by_test_id("stop").click()
        for page in (alice, bob):
            await expect(page.get_by_test_id("live-response")).to_have_count(0)
        stored = deployment.messages()[-1]
        assert stored["status"] == "cancelled"
        assert WORDS.startswith(stored["content"])
        assert await last_text(alice) == stored["content"]
        no_complaints(alice, bob)


def live_answers(page: Page) -> Locator:
    """Return the running answers; an answer stopped before its first word stays on the page."""
    return page.locator('[data-testid="live-response"][data-status="running"]')


@pytest.mark.long
async def test_a_member_does_not_stop_the_answers_of_others_unasked(
    deployment: Product, chromium: Browser
) -> None:
    make_steady(deployment)
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), deployment, "alice")
        bob = await sign_in(await running.new_context(), deployment, "bob")
        await write(alice, "@steady for alice")
        for page in (alice, bob):
            await expect(live_answers(page)).to_contain_text("word1 ")
        # Alice stops her own with one button; bob has one for this answer only.
        await expect(alice.get_by_test_id("stop")).to_be_visible()
        await expect(alice.get_by_test_id("stop-answer")).to_be_hidden()
        await expect(bob.get_by_test_id("stop")).to_be_hidden()
        choice = bob.get_by_role("button", name="Stop steady's answer")
        await expect(choice).to_be_visible()
        await bob.get_by_test_id("composer").focus()
        await bob.keyboard.press("Escape")

        # A page that is reloaded still knows who asked for what.
        await write(bob, "@slow for bob")
        await bob.reload()
        await expect(live_answers(bob)).to_have_count(2)
        await expect(bob.get_by_test_id("stop")).to_have_accessible_name("Stop slow")
        composer = bob.get_by_test_id("composer")
        await composer.fill("A draft")
        await bob.keyboard.press("Escape")
        await composer.fill("@")
        await expect(bob.get_by_role("listbox")).to_be_visible()
        await bob.keyboard.press("Escape")
        await expect(bob.get_by_role("listbox")).to_be_hidden()
        await bob.keyboard.press("Escape")
        await composer.fill("")
        await expect(live_answers(bob)).to_have_count(2)
        await bob.keyboard.press("Escape")
        for page in (alice, bob):
            await expect(live_answers(page)).to_have_count(1)
            await expect(live_answers(page)).to_contain_text("steady")
        stored = [(m["name"], m["status"]) for m in deployment.messages()[-3:]]
        assert stored == [("alice", "completed"), ("bob", "completed"), ("slow", "cancelled")]

        await choice.press("Enter")
        await expect(bob.get_by_role("log")).to_be_focused()
        for page in (alice, bob):
            await expect(live_answers(page)).to_have_count(0)
        last = deployment.messages()[-1]
        assert (last["name"], last["status"]) == ("steady", "cancelled")
        no_complaints(alice, bob)


@pytest.mark.long
async def test_people_talk_without_an_agent(deployment: Product, chromium: Browser) -> None:
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), deployment, "alice")
        bob = await sign_in(await running.new_context(), deployment, "bob")
        # A signal is sent once: alice has a session once she sees bob's message.
        await write(bob, "before I type")
        await expect(alice.get_by_test_id("message").last).to_contain_text("before I type")
        await asyncio.gather(
            expect(alice.get_by_test_id("typing")).to_contain_text("bob"),
            bob.get_by_test_id("composer").press_sequentially("hello there, alice", delay=250),
        )
        before = len(deployment.messages())
        await write(bob, "hello **alice**")
        body = alice.get_by_test_id("message-body").last
        await expect(body).to_have_text("hello alice")
        await expect(body.locator("strong")).to_have_text("alice")
        assert len(deployment.messages()) == before + 1
        no_complaints(alice, bob)


@pytest.mark.long
async def test_incoming_messages_do_not_move_the_focus(product: Product, chromium: Browser) -> None:
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), product, "alice")
        bob = await sign_in(await running.new_context(), product, "bob")
        members = alice.get_by_test_id("members")
        places = (
            alice.get_by_test_id("balance"),
            members,
            alice.locator("members-panel").get_by_role("button", name="Add people or agents"),
            alice.locator("chat-list a[aria-current]"),
        )
        for number, place in enumerate(places):
            await place.focus()
            # The entry in the list of chats changes, and with it everything that shows the chat.
            await write(bob, f"Number {number}")
            await expect(alice.locator("chat-list a[aria-current]")).to_contain_text(f"r {number}")
            await expect(place).to_be_focused()
        no_complaints(alice, bob)


async def test_a_report_shows_its_progress_and_its_chart(
    product: Product, chromium: Browser, tmp_path: Path
) -> None:
    table = tmp_path / "weather.csv"
    table.write_text("city,temp\n" + "".join(f"c{n},{n / 2}\n" for n in range(400)))
    with product.api("alice") as client:
        path = f"/api/v1/chats/{product.chat_id}/participants"
        client.post(path, json={"agent": "report"}).raise_for_status()
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), product, "alice")
        bob = await sign_in(await running.new_context(), product, "bob")
        await alice.get_by_test_id("file-input").set_input_files(table)
        attachment = alice.get_by_test_id("attachment")
        await expect(attachment).to_contain_text("weather.csv")
        await expect(attachment.get_by_role("progressbar")).to_have_count(0)
        await write(alice, "@report please")
        for page in (alice, bob):
            answer = page.get_by_test_id("message").last
            await expect(answer).to_contain_text("400 rows", timeout=STREAM_MS)
            chart = answer.locator("img")
            await expect(chart).to_be_visible(timeout=STREAM_MS)
            assert await chart.evaluate("image => image.decode().then(() => image.naturalWidth)")
        no_complaints(alice, bob)


async def test_a_person_who_is_signed_out_elsewhere_sees_one_message(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        context = await running.new_context()
        page = await sign_in(context, product, "bob", by_form=True)
        other = await context.new_page()
        await other.goto(f"{product.url}/")
        # Record the page's messages, however briefly they are shown.
        await page.evaluate(NOTES)
        await other.get_by_role("button", name="Sign out").click()
        await other.wait_for_url(f"{product.url}/login**")
        banner = page.get_by_test_id("banner")
        await expect(banner).to_contain_text("You're signed out.", timeout=STREAM_MS)
        assert await page.evaluate("window.said") == []
        no_complaints(page)


@pytest.mark.long
async def test_what_is_written_to_a_stopping_server_is_sent_again(
    tmp_path: Path, chromium: Browser
) -> None:
    with running_product(tmp_path, UAMP_GRACE_SECONDS="20") as product:
        async with browser(chromium) as running:
            alice = await sign_in(await running.new_context(), product, "alice")
            bob = await sign_in(await running.new_context(), product, "bob")
            await write(bob, "@slow count")
            await expect(alice.get_by_test_id("live-response")).to_contain_text("word1 ")
            pending = alice.get_by_test_id("pending")
            # The answer keeps the process alive for a while, and with it the connections.
            await asyncio.to_thread(product.begin_to_stop)
            await write(alice, "first")
            await expect(pending).to_have_attribute("data-status", "held")
            await expect(pending).to_contain_text("This one will be retried")
            await write(alice, "second")
            await expect(pending).to_have_count(2)
            await asyncio.to_thread(product.stop)
            await asyncio.to_thread(product.start)
            await expect(pending).to_have_count(0, timeout=STREAM_MS)
            texts = [m["content"] for m in product.messages() if m["name"] == "alice"]
            assert texts[-2:] == ["first", "second"]
            assert texts.count("first") == texts.count("second") == 1
            no_complaints(alice, bob)


@pytest.mark.long
async def test_a_restart_of_the_server_ends_the_answer_honestly(
    tmp_path: Path, chromium: Browser
) -> None:
    with running_product(tmp_path, UAMP_LEASE_SECONDS="2", UAMP_SWEEP_SECONDS="0.5") as product:
        async with browser(chromium) as running:
            alice = await sign_in(await running.new_context(), product, "alice")
            await write(alice, "@slow count")
            live = alice.get_by_test_id("live-response").get_by_test_id("message-body")
            await expect(live).to_contain_text("word10 ")
            product.stop(signal.SIGKILL)
            await expect(alice.get_by_test_id("banner")).to_be_visible()
            product.start()
            await expect(alice.get_by_test_id("banner")).to_be_hidden(timeout=STREAM_MS)
            await expect(live).to_have_count(0, timeout=STREAM_MS)
            stored = product.messages()[-1]
            assert stored["status"] == "failed"
            assert stored["content"].startswith("word1 word2 ")
            assert WORDS.startswith(stored["content"])
            assert await last_text(alice) == stored["content"]

            await write(alice, "@echo still here")
            answer = alice.get_by_test_id("message-body").last
            await expect(answer).to_have_text("still here", timeout=STREAM_MS)

            # An orderly stop is announced, and messages written in the meantime are sent
            # automatically.
            product.stop(signal.SIGTERM)
            await expect(alice.get_by_test_id("banner")).to_contain_text("The server is restarting")
            await expect(alice.get_by_test_id("banner")).to_contain_text("Disconnected since")
            await alice.get_by_test_id("composer").fill("@echo sent meanwhile")
            await alice.keyboard.press("Enter")
            product.start()
            await expect(alice.get_by_test_id("banner")).to_be_hidden(timeout=STREAM_MS)
            await expect(answer).to_have_text("sent meanwhile", timeout=STREAM_MS)

"""A call between browsers with fake microphones, on one process and across two."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from playwright.async_api import async_playwright, expect

from tests import services
from tests.journeys.cluster import running_cluster
from tests.journeys.keys import tab_to
from tests.journeys.product import (
    BROWSER_ARGUMENTS,
    Product,
    browser,
    no_complaints,
    running_product,
    sign_in,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from playwright.async_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

MICROPHONE = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]
# The bytes of audio received on each connection of the page.
RECEIVED = """async () => {
  const { calls } = await import("/static/chat/context.js");
  const found = [];
  for (const { connection } of calls.active?.mesh.peers.values() ?? []) {
    let bytes = 0;
    for (const one of (await connection.getStats()).values()) {
      if (one.type === "inbound-rtp") bytes += one.bytesReceived;
    }
    found.push(bytes);
  }
  return found;
}"""
GETS_SOUND = f"""async (count) => {{
  const found = await ({RECEIVED})();
  return found.length === count && found.every((bytes) => bytes > 0);
}}"""
# Two participants in one page; returns the states of their connections.
MESHES = """async (kind) => {
  const { Mesh } = await import("/static/chat/calls/mesh.js");
  const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
  const meshes = {};
  let lost = kind === "lost" ? 1 : 0;
  const make = (userId) => {
    const send = (to, fields) => {
      // Signals travel as text.
      const signal = JSON.parse(JSON.stringify({ from: userId, ...fields }));
      if (signal.sdp?.type === "offer" && userId === "2" && lost-- > 0) return;
      setTimeout(() => meshes[to]?.receive(signal));
    };
    meshes[userId] = new Mesh({ userId, servers: [], stream, send });
  };
  ["1", "2"].forEach(make);
  meshes[2].update([{ user_id: "1", joined_at: 1 }]);
  if (kind === "early") await new Promise((resolve) => setTimeout(resolve, 500));
  meshes[1].update([{ user_id: "2", joined_at: 2 }]);
  const states = () => Object.values(meshes).map((mesh) => [...mesh.peers.values()][0].state);
  const done = () => states().every((state) => state === "connected");
  for (let tries = 0; tries < 200 && !done(); tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const found = states();
  for (const mesh of Object.values(meshes)) mesh.close();
  for (const track of stream.getTracks()) track.stop();
  return found;
}"""
# Calls again at once a number of times; returns whether this page takes part in each call.
CALLS_AGAIN = """async ([chatId, times]) => {
  const { calls } = await import("/static/chat/context.js");
  const found = [];
  for (let time = 0; time < times; time += 1) {
    await calls.start(chatId);
    for (let tries = 0; tries < 400 && !calls.active?.joined; tries += 1) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    found.push(Boolean(calls.active?.joined));
    if (time + 1 < times) calls.leave();
  }
  return found;
}"""
CAROL = """
from django.contrib.auth.models import User
from chat_app.members.participants import add_participant
from sessions_app.access.auth import create_api_key
carol, _ = User.objects.get_or_create(username="carol")
carol.set_password("carol-in-the-call")
carol.save()
alice = User.objects.get(username="alice")
add_participant(chat_id={chat!r}, added_by=alice, user=carol)
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session", name="speaking")
async def speaking_browser() -> AsyncIterator[Browser]:
    """Run a Chromium whose microphone beeps, without asking for permission."""
    path = services.chromium(for_calls=True)
    if path is None:
        pytest.skip("no Chromium: set CHROMIUM or install chromium")
    async with async_playwright() as playwright:
        arguments = [*BROWSER_ARGUMENTS, *MICROPHONE]
        running = await playwright.chromium.launch(executable_path=path, args=arguments)
        try:
            yield running
        finally:
            await running.close()


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    # The modules one by one: what a test imports is then the instance of the page.
    folder = tmp_path_factory.mktemp("product")
    with running_product(folder, UAMP_BUNDLED_PAGES="0") as running:
        add_carol(running)
        yield running


def add_carol(product: Product) -> None:
    """Add a third member to the shared chat."""
    product.run(CAROL.format(chat=product.chat_id))
    product.people["carol"] = {"username": "carol", "password": "carol-in-the-call"}


@asynccontextmanager
async def pages(
    speaking: Browser, product: Product, *places: tuple[str, str]
) -> AsyncIterator[list[Page]]:
    """Open the chat for people, each with the origin of the process that serves them."""
    async with browser(speaking) as running:
        contexts = {name: await running.new_context() for name, _ in places}
        opened = []
        for name, origin in places:
            here = Product(product.data_dir, int(origin), people=product.people)
            here.chat_id = product.chat_id
            opened.append(await sign_in(contexts[name], here, name))
        yield opened
        no_complaints(*opened)


async def call_and_end(alice: Page, bob: Page, bob_again: Page, carol: Page) -> None:
    """Call, accept in one of two tabs, join late, mute, and end."""
    await alice.get_by_test_id("call").click()
    # It would ring for two people: the caller is asked first.
    await expect(alice.get_by_test_id("call-dialog")).to_contain_text("bob and carol")
    await expect(bob.get_by_test_id("ringing")).to_have_count(0)
    await alice.get_by_test_id("call-everyone").click()
    for tab in (bob, bob_again):
        await expect(tab.get_by_test_id("ringing")).to_contain_text("alice is calling")
    await bob.get_by_test_id("accept").click()
    await expect(bob_again.get_by_test_id("ringing")).to_have_count(0)
    for page in (alice, bob):
        await page.wait_for_function(GETS_SOUND, arg=1)
        await expect(page.locator(".call-member.is-connected")).to_have_count(2)
    # The fake microphone beeps: both see who is speaking.
    await expect(alice.locator(".call-member[data-name=bob].is-speaking")).to_be_visible()
    await expect(carol.get_by_test_id("call")).to_have_accessible_name("Join the call")
    await carol.get_by_test_id("call").click()
    for page in (alice, bob, carol):
        await page.wait_for_function(GETS_SOUND, arg=2)
    await alice.locator("body").press("m")
    await expect(alice.get_by_test_id("mute")).to_have_attribute("aria-pressed", "true")
    await expect(bob.locator(".call-member[data-name=alice].is-speaking")).to_have_count(0)
    for page in (alice, carol, bob):
        await page.get_by_test_id("leave").click()
        await expect(page.get_by_test_id("call-panel")).to_have_count(0)
    with_you = "alice's call, less than a minute, with you, carol"
    for page, line in (
        (alice, "Your call, less than a minute, with bob, carol"),
        (bob, with_you),
        (bob_again, with_you),
        (carol, "alice's call, less than a minute, with bob, you"),
    ):
        await expect(page.get_by_text(line)).to_be_visible()


@pytest.mark.long
async def test_people_call_each_other_on_one_process(speaking: Browser, product: Product) -> None:
    places = [(name, str(product.port)) for name in ("alice", "bob", "bob", "carol")]
    async with pages(speaking, product, *places) as (alice, bob, bob_again, carol):
        await call_and_end(alice, bob, bob_again, carol)


@pytest.mark.long
async def test_a_call_is_taken_left_and_declined_by_keys(
    speaking: Browser, product: Product
) -> None:
    places = [(name, str(product.port)) for name in ("alice", "bob")]
    async with pages(speaking, product, *places) as (alice, bob):
        composer, call = bob.get_by_test_id("composer"), alice.get_by_test_id("call")
        await expect(alice.locator(".chat-title")).to_contain_text("2 online")
        await composer.focus()
        await tab_to(alice, call, "Shift+Tab")
        for answer in ("decline", "accept"):
            await alice.keyboard.press("Enter")
            everyone = alice.get_by_test_id("call-everyone")
            await expect(everyone).to_be_visible()
            await tab_to(alice, everyone, "Tab")
            await alice.keyboard.press("Enter")
            # Keys typed in the composer still go there while it rings.
            await bob.keyboard.type("m")
            await tab_to(bob, bob.get_by_test_id(answer), "Shift+Tab")
            await bob.keyboard.press("Enter")
            await expect(bob.get_by_test_id("ringing")).to_have_count(0)
            if answer == "decline":
                await expect(composer).to_be_focused()
                # It still rings for others; the caller has the focus in the call.
                await expect(alice.get_by_test_id("mute")).to_be_focused()
                await alice.keyboard.press("Tab")
                await alice.keyboard.press("Enter")
                await expect(alice.get_by_test_id("call-panel")).to_have_count(0)
                await expect(call).to_be_focused()
                await expect(call).to_have_accessible_name("Call")
        await expect(composer).to_have_value("mm")
        mute = bob.get_by_test_id("mute")
        await expect(mute).to_be_focused()
        await bob.keyboard.press("Space")
        await expect(mute).to_have_attribute("aria-pressed", "true")
        await bob.keyboard.press("m")
        await expect(mute).to_have_attribute("aria-pressed", "false")
        await bob.keyboard.press("Tab")
        await bob.keyboard.press("Enter")
        await expect(bob.get_by_test_id("call-panel")).to_have_count(0)
        await expect(bob.get_by_test_id("call")).to_be_focused()


@pytest.mark.long
async def test_a_person_who_left_a_call_can_call_again_at_once(
    speaking: Browser, product: Product
) -> None:
    places = [(name, str(product.port)) for name in ("alice", "bob")]
    async with pages(speaking, product, *places) as (alice, bob):
        times = 4
        called = await alice.evaluate(CALLS_AGAIN, [product.chat_id, times])
        assert called == [True] * times
        await bob.get_by_test_id("accept").click()
        for page in (alice, bob):
            await page.wait_for_function(GETS_SOUND, arg=1)
        await bob.get_by_test_id("leave").click()
        await alice.get_by_test_id("leave").click()
        await expect(bob.get_by_test_id("call-panel")).to_have_count(0)


@pytest.mark.long
@pytest.mark.redis
async def test_people_call_each_other_over_two_processes(
    speaking: Browser, redis_url: str, tmp_path: Path
) -> None:
    environment = {"UAMP_LEASE_SECONDS": "8", "UAMP_BUNDLED_PAGES": "0"}
    with running_cluster(redis_url, tmp_path, **environment) as cluster:
        add_carol(cluster.product)
        first, second = (str(port) for port in cluster.ports)
        places = [("alice", first), ("bob", second), ("bob", first), ("carol", second)]
        async with pages(speaking, cluster.product, *places) as (alice, bob, bob_again, carol):
            await call_and_end(alice, bob, bob_again, carol)


@pytest.mark.long
@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["early", "lost"])
async def test_a_signal_that_is_early_or_lost_does_not_keep_two_apart(
    kind: str, speaking: Browser, product: Product
) -> None:
    async with pages(speaking, product, ("alice", str(product.port))) as (alice,):
        assert await alice.evaluate(MESHES, kind) == ["connected", "connected"]


@pytest.mark.long
async def test_a_voice_note_is_recorded_sent_and_played(
    speaking: Browser, product: Product
) -> None:
    places = [(name, str(product.port)) for name in ("alice", "bob")]
    async with pages(speaking, product, *places) as (alice, bob):
        await alice.get_by_test_id("record").click()
        await expect(alice.get_by_test_id("recording")).to_contain_text("0:01")
        await alice.get_by_test_id("cancel-recording").click()
        await expect(alice.get_by_test_id("attachment")).to_have_count(0)
        await alice.get_by_test_id("record").click()
        await expect(alice.get_by_test_id("recording")).to_contain_text("0:02")
        await alice.get_by_test_id("record").click()
        await expect(alice.get_by_test_id("attachment").get_by_test_id("sound")).to_be_visible()
        await expect(alice.locator(".tray-sound progress")).to_have_count(0)
        await alice.get_by_test_id("send").click()
        note = bob.get_by_test_id("message").get_by_test_id("sound")
        await note.get_by_test_id("play").click()
        await expect(note).to_have_attribute("data-state", "playing")
        await expect(note.get_by_test_id("sound-time")).to_have_text("0:01")

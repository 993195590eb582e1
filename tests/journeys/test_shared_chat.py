"""The view that people in one chat have of each other and its agents, across lost connections.

Each test runs on one process, and on two with the people on different ones.
"""

from __future__ import annotations

import asyncio
import signal
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.journeys.endless_provider import endless_provider
from tests.journeys.paying_person import PayingPerson
from tests.journeys.product import Product, browser, no_complaints, running_product, sign_in, write
from tests.journeys.team_chats import chat_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.async_api import Browser, BrowserContext, Locator, Page, WebSocketRoute

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

# Work left by a killed process is found soon.
ENVIRONMENT = {
    "UAMP_LEASE_SECONDS": "8",
    "UAMP_SWEEP_SECONDS": "0.5",
    "UAMP_MODEL_ALLOW_HOSTS": "127.0.0.1:*",
}
ANSWER_MS = 60_000
CUTS = 3
WORDS = " ".join(f"word{number}" for number in range(1, 201))
# As behind a proxy that does not support upgrades: every socket closes before it opens.
NO_WEBSOCKET = """
class Refused extends EventTarget {
  static OPEN = 1;
  readyState = 3;
  constructor() { super(); setTimeout(() => this.onclose({ code: 1006 })); }
  close() {}
}
window.WebSocket = Refused;
"""


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    folder = tmp_path_factory.mktemp("product")
    with running_product(folder, has_workers=False, **ENVIRONMENT) as running:
        yield running


async def two_people(running: Browser, deployment: Product, chat_id: str) -> tuple[Page, Page]:
    """Open the chat for alice and bob, each in their own browser."""
    alice, bob = [
        await sign_in(await running.new_context(), deployment, name, chat_id)
        for name in ("alice", "bob")
    ]
    return alice, bob


def unread(page: Page, chat_id: str, count: int) -> Locator:
    """Return the unread count next to a chat in the list."""
    item = page.locator(f"[data-testid=chat-item][data-chat='{chat_id}']")
    return item.get_by_role("img", name=f"{count} unread")


async def test_people_see_who_types_who_is_there_and_who_has_read(
    deployment: Product, chromium: Browser
) -> None:
    # Between only two people, a message itself shows whether it was read.
    agents: dict[str, dict[str, object]] = {"signs-echo": {"script": "echo"}}
    chat_id = chat_of(deployment, "Signs", **agents)
    async with browser(chromium) as running:
        alice, bob = await two_people(running, deployment, chat_id)
        typing = alice.get_by_test_id("typing")
        # Signals are sent once: both pages have a session when each shows the other's message.
        for page, reader, text in ((bob, alice, "From bob"), (alice, bob, "From alice")):
            await write(page, text)
            await expect(reader.get_by_test_id("message").last).to_contain_text(text)
        # Checked while he types: on a busy machine, the indicator may end with the last key.
        await asyncio.gather(
            expect(typing).to_have_text("bob is typing"),
            bob.get_by_test_id("composer").press_sequentially("hello", delay=50),
        )
        # Bob does something else, and the indicator disappears.
        await expect(typing).to_have_text("")
        await write(alice, "Have you read it?")
        last = alice.get_by_test_id("message").last
        await expect(last).to_contain_text("Have you read it?")
        await expect(last.get_by_text("Read by bob")).to_be_attached()
        if not await alice.locator("members-panel").is_visible():
            await alice.get_by_test_id("members").click()
        entry = alice.locator("members-panel li").filter(has_text="bob")
        await expect(entry).to_contain_text("Online")
        context = bob.context
        await bob.close()
        await expect(entry).to_contain_text("Offline")
        # While a person is away, all of their tabs count unread messages alike.
        tabs = [await sign_in(context, deployment, "bob") for _ in range(2)]
        await expect(entry).to_contain_text("Online")
        await write(alice, "One")
        await write(alice, "Two")
        for tab in tabs:
            await expect(unread(tab, chat_id, 2)).to_be_visible()
        await expect(alice.get_by_test_id("message").last.get_by_text("Read by")).to_have_count(0)
        await tabs[0].locator(f"[data-testid=chat-item][data-chat='{chat_id}']").click()
        await expect(tabs[0].get_by_test_id("message").last).to_contain_text("Two")
        for tab in tabs:
            item = tab.locator(f"[data-testid=chat-item][data-chat='{chat_id}']")
            await expect(item.locator(".unread")).to_have_count(0)
        await expect(
            alice.get_by_test_id("message").last.get_by_text("Read by bob")
        ).to_be_attached()
        no_complaints(alice, *tabs)


async def test_agents_answer_where_they_are_asked_and_a_loop_ends_with_a_reason(
    deployment: Product, chromium: Browser
) -> None:
    chat_id = chat_of(
        deployment,
        "Team",
        writer={"script": "asker", "asks": ["critic"], "says": "Look at this draft."},
        critic={"script": "echo"},
        silent={"script": "echo"},
        ping={"script": "asker", "asks": ["pong"], "says": "Your turn."},
        pong={"script": "asker", "asks": ["ping"], "says": "No, yours."},
    )
    async with browser(chromium) as running:
        alice, bob = await two_people(running, deployment, chat_id)
        await write(alice, "@writer a draft, please")
        for page in (alice, bob):
            messages = page.get_by_test_id("message")
            await expect(messages).to_have_count(3, timeout=ANSWER_MS)
            await expect(messages.nth(1)).to_contain_text("writer")
            await expect(messages.nth(2)).to_contain_text("critic")
            await expect(messages.nth(2)).to_contain_text("Look at this draft.")
        await write(bob, "@ping begin")
        for page in (alice, bob):
            reason = page.get_by_test_id("change").filter(has_text="times in a row")
            await expect(reason).to_be_visible(timeout=ANSWER_MS)
            await expect(reason).to_contain_text("pong")
        names = [m["name"] for m in messages_of(deployment, chat_id)]
        assert names == ["alice", "writer", "critic", "bob", *["ping", "pong"] * 2, "ping"]
        no_complaints(alice, bob)


def messages_of(deployment: Product, chat_id: str) -> list[dict[str, object]]:
    """Return the messages of a chat, oldest first."""
    with deployment.api("alice") as client:
        path = f"/api/v1/chats/{chat_id}/messages"
        answer = client.get(path, params={"order": "asc", "limit": 200})
    data: list[dict[str, object]] = answer.raise_for_status().json()["data"]
    return data


async def follow_sockets(
    context: BrowserContext,
) -> tuple[list[WebSocketRoute], asyncio.Event]:
    """Return a page's connections, for closing them, and an event that each new one sets."""
    sockets: list[WebSocketRoute] = []
    has_connected = asyncio.Event()

    def through(socket: WebSocketRoute) -> None:
        socket.connect_to_server()
        sockets.append(socket)
        has_connected.set()

    await context.route_web_socket("**/uamp", through)
    return sockets, has_connected


@pytest.mark.long
async def test_an_answer_outlives_three_lost_connections(
    deployment: Product, chromium: Browser
) -> None:
    chat_id = chat_of(deployment, "Cuts", steady={"script": "slow", "delay": 0.1})
    async with browser(chromium) as running:
        context = await running.new_context()
        sockets, has_connected = await follow_sockets(context)
        alice = await sign_in(context, deployment, "alice", chat_id)
        bob = await sign_in(await running.new_context(), deployment, "bob", chat_id)
        await write(bob, "@steady count, please")
        body = alice.get_by_test_id("live-response").get_by_test_id("message-body")
        seen = 1
        for _ in range(CUTS):
            has_connected.clear()
            await expect(body).to_contain_text(f"word{seen}", timeout=ANSWER_MS)
            await sockets[-1].close(code=4000, reason="cut")
            async with asyncio.timeout(ANSWER_MS / 1000):
                await has_connected.wait()
            seen = len((await body.inner_text()).split()) + 1
        for page in (alice, bob):
            await expect(page.get_by_test_id("live-response")).to_have_count(0, timeout=ANSWER_MS)
            await expect(page.get_by_test_id("message-body").last).to_have_text(WORDS)
            await expect(page.get_by_test_id("message")).to_have_count(2)
        assert [m["content"] for m in messages_of(deployment, chat_id)][1:] == [WORDS]
        no_complaints(alice, bob)


@pytest.mark.long
async def test_people_chat_where_the_network_lets_no_websocket_through(
    deployment: Product, chromium: Browser
) -> None:
    chat_id = chat_of(
        deployment,
        "Behind a proxy",
        counter={"script": "slow", "delay": 0.1},
        echo2={"script": "echo"},
    )
    async with browser(chromium) as running:
        context = await running.new_context()
        await context.add_init_script(NO_WEBSOCKET)
        alice = await sign_in(context, deployment, "alice", chat_id)
        bob = await sign_in(await running.new_context(), deployment, "bob", chat_id)
        banner = alice.get_by_test_id("banner")
        await expect(banner).to_have_attribute("data-transport", "sse")
        await expect(banner).to_have_attribute("data-phase", "open")
        await expect(alice.locator("#announcer")).to_contain_text("Connected without one")
        entry = bob.locator("members-panel li").filter(has_text="alice")
        await expect(entry).to_contain_text("Online")
        # Both see each other's messages, and alice the deltas of an answer.
        await write(bob, "From bob")
        await expect(alice.get_by_test_id("message").last).to_contain_text("From bob")
        await write(alice, "@echo2 hello over HTTP")
        for page in (alice, bob):
            await expect(page.get_by_test_id("message")).to_have_count(3, timeout=ANSWER_MS)
            await expect(page.get_by_test_id("message-body").last).to_have_text("hello over HTTP")
        # The network fails in the middle of an answer, which still arrives complete, once.
        await write(alice, "@counter count, please")
        body = alice.get_by_test_id("live-response").get_by_test_id("message-body")
        for word in ("word3 ", "word12 "):
            await expect(body).to_contain_text(word, timeout=ANSWER_MS)
            await context.set_offline(True)
            await expect(banner).not_to_have_attribute("data-phase", "open")
            await context.set_offline(False)
            await expect(banner).to_have_attribute("data-phase", "open", timeout=ANSWER_MS)
        for page in (alice, bob):
            await expect(page.get_by_test_id("live-response")).to_have_count(0, timeout=ANSWER_MS)
            await expect(page.get_by_test_id("message-body").last).to_have_text(WORDS)
            await expect(page.get_by_test_id("message")).to_have_count(5)
        # An answer can be stopped, as over a socket.
        await write(alice, "@counter again")
        await expect(body).to_contain_text("word2 ", timeout=ANSWER_MS)
        await alice.get_by_test_id("composer").press("Escape")
        for page in (alice, bob):
            await expect(page.get_by_test_id("live-response")).to_have_count(0)
        # The list of chats is polled.
        other = chat_of(deployment, "Another one")
        await expect(alice.locator(f"[data-testid=chat-item][data-chat='{other}']")).to_be_visible()
        no_complaints(alice, bob)


@pytest.mark.long
async def test_two_people_see_of_each_message_whether_it_was_read(
    deployment: Product, chromium: Browser
) -> None:
    with deployment.api("alice") as client:
        response = client.post("/api/v1/chats", json={"title": "", "users": ["bob"], "agents": []})
        chat_id = response.raise_for_status().json()["id"]
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), deployment, "alice", chat_id)
        await write(alice, "First")
        await write(alice, "Second")
        ticks = alice.locator("chat-message").get_by_test_id("tick")
        await expect(ticks).to_have_text(["Sent", "Sent"])
        bob = await sign_in(await running.new_context(), deployment, "bob", chat_id)
        await expect(ticks).to_have_text(["Read", "Read"])
        await write(bob, "Seen")
        await expect(bob.locator("chat-message").get_by_test_id("tick")).to_have_text(["Read"])
        no_complaints(alice, bob)


@pytest.mark.long
async def test_an_answer_of_servers_that_died_is_interrupted_and_gives_back_the_rest(
    deployment: Product, chromium: Browser
) -> None:
    payer = PayingPerson(deployment, money="10", script="slow", output_per_1k="1")
    async with browser(chromium) as running:
        page = await payer.open(running)
        await write(page, "Count")
        await page.get_by_test_id("pay").click()
        await expect(page.get_by_test_id("live-response")).to_contain_text("word10 ")
        held_amount = Decimal(payer.has["held"])
        assert held_amount > 0
        deployment.stop(signal.SIGKILL)
        deployment.start()
        ending = page.locator(".message-ending")
        await expect(ending).to_be_visible(timeout=ANSWER_MS)
        await expect(ending).to_contain_text("The server stopped during the answer")
        await expect(page.get_by_test_id("live-response")).to_have_count(0)
        (partial,) = payer.answers
        assert WORDS.startswith(partial)
        assert partial
        # Its delivered output is paid for, and the rest is released.
        assert payer.has["held"] == "0"
        assert 0 < 10 - Decimal(payer.has["available"]) <= held_amount
        await page.reload()
        await expect(page.locator(".message-ending")).to_contain_text(
            "The server stopped during the answer"
        )
        no_complaints(page)


async def test_a_stop_reaches_the_provider_and_what_was_said_is_paid(
    deployment: Product, chromium: Browser
) -> None:
    payer = PayingPerson(deployment, money="100", output_per_1k="10")
    with endless_provider() as upstream:
        deployment.run(
            "from agents_app.models import Agent\n"
            f"Agent.objects.filter(name={payer.agent!r}).update(provider='openai_compat',"
            f" model='m', options={{'base_url': {upstream.url!r}}})"
        )
        async with browser(chromium) as running:
            page = await payer.open(running)
            await write(page, "Talk")
            await page.get_by_test_id("pay").click()
            await expect(page.get_by_test_id("live-response")).to_contain_text("w5 ")
            await page.get_by_test_id("stop").click()
            await expect(page.get_by_test_id("live-response")).to_have_count(0)
            assert await asyncio.to_thread(upstream.was_left.wait, 30)
            receipt = page.get_by_test_id("receipt")
            await expect(receipt).to_be_visible()
            (partial,) = payer.answers
            assert "".join(f"w{n} " for n in range(upstream.said)).startswith(partial)
            assert partial
            paid = 100 - Decimal(payer.has["available"])
            assert payer.has["held"] == "0"
            # A word of this provider is two or three tokens, at a cent each.
            assert Decimal("0.01") <= paid <= Decimal("0.03") * upstream.said
            await expect(receipt).to_contain_text(f"${paid:.2f}")
            await page.reload()
            await expect(page.get_by_test_id("message").last).to_contain_text("w5 ")
            no_complaints(page)

"""A person forks a chat from a message, continues there, and finds the way back.

Runs against the product as started by `make run`: daphne, SQLite, a Celery child.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.journeys.product import Product, browser, no_complaints, running_product, sign_in, write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.async_api import Browser, Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("product")) as running:
        yield running


def message(page: Page, text: str) -> Locator:
    body = page.get_by_test_id("message-body").get_by_text(text, exact=True)
    return page.get_by_test_id("message").filter(has=body).last


async def test_a_person_forks_a_chat_and_finds_the_way_back(
    product: Product, chromium: Browser
) -> None:
    with product.api("alice") as client:
        body = {"title": "Plans", "users": ["bob"], "agents": ["echo"]}
        chat_id = client.post("/api/v1/chats", json=body).raise_for_status().json()["id"]
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), product, "alice", chat_id)
        await write(alice, "@echo mountains")
        answer = alice.locator(".message.from-agent:not([data-testid=live-response])")
        await expect(answer).to_contain_text("mountains")
        await write(alice, "a secret")
        await expect(message(alice, "a secret")).to_be_visible()
        bob = await sign_in(await running.new_context(), product, "bob", chat_id)
        await expect(message(bob, "a secret")).to_be_visible()

        # Bob forks from the answer: later messages are not in his chat.
        await bob.locator("chat-message.from-agent").focus()
        await bob.keyboard.press("m")
        await bob.get_by_role("menuitem", name="Fork from here").click()
        line = bob.get_by_test_id("change")
        await expect(line).to_contain_text("Forked from Plans by you")
        await expect(bob.get_by_test_id("message")).to_have_count(2)
        await expect(bob).not_to_have_url(f"{product.url}/chats/{chat_id}")
        fork_id = bob.url.rpartition("/")[2]
        current = bob.locator("chat-list [aria-current]")
        await expect(current).to_contain_text("Fork of Plans")

        # Alone with one agent there, he need not name it; alice sees nothing of it.
        await write(bob, "rivers")
        answers = bob.locator(".message.from-agent:not([data-testid=live-response])")
        await expect(answers).to_have_count(2)
        await expect(answers.last).to_contain_text("rivers")
        await expect(alice.get_by_test_id("message")).to_have_count(3)
        await expect(alice.locator("chat-list")).not_to_contain_text("Fork of Plans")
        await expect(alice.get_by_test_id("change")).to_have_count(0)

        # An edit in the source does not affect the fork.
        await message(alice, "@echo mountains").focus()
        await alice.keyboard.press("e")
        await alice.get_by_test_id("editor").fill("@echo valleys")
        await alice.keyboard.press("Enter")
        await expect(message(alice, "@echo valleys")).to_be_visible()
        await bob.reload()
        await expect(message(bob, "@echo mountains")).to_be_visible()

        # The line links to the source's message while he is a member there.
        await line.get_by_role("link").click()
        await bob.wait_for_url(f"{product.url}/chats/{chat_id}?message=*")
        await expect(bob.locator(".message.from-agent.is-marked, .is-marked")).to_contain_text(
            "mountains"
        )
        with product.api("bob") as client:
            member = next(
                participant["participant_id"]
                for participant in client.get(f"/api/v1/chats/{chat_id}").json()["participants"]
                if participant["name"] == "bob"
            )
            path = f"/api/v1/chats/{chat_id}/participants/{member}"
            client.delete(path).raise_for_status()
        await bob.goto(f"{product.url}/chats/{fork_id}")
        await expect(line).to_contain_text("Forked from Plans by you")
        await expect(line.get_by_role("link")).to_have_count(0)
        no_complaints(alice, bob)


@pytest.mark.long
async def test_a_fork_that_is_refused_says_why_and_the_next_try_makes_one_chat(
    product: Product, chromium: Browser
) -> None:
    with product.api("alice") as client:
        body = {"title": "Once", "users": [], "agents": []}
        chat_id = client.post("/api/v1/chats", json=body).raise_for_status().json()["id"]
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), product, "alice", chat_id)
        await write(alice, "hello")
        await expect(message(alice, "hello")).to_be_visible()
        lost = []

        async def lose_the_answer(route: object) -> None:
            # The server has created the chat, but the page does not get the response.
            lost.append(await route.fetch())  # type: ignore[attr-defined]
            await route.abort()  # type: ignore[attr-defined]

        await alice.route("**/forks", lose_the_answer, times=1)
        await message(alice, "hello").focus()
        await alice.keyboard.press("f")
        await expect(alice.locator(".composer-note")).not_to_be_empty()
        await message(alice, "hello").focus()
        await alice.keyboard.press("f")
        await expect(alice.get_by_test_id("change")).to_contain_text("Forked from Once by you")
        fork = await lost[0].json()
        assert alice.url.rpartition("/")[2] == fork["id"]
        no_complaints(alice)

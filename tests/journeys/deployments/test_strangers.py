"""A chat and who is not in it: no page, no answer, no event, no search result and no file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest
from playwright.async_api import expect

from tests.client import UampClient
from tests.journeys.deployments.chats import new_chat
from tests.journeys.paying_person import PayingPerson
from tests.journeys.product import Product, browser, no_complaints, sign_in, write

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page, WebSocket

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SECRET = "xylophone"
PATHS = (
    "", "/participants", "/messages", "/events", "/receipts", "/pins", "/call", "/payments",
    "/budgets", "/pool", "/share-links", "/invite-links", "/export?format=json",
)  # fmt: skip


def check_rest(product: Product, stranger: str, chat_id: str, message_id: str, file: str) -> None:
    """Assert that each process answers a stranger as if nothing of the chat was there."""
    headers = {"Authorization": f"Bearer {product.people[stranger]['api_key']}"}
    for port in (product.port, *product.further_ports):
        origin = f"http://127.0.0.1:{port}"
        with httpx.Client(base_url=origin, headers=headers, trust_env=False, timeout=60) as client:
            paths = [f"/api/v1/chats/{chat_id}{path}" for path in PATHS]
            paths += [f"/api/v1/messages/{message_id}{more}" for more in ("", "/revisions")]
            paths += [f"/api/v1/contents/{file}", f"/api/content/{file}"]
            answers = {path: client.get(path) for path in paths}
            path = f"/api/v1/messages/{message_id}"
            answers["edit"] = client.patch(path, json={"content": "mine"})
            answers["pin"] = client.put(f"{path}/pin")
            assert {name: answer.status_code for name, answer in answers.items()} == dict.fromkeys(
                answers, 404
            )
            assert all(SECRET not in answer.text for answer in answers.values())
            response = client.get("/api/v1/search", params={"q": SECRET}).raise_for_status()
            assert response.json()["data"] == []
            listed = client.get("/api/v1/chats").raise_for_status().text
            assert chat_id not in listed
        with UampClient(f"ws://127.0.0.1:{port}/uamp", headers=headers) as socket:
            socket.send("session.create", uamp_version="1.0", session={}, chat=chat_id)
            refused = socket.until("session.error", "session.created")[-1]
            assert refused["error"]["code"] == "chat_not_found", refused


async def look_for_it(page: Page, product: Product, chat_id: str) -> None:
    """Open the chat by its address, and search for its words."""
    await page.goto(f"{product.next_url()}/chats/{chat_id}")
    await expect(page.get_by_text("Chat not found")).to_be_visible()
    await page.keyboard.press("Control+Shift+F")
    await page.get_by_test_id("search-text").fill(SECRET)
    await expect(page.get_by_test_id("search-none")).to_be_visible()
    await expect(page.get_by_test_id("search-result")).to_have_count(0)
    assert SECRET not in await page.locator("body").inner_text()


async def test_a_stranger_receives_nothing_of_a_chat(
    deployment: Product, chromium: Browser
) -> None:
    chat_id = new_chat(deployment, f"The {SECRET}", agents=("echo",))
    stranger = PayingPerson(deployment, money="")
    received: list[str] = []
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), deployment, "alice", chat_id)
        theirs = await running.new_context()

        def listen(socket: WebSocket) -> None:
            socket.on("framereceived", lambda frame: received.append(str(frame)))

        theirs.on("page", lambda page: page.on("websocket", listen))
        # One page on each process, watching while the others talk, type and attach.
        pages = [
            await sign_in(theirs, deployment, stranger.name, stranger.chat_id) for _ in range(2)
        ]
        bob = await sign_in(await running.new_context(), deployment, "bob", chat_id)
        await alice.get_by_test_id("file-input").set_input_files(
            {"name": f"{SECRET}.txt", "mimeType": "text/plain", "buffer": SECRET.encode()}
        )
        await expect(alice.get_by_test_id("attachment")).to_have_count(1)
        await expect(alice.get_by_role("progressbar")).to_have_count(0)
        await bob.get_by_test_id("composer").press_sequentially("I t")
        await write(alice, f"@echo {SECRET}")
        answer = bob.locator(".message.from-agent:not([data-testid=live-response])")
        await expect(answer).to_contain_text(SECRET)
        for page in pages:
            # What the stranger's own chat says now came after all of it.
            await write(page, "mine")
            await expect(page.get_by_test_id("message").last).to_contain_text("mine")
            await expect(page.get_by_test_id("chat-item")).to_have_count(1)
        assert any("mine" in frame for frame in received)
        assert [frame for frame in received if SECRET in frame or chat_id in frame] == []
        with deployment.api("alice") as client:
            data = client.get(f"/api/v1/chats/{chat_id}/messages", params={"order": "asc"}).json()
        first = data["data"][0]
        file = next(item for item in first["content_items"] if item["type"] == "file")
        check_rest(deployment, stranger.name, chat_id, first["id"], file["content_id"])
        for page in pages:
            await look_for_it(page, deployment, chat_id)
        no_complaints(alice, bob)

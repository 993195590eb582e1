"""A person connects an agent of their own with the command that the page prints.

The command runs with only the wheel installed, against the product in one process and in two.
"""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.journeys.product import browser, no_complaints, sign_in, write
from tests.journeys.product import running_product as run_product
from tests.journeys.served_agents import COUNTING, ServedAgent
from tests.screens.findings import findings
from tests.upp.wire_server import STREAM_HEAD, Exchange, serve
from tests.wheels import build_wheels, environment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.async_api import Browser, Locator, Page

    from tests.journeys.product import Product

pytestmark = [
    pytest.mark.browser,
    pytest.mark.asyncio(loop_scope="session"),
    # The first test also builds the wheel.
    pytest.mark.timeout(600),
]

PHONE = {"width": 360, "height": 740}
GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "agents.md").read_text()


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    return environment(folder, [*build_wheels(folder).values()], extra="serve")


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with run_product(tmp_path_factory.mktemp("product")) as running:
        yield running


async def fits(page: Page) -> bool:
    wide: bool = await page.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    return wide


async def printed_command(page: Page, name: str) -> str:
    """Create a token on the page by keyboard only, and return the printed command."""
    await page.get_by_role("link", name="Connect your own agent").press("Enter")
    await page.get_by_label("Name of the agent").fill(name)
    await page.keyboard.press("Enter")
    command = page.locator("#secret")
    await expect(command).to_be_focused()
    return await command.input_value()


def add_to_chat(product: Product, name: str) -> None:
    with product.api("alice") as client:
        path = f"/api/v1/chats/{product.chat_id}/participants"
        client.post(path, json={"agent": name}).raise_for_status()


def messages_with(chat: Page, words: str) -> Locator:
    """Return the messages and growing answers in the chat that contain these words."""
    messages = chat.get_by_test_id("message").or_(chat.get_by_test_id("live-response"))
    return messages.filter(has_text=words)


async def test_the_command_that_the_page_prints_puts_an_agent_into_the_chat(
    deployment: Product, chromium: Browser, python: Path, tmp_path: Path
) -> None:
    (tmp_path / "my_agent.py").write_text(COUNTING)
    async with browser(chromium) as engine:
        context = await engine.new_context(viewport=PHONE)  # type: ignore[arg-type]
        chat = await sign_in(context, deployment, "alice")
        page = await context.new_page()
        await page.goto(f"{deployment.next_url()}/agents")
        command = await printed_command(page, "counter")
        status = page.get_by_test_id("new-connection")
        await expect(status).to_have_text("Not connected")
        assert await fits(page)
        assert await findings(page) == []

        with ServedAgent(tmp_path, python, command) as daemon:
            await expect(status).to_have_text("Connected")
            add_to_chat(deployment, "counter")
            await write(chat, "@counter hello")
            await expect(messages_with(chat, "1 2 3 done")).to_be_visible()

            # It dies in the middle of an answer.
            await write(chat, "@counter slowly")
            await expect(messages_with(chat, "1 2 3 4")).to_be_visible()
            daemon.end(signal.SIGKILL)
            await expect(status).to_have_text("Not connected")
            await expect(messages_with(chat, "was lost during the answer")).to_be_visible()

        with ServedAgent(tmp_path, python, command) as daemon:
            daemon.wait_for("@counter is connected")
            await write(chat, "@counter again")
            await expect(messages_with(chat, "1 2 3 done")).to_have_count(2)

            await page.reload()
            await expect(page.locator("#secret")).to_have_count(0)
            await page.locator("summary", has_text="Revoke").press("Enter")
            await page.get_by_role("button", name="Revoke counter now").press("Enter")
            await expect(
                page.get_by_text("The program that used it is disconnected.")
            ).to_be_visible()
            assert daemon.process.wait(timeout=60) == 3
        no_complaints(chat)


@pytest.mark.long
async def test_a_name_of_another_agent_is_refused(product: Product, chromium: Browser) -> None:
    async with browser(chromium) as engine:
        context = await engine.new_context()
        page = await sign_in(context, product, "bob")
        await page.goto(f"{product.url}/account/agents")
        await page.get_by_label("Name of the agent").fill("echo")
        await page.keyboard.press("Enter")

        name = page.get_by_label("Name of the agent")
        await expect(name).to_be_focused()
        await expect(name).to_have_attribute("aria-invalid", "true")
        await expect(page.get_by_role("alert")).to_have_text(
            "You can't use this name. Choose another one. "
        )
        no_complaints(page)


async def answer(exchange: Exchange) -> None:
    """Act as a model: call the first tool once, then answer."""
    await exchange.send(STREAM_HEAD)
    if exchange.body["messages"][-1]["role"] != "tool":
        function = {"name": exchange.body["tools"][0]["function"]["name"], "arguments": "{}"}
        call = {"index": 0, "id": "call_1", "function": function}
        await exchange.delta(tool_calls=[call])
        await exchange.finish("tool_calls")
        return
    await exchange.delta(content=f"I looked: {exchange.body['messages'][-1]['content']}")
    await exchange.finish()


@pytest.mark.long
async def test_the_agent_of_the_guide_answers_as_it_stands(
    product: Product, chromium: Browser, python: Path, tmp_path: Path
) -> None:
    (example,) = re.findall(r'```python\n("""An agent that knows.*?)```', GUIDE, re.DOTALL)
    (tmp_path / "my_agent.py").write_text(example)
    async with serve(answer) as model, browser(chromium) as engine:
        context = await engine.new_context()
        chat = await sign_in(context, product, "alice")
        page = await context.new_page()
        await page.goto(f"{product.url}/agents")
        command = await printed_command(page, "machine")
        local = {"OPENAI_BASE_URL": model.url, "NO_PROXY": "*"}
        with ServedAgent(tmp_path, python, command, **local) as daemon:
            await expect(page.get_by_test_id("new-connection")).to_have_text("Connected")
            add_to_chat(product, "machine")
            await write(chat, "@machine how much room is left?")
            await expect(messages_with(chat, "I looked:")).to_contain_text("free_gb")
            assert daemon.end() == 0
            assert "stopped" in daemon.log
        no_complaints(chat)

"""People of two servers share a chat: an invitation in the picker, the sidebar, and words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from playwright.async_api import FilePayload, expect

from tests.federation_app.importing import THERE
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

    from playwright.async_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

HOME, OTHER = "home.example", "other.example"
SWITCH_OFF = """
from agents_app.models import Agent
Agent.objects.filter(name="echo").update(is_enabled=False)
"""


class Servers(NamedTuple):
    """The home of the chat, and the guest's server; each trusts the other."""

    home: Product
    other: Product


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    allowed: dict[str, Any] = {
        "UAMP_REMOTE_ALLOW_HOSTS": "127.0.0.1:*",
        "UAMP_PEER_LOOPBACK_HTTP": "1",
    }
    with (
        running_product(
            tmp_path_factory.mktemp("home"), UAMP_FEDERATION_HOST=HOME, **allowed
        ) as home,
        running_product(
            tmp_path_factory.mktemp("other"), UAMP_FEDERATION_HOST=OTHER, **allowed
        ) as other,
    ):
        for here, there, host in ((home, other, OTHER), (other, home, HOME)):
            here.run(THERE.format(host=host, address=there.url))
        yield Servers(home, other)


def mirror_of(server: Product) -> str:
    """Return the id of bob's chat whose home is the other server."""
    with server.api("bob") as client:
        chats = client.get("/api/v1/chats").raise_for_status().json()["data"]
    (chat_id,) = [str(chat["id"]) for chat in chats if chat["home"] == HOME]
    return chat_id


async def opened_members(page: Page) -> None:
    """Show the members of a chat, unless they are shown."""
    button = page.get_by_test_id("members")
    if await button.get_attribute("aria-expanded") == "false":
        await button.click()


async def sends_a_file(bob: Page, alice: Page) -> None:
    """Send a file of the guest, which arrives at the home; the guest's own page shows it too."""
    table = FilePayload(name="t.csv", mimeType="text/csv", buffer=b"name,number\nalpha,1\n")
    await bob.get_by_test_id("file-input").set_input_files(table)
    attached = bob.get_by_test_id("attachment")
    await expect(attached).to_have_count(1)
    await expect(attached.get_by_role("progressbar")).to_have_count(0)
    await write(bob, "A table")
    for page in (alice, bob):
        await expect(page.get_by_test_id("message").last).to_contain_text("t.csv")


async def sees_why_an_agent_does_not_answer(servers: Servers, bob: Page) -> None:
    """Mention an agent of the home that is switched off; the page says so, also when reloaded."""
    servers.home.run(SWITCH_OFF)
    await write(bob, "@echo hello")
    stop = bob.get_by_text("echo does not answer: it is switched off.")
    await expect(stop).to_have_count(1)
    await bob.reload()
    await expect(stop).to_have_count(1)


@pytest.mark.long
async def test_a_person_of_another_server_is_invited_accepts_and_writes(
    servers: Servers, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        alice = await sign_in(await running.new_context(), servers.home, "alice")
        bob = await sign_in(await running.new_context(), servers.other, "bob")
        name = await alice.locator("chat-head h1").inner_text()
        await opened_members(alice)
        await alice.get_by_role("button", name="Add people or agents").click()
        dialog = alice.locator("dialog[open]")
        await dialog.get_by_label("Find people and agents").fill(f"bob@{OTHER}")
        option = dialog.get_by_label(f"bob@{OTHER}")
        await option.check()
        await dialog.locator("button[type=submit]").click()
        await expect(alice.get_by_test_id("invitation")).to_contain_text(f"bob@{OTHER}")

        invitation = bob.get_by_test_id("invitation")
        await expect(invitation).to_contain_text(f"alice@{HOME} invites you")
        await invitation.get_by_role("button", name="Accept").click()
        await expect(invitation).to_have_count(0)
        await expect(alice.get_by_test_id("invitation")).to_have_count(0)
        rows = bob.get_by_test_id("chat-item").filter(has_text=name)
        await expect(rows).to_have_count(2)
        await bob.locator(f"[data-chat={mirror_of(servers.other)}]").click()
        await expect(bob.locator("chat-head")).to_contain_text(f"on {HOME}")

        # Both write, and each sees the other's words under a whole name.
        await write(bob, "Hello from the other server")
        await expect(alice.get_by_test_id("message").last).to_contain_text("Hello from the other")
        await expect(alice.get_by_test_id("message").last).to_contain_text(f"bob@{OTHER}")
        await write(alice, "Welcome")
        last = bob.get_by_test_id("message").last
        await expect(last).to_contain_text("Welcome")
        await expect(last).to_contain_text(f"alice@{HOME}")
        await sends_a_file(bob, alice)
        await sees_why_an_agent_does_not_answer(servers, bob)
        last = bob.get_by_test_id("message").last
        # What would stay on the guest's server is not offered, and calls say why.
        await last.hover()
        for action in ("reply", "react", "thread"):
            await expect(last.get_by_test_id(f"quick-{action}")).to_have_count(
                int(action != "thread")
            )
        await expect(bob.get_by_test_id("call")).to_have_count(0)
        reason = re.compile(f"You can't call from here: this chat is hosted on {HOME}")
        await expect(bob.get_by_test_id("no-call")).to_have_attribute("title", reason)
        await alice.get_by_test_id("call").click()
        not_called = alice.get_by_test_id("not-called")
        await expect(not_called).to_contain_text(f"won't ring for bob@{OTHER}")
        await alice.keyboard.press("Escape")
        await opened_members(bob)
        await expect(bob.get_by_test_id("chat-home")).to_contain_text(HOME)
        await expect(bob.get_by_role("button", name="Add people or agents")).to_have_count(0)
        no_complaints(alice, bob)

"""Texts that try to become markup: wherever people and agents can write one, nothing runs.

No dialog opens, no request leaves, no handler and no script comes into a page: neither in the
chat, live and from history, nor on the pages around it, nor in the admin.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.admin.utils import quote
from playwright.async_api import expect

from tests.journeys.attachments import WORK_MS
from tests.journeys.deployments.chats import new_chat
from tests.journeys.product import (
    Product,
    browser,
    fill_in_login,
    no_complaints,
    sign_in,
    write,
)
from tests.markdown_corpus import XSS_CORPUS
from tests.sessions_app.turn.team_tools import order

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page

pytestmark = [pytest.mark.browser, pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

CORPUS = "\n\n".join(XSS_CORPUS)
# Short enough for every name, and broken out of an attribute.
NAME = "'\"><img src=x onerror=alert(1)>"
FILE_NAME = "<img src=x onerror=alert(1)>.txt"
# PostgreSQL keeps no NUL.
CLEAN = CORPUS.replace("\0", "")
FRAME = "<iframe srcdoc='<script>alert(1)</script>'></iframe>"
# Elements and attributes that no page of ours has, and that each of the texts would make.
MADE = """() => [...document.querySelectorAll(`iframe, object, embed, base, svg script, [srcdoc],
  [onerror], [onload], [onclick], [onmouseover], [onbegin], [ontoggle], img[src="x"],
  a[href^="javascript:" i], a[href^="vbscript:" i], a[href^="data:" i], a[href^="file:" i],
  [href*="evil.test"]:not(a), [src*="evil.test"], [action*="evil.test"], [data*="evil.test"],
  meta[http-equiv=refresh i]`), ...document.scripts]
  .filter((one) => one.type !== "application/json")
  .filter((one) => one.localName !== "script" || /evil|alert/.test(one.src + one.textContent))
  .map((one) => one.outerHTML.slice(0, 200))"""
# What forms would refuse or clean: it is written past them.
WRITTEN = """
import json
from django.contrib.auth.models import User
from agents_app.models import Agent
from chat_app.links.share_links import create_share_link
from chat_app.models import Chat, Content, Participant, Profile
from sessions_app.models import ToolCall
alice = User.objects.get(username="alice")
User.objects.filter(pk=alice.pk).update(first_name=NAME, last_name=NAME)
Profile.objects.update_or_create(user=alice, defaults={"display_name": NAME, "status_text": FRAME})
agent = Agent.objects.create(name="hostile", description=CORPUS, is_public=True,
    instructions=CORPUS, options={"script": "doer"}, tools=["repeat"])
Agent.objects.filter(pk=agent.pk).update(name=NAME)
Participant.objects.create(chat_id=CHAT, agent=agent)
doer = Agent.objects.get_or_create(name="teller", defaults={"is_public": True,
    "options": {"script": "doer"}, "tools": ["repeat"]})[0]
Participant.objects.create(chat_id=CHAT, agent=doer)
Chat.objects.filter(pk=CHAT).update(title=NAME, description=CORPUS[:2000])
print("SECRET", create_share_link(chat_id=CHAT, made_by=alice, title=NAME, grows=True)[1])
"""
ADMIN_ROWS = """
import json
from chat_app.models import Chat, ChatEvent, Content, Message, Profile
from agents_app.models import Agent
from sessions_app.models import Response, ToolCall
from django.contrib.auth.models import User
newest = lambda rows: str(rows.order_by("-pk").values_list("pk", flat=True)[0])
print(json.dumps({
    "chat_app/chat": CHAT,
    "chat_app/message": newest(Message.objects.filter(chat=CHAT, role="assistant")),
    "chat_app/chatevent": newest(ChatEvent.objects.filter(chat=CHAT, type="message.created")),
    "chat_app/content": newest(Content.objects.filter(filename=FILE_NAME)),
    "chat_app/profile": newest(Profile.objects.filter(display_name=NAME)),
    "agents_app/agent": newest(Agent.objects.filter(name=NAME)),
    "sessions_app/response": newest(Response.objects.filter(chat=CHAT)),
    "sessions_app/toolcall": newest(ToolCall.objects.filter(response__chat=CHAT)),
    "auth/user": newest(User.objects.filter(username="alice")),
}))
"""


@dataclass
class Watch:
    """The actions that its pages got a browser to take."""

    origins: set[str]
    dialogs: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def over(self, context: BrowserContext) -> None:
        """Begin to watch."""
        context.on("dialog", lambda dialog: self.dialogs.append(dialog.message))
        context.on("request", lambda request: self._asked(request.url))

    def _asked(self, url: str) -> None:
        # What `src=x` would ask for is on our own host.
        if not url.startswith((*self.origins, "data:", "blob:")) or url.endswith("/x"):
            self.left.append(url)

    async def look(self, page: Page) -> None:
        """Assert that nothing was made of the texts on a page."""
        assert await page.evaluate(MADE) == [], page.url
        assert (self.dialogs, self.left) == ([], []), page.url


def filled(code: str, chat_id: str) -> str:
    """Return code with the texts that it names."""
    values = {
        "NAME": NAME, "FRAME": FRAME, "CORPUS": CLEAN, "CHAT": chat_id, "FILE_NAME": FILE_NAME,
    }  # fmt: skip
    return "".join(f"{name} = {value!r}\n" for name, value in values.items()) + code


def prepared(product: Product) -> tuple[str, str]:
    """Write the texts into a chat and what is around it; return its ID and the link's secret."""
    chat_id = new_chat(product, "Hostile", agents=("echo",))
    return chat_id, product.run(filled(WRITTEN, chat_id)).split("SECRET ")[1].strip()


async def say_it(alice: Page, bob: Page) -> None:
    """Say the corpus as a person, an agent, a tool and a reply in a thread, with a file."""
    await alice.get_by_test_id("file-input").set_input_files(
        {"name": FILE_NAME, "mimeType": "text/plain", "buffer": CLEAN.encode()}
    )
    await expect(alice.get_by_test_id("attachment")).to_contain_text(FILE_NAME)
    await expect(alice.get_by_role("progressbar")).to_have_count(0)
    await write(alice, f"@echo {CORPUS}")
    answers = bob.locator(".message.from-agent:not([data-testid=live-response])")
    await expect(answers).to_have_count(1, timeout=WORK_MS)
    repeated = {"text": CORPUS, "times": 1}
    await write(alice, f"@teller {order(think=CORPUS, call='repeat', arguments=repeated)}")
    await expect(answers).to_have_count(2, timeout=WORK_MS)
    await write(alice, f"@teller {order(say=CORPUS, call=NAME[:40], arguments={NAME: CORPUS})}")
    await expect(answers).to_have_count(3, timeout=WORK_MS)
    await bob.get_by_test_id("message").first.focus()
    await bob.keyboard.press("t")
    panel = bob.locator("thread-panel")
    await panel.get_by_test_id("composer").fill(CORPUS)
    await bob.keyboard.press("Enter")
    await expect(panel.get_by_test_id("message")).to_have_count(2)


async def closed(page: Page) -> None:
    """Close the dialog that is open."""
    await page.keyboard.press("Escape")
    await expect(page.locator("dialog[open]")).to_have_count(0)


async def look_around(page: Page, watch: Watch) -> None:
    """Open everything that shows a text of the chat."""
    for name in ("tool", "message"):
        for summary in await page.get_by_test_id(name).locator("summary").all():
            await summary.evaluate("one => { one.parentElement.open = true; }")
    await watch.look(page)
    panel = page.locator("members-panel")
    if not await panel.is_visible():
        await page.get_by_test_id("members").click()
    for button in await panel.locator(".member-list button").all():
        # A name opens the member's card, the button beside it the member's settings.
        await button.click()
        await expect(page.locator("dialog[open]")).to_be_visible()
        await watch.look(page)
        await closed(page)
    await page.get_by_test_id("chat-settings-button").click()
    await expect(page.get_by_test_id("chat-settings")).to_be_visible()
    await watch.look(page)
    await closed(page)
    for keys, test_id in (
        ("Control+k", "palette"), ("Control+Shift+F", "search-text"),
    ):  # fmt: skip
        await page.keyboard.press(keys)
        await expect(page.get_by_test_id(test_id)).to_be_visible()
        if test_id == "search-text":
            await page.keyboard.type("alert")
            await expect(page.get_by_test_id("search-result").first).to_be_visible()
            await watch.look(page)
            # The first Escape clears the field.
            await page.keyboard.press("Escape")
        await watch.look(page)
        await closed(page)
    await page.locator("chat-view").get_by_test_id("composer").press_sequentially("@")
    await expect(page.get_by_role("option").first).to_be_visible()
    await watch.look(page)
    await page.locator("chat-view").get_by_test_id("composer").fill("")
    await page.get_by_test_id("file-preview").first.click()
    await expect(page.get_by_test_id("viewer").locator("pre")).to_contain_text("alert(1)")
    await watch.look(page)
    await closed(page)
    await page.get_by_test_id("message").first.focus()
    await page.keyboard.press("m")
    await page.get_by_test_id("message-menu").get_by_test_id("show-as").click()
    await expect(page.get_by_test_id("console")).to_contain_text("alert(1)")
    await watch.look(page)
    await closed(page)


def quoted(name: str) -> str:
    """Return a name as a part of a path."""
    return "".join(
        character if character.isalnum() else f"%{ord(character):02X}" for character in name
    )


async def look_as_operator(running: Browser, product: Product, chat_id: str) -> None:
    """Open the list and the page of each row of the admin that has one of the texts."""
    rows: dict[str, Any] = json.loads(product.run(filled(ADMIN_ROWS, chat_id)))
    watch = Watch({f"http://127.0.0.1:{product.port}/"})
    context = await running.new_context()
    watch.over(context)
    page = await context.new_page()
    refused: list[str] = []
    page.on("console", lambda line: refused.append(line.text))
    await fill_in_login(page, product, "admin")
    for model, row in rows.items():
        for path in ("", f"{quote(row)}/change/"):
            answer = await page.goto(f"{product.url}/admin/{model}/{path}")
            assert answer is not None
            assert answer.status == 200, (model, path)
            await expect(page.locator("#content")).to_be_visible()
            await watch.look(page)
        assert [line for line in refused if "Content Security" in line] == [], model


async def test_no_text_runs_or_calls_out_on_any_page(
    deployment: Product, chromium: Browser
) -> None:
    chat_id, secret = prepared(deployment)
    ports = [deployment.port, *deployment.further_ports]
    watch = Watch({f"{scheme}://127.0.0.1:{port}/" for scheme in ("http", "ws") for port in ports})
    async with browser(chromium) as running:
        contexts = [await running.new_context() for _ in range(3)]
        for context in contexts:
            watch.over(context)
        alice = await sign_in(contexts[0], deployment, "alice", chat_id)
        bob = await sign_in(contexts[1], deployment, "bob", chat_id)
        await say_it(alice, bob)
        await watch.look(alice)
        await look_around(bob, watch)
        await alice.reload()
        await expect(alice.get_by_test_id("message").last).to_contain_text("not found")
        await look_around(alice, watch)
        for path in ("agents", f"agents/{quoted(NAME)}", "money", "account"):
            await alice.goto(f"{deployment.url}/{path}")
            await watch.look(alice)
        visitor = await contexts[2].new_page()
        await visitor.goto(f"{deployment.next_url()}/shared/{secret}")
        await expect(visitor.get_by_role("main")).to_contain_text("alert(1)")
        await watch.look(visitor)
        no_complaints(alice, bob)
        await look_as_operator(running, deployment, chat_id)

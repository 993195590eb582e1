"""A running product with a chat in which each kind of message occurs, and who signs in to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playwright.async_api import expect

from tests.journeys.attachments import attach, photo
from tests.journeys.product import sign_in, write
from tests.screens.screen import VARIANTS

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Browser, Page

    from tests.journeys.product import Product

ANSWER_MS: Final = 40_000
PLAN: Final = """## Plan for Saturday

1. Train at **08:40** from platform 4
2. Museum, then lunch

- [x] Tickets
- [ ] A table for six

| What | Cost |
| --- | ---: |
| Train | $42.00 |
| Museum | $18.50 |

```python
def share(total: int, people: int) -> int:
    # Cents; the first person takes the rest.
    return total // people
```

> The museum closes at five.

$$\\bar{c} = \\frac{1}{n}\\sum_{i=1}^{n} c_i$$
"""
# Longer than a line: a page that does not break it is wider than its window.
LONG_WORD: Final = "https://example.org/" + "0123456789" * 20
AGENTS: Final = ("assistant", "thinker", "careful", "fail", "slow", "checklist", "report", "echo")


class Stage:
    """A product, its browser, and the chat that most screens are of."""

    def __init__(self, product: Product, running: Browser, folder: Path) -> None:
        self.product = product
        self.folder = folder
        self.chat_id = ""
        # What the pages that are opened next look like.
        self.variant = VARIANTS[0]
        self._running = running
        # Who called last, in a call that goes on behind the page that is looked at.
        self.caller: Page | None = None

    async def page(self, username: str = "alice", chat_id: str = "") -> Page:
        """Sign a person in, in a context of its own, with the chat open."""
        context = await self._running.new_context(
            reduced_motion="reduce",
            color_scheme=self.variant.scheme,
            viewport={"width": self.variant.width, "height": self.variant.height},
        )
        if not username:
            return await context.new_page()
        return await sign_in(context, self.product, username, chat_id or self.chat_id)

    def chat(self, title: str, *, agents: tuple[str, ...] = (), users: tuple[str, ...] = ()) -> str:
        """Make a chat of alice's and return its ID."""
        body = {"title": title, "users": list(users), "agents": list(agents)}
        with self.product.api("alice") as client:
            chat_id: str = client.post("/api/v1/chats", json=body).raise_for_status().json()["id"]
        return chat_id

    async def hang_up(self) -> None:
        """End the last call, so that it rings in no other screen."""
        if self.caller is not None:
            await self.caller.get_by_test_id("leave").click()
            await self.caller.get_by_test_id("leave").wait_for(state="detached")
            await self.caller.context.close()
            self.caller = None

    async def prepare(self) -> None:
        """Make the chat and have two people and agents talk in it."""
        self.chat_id = self.chat("Weekend in Lyon", agents=AGENTS, users=("bob",))
        alice, bob = await self.page(), await self.page("bob")
        await write(alice, "Who is in for Saturday? I wrote down what we said:")
        await write(alice, PLAN)
        await write(bob, "Me! :tada: Could @thinker look over it?")
        await self._answered(alice, 1)
        await attach(bob, photo(self.folder / "lyon.png", 640, 400), "The view from the hill")
        await write(alice, "@checklist add sun cream")
        await self._answered(alice, 2)
        await write(bob, "@fail is it going to rain?")
        await expect(alice.locator(".message-ending")).to_have_count(1, timeout=ANSWER_MS)
        await write(bob, f"The tickets: {LONG_WORD}")
        await self._reply(bob, "Who is in for Saturday?", "I am, with my sister")
        await write(bob, "See you there")
        await expect(alice.get_by_test_id("message").last).to_contain_text("See you there")
        for page in (alice, bob):
            await page.context.close()

    @staticmethod
    async def _reply(page: Page, text: str, reply: str) -> None:
        """Reply to a message in its thread, and close the thread."""
        await page.get_by_test_id("message").filter(has_text=text).last.focus()
        await page.keyboard.press("t")
        panel = page.locator("thread-panel")
        await panel.get_by_test_id("composer").fill(reply)
        await page.keyboard.press("Enter")
        await expect(panel.get_by_test_id("message")).to_have_count(2)
        await page.get_by_test_id("close-thread").click()

    @staticmethod
    async def _answered(page: Page, count: int) -> None:
        answers = page.locator(".message.from-agent:not([data-testid=live-response])")
        await expect(answers).to_have_count(count, timeout=ANSWER_MS)

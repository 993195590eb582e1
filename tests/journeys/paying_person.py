"""A person with some money and an agent with a price."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

from tests.journeys.product import SESSION_COOKIE, Product, sign_in

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

PREPARE = """
import json, sys
from django.contrib.auth.models import User
from django.test import Client
from agents_app.models import Agent
from chat_app.members.chats import create_chat
from payments_app import services as ledger
from payments_app.money import Money
from sessions_app.access.auth import create_api_key
wanted = json.loads({wanted!r})
user = User.objects.create_user(wanted["name"])
browser = Client()
browser.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
if wanted["money"]:
    ledger.top_up(key=wanted["name"], account=ledger.account_of_user(user.pk).id,
        amount=Money.parse(wanted["money"]), provider="tests", external_id=wanted["name"])
agent, _ = Agent.objects.get_or_create(name=wanted["agent"], defaults={{
    "is_public": True, "options": {{"script": wanted["script"]}}, "pricing": wanted["pricing"]}})
chat = create_chat(title="Payments", created_by_id=user.pk, user_ids=[user.pk],
    agents=[(agent.pk, "always")])
print("PREPARED", json.dumps({{"chat": chat.pk, "key": create_api_key(user, name="tests"),
    "cookie": browser.cookies["sessionid"].value}}))
"""


class PayingPerson:
    """A person with some money in a private chat with an agent that has a price."""

    def __init__(
        self, product: Product, *, money: str, script: str = "echo", **pricing: str
    ) -> None:
        self.name = f"p{uuid.uuid4().hex[:8]}"
        fields = {
            "name": self.name,
            "money": money,
            "agent": f"agent-{self.name}",
            "script": script,
            "pricing": pricing or {"per_answer": "1"},
        }
        printed = product.run(PREPARE.format(wanted=json.dumps(fields)))
        line = next(line for line in printed.splitlines() if line.startswith("PREPARED"))
        result = json.loads(line.removeprefix("PREPARED "))
        self.product, self.chat_id, self.agent = product, result["chat"], fields["agent"]
        product.people[self.name] = {
            "username": self.name,
            "api_key": result["key"],
            SESSION_COOKIE: result["cookie"],
        }

    async def open(self, running: Browser, **options: Any) -> Page:
        """Sign in and open the chat on a new page."""
        context = await running.new_context(**options)
        return await sign_in(context, self.product, self.name, chat_id=self.chat_id)

    async def come_back(self, page: Page) -> None:
        """Return to the chat on a page that showed something else, and wait until it is loaded."""
        await page.goto(f"{self.product.url}/chats/{self.chat_id}")
        await page.get_by_test_id("message").first.wait_for()

    @property
    def has(self) -> dict[str, str]:
        """The person's balance, over REST."""
        with self.product.api(self.name) as client:
            balance: dict[str, str] = client.get("/api/payments/balance").raise_for_status().json()
        return balance

    @property
    def answers(self) -> list[str]:
        """The agent's answers, over REST."""
        with self.product.api(self.name) as client:
            path = f"/api/v1/chats/{self.chat_id}/messages"
            data = client.get(path, params={"order": "asc"}).raise_for_status().json()["data"]
        return [message["content"] for message in data if message["sender_kind"] == "agent"]

"""Support finds what a provider said about a failed answer, by the person's name and the time."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import pytest
from django.contrib.admin.utils import quote
from playwright.async_api import expect

from tests.client import wait_until
from tests.http_server import LocalServer, QuietHandler, serving
from tests.journeys.product import browser, running_product, sign_in, write
from tests.journeys.test_admin import PEOPLE, ROLES, at_work, number_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.async_api import Browser

    from tests.journeys.product import Product

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

FAILED = "The agent's model does not exist."
ENDED = "Response.objects.filter(agent__name='picky', status='failed').count()"
REFUSED = "The model m-9 does not exist or you do not have access to it."
CHAT = """
from agents_app.models import Agent
from chat_app.members.chats import create_chat
from django.contrib.auth.models import User
agent = Agent.objects.create(name="picky", is_public=True, provider="openai_compat", model="m-9",
    options={{"base_url": {url!r}}})
bob = User.objects.get(username="bob")
print(create_chat(title="Picky", created_by_id=bob.pk, user_ids=[bob.pk],
    agents=[(agent.pk, "always")]).pk)
"""
# The second of three questions was asked at noon, three days ago.
AT_NOON = """
from datetime import timedelta
from django.utils import timezone
from sessions_app.models import Response
noon = timezone.now().replace(hour=12, minute=0, second=7) - timedelta(days=3)
second = Response.objects.filter(agent__name="picky").order_by("created_at")[1]
Response.objects.filter(pk=second.pk).update(created_at=noon)
print(second.pk)
"""


class PickyProvider(QuietHandler):
    """Refuses each request in its own words."""

    def do_POST(self) -> None:  # noqa: N802 the interface of http.server
        """Refuse a request."""
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps({"error": {"message": REFUSED, "code": "model_not_found"}}).encode()
        self.send_response(404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("x-request-id", "req_of_provider")
        self.end_headers()
        self.wfile.write(body)


def has_failed(product: Product, count: str) -> bool:
    """Return whether so many answers have failed."""
    return bool(number_of(product, ENDED) == count)


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    folder = tmp_path_factory.mktemp("product")
    with running_product(folder, UAMP_MODEL_ALLOW_HOSTS="127.0.0.1:*") as running:
        running.run(PEOPLE.format(roles=ROLES))
        running.people |= {role: {"username": role, "password": "password"} for role in ROLES}
        yield running


async def test_support_finds_the_words_of_a_provider_by_name_and_time(
    product: Product, chromium: Browser
) -> None:
    with serving(LocalServer(PickyProvider)) as provider:
        async with browser(chromium) as running:
            asker = await sign_in(await running.new_context(), product, "bob")
            chat = product.run(CHAT.format(url=f"{provider.origin}/v1")).strip()
            await asker.goto(f"{product.url}/chats/{chat}")
            for count in ("1", "2", "3"):
                await write(asker, f"Question {count}")
                await expect(asker.get_by_text(FAILED).first).to_be_visible()
                wait_until(partial(has_failed, product, count))
            response_id = product.run(AT_NOON).strip()
            desk = await at_work(product, running, "Support")
            await desk.start()
            await desk.find("bob")
            await desk.click("Answers", exact=True)
            await desk.page.locator("details[data-filter-title='created at'] summary").click()
            day = (datetime.now(UTC) - timedelta(days=3)).strftime("%Y-%m-%d")
            fields = {"from": day, "from_time": "11:55", "until": day, "until_time": "12:05"}
            for name, value in fields.items():
                await desk.page.locator(f"[name=created_at_{name}]").fill(value)
            await desk.page.locator("[name=created_at_until_time]").press("Enter")
            await desk.page.wait_for_load_state()
            desk.clicks += 1
            rows = desk.page.locator("#result_list tbody tr")
            await expect(rows).to_have_count(1)
            await expect(rows).to_contain_text(REFUSED)
            await desk.open_first_row()
            assert quote(response_id) in desk.page.url
            cause = desk.page.locator(".field-cause")
            for words in (REFUSED, "404", "req_of_provider"):
                await expect(cause).to_contain_text(words)
            assert desk.is_done_within(3)

"""Staff at work: auditor, support, finance, operator and developer, with their roles' rights.

Clicks are counted; a reason is typed and sent with Enter. Runs against the product as started by
`make run`: daphne, SQLite, a Celery child.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import expect

from tests.journeys.paying_person import PayingPerson
from tests.journeys.product import browser, fill_in_login, running_product, sign_in, write
from tests.screens.admin import rows_of
from tests.screens.findings import findings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.async_api import Browser, Page, ViewportSize

    from tests.journeys.product import Product

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

ROLES = ("Auditor", "Support", "Finance", "Operator", "Developer")
WORDS = "What does the vault hold?"
PEOPLE = """
from django.contrib.auth.models import Group, User
from agents_app.models import Agent
for role in {roles!r}:
    user = User.objects.create_user(role, password="password", is_staff=True)
    user.groups.set(Group.objects.filter(name=role))
Agent.objects.create(name="broken", is_public=True, provider="openai_compat", model="m",
    options={{"base_url": "http://127.0.0.1:9/v1"}})
"""
# A call that a worker took and did not finish: it does not count as lost for an hour.
HELD_CALL = """
from datetime import timedelta
from django.utils import timezone
from agents_app.models import Agent
from sessions_app.models import Response, Session, ToolCall
session = Session.objects.filter(user__username="alice").latest("created_at")
response = Response.objects.create(agent=Agent.objects.get(name="report"), chat_id=session.chat_id,
    session=session, status="waiting")
hour = timezone.now() + timedelta(hours=1)
print(ToolCall.objects.create(response=response, call_id="held", kind="long", name="csv_report",
    arguments='{}', status="running", attempts=1, lease_until=hour,
    deadline=hour).pk)
"""

LONG_CHANGES = """
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from agents_app.models import Agent
from sessions_app.models import Session
for model in (Agent, Session):
    for row in model.objects.all():
        LogEntry.objects.create(user=User.objects.get(username="admin"), object_id=str(row.pk),
            content_type=ContentType.objects.get_for_model(model), object_repr=str(row)[:200],
            action_flag=CHANGE, change_message="Changed " + "W" * 120)
"""
# Most have rows named by an id, which a browser does not wrap.
ON_A_PHONE = (
    "agents_app/agent",
    "chat_app/chatevent",
    "payments_app/account",
    "sessions_app/response",
    "sessions_app/session",
)
PHONE: ViewportSize = {"width": 360, "height": 740}
TOO_WIDE = "() => Math.max(0, document.documentElement.scrollWidth - innerWidth)"


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(tmp_path_factory.mktemp("product"), has_workers=True) as running:
        running.run(PEOPLE.format(roles=ROLES))
        running.people |= {role: {"username": role, "password": "password"} for role in ROLES}
        yield running


class Desk:
    """A staff member in the admin, whose clicks are counted."""

    def __init__(self, product: Product, page: Page) -> None:
        self.product, self.page, self.clicks = product, page, 0
        self.complaints: list[str] = []
        page.on(
            "console",
            lambda message: (
                self.complaints.append(message.text) if message.type == "error" else None
            ),
        )
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    async def start(self, path: str = "/admin/") -> None:
        """Open a page, from which clicks are counted."""
        await self.page.goto(self.product.url + path)
        self.clicks = 0

    async def click(self, name: str, *, within: str = "#content", exact: bool = False) -> None:
        """Click a link, and check the page that it leads to."""
        link = self.page.locator(within).get_by_role("link", name=name, exact=exact).first
        await link.click()
        await self.page.wait_for_load_state()
        self.clicks += 1
        if "/timeline/" in self.page.url or "/operate/" in self.page.url:
            assert self.complaints == []
            assert await findings(self.page) == []
            # The checker adds its own styles, which the policy blocks.
            self.complaints.clear()

    async def find(self, text: str) -> None:
        """Type into the search of every page, and send it with Enter."""
        await self.page.get_by_role("searchbox").fill(text)
        await self.page.keyboard.press("Enter")
        await self.page.wait_for_load_state()

    async def open_list(self, model: str, app: str = "sessions_app") -> None:
        """Click through to the list of a model."""
        await self.page.locator(f'a[href="/admin/{app}/{model}/"]').first.click()
        await self.page.wait_for_load_state()
        self.clicks += 1

    async def open_first_row(self) -> None:
        """Click the newest row of a list."""
        await self.page.locator("#result_list tbody th a").first.click()
        await self.page.wait_for_load_state()
        self.clicks += 1

    async def confirm(self, done: str) -> None:
        """Enter a reason, send it, and read the result."""
        await self.page.get_by_label("Reason").fill("it hung")
        await self.page.keyboard.press("Enter")
        await expect(self.page.locator(".messagelist")).to_contain_text(done)

    def is_done_within(self, clicks: int) -> bool:
        """Return whether few clicks were needed; assert that nothing broke."""
        assert self.complaints == []
        return self.clicks <= clicks


async def at_work(product: Product, running: Browser, role: str) -> Desk:
    """Sign a staff member in."""
    page = await (await running.new_context(viewport={"width": 1280, "height": 800})).new_page()
    await fill_in_login(page, product, role)
    return Desk(product, page)


def number_of(product: Product, code: str) -> Any:
    return product.run(f"from sessions_app.models import *\nprint({code})").strip()


async def test_an_auditor_follows_a_payment_to_the_ledger_and_back(
    product: Product, chromium: Browser
) -> None:
    payer = PayingPerson(product, money="10")
    async with browser(chromium) as running:
        page = await payer.open(running)
        await write(page, WORDS)
        await page.get_by_test_id("pay").click()
        await expect(page.get_by_test_id("receipt")).to_have_count(1)
        desk = await at_work(product, running, "Auditor")
        await desk.start()
        await desk.find("vault")
        await desk.page.locator(".found li", has_text=WORDS).get_by_role("link").first.click()
        desk.clicks += 1
        await expect(desk.page.locator(".markdown")).to_have_text(WORDS)
        await desk.click(f"Answer by {payer.agent}")
        await desk.click("Transfer")
        # The ledger's row: the amount moved, and both accounts.
        await expect(desk.page.locator("#content")).to_contain_text("answer")
        await desk.click("user:", within="#entries-group")
        await desk.page.go_back()
        await desk.click("Timeline of its answer")
        await desk.click("Asked by")
        await expect(desk.page.locator(".markdown")).to_have_text(WORDS)
        assert desk.is_done_within(6)
        # Reading is recorded; the auditor changes nothing.
        record_count = product.run(
            "from audit_app.models import AuditRecord\n"
            "print(AuditRecord.objects.filter(actor__username='Auditor').count())"
        )
        assert int(record_count) >= 2
        await desk.page.go_back()
        await desk.click("Transfer")
        await expect(desk.page.get_by_role("link", name="Refund", exact=True)).to_have_count(0)
        # Finance may refund, but cannot edit the ledger.
        finance = await at_work(product, running, "Finance")
        await finance.start(desk.page.url.removeprefix(product.url))
        edited = finance.page.locator("#content form input:not([type=hidden])")
        await expect(edited).to_have_count(0)
        await finance.start()
        await finance.open_list("response")
        await finance.open_first_row()
        await finance.click("Refund", exact=True)
        await finance.confirm("Refund: 1 USD")
        assert payer.has["available"] == "10"
        assert finance.is_done_within(4)
        # It is done once, and the page leads to the refund.
        await expect(finance.page.get_by_role("link", name="Refund", exact=True)).to_have_count(0)
        await finance.click("Transfers", within=".field-money")
        await expect(finance.page.locator("#result_list")).to_contain_text("refund")


async def test_support_finds_why_an_answer_failed(product: Product, chromium: Browser) -> None:
    async with browser(chromium) as running:
        asker = await sign_in(await running.new_context(), product, "alice")
        chat = product.run(
            "from chat_app.members.chats import create_chat\nfrom agents_app.models import Agent\n"
            "from django.contrib.auth.models import User\n"
            "alice = User.objects.get(username='alice')\n"
            "print(create_chat(title='Broken', created_by_id=alice.pk, user_ids=[alice.pk],"
            " agents=[(Agent.objects.get(name='broken').pk, 'always')]).pk)"
        ).strip()
        await asker.goto(f"{product.url}/chats/{chat}")
        await write(asker, "Are you there?")
        await expect(asker.get_by_text("The model refused the request.").first).to_be_visible()
        desk = await at_work(product, running, "Support")
        await desk.start()
        await desk.find("alice")
        await desk.click("Answers", exact=True)
        words = "its base_url may not be asked"
        row = desk.page.locator("#result_list tbody tr").first
        await expect(row).to_contain_text(words)
        await expect(row.locator("time")).to_contain_text("UTC")
        await desk.open_first_row()
        await expect(desk.page.locator(".field-cause")).to_contain_text(words)
        await desk.click("Timeline")
        cause = desk.page.locator("#cause")
        await expect(cause).to_contain_text(words)
        response = number_of(product, "Response.objects.get(agent__name='broken').pk")
        await expect(cause).to_contain_text(response)
        await expect(desk.page.locator("#content")).not_to_contain_text("Are you there?")
        assert desk.is_done_within(3)


async def test_an_operator_revokes_a_key_ends_a_session_and_reruns_a_tool(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        asker = await sign_in(await running.new_context(), product, "alice")
        await write(asker, "I am here")
        desk = await at_work(product, running, "Operator")
        await desk.start()
        await desk.open_list("apikey")
        prefix = number_of(product, "ApiKey.objects.get(user__username='bob').prefix")
        await desk.click(prefix)
        await desk.click("Revoke")
        await desk.confirm("Revoke: revoked")
        assert desk.is_done_within(3)
        with product.api("bob") as client:
            assert client.get("/api/v1/me").status_code == 401

        await desk.start()
        await desk.open_list("session")
        await desk.open_first_row()
        session = await desk.page.locator(".field-id .readonly").inner_text()
        await desk.click("End session")
        await desk.confirm("End session: ended")
        assert desk.is_done_within(3)
        assert number_of(product, f"Session.objects.get(pk={session!r}).status") == "closed"

        call = product.run(HELD_CALL).strip()
        await desk.start()
        await desk.open_list("toolcall")
        await desk.open_first_row()
        await desk.click("Run again")
        await desk.confirm("Run again: queued again")
        assert desk.is_done_within(3)
        # A worker runs it to the end; its arguments name no file, which the tool reports.
        facts = f"(lambda c: f'{{c.attempts}} {{c.status}}')(ToolCall.objects.get(pk={call}))"
        for _ in range(300):
            if (state := number_of(product, facts)) == "2 failed":
                break
            await desk.page.wait_for_timeout(200)
        assert state == "2 failed"


async def test_an_operator_stops_an_agent_and_sees_its_answer_end(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        asker = await sign_in(await running.new_context(), product, "alice")
        desk = await at_work(product, running, "Operator")
        await write(asker, "@slow count")
        live = asker.get_by_test_id("live-response").filter(has_text="slow")
        await expect(live).to_contain_text("2")
        # Its timeline, open beside, shows the end without a reload.
        newest = "Response.objects.filter(agent__name='slow').latest('created_at').pk"
        running_one = number_of(product, newest)
        beside = await desk.page.context.new_page()
        timeline = f"{product.url}/admin/sessions_app/response/{running_one.replace('_', '_5F')}"
        await beside.goto(f"{timeline}/timeline/")
        entries = beside.locator("#timeline-items")
        await expect(entries).to_contain_text("Model call 1 was sent")
        await expect(entries).not_to_contain_text("Model call 1 was stopped")
        await desk.start()
        await desk.open_list("agent", app="agents_app")
        await desk.click("slow", within="#result_list", exact=True)
        await desk.click("Disable", exact=True)
        await expect(desk.page.locator("#content")).to_contain_text("1 running answer will end.")
        await desk.confirm("Disable: disabled")
        assert desk.is_done_within(3)
        ended = "Response.objects.filter(agent__name='slow').latest('created_at').status"
        for _ in range(100):
            if (state := number_of(product, ended)) == "failed":
                break
            await desk.page.wait_for_timeout(200)
        assert state == "failed"
        await expect(entries).to_contain_text("Model call 1 was stopped")
        await expect(beside.locator("#timeline-state")).to_have_text("No answer is running.")


async def test_a_developer_tries_an_agent_before_saving_it(
    product: Product, chromium: Browser
) -> None:
    async with browser(chromium) as running:
        desk = await at_work(product, running, "Developer")
        await desk.start()
        await desk.open_list("agent", app="agents_app")
        await desk.click("fail", within="#result_list", exact=True)
        trial = desk.page.get_by_role("region", name="Try these values")
        await desk.page.get_by_label("Script", exact=True).select_option("echo")
        await trial.get_by_label("Prompt").fill("Before it is saved")
        await trial.get_by_role("button", name="Ask").click()
        outcome = trial.locator("#draft-outcome")
        await expect(outcome.locator("#trial-text")).to_have_text("Before it is saved")
        # It is beside the form, which is not saved.
        form = await desk.page.locator("#agent_form").bounding_box()
        beside = await trial.bounding_box()
        assert form is not None
        assert beside is not None
        assert beside["x"] >= form["x"] + form["width"]
        options = (
            "from agents_app.models import Agent\nprint(Agent.objects.get(name='fail').options)"
        )
        assert "echo" not in product.run(options)
        await desk.page.locator("#id_max_steps").fill("99")
        await trial.get_by_role("button", name="Ask").click()
        await expect(outcome).to_contain_text("less than or equal to 32")
        assert desk.complaints == []
        assert await findings(desk.page) == []
        await desk.page.set_viewport_size(PHONE)
        assert await desk.page.evaluate(TOO_WIDE) == 0


@pytest.mark.long
async def test_no_page_of_a_row_is_wider_than_a_phone(product: Product, chromium: Browser) -> None:
    async with browser(chromium) as running:
        asker = await sign_in(await running.new_context(), product, "alice")
        await write(asker, "@echo I am here")
        answer = asker.locator(".message.from-agent:not([data-testid=live-response])")
        await expect(answer.filter(has_text="I am here")).to_have_count(1)
        product.run(LONG_CHANGES)
        desk = await at_work(product, running, "admin")
        await desk.page.set_viewport_size(PHONE)
        wide = {}
        for model in ON_A_PHONE:
            path = f"/admin/{model}/"
            further = await rows_of(desk.page, product.url, path)
            for name, place in {model: path, **further}.items():
                await desk.start(place)
                if pixels := await desk.page.evaluate(TOO_WIDE):
                    wide[name] = pixels
        assert wide == {}
        # A row of a list is a card: each value stands on the screen, beside the name of its column.
        await desk.start("/admin/sessions_app/response/")
        took = desk.page.locator("#result_list tbody tr").first.locator("td.field-took")
        box = await took.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE["width"]
        label = "(cell) => getComputedStyle(cell, '::before').content"
        assert await took.evaluate(label) == '"Took"'
        assert desk.complaints == []
        assert await findings(desk.page) == []

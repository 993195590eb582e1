"""The operators' home: running answers, failures, and rows that need attention."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Group
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from agents_app.models import AgentConnection, ProcessLease
from payments_app import services as ledger
from payments_app.models import Account, Hold, Transfer
from sessions_app.models import (
    AnswerHour,
    ChargeHour,
    CountedHour,
    ProcessBeat,
    ProcessKind,
    Response,
    ToolCall,
    Webhook,
    WebhookDelivery,
)
from sessions_app.process.beats import beat, stop
from sessions_app.reporting.hours import HOUR, count_hours, hour_of, recent_figures
from tests import factories
from tests.payments_app.funded_accounts import authorize, capture_response, usd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.contrib.auth.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def member_of(role: str) -> Client:
    person = factories.user(role.lower(), is_staff=True)
    person.groups.add(Group.objects.get(name=role))
    return signed_in(person)


def paid_answer() -> Response:
    """Return an answer that was paid, with its session."""
    ada, paid = factories.user("ada"), factories.agent("paid")
    chat = factories.chat(ada, paid, title="Plans")
    session = factories.session(ada, chat, agent=paid)
    response = factories.response(
        paid,
        chat,
        session=session,
        status="completed",
        usage={"input_tokens": 1200, "output_tokens": 34},
    )
    wallet = ledger.account_of_user(ada.pk)
    ledger.top_up(key="in", account=wallet.id, amount=usd("10"), provider="tests", external_id="in")
    authorize(key="hold", account_id=wallet.id, amount=usd("2"), response_id=response.pk)
    capture_response(
        key="settle",
        response_id=response.pk,
        amount=usd("1.5"),
        splits=[ledger.Split(ledger.account_of_agent(paid.pk).id, usd("1.5"))],
        kind="answer",
        release=True,
        chat_id=chat.pk,
        agent_id=paid.pk,
        protocol="websocket",
    )
    return response


def test_the_home_shows_what_runs_what_failed_and_what_needs_a_hand() -> None:
    answer = paid_answer()
    lost = timezone.now() - timedelta(minutes=5)
    running = factories.response(answer.agent, answer.chat, lease_until=lost)
    factories.response(answer.agent, answer.chat, status="failed", error={"code": "provider_error"})
    for _ in range(2):
        factories.response(answer.agent, answer.chat, status="failed", error={"code": "timeout"})
    call = factories.tool_call(running, "csv_report", deadline=lost)
    waiting = factories.tool_call(running, "edit_picture", status="queued", created_at=lost)
    root = signed_in(factories.superuser())
    page = root.get("/admin/").content.decode()
    assert "style=" not in page.split('id="content-main"')[1]
    assert "timeout: 2" in page
    assert "provider_error: 1" in page
    assert "paid: 1,234" in page
    assert "paid: 1.5 USD" in page
    # Each number leads to the rows that it counts.
    stuck = f"{reverse('admin:sessions_app_toolcall_changelist')}?stuck=yes"
    assert f'<a href="{stuck}"><strong>1</strong> overdue tool calls' in page
    listed = root.get(stuck).content.decode()
    assert call.name in listed
    assert "overdue" in listed
    unclaimed = f"{reverse('admin:sessions_app_toolcall_changelist')}?unclaimed=yes"
    assert f'<a href="{unclaimed}"><strong>1</strong> tool calls that no worker takes' in page
    rows = root.get(unclaimed).context["cl"].result_list
    assert [row.pk for row in rows] == [waiting.pk]
    assert f"<strong>3</strong> of 4 answers by {answer.agent.name} failed in 24 hours" in page
    stuck = f"{reverse('admin:sessions_app_response_changelist')}?stuck=yes"
    assert stuck in page
    listed = root.get(stuck).content.decode()
    assert quote(running.pk) in listed
    assert quote(answer.pk) not in listed
    # It is made once a minute, for all.
    with CaptureQueriesContext(connection) as queries:
        assert root.get("/admin/").status_code == 200
    assert not [query for query in queries if "sessions_app_" in query["sql"]]


def test_an_answer_that_waits_for_a_person_needs_no_process() -> None:
    answer = paid_answer()
    lost = timezone.now() - timedelta(minutes=5)
    facts: dict[str, Any] = {"session": answer.session, "lease_until": lost, "status": "waiting"}
    asking = factories.response(answer.agent, answer.chat, **facts)
    call = factories.tool_call(asking, status="asking", asked_in=answer.chat_id)
    root = signed_in(factories.superuser())
    assert "answers without a process" not in root.get("/admin/").content.decode()
    listed = reverse("admin:sessions_app_response_changelist")
    assert list(root.get(f"{listed}?stuck=yes").context["cl"].result_list) == []
    assert ">no process<" not in root.get(listed).content.decode()
    # No process has continued it since the person decided.
    ToolCall.objects.filter(pk=call.pk).update(status="done", finished_at=timezone.now())
    cache.clear()
    assert "answers without a process" in root.get("/admin/").content.decode()
    assert root.get(f"{listed}?stuck=yes").context["cl"].result_list[0].pk == asking.pk
    assert ">no process<" in root.get(listed).content.decode()


def test_the_home_counts_daemons_apart_from_people() -> None:
    agents = [factories.agent(name, kind="connected", is_connected=True) for name in ("a", "b")]
    until = timezone.now() + timedelta(minutes=1)
    live = ProcessLease.objects.create(pk="web-1", lease_until=until)
    dead = ProcessLease.objects.create(pk="web-2", lease_until=until - timedelta(minutes=2))
    for agent in agents:
        AgentConnection.objects.create(agent=agent, process=live, connection="1")
    AgentConnection.objects.create(agent=agents[0], process=dead, connection="2")
    factories.presence(factories.user("ada"))
    root = signed_in(factories.superuser())
    cards = {card["label"]: card for card in root.get("/admin/").context["home"]["cards"]}
    assert cards["Open sockets of people and their programs"]["value"] == "1"
    assert cards["Connected daemons"]["value"] == "1"
    rows = root.get(cards["Connected daemons"]["url"]).context["cl"].result_list
    assert {row.agent.name for row in rows} == {"a", "b"}


def test_the_home_shows_which_processes_and_workers_are_alive() -> None:
    now = timezone.now()
    lost = now - timedelta(minutes=5)
    beat("web-1", ProcessKind.SERVER)
    beat("tools-1", ProcessKind.WORKER, ["tools"])
    ProcessBeat.objects.create(
        name="hooks-1", kind=ProcessKind.WORKER, queues=["webhooks"], seen_at=lost
    )
    answer = paid_answer()
    factories.tool_call(answer, "edit_picture", status="queued", created_at=lost)
    hook = Webhook.objects.create(chat=answer.chat, name="one", sent=0)
    WebhookDelivery.objects.create(webhook=hook, number=1, due_at=lost)
    support = member_of("Support")
    answered = support.get("/admin/")
    page = answered.content.decode()
    assert answered.context["home"]["liveness"]["servers"] == 1
    queues = {queue["figures"].name: queue["figures"] for queue in
              answered.context["home"]["liveness"]["queues"]}  # fmt: skip
    assert {name: (queue.workers, queue.waiting) for name, queue in queues.items()} == {
        "tools": (1, 1), "webhooks": (0, 1), "readings": (0, None),
    }  # fmt: skip
    beats = reverse("admin:sessions_app_processbeat_changelist")
    assert f'<a href="{beats}?lost=yes"><strong>1</strong> processes that stopped' in page
    assert "<strong>1</strong> waiting in the queue “webhooks”, which has no worker" in page
    assert "queue “tools”, which" not in page
    listed = support.get(f"{beats}?lost=yes")
    assert [row.name for row in listed.context["cl"].result_list] == ["hooks-1"]
    assert "lost" in listed.content.decode()
    # Finance has no such table, and no list.
    finance = member_of("Finance")
    assert "Processes and workers" not in finance.get("/admin/").content.decode()
    assert finance.get(beats).status_code == 403


def test_a_lost_process_is_forgotten_after_an_hour_and_a_stopped_one_at_once() -> None:
    beat("web-1", ProcessKind.SERVER)
    ProcessBeat.objects.update(seen_at=timezone.now() - timedelta(minutes=61))
    beat("web-2", ProcessKind.SERVER)
    beat("web-3", ProcessKind.SERVER)
    stop("web-3")
    assert [row.name for row in ProcessBeat.objects.all()] == ["web-2"]


def test_each_role_sees_its_own_home() -> None:
    paid_answer()
    seen = {role: member_of(role).get("/admin/").content.decode() for role in
            ("Support", "Finance", "Developer")}  # fmt: skip
    assert "1.5 USD" in seen["Finance"]
    assert "1.5 USD" not in seen["Support"] + seen["Developer"]
    assert "Connected sessions" in seen["Support"]
    assert "Connected sessions" not in seen["Finance"]
    assert reverse("admin:payments_app_account_changelist") not in seen["Support"]


def test_ended_hours_are_counted_once_and_again_when_their_last_answer_ends() -> None:
    answer = paid_answer()
    now = timezone.now()
    before = hour_of(now) - 3 * HOUR
    at = before + timedelta(minutes=5)
    Response.objects.filter(pk=answer.pk).update(created_at=at)
    late = factories.response(answer.agent, answer.chat, created_at=at)
    # Hours before the first answer are not counted, and the last one may not have settled yet.
    assert count_hours(now, limit=400) in {2, 3}
    assert count_hours(now, limit=400) == 0
    row = AnswerHour.objects.get()
    assert (row.hour, row.transport, row.status, row.answers) == (
        before,
        "websocket",
        "completed",
        1,
    )
    assert (row.input_tokens, row.output_tokens) == (1200, 34)
    assert not CountedHour.objects.get(hour=before).is_complete
    Response.objects.filter(pk=late.pk).update(
        status="failed", finished_at=now, error={"code": "timeout"}
    )
    assert count_hours(now, limit=400) == 1
    assert CountedHour.objects.get(hour=before).is_complete
    rows = AnswerHour.objects.values_list("status", "cause", "answers")
    assert sorted(rows) == [("completed", "", 1), ("failed", "timeout", 1)]
    # The hour that runs is added up from the rows: the charge is of now.
    figures, missing = recent_figures(now)
    assert missing == 0
    assert [(charge.amount, charge.protocol) for charge in figures.charges] == [
        (usd("1.5").amount, "websocket")
    ]
    assert not ChargeHour.objects.exists()


def test_every_step_from_words_to_the_ledger_is_a_link() -> None:
    answer = paid_answer()
    message = factories.message(answer.chat, factories.user("bob"), "hi", response_id=answer.pk)
    hold, transfer = Hold.objects.get(), Transfer.objects.get(kind="answer")
    account = Account.objects.get(kind="user")
    auditor = member_of("Auditor")

    def page(name: str, row: Any) -> str:
        return reverse(f"admin:{name}_change", args=[quote(row.pk)])

    steps = [
        (page("chat_app_message", message), page("sessions_app_response", answer)),
        (page("sessions_app_response", answer), f"/payments_app/transfer/?q={answer.pk}"),
        (f"/admin/payments_app/transfer/?q={answer.pk}", page("payments_app_transfer", transfer)),
        (page("payments_app_transfer", transfer), page("payments_app_hold", hold)),
        (page("payments_app_hold", hold), page("payments_app_account", account)),
        (page("payments_app_transfer", transfer), page("sessions_app_response", answer)),
        (page("sessions_app_response", answer), f"/chat_app/message/?q={answer.pk}"),
        (page("payments_app_account", account), f"/payments_app/entry/?account={account.pk}"),
        (f"/admin/payments_app/entry/?account={account.pk}",
         page("payments_app_transfer", transfer)),
    ]  # fmt: skip
    for start, end in steps:
        response = auditor.get(start)
        assert response.status_code == 200, start
        assert end in response.content.decode(), (start, end)


def test_the_page_of_an_app_has_its_lists(admin_client: Client) -> None:
    page = admin_client.get("/admin/payments_app/").content.decode()
    assert reverse("admin:payments_app_transfer_changelist") in page
    assert "You have no right" not in page
    body = page.partition('id="content-main"')[2]
    assert reverse("admin:chat_app_message_changelist") not in body


def test_figures_of_a_period_lead_to_the_rows_of_that_period() -> None:
    answer = paid_answer()
    for _ in range(3):
        factories.response(answer.agent, answer.chat, status="failed", error={"code": "timeout"})
    old = factories.response(answer.agent, answer.chat, status="failed", error={"code": "old"})
    Response.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(days=2))
    root = signed_in(factories.superuser())
    page = root.get("/admin/").content.decode()
    listed = reverse("admin:sessions_app_response_changelist")
    urls = [html.unescape(url) for url in re.findall(f'href="({listed}[^"]*_from=[^"]*)"', page)]
    failed = [url for url in urls if "status__exact=failed" in url]
    assert (len(failed), len(urls)) == (2, 4)
    for url in failed:
        rows = root.get(url).context["cl"].result_list
        assert {row.error["code"] for row in rows} == {"timeout"}

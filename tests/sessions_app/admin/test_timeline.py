"""Timelines in the admin: what they show to whom, and what is recorded."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from audit_app.models import AuditRecord
from chat_app.models import Chat, ChatEvent, Message
from payments_app.models import Hold, Transfer
from sessions_app.models import PaymentRequest, Response, ToolCall
from tests import factories
from tests.sessions_app.admin.timelines import (
    CAUSE,
    WORDS,
    log,
    of_chat,
    of_response,
    page_text,
    paid_and_failed,
    part_of,
    staff,
)

pytestmark = pytest.mark.django_db


def pages_of(response: Response) -> dict[str, str]:
    """Return the admin's pages of all that belongs to a response."""
    hold, call = Hold.objects.get(response_id=response.pk), ToolCall.objects.get()
    transfer = Transfer.objects.get(response_id=response.pk)
    row_ids: dict[str, Any] = {
        "chat_app_message": response.message_id,
        "sessions_app_response": response.pk,
        "sessions_app_session": response.session_id,
        "sessions_app_toolcall": call.pk,
        "sessions_app_paymentrequest": PaymentRequest.objects.get().pk,
        "payments_app_hold": hold.pk,
        "payments_app_transfer": transfer.pk,
        "payments_app_account": hold.account_id,
    }
    return {name: reverse(f"admin:{name}_change", args=[quote(pk)]) for name, pk in row_ids.items()}


def test_one_page_leads_from_the_words_to_the_ledger() -> None:
    response = paid_and_failed()
    client = staff("Auditor")
    for url in (of_chat(response.chat), of_response(response)):
        page = page_text(client, url)
        for name, way in pages_of(response).items():
            assert f'href="{way}"' in page, (url, name)
        assert CAUSE in page
    # Each way leads to a page, and those lead back to the timeline of the response.
    for name, way in pages_of(response).items():
        back = page_text(client, way)
        if name not in {"payments_app_account", "sessions_app_session"}:
            assert of_response(response) in back, name


def test_model_calls_are_shown_with_their_attempts_tokens_and_times() -> None:
    response, client = paid_and_failed(), staff("Support")
    for url in (of_chat(response.chat), of_response(response)):
        page = page_text(client, url)
        for text in (
            "Model call 1 was sent", "openai_compat small", "Model call 1 was answered",
            "after 1.25 s, first output after 0.40 s, 1,200 tokens in, 34 out, request req_2",
            "Attempt 1 failed: TIMEOUT (HTTP 504, request req_1): late", "Model call 2 failed",
            "Attempt 1 failed: RATE_LIMITED (HTTP 429): slow down", "its end was not recorded",
            "The hold of 2 USD is settled", "1 captured, after",
        ):  # fmt: skip
            assert (text in page) == ("USD" not in text and "captured" not in text), text
    assert "The hold of 2 USD is settled" in page_text(staff(), of_response(response))


def test_a_tool_call_says_when_a_person_and_a_worker_took_it() -> None:
    response = paid_and_failed()
    now = timezone.now()
    ToolCall.objects.update(started_at=now, decided_at=now, decided_by=factories.user("eve"))
    page = page_text(staff("Support"), of_response(response))
    assert "eve decided on csv_report" in page
    assert "after 0.0 s in the queue" in page


def test_roles_see_what_is_theirs() -> None:
    response = paid_and_failed()
    secrets = (WORDS, "secret-argument", "secret-result")
    # Support sees why it failed; neither words nor the ledger.
    page = page_text(staff("Support"), of_chat(response.chat, texts=1))
    assert CAUSE in page
    assert "2 USD" not in page
    assert not any(secret in page for secret in secrets)
    assert not AuditRecord.objects.exists()
    # Finance sees the ledger, and not the messages.
    page = page_text(staff("Finance"), of_response(response))
    assert "2 USD put on hold in" in page
    assert "wrote" not in page
    # An auditor sees words where they ask for them, and that is recorded.
    client = staff("Auditor")
    assert WORDS not in page_text(client, of_chat(response.chat))
    assert not AuditRecord.objects.exists()
    page = page_text(client, of_chat(response.chat, texts=1))
    assert all(secret in page for secret in secrets)
    (row,) = AuditRecord.objects.all()
    assert (row.action, row.object_id) == ("transcript.read", response.chat_id)


def test_a_raw_entry_is_for_readers_of_contents_and_recorded() -> None:
    response = paid_and_failed()
    entry = reverse("admin:sessions_app_chat_entry", args=[quote(response.chat_id), 1])
    assert staff("Support").get(entry).status_code == 403
    client = staff("Auditor")
    assert WORDS in page_text(client, entry)
    assert AuditRecord.objects.get().action == "content.read"
    missing = reverse("admin:sessions_app_chat_entry", args=[quote(response.chat_id), 99])
    assert client.get(missing).status_code == 404


def test_strangers_have_no_time_line() -> None:
    response = paid_and_failed()
    addresses = (of_chat(response.chat), of_response(response))
    without, person, root = staff("no role"), Client(), staff()
    person.force_login(factories.user("bob"))
    for url in addresses:
        assert without.get(url).status_code == 403
        assert person.get(url).status_code == 302
    assert root.get(of_chat(Chat(pk="chat_absent"))).status_code == 404
    assert root.get(of_response(Response(pk="resp_absent"))).status_code == 404


def seqs(client: Client, chat: Chat, **query: Any) -> list[int]:
    page = client.get(of_chat(chat, **query)).context["page"]
    return [item.seq for item in page.items if item.seq]


def test_pages_have_each_entry_once() -> None:
    ada = factories.user()
    chat = factories.chat(ada)
    for number in range(230):
        factories.message(chat, ada, str(number))
    client, page_seqs, before = staff(), list[int](), None
    while True:
        answer = client.get(of_chat(chat, **({} if before is None else {"before": before})))
        page = answer.context["page"]
        page_seqs = [*[item.seq for item in page.items], *page_seqs]
        assert len(page.items) <= 100
        before = page.older
        if before is None:
            break
    last = ChatEvent.objects.filter(chat=chat).count()
    assert page_seqs == list(range(1, last + 1))
    assert seqs(client, chat, at=60)[-1] == 109


def test_filters_look_further_than_one_page() -> None:
    response = paid_and_failed()
    ada = response.chat.created_by
    assert ada is not None
    for number in range(150):
        factories.message(response.chat, ada, str(number))
    client = staff()
    page = client.get(of_chat(response.chat, track="tools")).context["page"]
    assert [item.title.split()[0] for item in page.items] == ["csv_report", "csv_report"]
    page = client.get(of_chat(response.chat, who=f"agent:{response.agent_id}")).context["page"]
    assert {item.who for item in page.items} == {f"agent:{response.agent_id}"}
    assert page.looked_at > 100
    assert not client.get(of_chat(response.chat, who="user:0")).context["page"].items


def test_the_live_part_follows_an_answer() -> None:
    ada, agent = factories.user(), factories.agent()
    chat = factories.chat(ada, agent)
    response = factories.response(agent, chat)
    log(response, "response.created", agent=agent.name)
    client = staff()
    part = part_of(client, of_chat(chat, "timeline_tail"))
    assert part["is_running"]
    before = {item["key"]: item["version"] for item in part["items"]}
    call = factories.tool_call(response)
    part = part_of(client, of_response(response, "timeline_tail"))
    assert f"call-{call.pk}" in {item["key"] for item in part["items"]}
    Response.objects.update(status="completed", finished_at=timezone.now())
    log(response, "response.done", response={"id": response.pk})
    part = part_of(client, of_chat(chat, "timeline_tail"))
    after = {item["key"]: item["version"] for item in part["items"]}
    assert not part["is_running"]
    changed = {key for key in before if before[key] != after[key]}
    assert changed == {f"seq-{ChatEvent.objects.get(type='response.created').seq}"}


def test_a_time_line_takes_as_many_queries_for_many_entries() -> None:
    response = paid_and_failed()
    client = staff()

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            page_text(client, of_chat(response.chat, texts=1))
        return len(captured)

    few = queries()
    sender, agent = response.chat.created_by, response.agent
    assert sender is not None
    for _ in range(15):
        more = factories.response(
            agent, response.chat, message=factories.message(response.chat, sender), status="failed"
        )
        log(more, "response.created", agent=agent.name)
        factories.tool_call(more)
    assert Message.objects.count() == 16
    assert queries() == few

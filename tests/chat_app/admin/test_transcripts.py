"""The transcript of a chat in the admin, and its export."""

from __future__ import annotations

import json
import re

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from audit_app.models import AuditRecord
from chat_app.admin.chats import TRANSCRIPT_EVENTS
from chat_app.log import entries
from chat_app.models import Chat, ChatEvent, ChatOrigin
from tests import factories
from tests.chat_app.admin.admin_rows import one_of_each, signed_in, staff, transcript

pytestmark = pytest.mark.django_db


def test_a_fork_links_to_its_origin_whatever_its_id_is() -> None:
    """The admin reads `_22` in an address as a quotation mark, unless it is escaped."""
    chat = Chat.objects.create(id=f"chat_22{'0' * 30}", kind="group")
    ChatOrigin.objects.create(
        chat=chat, source_title="Plans", source_message="m", messages=1, seq=2
    )
    client = signed_in(factories.superuser())

    page = client.get(reverse("admin:chat_app_chat_change", args=[quote(chat.pk)]))
    link = re.search(r'href="([^"]*/chatorigin/[^"]*/change/)"', page.content.decode())

    assert link is not None
    assert client.get(link[1]).status_code == 200


def test_a_transcript_shows_what_was_said_and_done() -> None:
    ada = factories.user("ada")
    echo = factories.agent("echo")
    chat = factories.chat(ada, echo, title="Plans")
    session = factories.session(ada, chat, agent=echo)
    factories.message(chat, ada, "**Hi** <script>alert(1)</script>")
    response = factories.response(echo, chat, session=session, status="completed")
    factories.tool_call(response, "csv_report", status="done", arguments='{"a": "<b>"}', result="3")
    done = {"type": "response.done", "event_id": "1", "timestamp": 1}
    event = entries.NewEvent(type="response.done", payload=done, response_id=response.pk)
    entries.append(chat.pk, [event], at=response.created_at)
    page = signed_in(factories.superuser()).get(transcript(chat)).content.decode()
    assert "<strong>Hi</strong> &lt;script&gt;" in page
    assert "Tool csv_report: done" in page
    assert "{&quot;a&quot;: &quot;&lt;b&gt;&quot;}" in page
    assert reverse("admin:sessions_app_response_change", args=[quote(response.pk)]) in page
    assert reverse("admin:sessions_app_session_change", args=[quote(session.pk)]) in page
    assert "Older" not in page
    assert "Newest" not in page


def test_a_transcript_is_paged_with_the_newest_last() -> None:
    ada = factories.user("ada")
    chat = factories.chat(ada)
    for number in range(TRANSCRIPT_EVENTS + 2):
        factories.message(chat, ada, f"text{number}-")
    client = signed_in(factories.superuser())
    newest = client.get(transcript(chat)).content.decode()
    assert newest.index("text2-") < newest.index(f"text{TRANSCRIPT_EVENTS + 1}-")
    assert "text1-" not in newest
    assert 'href="?before=3"' in newest
    older = client.get(transcript(chat), {"before": 3}).content.decode()
    assert "text0-" in older
    assert "text1-" in older
    assert "text2-" not in older
    assert "Newest" in older
    for odd in ("x", "-1", "²", "9" * 40):
        assert client.get(transcript(chat), {"before": odd}).status_code == 200


def test_a_transcript_of_100_takes_as_many_queries_as_one_of_1() -> None:
    ada = factories.user("ada")
    echo = factories.agent("echo")
    chat = factories.chat(ada, echo)
    client = signed_in(factories.superuser())

    def add() -> None:
        factories.message(chat, ada)
        response = factories.response(echo, chat, status="completed")
        factories.tool_call(response, status="done")
        done = {"type": "response.done", "event_id": response.pk, "timestamp": 1}
        event = entries.NewEvent(type="response.done", payload=done, response_id=response.pk)
        entries.append(chat.pk, [event], at=response.created_at)

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert client.get(transcript(chat)).status_code == 200
        return len(captured)

    add()
    # The first reading also looks up the content types.
    queries()
    few = queries()
    for _ in range(TRANSCRIPT_EVENTS // 2 - 1):
        add()
    assert ChatEvent.objects.count() == TRANSCRIPT_EVENTS
    assert queries() == few


def test_a_transcript_needs_the_right_to_read_messages_and_is_recorded() -> None:
    chat = one_of_each(0)
    operator = staff("view_chat", "view_message")
    assert signed_in(operator).get(transcript(chat)).status_code == 403
    assert not LogEntry.objects.exists()
    operator.user_permissions.add(Permission.objects.get(codename="view_content"))
    assert signed_in(operator).get(transcript(chat)).status_code == 200
    entry = LogEntry.objects.get()
    assert (entry.user, entry.object_id, entry.get_change_message()) == (
        operator,
        chat.pk,
        "Read the transcript.",
    )
    missing = reverse("admin:chat_app_chat_transcript", args=["chat_none"])
    assert signed_in(operator).get(missing).status_code == 404
    assert signed_in(factories.user("ada")).get(transcript(chat)).status_code == 302


def test_an_export_of_a_chat_has_all_messages_and_is_recorded() -> None:
    ada = factories.user("ada")
    chat = factories.chat(ada)
    for number in range(60):
        factories.message(chat, ada, f"Message {number}")
    url = reverse("admin:chat_app_chat_operate", args=[quote(chat.pk), "export"])
    reader = signed_in(staff("view_chat", "view_content"))
    assert reader.get(url).status_code == 403
    assert reader.post(url, {"reason": "asked for"}).status_code == 403
    auditor = signed_in(factories.superuser())
    assert auditor.get(url).status_code == 200
    assert auditor.post(url, {"reason": ""}).context["form"].errors
    assert not AuditRecord.objects.exists()
    answer = auditor.post(url, {"reason": "asked for"})
    assert answer["Content-Disposition"] == f'attachment; filename="{chat.pk}.ndjson"'
    lines = [json.loads(line) for line in b"".join(answer).splitlines()]
    texts = [line["content"] for line in lines if line["type"] == "message"]
    assert texts == [f"Message {number}" for number in range(60)]
    assert (lines[0]["type"], lines[-1]["type"], lines[-1]["count"]) == ("chat", "end", 60)
    record = AuditRecord.objects.get()
    assert (record.action, record.object_id, record.reason) == (
        "content.exported",
        chat.pk,
        "asked for",
    )

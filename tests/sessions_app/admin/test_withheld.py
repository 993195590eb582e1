"""Facts that the admin withholds from people who may not view contents, and from everyone."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Group
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from audit_app.models import AuditRecord
from chat_app.models import Content, ContentUse, LinkCard, Upload
from chat_app.models.transcripts import Transcript
from sessions_app.access.auth import create_api_key
from sessions_app.access.keys import revoke_key
from sessions_app.models import ApiKey, Webhook, WebhookDelivery
from tests import factories

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.db.models import Model
    from pytest_django.fixtures import Settings

    from sessions_app.models import ToolCall

pytestmark = pytest.mark.django_db

NAME = "dismissal of bob.txt"
URLS = [
    "https://example.com/in?token=SECRET",
    "https://example.com/services/SECRET",
    "https://user:SECRET@example.com/",
    "https://SECRET@example.com:8443/",
    "https://example.com/#SECRET",
]


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def staff(role: str) -> Client:
    user = factories.user(role, is_staff=True)
    user.groups.set([Group.objects.get(name=role)])
    return browser(user)


def pages(client: Client, row: Model) -> str:
    """Return the list and the page of a row, as far as a person may see them, and the home."""
    name = row._meta.label_lower.replace(".", "_")
    urls = [
        reverse(f"admin:{name}_changelist"),
        reverse(f"admin:{name}_change", args=[quote(row.pk)]),
        reverse("admin:index"),
    ]
    answers = [client.get(url) for url in urls]
    return "".join(answer.content.decode() for answer in answers if answer.status_code == 200)


def rows_of_a_file() -> list[Model]:
    """Return the rows that a file has: itself, where it is shown, its transcript, its upload."""
    ada = factories.user("ada")
    content = Content.objects.create(
        filename=NAME, mime_type="text/plain", size_bytes=1, sha256="0" * 64, owner=ada
    )
    use = ContentUse.objects.create(content=content, chat=factories.chat(ada))
    upload = Upload.objects.create(
        owner=ada, length=1, filename=NAME, expires_at=timezone.now() + timedelta(hours=1)
    )
    return [content, use, upload, Transcript.objects.create(content=content)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("role", ["Support", "Finance", "Operator", "Developer"])
def test_names_of_files_are_contents(role: str) -> None:
    rows, client = rows_of_a_file(), staff(role)

    assert [NAME in pages(client, row) for row in rows] == [False] * len(rows)


def test_the_right_to_view_contents_shows_the_names_of_files() -> None:
    content, *_, upload, _ = rows_of_a_file()
    client = browser(factories.superuser())

    assert NAME in pages(client, content)
    assert NAME in pages(client, upload)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("role", ["Support", "Finance", "Operator", "Developer"])
def test_what_a_linked_page_says_is_content(role: str) -> None:
    texts = {"site": NAME, "title": NAME, "description": NAME}
    card = LinkCard.objects.create(url_sha256="0" * 64, state="read", **texts)

    html = pages(staff(role), card)
    assert NAME not in html
    assert NAME in pages(browser(factories.superuser()), card)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("url", URLS)
def test_a_secret_in_the_url_of_a_webhook_is_never_shown(url: str) -> None:
    hook = Webhook.objects.create(chat=factories.chat(factories.user()), name="ci", url=url)
    delivery = WebhookDelivery.objects.create(webhook=hook, number=1, state="ping")

    for client in (staff("Support"), browser(factories.superuser())):
        for row in (hook, delivery):
            assert "SECRET" not in pages(client, row)
        assert "https://example.com" in pages(client, hook)


def failed_call() -> ToolCall:
    """Return a failed call whose error quotes a person."""
    ada = factories.user("ada")
    agent = factories.agent("analyst")
    chat = factories.chat(ada, agent)
    factories.message(chat, ada, "Hello")
    response = factories.response(agent, chat)
    return factories.tool_call(
        response,
        status="failed",
        is_error=True,
        cause="raised KeyError",
        result=NAME,
        finished_at=timezone.now(),
    )


def test_support_sees_the_kind_of_a_failed_call_and_that_its_words_are_hidden() -> None:
    call = failed_call()
    timeline = reverse("admin:sessions_app_response_timeline", args=[quote(call.response_id)])
    of_chat = reverse("admin:sessions_app_chat_timeline", args=[quote(call.response.chat_id)])
    client = staff("Support")

    call_pages = pages(client, call)
    answer = pages(client, call.response)
    lines = client.get(timeline).content.decode()
    for page in (call_pages, answer, lines):
        assert "raised KeyError" in page
        assert NAME not in page
    for page in (call_pages, answer, lines, client.get(of_chat).content.decode()):
        assert "Hidden: " in page
        assert "grant you the right view_content" in page
    assert ">Raw</a>" not in lines

    auditor = staff("Auditor")
    everything = pages(auditor, call)
    assert "raised KeyError" in everything
    assert NAME in everything
    assert "Hidden: " not in everything + auditor.get(of_chat).content.decode()


def test_a_refused_page_says_who_can_grant_the_right() -> None:
    response = staff("Support").get(reverse("admin:payments_app_transfer_changelist"))
    assert response.status_code == 403
    assert "A superuser can give it a role or a right" in response.content.decode()
    assert 'class="site-menu"' in response.content.decode()


def test_a_revoked_key_is_named_in_the_audit() -> None:
    create_api_key(factories.user("ada"), name="ci")
    key = ApiKey.objects.get()
    assert revoke_key(key, by=factories.superuser(), reason="it leaked")
    detail = AuditRecord.objects.get(action="key.revoked").detail
    assert detail == f"{key.prefix}… of ada (ci)"


def test_an_unused_queue_is_not_shown_as_lacking_workers(settings: Settings) -> None:
    client = staff("Support")
    for is_used, cell in ((True, "<td>none</td>"), (False, "<td>not used</td>")):
        settings.UAMP_LINK_CARDS, settings.UAMP_TRANSCRIPTION_URL = is_used, ""
        cache.clear()
        row = client.get("/admin/").content.decode().split('<th scope="row">readings</th>')[1]
        assert row.startswith(cell)
    cache.clear()

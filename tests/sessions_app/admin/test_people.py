"""Operations for a person, and links from a person to their actions."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.signals import request_finished
from django.db import OperationalError, close_old_connections
from django.test import Client
from django.urls import reverse

from audit_app.models import AuditRecord
from chat_app.models import Chat
from sessions_app.admin.people import OperatedPersonAdmin
from sessions_app.data_rights.self_service import PersonalExport
from sessions_app.models import Response
from tests import factories

pytestmark = pytest.mark.django_db


def staff(*rights: str, name: str = "operator") -> Client:
    user = factories.user(name, is_staff=True)
    for right in rights:
        app, _, code = right.partition(".")
        user.user_permissions.add(
            Permission.objects.get(content_type__app_label=app, codename=code)
        )
    client = Client()
    client.force_login(user)
    return client


def operate(user: User, name: str) -> str:
    return reverse("admin:auth_user_operate", args=[user.pk, name])


def test_an_operator_exports_a_persons_data_with_a_reason() -> None:
    ada = factories.user("ada")
    client = staff("auth.view_user", "chat_app.export_content")
    url = operate(ada, "export")
    assert client.post(url, {"reason": ""}).context["form"].errors
    assert not AuditRecord.objects.exists()
    answer: Any = client.post(url, {"reason": "ada asked for it"})
    file = io.BytesIO(b"".join(answer.streaming_content))
    # As Django's test client does: the end of a request must not close the test's connection.
    request_finished.disconnect(close_old_connections)
    try:
        answer.close()
    finally:
        request_finished.connect(close_old_connections)
    with zipfile.ZipFile(file) as archive:
        assert b'"username": "ada"' in archive.read("person.json")
    record = AuditRecord.objects.get()
    assert (record.action, record.object_id, record.reason) == (
        "person.exported", str(ada.pk), "ada asked for it",
    )  # fmt: skip
    assert staff("auth.view_user", name="looker").get(url).status_code == 403


def test_an_export_that_cannot_be_recorded_leaves_room_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ada = factories.user("ada")
    client = staff("auth.view_user", "chat_app.export_content")

    def fail(*_: Any, **__: Any) -> None:
        raise OperationalError

    with monkeypatch.context() as patch:
        patch.setattr(OperatedPersonAdmin, "_record", fail)
        with pytest.raises(OperationalError):
            client.post(operate(ada, "export"), {"reason": "ada asked for it"})
    export = PersonalExport(ada.pk)
    assert export.begin()
    export.end()


def test_an_erasure_needs_the_name_and_is_done_once() -> None:
    ada = factories.user("ada")
    factories.chat(ada, title="Alone")
    client = staff("auth.view_user", "auth.delete_user")
    url = operate(ada, "erase")
    wrong = client.post(url, {"reason": "she asked", "username": "adam"})
    assert "Nothing was erased." in wrong.content.decode()
    assert User.objects.get(pk=ada.pk).is_active
    assert Chat.objects.count() == 1
    form = {"reason": "she asked", "username": "ada"}
    assert client.post(url, form).status_code == 302
    row = User.objects.get(pk=ada.pk)
    assert row.username.startswith("erased-")
    assert not row.is_active
    assert not Chat.objects.exists()
    assert "Nothing was erased." in client.post(url, form).content.decode()
    record = AuditRecord.objects.get(action="person.erased")
    assert (record.object_id, record.reason) == (str(ada.pk), "she asked")


def test_no_operator_erases_a_person_with_more_rights() -> None:
    boss = factories.user("boss", is_staff=True, is_superuser=True)
    client = staff("auth.view_user", "auth.delete_user", "auth.change_user")
    page = client.get(reverse("admin:auth_user_change", args=[boss.pk])).content.decode()
    url = operate(boss, "erase")
    assert url not in page
    assert client.post(url, {"reason": "no", "username": "boss"}).status_code == 403
    assert User.objects.get(pk=boss.pk).username == "boss"


def test_a_person_leads_to_their_answers_and_only_to_lists_that_one_may_see() -> None:
    ada, agent = factories.user("ada"), factories.agent()
    chat = factories.chat(ada, agent)
    response = factories.response(agent, chat, session=factories.session(ada, chat))
    other = factories.user("bob")
    factories.response(agent, chat, session=factories.session(other, chat))
    client = staff("auth.view_user", "sessions_app.view_response")
    page = client.get(reverse("admin:auth_user_change", args=[ada.pk]))
    links = {link["label"]: link["url"] for link in page.context["links"]}
    assert list(links) == ["Answers"]
    responses = client.get(links["Answers"]).context["cl"].result_list
    assert [row.pk for row in responses] == [response.pk]
    assert Response.objects.count() == 2

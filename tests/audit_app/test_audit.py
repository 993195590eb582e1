"""The audit: written once, read on its page, and one row for each use of a right."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import Group, User
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.urls import reverse

from agents_app.models import Agent
from audit_app.admin import pages
from audit_app.models import AuditRecord
from audit_app.record import AuditAction, record
from audit_app.roles import ROLES
from sessions_app.admin.sessions import ResponseAdmin
from tests import factories

if TYPE_CHECKING:
    from django.db.models import Model

pytestmark = pytest.mark.django_db

PAGE = Path(__file__).resolve().parents[2] / "docs" / "admin.md"


def member_of(role: str) -> User:
    """Return a person of a role."""
    person = factories.user(role.lower(), is_staff=True)
    person.groups.add(Group.objects.get(name=role))
    return person


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_a_row_says_who_did_what_to_what_and_outlives_the_person() -> None:
    ada = factories.user("ada")
    chat = factories.chat(ada)
    record(ada, AuditAction.TRANSCRIPT_READ, chat, reason="a" * 600, address="2001:db8::1")
    record(None, AuditAction.KEY_REVOKED, ("sessions_app.apikey", "7"), detail="expired")
    by_ada, anonymous = AuditRecord.objects.order_by("pk")
    assert (by_ada.actor_id, by_ada.action, by_ada.kind, by_ada.object_id, by_ada.address) == (
        ada.pk,
        "transcript.read",
        "chat_app.chat",
        chat.pk,
        "2001:db8::1",
    )
    assert len(by_ada.reason) == 500
    assert (anonymous.actor, anonymous.kind, anonymous.object_id, anonymous.detail) == (
        None,
        "sessions_app.apikey",
        "7",
        "expired",
    )
    actor_id = ada.pk
    ada.delete()
    by_ada.refresh_from_db()
    assert by_ada.actor_id == actor_id
    page = signed_in(factories.superuser()).get(reverse("admin:audit_app_auditrecord_changelist"))
    assert "transcript.read" in page.content.decode()


def test_an_auditor_exports_the_filtered_records_and_it_is_recorded() -> None:
    gone = factories.user("gone")
    record(gone, AuditAction.KEY_REVOKED, ("sessions_app.apikey", "7"), reason="=it leaked")
    record(None, AuditAction.MESSAGES_ERASED, None, detail="3 messages")
    gone_id = gone.pk
    gone.delete()
    auditor = signed_in(member_of("Auditor"))
    url = reverse("admin:audit_app_auditrecord_changelist")
    form = {"action": "export_records", "_selected_action": ["0"], "select_across": "1"}
    response = auditor.post(f"{url}?action=key.revoked", form)
    assert response["Content-Type"] == "application/x-ndjson"
    (row,) = [json.loads(line) for line in response.content.decode().splitlines()]
    assert (row["actor"], row["action"], row["object_id"], row["reason"]) == (
        gone_id,
        "key.revoked",
        "7",
        "=it leaked",
    )
    export_record = AuditRecord.objects.latest("pk")
    assert (export_record.action, export_record.detail) == (
        "audit.exported",
        "1 records action=key.revoked",
    )
    support = signed_in(member_of("Support")).post(url, form)
    assert support.status_code == 403
    assert AuditRecord.objects.filter(action="audit.exported").count() == 1


def test_rows_are_neither_changed_nor_deleted() -> None:
    record(None, AuditAction.KEY_MADE, ("sessions_app.apikey", "7"))
    table = "audit_app_auditrecord"
    statements = [f"UPDATE {table} SET reason = 'x'", f"DELETE FROM {table}"]  # noqa: S608 a constant
    if connection.vendor == "postgresql":
        statements.append(f"TRUNCATE {table}")
    else:
        columns = "id, created_at, action, kind, object_id, detail, reason, address"
        statements.append(
            f"INSERT OR REPLACE INTO {table} ({columns}) SELECT id, created_at, 'x', kind,"  # noqa: S608 a constant
            f" object_id, detail, reason, address FROM {table}"
        )
    for statement in statements:
        with pytest.raises(DatabaseError, match="audit"), transaction.atomic():
            connection.cursor().execute(statement)
    assert AuditRecord.objects.get().action == "key.made"
    root = signed_in(factories.superuser())
    row = AuditRecord.objects.get()
    for view in ("change", "delete"):
        url = reverse(f"admin:audit_app_auditrecord_{view}", args=[row.pk])
        assert root.post(url, {"post": "yes", "reason": "x"}).status_code == 403
    assert root.get(reverse("admin:audit_app_auditrecord_add")).status_code == 403


def test_what_was_written_is_shown_to_readers_of_contents_and_recorded() -> None:
    ada, echo = factories.user("ada"), factories.agent("echo")
    chat = factories.chat(ada, echo)
    message = factories.message(chat, ada, "a secret plan")
    response = factories.response(echo, chat, text="a secret answer")
    call = factories.tool_call(response, "steps", arguments='{"secret": 1}')
    pages = [
        reverse("admin:chat_app_message_changelist"),
        reverse("admin:chat_app_message_change", args=[message.pk.replace("_", "_5F")]),
        reverse("admin:sessions_app_response_change", args=[response.pk.replace("_", "_5F")]),
        reverse("admin:sessions_app_toolcall_change", args=[call.pk]),
    ]
    support = signed_in(member_of("Support"))
    for url in pages:
        page = support.get(url)
        assert page.status_code == 200, url
        assert "secret" not in page.content.decode(), url
    transcript = reverse("admin:chat_app_chat_transcript", args=[chat.pk])
    assert support.get(transcript).status_code == 403
    assert not AuditRecord.objects.exists()
    auditor = signed_in(member_of("Auditor"))
    for url in (*pages, transcript):
        page = auditor.get(url, REMOTE_ADDR="192.0.2.7")
        assert "secret" in page.content.decode(), url
    rows = AuditRecord.objects.order_by("pk").values_list("action", "kind", "object_id", "address")
    assert list(rows) == [
        ("content.read", "chat_app.message", "", "192.0.2.7"),
        ("content.read", "chat_app.message", message.pk, "192.0.2.7"),
        ("content.read", "sessions_app.response", response.pk, "192.0.2.7"),
        ("content.read", "sessions_app.toolcall", str(call.pk), "192.0.2.7"),
        ("transcript.read", "chat_app.chat", chat.pk, "192.0.2.7"),
    ]
    listed = reverse("admin:audit_app_auditrecord_changelist")
    assert support.get(listed).status_code == 403
    page_text = auditor.get(listed, {"action": "transcript.read"}).content.decode()
    assert page_text.count("192.0.2.7") == 1
    assert auditor.get(listed, {"q": message.pk}).content.decode().count("192.0.2.7") == 1


def exported(client: Client, query: str) -> list[str]:
    """Return the actions and actors that an export of the filtered list has."""
    url = reverse("admin:audit_app_auditrecord_changelist")
    form = {"action": "export_records", "_selected_action": ["0"], "select_across": "1"}
    response = client.post(f"{url}?{query}", form)
    assert response["Content-Type"] == "application/x-ndjson", query
    rows = [json.loads(line) for line in response.content.decode().splitlines()]
    return [f"{row['action']} {row['kind']} {row['actor']}" for row in rows]


def test_the_audit_is_filtered_by_actor_and_kind_and_exported_as_filtered() -> None:
    ada, ben = factories.user("ada"), factories.user("ben")
    record(ada, AuditAction.KEY_REVOKED, ("sessions_app.apikey", "7"))
    record(ada, AuditAction.TRANSCRIPT_READ, ("chat_app.chat", "chat_1"))
    record(ben, AuditAction.TRANSCRIPT_READ, ("chat_app.chat", "chat_1"))
    record(None, AuditAction.MESSAGES_ERASED, ("chat_app.chat", "chat_2"))
    client = signed_in(factories.superuser())
    revoked, read = "key.revoked sessions_app.apikey ada", "transcript.read chat_app.chat"
    erased = "messages.erased chat_app.chat None"

    assert exported(client, f"actor={ada.pk}") == [f"{read} ada", revoked]
    assert exported(client, "actor=server") == [erased]
    assert exported(client, "kind=chat_app.chat") == [erased, f"{read} ben", f"{read} ada"]
    assert exported(client, f"actor={ben.pk}&kind=chat_app.chat") == [f"{read} ben"]
    assert exported(client, f"actor={ada.pk}&kind=chat_app.message") == []
    assert exported(client, "action=transcript.read&kind=chat_app.chat&actor=server") == []
    assert exported(client, "kind=sessions_app.apikey&created_at_until=2001-01-01") == []
    detail = AuditRecord.objects.filter(action="audit.exported").earliest("pk").detail
    assert detail == f"2 records actor={ada.pk}"


def test_the_filters_of_the_audit_offer_who_acted_and_on_what() -> None:
    ada = factories.user("ada")
    record(ada, AuditAction.KEY_REVOKED, ("sessions_app.apikey", "7"))
    record(ada, AuditAction.CONTENT_SEARCHED, None)
    record(None, AuditAction.MESSAGES_ERASED, ("chat_app.chat", "chat_2"))
    page = signed_in(factories.superuser()).get(reverse("admin:audit_app_auditrecord_changelist"))
    offered = {spec.title: spec.lookup_choices for spec in page.context["cl"].filter_specs[:3]}
    assert offered["actor"] == [("server", "this server"), (str(ada.pk), "ada")]
    assert offered["kind"] == [(kind, kind) for kind in ("chat_app.chat", "sessions_app.apikey")]


@pytest.mark.parametrize("actor", ["x", "-1", "9" * 30, "1e3", "\N{ARABIC-INDIC DIGIT ONE}"])
def test_an_actor_without_a_number_is_refused(actor: str) -> None:
    address = reverse("admin:audit_app_auditrecord_changelist")
    answer = signed_in(factories.superuser()).get(address, {"actor": actor})
    assert (answer.status_code, answer.headers["Location"]) == (302, f"{address}?e=1")


def test_a_second_filter_of_the_audit_looks_in_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("audit_app.admin.checked_lists.WINDOW", 2)
    ada = factories.user("ada")
    record(ada, AuditAction.KEY_REVOKED, ("sessions_app.apikey", "7"))
    for number in range(3):
        record(ada, AuditAction.KEY_REVOKED, ("chat_app.chat", f"chat_{number}"))
    client = signed_in(factories.superuser())
    address = reverse("admin:audit_app_auditrecord_changelist")
    query, counts = "?action=key.revoked&kind=sessions_app.apikey", []
    while query:
        page = client.get(f"{address}{query}").context["cl"]
        counts.append(page.result_count)
        query = page.further
    assert (counts[0], sum(counts)) == (0, 1)


def test_a_search_finds_what_is_older_under_a_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "COUNTED_ROWS", 2)
    ada = factories.user("ada")
    record(ada, AuditAction.KEY_REVOKED, ("sessions_app.apikey", "7"))
    for number in range(3):
        record(ada, AuditAction.TRANSCRIPT_READ, ("chat_app.chat", f"chat_{number}"))
    client = signed_in(factories.superuser())
    address = reverse("admin:audit_app_auditrecord_changelist")
    page = client.get(address, {"q": "ada", "action": AuditAction.KEY_REVOKED})
    assert page.context["cl"].result_count == 1


def test_what_a_form_gives_a_person_is_recorded() -> None:
    ada = factories.user("ada", is_staff=True)
    group = Group.objects.get(name="Finance")
    form = {"username": "ada", "groups": [group.pk], "is_staff": "on", "is_active": "on",
            "date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}  # fmt: skip
    root = signed_in(factories.superuser())
    answer = root.post(reverse("admin:auth_user_change", args=[ada.pk]), form)
    assert answer.status_code == 302, answer.content.decode()[:2000]
    row = AuditRecord.objects.get()
    assert (row.action, row.kind, row.object_id) == ("row.changed", "auth.user", str(ada.pk))
    assert "Groups" in row.detail or "groups" in row.detail


def test_a_new_installation_has_the_roles_with_all_of_their_rights() -> None:
    roles = {
        group.name: {
            f"{right.content_type.app_label}.{right.codename}"
            for right in group.permissions.select_related("content_type")
        }
        for group in Group.objects.all()
    }
    assert roles == {name: set(rights) for name, rights in ROLES.items()}


def test_the_page_of_the_roles_shows_their_rights() -> None:
    rights = {
        name: {right.codename for right in Group.objects.get(name=name).permissions.all()}
        for name in ROLES
    }
    rows = re.findall(r"^\| `([a-z_]+)`.*?\|(.+)\|$", PAGE.read_text(), re.MULTILINE)
    assert len(rows) > 20
    for right, cells in rows:
        for role, cell in zip(ROLES, cells.split("|"), strict=True):
            assert (cell.strip() == "yes") == (right in rights[role]), (right, role)
    # No role may change who may what, and none but the auditor reads what was said.
    for name, permissions in rights.items():
        assert not permissions & {"change_user", "change_group", "add_user"}
        assert ("view_content" in permissions) == (name == "Auditor")
    writing = [right for right in rights["Auditor"] if not right.startswith("view_")]
    assert writing == ["export_content"]


def test_every_role_opens_the_admin_and_its_own_lists() -> None:
    for role in ROLES:
        client = signed_in(member_of(role))
        assert client.get(reverse("admin:index")).status_code == 200
        listed = client.get(reverse("admin:sessions_app_response_changelist"))
        assert listed.status_code == 200, role
        stops = ResponseAdmin.operations[0].label in listed.content.decode()
        assert stops == (role in {"Support", "Operator"}), role


@pytest.mark.parametrize("model", [User, Group, Agent], ids=lambda model: model.__name__)
def test_a_list_deletes_no_rows(model: type[Model]) -> None:
    """Django's action deletes every row that matches the filters, without a reason."""
    factories.agent("echo")
    root = signed_in(factories.superuser())
    keys = list(model._default_manager.values_list("pk", flat=True))
    url = reverse(f"admin:{model._meta.label_lower.replace('.', '_')}_changelist")
    assert "delete_selected" not in root.get(url).content.decode()
    post = {"action": "delete_selected", "_selected_action": keys, "post": "yes"}
    for extra in ({}, {"select_across": "1"}):
        root.post(url, {**post, **extra})
        assert list(model._default_manager.values_list("pk", flat=True)) == keys

"""The chat domain in the admin: history is shown, never changed, at a fixed cost."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import DatabaseError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import sync_playwright

from audit_app.admin import records
from audit_app.admin.records import CappedPaginator
from audit_app.models import AuditRecord
from chat_app.links.invite_links import create_invite_link
from chat_app.links.share_links import create_share_link
from chat_app.models import (
    ChatEvent,
    Message,
    Profile,
    ProfilePicture,
)
from chat_app.people import profiles
from chat_app.people.profiles import ProfileChange
from tests import factories
from tests.chat_app.admin.admin_rows import address, one_of_each, signed_in, staff, transcript

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.conftest import ServerAddress

pytestmark = pytest.mark.django_db

MODELS = sorted(model._meta.label_lower for model in apps.get_app_config("chat_app").get_models())


def test_every_model_of_the_chat_domain_is_in_the_admin() -> None:
    registered = {model._meta.label_lower for model in admin.site._registry}
    assert set(MODELS) <= registered


@pytest.mark.long
def test_a_list_of_20_takes_as_many_queries_as_a_list_of_2() -> None:
    client = signed_in(factories.superuser())
    # With two rows every filter that is ever shown is shown.
    for number in range(2):
        one_of_each(number)

    def queries() -> dict[str, int]:
        counts = {}
        for label in MODELS:
            with CaptureQueriesContext(connection) as captured:
                response = client.get(address(label))
            assert response.status_code == 200, label
            counts[label] = len(captured)
        return counts

    # The first reading also looks up the content types.
    queries()
    few = queries()
    for number in range(2, 20):
        one_of_each(number)
    assert queries() == few


def test_the_page_of_each_row_opens_and_search_works() -> None:
    chat = one_of_each(0)
    client = signed_in(factories.superuser())
    for label in MODELS:
        row = apps.get_model(label).objects.first()
        assert row is not None, label
        page = client.get(address(label, "change", args=[row.pk]))
        assert page.status_code == 200, label
        for words in (chat.pk, "person0", "nothing", "' OR 1=1"):
            assert client.get(address(label), {"q": words}).status_code == 200, (label, words)


def test_the_admin_neither_adds_nor_deletes_history() -> None:
    one_of_each(0)
    client = signed_in(factories.superuser())
    for label in MODELS:
        model = apps.get_model(label)
        before = list(model.objects.values())
        row = model.objects.first()
        assert row is not None, label
        change = address(label, "change", args=[row.pk])
        delete = address(label, "delete", args=[row.pk])
        assert client.get(address(label, "add")).status_code == 403, label
        assert client.post(address(label, "add"), {}).status_code == 403, label
        assert client.post(delete, {"post": "yes"}).status_code == 403, label
        action = {"action": "delete_selected", "_selected_action": [str(row.pk)], "post": "yes"}
        client.post(address(label), action)
        if label not in {"chat_app.chat", "chat_app.site"}:
            assert client.post(change, {"name": "x", "content": "x"}).status_code == 403, label
        assert list(model.objects.values()) == before, label


def test_a_title_may_be_corrected_and_nothing_else() -> None:
    chat = one_of_each(0)
    client = signed_in(factories.superuser())
    form = {
        "title": "Better",
        "last_seq": "99",
        "epoch": "x",
        "participants-TOTAL_FORMS": "0",
        "participants-INITIAL_FORMS": "0",
    }
    before = (chat.last_seq, chat.epoch, chat.participants.count())
    chat.refresh_from_db()
    before = (chat.last_seq, chat.epoch, chat.participants.count())
    assert client.post(address("chat_app.chat", "change", args=[chat.pk]), form).status_code == 302
    chat.refresh_from_db()
    assert chat.title == "Better"
    assert (chat.last_seq, chat.epoch, chat.participants.count()) == before


def test_messages_are_found_by_their_chat() -> None:
    one_of_each(0)
    second = one_of_each(1)
    client = signed_in(factories.superuser())
    page = client.get(address("chat_app.message"), {"q": second.pk}).content.decode()
    assert "person1" in page
    assert "person0" not in page


def test_messages_of_all_chats_are_listed_by_time() -> None:
    ada = factories.user("ada")
    chats = [factories.chat(ada) for _ in range(4)]
    now = timezone.now()
    messages = [factories.message(chat, ada) for chat in (*chats, *reversed(chats))]
    for days, message in enumerate(messages):
        Message.objects.filter(pk=message.pk).update(created_at=now - timedelta(days=days))
    client = signed_in(factories.superuser())
    rows = client.get(address("chat_app.message")).context["cl"].result_list
    assert [row.pk for row in rows] == [message.pk for message in messages]
    day = (now - timedelta(days=2)).strftime("%Y-%m-%d")
    some = (
        client.get(address("chat_app.message"), {"created_at_from": day, "created_at_until": day})
        .context["cl"]
        .result_list
    )
    assert [row.pk for row in some] == [messages[2].pk]


@pytest.mark.parametrize(
    ("model", "text"),
    [
        ("chat_app.profile", "ADA L"),
        ("auth.user", "ada@example.org"),
        ("auth.user", "ad"),
    ],
)
def test_people_are_found_by_name_and_address(model: str, text: str) -> None:
    for name in ("ada", "bob"):
        person = factories.user(name, email=f"{name}@example.org")
        profiles.update_profile(user=person, change=ProfileChange(display_name=f"{name} L."))
    client = signed_in(factories.superuser())
    (row,) = client.get(address(model), {"q": text}).context["cl"].result_list
    assert "ada" in str(row)


def test_a_search_finds_the_newest_under_a_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("column_search.COUNTED_ROWS", "checked_lists.WINDOW"):
        monkeypatch.setattr(f"audit_app.admin.{name}", 2)
    ada, echo = factories.user("ada"), factories.agent("echo")
    chat = factories.chat(ada, echo)
    factories.message(chat, echo, "Rare")
    for number in range(4):
        factories.message(chat, ada, f"Number {number}")
    client = signed_in(factories.superuser())
    page = client.get(address("chat_app.message"), {"q": chat.pk, "role": "assistant"})
    assert page.context["cl"].result_count == 0
    # Two windows further back.
    for _ in range(2):
        page = client.get(address("chat_app.message") + page.context["cl"].further)
    assert [row.content for row in page.context["cl"].result_list] == ["Rare"]
    page = client.get(address("chat_app.message"), {"q": chat.pk})
    assert [row.content for row in page.context["cl"].result_list] == ["Number 3", "Number 2"]


def test_a_long_list_is_counted_up_to_its_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("audit_app.admin.records.COUNTED_ROWS", 3)
    ada = factories.user("ada")
    chat = factories.chat(ada)
    for _ in range(5):
        factories.message(chat, ada)
    assert CappedPaginator(Message.objects.order_by("seq"), 2).num_pages == 2


@pytest.mark.browser
def test_the_admin_runs_under_the_strict_policy(server: ServerAddress, chromium: str) -> None:
    chat = one_of_each(0)
    paths = ("/admin/", address("chat_app.chat"), transcript(chat))
    assert complaints_at(server, chromium, paths) == []


@pytest.mark.browser
@pytest.mark.long
def test_the_api_reader_runs_under_the_strict_policy(server: ServerAddress, chromium: str) -> None:
    path = "/api/v1/chats/{chat_id}/messages"
    assert complaints_at(server, chromium, ["/api/docs"], awaited_text=path) == []


def complaints_at(
    server: ServerAddress, chromium: str, paths: Iterable[str], *, awaited_text: str = ""
) -> list[str]:
    """Return a browser's complaints about pages; the last page shows a text."""
    cookie = signed_in(factories.superuser()).cookies["sessionid"].value
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--no-first-run"]
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        page = browser.new_page()
        page.context.add_cookies([{"name": "sessionid", "value": cookie, "url": server.http}])
        complaints: list[str] = []
        page.on(
            "console",
            lambda message: complaints.append(message.text) if message.type == "error" else None,
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        for path in paths:
            answer = page.goto(f"{server.http}{path}", wait_until="networkidle")
            assert answer is not None
            assert answer.status == 200
            policy = answer.headers["content-security-policy"]
            assert "script-src 'self'" in policy
            assert "unsafe" not in policy
        if awaited_text:
            page.get_by_text(awaited_text).first.wait_for()
        browser.close()
    return complaints


def test_an_operator_takes_a_profile_away() -> None:
    ada = factories.user("ada")
    profiles.update_profile(user=ada, change=ProfileChange(display_name="Ada L."))
    profiles.set_picture(user_id=ada.pk, data=factories.png())
    chosen = {"action": "clear", "_selected_action": [ada.pk]}
    reader = signed_in(staff("view_profile"))
    reader.post(address("chat_app.profile"), chosen)
    assert Profile.objects.filter(pk=ada.pk).exists()
    operator = signed_in(factories.superuser())
    # The list asks first.
    assert (
        "ada will be removed" in operator.post(address("chat_app.profile"), chosen).content.decode()
    )
    assert Profile.objects.filter(pk=ada.pk).exists()
    url = reverse("admin:chat_app_profile_operate", args=[ada.pk, "clear"])
    gone = operator.post(url, {"reason": "it was offensive"})
    assert gone.headers["Location"] == address("chat_app.profile")
    assert not Profile.objects.exists()
    (row,) = AuditRecord.objects.all()
    assert (row.action, row.object_id) == ("profile.cleared", str(ada.pk))
    assert row.reason == "it was offensive"
    assert not ProfilePicture.objects.exists()


def test_an_operator_revokes_links_and_it_is_recorded() -> None:
    person = factories.user()
    chat = factories.chat(person)
    link, secret = create_share_link(chat_id=chat.pk, made_by=person)
    post = {"action": "revoke", "_selected_action": [link.pk]}
    reader = signed_in(staff("view_sharelink"))
    reader.post(address("chat_app.sharelink"), post)
    assert Client().get(f"/shared/{secret}").status_code == 200

    client = signed_in(factories.superuser())
    # The list asks for a reason first.
    asking = client.post(address("chat_app.sharelink"), post)
    assert "will no longer work" in asking.content.decode()
    assert Client().get(f"/shared/{secret}").status_code == 200
    client.post(address("chat_app.sharelink"), {**post, "reason": "it was posted"})
    assert Client().get(f"/shared/{secret}").status_code == 404
    client.post(address("chat_app.sharelink"), {**post, "reason": "it was posted"})
    (row,) = AuditRecord.objects.all()
    assert (row.action, row.reason) == ("link.revoked", "it was posted")
    page = client.get(reverse("admin:chat_app_sharelink_change", args=[link.pk]))
    assert "operate/revoke/" not in page.content.decode()
    (payload,) = ChatEvent.objects.filter(chat=chat, type="link.revoked").values_list(
        "payload", flat=True
    )
    assert payload["by"]["name"] == "root"


@pytest.mark.parametrize("place", ["list", "page"])
def test_an_operation_that_cannot_be_recorded_is_not_done(
    monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    person = factories.user()
    link, _ = create_share_link(chat_id=factories.chat(person).pk, made_by=person)
    client = signed_in(factories.superuser())

    def fail(*_arguments: object, **_options: object) -> None:
        raise DatabaseError

    monkeypatch.setattr(records, "record", fail)
    path = reverse("admin:chat_app_sharelink_operate", args=[link.pk, "revoke"])
    post = {"action": "revoke", "_selected_action": [link.pk], "reason": "it was posted"}
    with pytest.raises(DatabaseError):
        client.post(address("chat_app.sharelink") if place == "list" else path, post)
    link.refresh_from_db()
    assert link.revoked_at is None
    assert not ChatEvent.objects.filter(type="link.revoked").exists()


def test_a_row_that_is_gone_does_not_end_an_action_of_a_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    people = [factories.user(name) for name in ("ada", "bob")]
    for person in people:
        Profile.objects.create(user=person, display_name="x")
    clear, remaining = profiles.clear_profile, {person.pk for person in people}

    def erase_others(*, user_id: int) -> None:
        clear(user_id=user_id)
        remaining.intersection_update({user_id})
        User.objects.filter(pk__in=[person.pk for person in people]).exclude(pk=user_id).delete()

    monkeypatch.setattr(profiles, "clear_profile", erase_others)
    client = signed_in(factories.superuser())
    post = {"action": "clear", "_selected_action": [person.pk for person in people]}
    answer = client.post(
        address("chat_app.profile"), {**post, "reason": "it was offensive"}, follow=True
    )
    assert "no longer exists" in answer.content.decode()
    (row,) = AuditRecord.objects.filter(action="profile.cleared")
    assert {row.object_id} == {str(pk) for pk in remaining}


def test_an_operator_revokes_one_link_on_its_page() -> None:
    person = factories.user()
    link, _ = create_invite_link(chat_id=factories.chat(person).pk, made_by=person)
    reader = signed_in(staff("view_invitelink"))
    url = reverse("admin:chat_app_invitelink_operate", args=[link.pk, "revoke"])
    assert reader.post(url, {"reason": "no"}).status_code == 403
    client = signed_in(factories.superuser())
    page = client.get(reverse("admin:chat_app_invitelink_change", args=[link.pk]))
    assert url in page.content.decode()
    assert client.post(url, {"reason": "it was posted"}).status_code == 302
    link.refresh_from_db()
    assert link.revoked_at is not None
    assert link.revoked_by is not None

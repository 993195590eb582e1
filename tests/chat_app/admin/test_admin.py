"""The chat domain in the admin: history is shown, never changed, at a fixed cost."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import sync_playwright

from audit_app.admin.records import CappedPaginator
from audit_app.models import AuditRecord
from chat_app.admin.chats import TRANSCRIPT_EVENTS
from chat_app.contents import reading_rights
from chat_app.conversation import deletion, pins, reactions, revisions
from chat_app.forks.forking import fork_chat
from chat_app.links.invite_links import create_invite_link
from chat_app.links.share_links import create_share_link
from chat_app.log import entries
from chat_app.log.checkpoints import checkpoint_of
from chat_app.log_tree.growth import grow
from chat_app.members import receipts
from chat_app.models import (
    AgentMention,
    CallMemberState,
    Chat,
    ChatEvent,
    ContentPreview,
    LinkCard,
    LinkCardState,
    LogErasure,
    Message,
    MessageMention,
    MessageThread,
    Profile,
    ProfilePicture,
    PushDelivery,
    PushSubscription,
    RepeatedRequest,
    SharedState,
    Site,
    ThreadFollower,
    Transcript,
    TranscriptState,
    TreeCheckpoint,
    TreeCosignature,
    UnreadMail,
    Upload,
    UploadPart,
    VoiceCall,
    VoiceCallAgent,
    VoiceCallMember,
)
from chat_app.people import profiles
from chat_app.people import settings as person_settings
from chat_app.people.profiles import ProfileChange
from chat_app.people.settings import SettingsChange
from tests import factories

if TYPE_CHECKING:
    from pathlib import Path

    from django.contrib.auth.models import User
    from pytest_django.fixtures import Settings

    from tests.conftest import ServerAddress

pytestmark = pytest.mark.django_db

MODELS = sorted(model._meta.label_lower for model in apps.get_app_config("chat_app").get_models())


@pytest.fixture(autouse=True)
def media(settings: Settings, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def staff(*permissions: str) -> User:
    user = factories.user("operator", is_staff=True)
    for name in permissions:
        user.user_permissions.add(Permission.objects.get(codename=name))
    return user


def address(label: str, view: str = "changelist", **options: Any) -> str:
    # The admin writes ids in its paths in a way of its own: `_25` is a character to it.
    options["args"] = [quote(pk) for pk in options.get("args", ())]
    return reverse(f"admin:{label.replace('.', '_')}_{view}", **options)


def one_of_each(number: int) -> Chat:
    """Add one row of every model."""
    person = factories.user(f"person{number}")
    agent = factories.agent(f"agent{number}")
    chat = factories.chat(person, agent, title=f"Chat {number}")
    message = factories.message(chat, person, "Hello")
    receipts.mark_read(chat_id=chat.pk, user_id=person.pk, message_id=message.pk)
    act: dict[str, Any] = {"chat_id": chat.pk, "message_id": message.pk, "user_id": person.pk}
    revisions.edit_message(**act, content="Hello again")
    deletion.delete_message(**act)
    act["message_id"] = factories.message(chat, person, "Hi").pk
    reactions.add_reaction(**act, emoji="\N{PARTY POPPER}")
    pins.pin_message(**act)
    content = factories.content(person)
    reading_rights.use(chat.pk, [str(content.pk)])
    factories.presence(person)
    SharedState.objects.create(chat=chat, version=1)
    AgentMention.objects.create(chat=chat, pair=f"{agent.pk} other")
    call = VoiceCall.objects.create(chat=chat, call_id=f"call{number}", started_by=person)
    VoiceCallMember.objects.create(call=call, user=person, state=CallMemberState.JOINED)
    VoiceCallAgent.objects.create(call=call, agent=agent, host=person, joined_at=timezone.now())
    thread = MessageThread.objects.create(
        root_id=act["message_id"], chat=chat, last_seq=1, last_at=timezone.now()
    )
    ThreadFollower.objects.create(thread=thread, user=person)
    MessageMention.objects.create(message_id=act["message_id"], chat=chat, user=person, seq=1)
    create_share_link(chat_id=chat.pk, made_by=person)
    Transcript.objects.create(content=content, state=TranscriptState.DONE)
    ContentPreview.objects.create(content=content, data=b"RIFF")
    upload = Upload.objects.create(
        owner=person, length=2, mime_type="text/plain", expires_at=timezone.now()
    )
    UploadPart.objects.create(upload=upload, start=0, blob="part")
    client = signed_in(person)
    subscription = PushSubscription.objects.create(
        user=person,
        session_id=str(client.session.session_key),
        endpoint=f"https://push.example/{number}",
        endpoint_sha256=f"{number:064}",
    )
    PushDelivery.objects.create(
        subscription=subscription,
        message_id=act["message_id"],
        is_mention=False,
        is_followed=False,
        due_at=timezone.now(),
    )
    UnreadMail.objects.create(user=person, looked_until=timezone.now())
    RepeatedRequest.objects.create(user=person, key="key", request_sha256="")
    LinkCard.objects.create(url_sha256=f"{number:064}", state=LinkCardState.READ)
    fork_chat(
        chat_id=chat.pk, message_id=act["message_id"], forked_by=person, admit=lambda _size: None
    )
    create_invite_link(chat_id=chat.pk, made_by=person)
    profiles.set_picture(user_id=person.pk, data=factories.png())
    checkpoint_of(chat.pk)
    grow(timezone.now())
    TreeCosignature.objects.create(checkpoint=TreeCheckpoint.objects.latest("size"), witness="w")
    LogErasure.objects.get_or_create()
    Site.objects.get_or_create()
    person_settings.update_settings(user_id=person.pk, change=SettingsChange(theme="dark"))
    return chat


def test_every_model_of_the_chat_domain_is_in_the_admin() -> None:
    registered = {model._meta.label_lower for model in admin.site._registry}
    assert set(MODELS) <= registered


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
    written = [factories.message(chat, ada) for chat in (*chats, *reversed(chats))]
    for days, message in enumerate(written):
        Message.objects.filter(pk=message.pk).update(created_at=now - timedelta(days=days))
    client = signed_in(factories.superuser())
    found = client.get(address("chat_app.message")).context["cl"].result_list
    assert [row.pk for row in found] == [message.pk for message in written]
    day = (now - timedelta(days=2)).strftime("%Y-%m-%d")
    some = (
        client.get(address("chat_app.message"), {"created_at_from": day, "created_at_until": day})
        .context["cl"]
        .result_list
    )
    assert [row.pk for row in some] == [written[2].pk]


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
    (found,) = client.get(address(model), {"q": text}).context["cl"].result_list
    assert "ada" in str(found)


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


# --- Transcript ---


def transcript(chat: Chat) -> str:
    return reverse("admin:chat_app_chat_transcript", args=[chat.pk])


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


@pytest.mark.browser
def test_the_admin_and_the_api_reader_run_under_the_strict_policy(
    server: ServerAddress, chromium: str
) -> None:
    chat = one_of_each(0)
    root = factories.superuser()
    cookie = signed_in(root).cookies["sessionid"].value
    paths = ("/admin/", address("chat_app.chat"), transcript(chat), "/api/docs")
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--no-first-run"]
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        page = browser.new_page()
        page.context.add_cookies([{"name": "sessionid", "value": cookie, "url": server.http}])
        complaints: list[str] = []
        page.on(
            "console", lambda said: complaints.append(said.text) if said.type == "error" else None
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        for path in paths:
            answer = page.goto(f"{server.http}{path}", wait_until="networkidle")
            assert answer is not None
            assert answer.status == 200
            policy = answer.headers["content-security-policy"]
            assert "script-src 'self'" in policy
            assert "unsafe" not in policy
        page.get_by_text("/api/v1/chats/{chat_id}/messages").first.wait_for()
        browser.close()
    assert complaints == []


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


def test_an_operator_takes_a_profile_away() -> None:
    ada = factories.user("ada")
    profiles.update_profile(user=ada, change=ProfileChange(display_name="Ada L."))
    profiles.set_picture(user_id=ada.pk, data=factories.png())
    chosen = {"action": "clear", "_selected_action": [ada.pk]}
    reader = signed_in(staff("view_profile"))
    reader.post(address("chat_app.profile"), chosen)
    assert Profile.objects.filter(pk=ada.pk).exists()
    operator = signed_in(factories.superuser())
    assert operator.post(address("chat_app.profile"), chosen).status_code == 302
    assert not Profile.objects.exists()
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
    client.post(address("chat_app.sharelink"), post)
    assert Client().get(f"/shared/{secret}").status_code == 404
    assert LogEntry.objects.get().change_message == "Revoked."
    (payload,) = ChatEvent.objects.filter(chat=chat, type="link.revoked").values_list(
        "payload", flat=True
    )
    assert payload["by"]["name"] == "root"

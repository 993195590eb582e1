"""Who is sent what: subscriptions over REST, deliveries, and their end."""

from __future__ import annotations

import json
import zipfile
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client
from django.utils import timezone

from chat_app.conversation import deletion, erasure
from chat_app.members import receipts
from chat_app.models import (
    MessageMention,
    MessageThread,
    NotificationLevel,
    Participant,
    PushDelivery,
    PushSubscription,
    ThreadFollower,
)
from chat_app.people import settings as person_settings
from chat_app.people.settings import SettingsChange
from chat_app.push import deliveries, subscriptions, vapid
from chat_app.push.news import PER_MINUTE, WAIT_SECONDS, queue_news
from chat_app.push.payloads import BYTES_MAX
from chat_app.push.tasks import send_push
from sessions_app.data_rights.personal_export import export_person
from signing_app import owner_keys
from signing_app.models import PublishedKey
from tests import factories
from tests.client import wait_until
from tests.live_server import Person, shared_chat

if TYPE_CHECKING:
    from pathlib import Path

    import httpx
    from django.contrib.auth.models import User

    from chat_app.models import Chat, Message
    from tests.push_service import PushBrowser, PushService

pytestmark = pytest.mark.django_db

WIDE = "\N{MATHEMATICAL FRAKTUR CAPITAL A}"
PATH = "/api/v1/me/push-subscriptions"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


def signed_in(user: User) -> Client:
    """Return a browser of a person."""
    client = Client(HTTP_USER_AGENT=FIREFOX)
    client.force_login(user)
    return client


def subscribe(client: Client, body: Any) -> Any:
    return client.post(PATH, json.dumps(body), content_type="application/json")


def send_all() -> None:
    """Do what a process and its workers do in a round."""
    now = timezone.now()
    queue_news(now)
    for pk in deliveries.take_due(now):
        send_push(pk=pk)


def make_due() -> None:
    """Let the time pass for which deliveries wait."""
    PushDelivery.objects.update(due_at=timezone.now(), notify_at=timezone.now())


@pytest.fixture
def ada() -> User:
    return factories.user("ada")


@pytest.fixture
def grace() -> User:
    return factories.user("grace")


@pytest.fixture
def chat(ada: User, grace: User) -> Chat:
    """Return a chat of three, in which only mentions notify."""
    return factories.chat(ada, grace, factories.user("joan"), title="Plans")


@pytest.fixture
def browser(ada: User, push_service: PushService) -> PushBrowser:
    """Return a browser in which Ada is signed in, with a subscription."""
    made = push_service.browser("ada")
    assert subscribe(signed_in(ada), made.subscription).status_code == 201
    return made


def mention(message: Message, user: User) -> None:
    MessageMention.objects.create(message=message, chat=message.chat, user=user, seq=message.seq)


def test_a_direct_message_is_sent_encrypted_and_signed_once(
    ada: User, grace: User, push_service: PushService, browser: PushBrowser
) -> None:
    message = factories.message(factories.chat(ada, grace), grace, "**Lunch** at one?")
    send_all()
    send_all()
    expected = {
        "title": "grace",
        "body": "Lunch at one?",
        "chat": message.chat_id,
        "message": message.pk,
    }
    assert push_service.received(browser) == [expected]
    ((_, headers, _),) = push_service.seen
    key = signed_in(ada).get("/api/v1/me/push-key").json()["key"]
    claims = push_service.verified(headers, key)
    assert claims["aud"] == push_service.origin
    assert 0 < claims["exp"] - timezone.now().timestamp() <= 24 * 3600
    assert headers["Content-Encoding"] == "aes128gcm"
    assert (headers["TTL"], headers["Urgency"]) == (str(deliveries.TTL_SECONDS), "high")
    assert headers["Topic"] == deliveries.topic_of(message.chat_id)
    assert len(headers["Topic"]) == 32
    row = PushSubscription.objects.get()
    assert row.sent_at is not None
    assert row.device == "Firefox on Linux"


def test_a_message_from_before_a_browser_subscribed_is_not_sent(
    ada: User, grace: User, push_service: PushService
) -> None:
    chat = factories.chat(ada, grace)
    factories.message(chat, grace, "Before")
    made = push_service.browser("ada")
    assert subscribe(signed_in(ada), made.subscription).status_code == 201
    factories.message(chat, grace, "After")
    send_all()
    assert [one["body"] for one in push_service.received(made)] == ["After"]


def test_every_device_of_a_person_is_sent_it_and_the_author_is_not(
    ada: User, grace: User, push_service: PushService, browser: PushBrowser
) -> None:
    phone, own = push_service.browser("phone"), push_service.browser("grace")
    assert subscribe(signed_in(ada), phone.subscription).status_code == 201
    assert subscribe(signed_in(grace), own.subscription).status_code == 201
    factories.message(factories.chat(ada, grace), grace)
    send_all()
    assert len(push_service.received(browser)) == len(push_service.received(phone)) == 1
    assert push_service.received(own) == []


def test_of_a_group_mentions_and_followed_threads_are_sent(
    ada: User, grace: User, chat: Chat, push_service: PushService, browser: PushBrowser
) -> None:
    root = factories.message(chat, grace, "for all")
    named = factories.message(chat, grace, "@ada look")
    mention(named, ada)
    followed = factories.message(chat, grace, "a reply", thread=root.pk)
    thread = MessageThread.objects.create(
        root=root, chat=chat, last_seq=followed.seq, last_at=timezone.now()
    )
    ThreadFollower.objects.create(thread=thread, user=ada)
    other = factories.message(chat, grace, "another")
    factories.message(chat, grace, "unfollowed", thread=other.pk)
    send_all()
    first, second = push_service.received(browser)
    assert (first["title"], first["message"]) == ("grace · Plans", named.pk)
    assert (second["title"], second["thread"]) == ("grace replied in a thread of Plans", root.pk)


@pytest.mark.parametrize("reason", ["muted", "left", "quiet", "read", "deleted", "level", "old"])
def test_what_the_person_does_not_want_meanwhile_is_not_sent(
    ada: User,
    grace: User,
    chat: Chat,
    push_service: PushService,
    browser: PushBrowser,
    reason: str,
) -> None:
    message = factories.message(chat, grace, "@ada look")
    mention(message, ada)
    assert queue_news(timezone.now()) == 1
    member = Participant.objects.filter(chat=chat, user=ada)
    match reason:
        case "muted":
            member.update(muted_at=timezone.now())
        case "left":
            member.update(left_at=timezone.now())
        case "level":
            member.update(notifications=NotificationLevel.NONE)
        case "quiet":
            now = timezone.now()
            quiet = SettingsChange(
                quiet_from=f"{now - timedelta(hours=1):%H:%M}",
                quiet_until=f"{now + timedelta(hours=1):%H:%M}",
                time_zone="UTC",
            )
            person_settings.update_settings(user_id=ada.pk, change=quiet)
        case "read":
            receipts.mark_read(chat_id=chat.pk, user_id=ada.pk, message_id=message.pk)
        case "deleted":
            deletion.delete_message(chat_id=chat.pk, message_id=message.pk, user_id=grace.pk)
        case "old":
            PushDelivery.objects.update(created_at=timezone.now() - timedelta(minutes=11))
    send_all()
    assert push_service.seen == []
    assert not PushDelivery.objects.filter(finished_at=None).exists()


def test_a_person_with_an_open_page_is_given_time_to_read(
    ada: User, grace: User, push_service: PushService, browser: PushBrowser
) -> None:
    factories.presence(ada)
    factories.message(factories.chat(ada, grace), grace)
    send_all()
    assert push_service.seen == []
    wait = PushDelivery.objects.get().due_at - timezone.now()
    assert timedelta(0) < wait <= timedelta(seconds=WAIT_SECONDS)
    make_due()
    send_all()
    assert len(push_service.received(browser)) == 1


def test_a_notification_without_words_names_neither_author_nor_chat(
    ada: User, grace: User, chat: Chat, push_service: PushService, browser: PushBrowser
) -> None:
    change = SettingsChange(notification_text=False, notification_sound=False, language="de")
    person_settings.update_settings(user_id=ada.pk, change=change)
    message = factories.message(chat, grace, "@ada secret")
    mention(message, ada)
    send_all()
    (shown,) = push_service.received(browser)
    assert shown == {
        "title": "Neue Nachricht",
        "body": "Du wurdest erwähnt",
        "chat": chat.pk,
        "message": message.pk,
        "is_silent": True,
    }


@pytest.mark.parametrize("text", ["\x01" * 4000, WIDE * 4000, "e" + "\u0301" * 3000, "<b>" * 2000])
def test_no_text_is_too_long_for_a_push_service(
    ada: User, grace: User, push_service: PushService, browser: PushBrowser, text: str
) -> None:
    factories.message(factories.chat(ada, grace, title=WIDE * 200), grace, text)
    send_all()
    ((_, _, body),) = push_service.seen
    assert len(browser.decrypted(body)) <= BYTES_MAX
    assert len(body) <= 4096


@pytest.mark.parametrize("status", [404, 410])
def test_an_address_that_is_gone_is_forgotten(
    ada: User, grace: User, push_service: PushService, browser: PushBrowser, status: int
) -> None:
    push_service.statuses = [status]
    factories.message(factories.chat(ada, grace), grace)
    send_all()
    assert len(push_service.received(browser)) == 1
    assert not PushSubscription.objects.exists()


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_service_that_is_busy_is_asked_again_so_many_times(
    ada: User, grace: User, push_service: PushService, browser: PushBrowser, status: int
) -> None:
    push_service.statuses = [status] * 10
    factories.message(factories.chat(ada, grace), grace)
    send_all()
    send_all()
    assert len(push_service.seen) == 1
    assert PushDelivery.objects.get().due_at > timezone.now() + timedelta(seconds=8)
    for _ in range(10):
        make_due()
        send_all()
    assert len(push_service.received(browser)) == deliveries.ATTEMPTS
    assert PushSubscription.objects.get().failures == 1


def test_a_service_that_refuses_is_not_asked_again_and_at_last_forgotten(
    ada: User, grace: User, push_service: PushService, browser: PushBrowser
) -> None:
    push_service.statuses = [400] * deliveries.FAILURES_MAX
    chat = factories.chat(ada, grace)
    for number in range(1, deliveries.FAILURES_MAX + 1):
        factories.message(chat, grace)
        send_all()
        assert len(push_service.seen) == number
    assert len(push_service.received(browser)) == deliveries.FAILURES_MAX
    assert not PushSubscription.objects.exists()


def test_an_attempt_that_was_overtaken_records_nothing(
    ada: User, grace: User, push_service: PushService, browser: PushBrowser
) -> None:
    factories.message(factories.chat(ada, grace), grace)
    queue_news(timezone.now())
    row = PushDelivery.objects.get()
    claimed = deliveries.claim(row.pk)
    assert claimed is not None
    assert deliveries.claim(row.pk) is None
    make_due()
    again = deliveries.claim(row.pk)
    assert again is not None
    deliveries.finish(claimed, 503)
    row.refresh_from_db()
    assert (row.finished_at, row.attempts, row.http_status) == (None, 2, None)
    deliveries.finish(again, 201)
    assert push_service.received(browser) == []
    row.refresh_from_db()
    assert row.http_status == 201


def test_a_device_is_sent_so_many_messages_in_a_minute(
    ada: User, grace: User, push_service: PushService, browser: PushBrowser
) -> None:
    chat = factories.chat(ada, grace)
    for _ in range(PER_MINUTE + 5):
        factories.message(chat, grace)
    send_all()
    send_all()
    assert len(push_service.received(browser)) == PER_MINUTE


@pytest.mark.parametrize("end", ["sign-out", "password", "deactivation", "expiry", "key"])
def test_nothing_is_sent_to_a_browser_that_is_signed_out(
    ada: User, grace: User, push_service: PushService, end: str
) -> None:
    client, browser = signed_in(ada), push_service.browser("ada")
    assert subscribe(client, browser.subscription).status_code == 201
    other = push_service.browser("phone")
    assert subscribe(signed_in(ada), other.subscription).status_code == 201
    match end:
        case "sign-out":
            client.logout()
            assert PushSubscription.objects.get().endpoint == other.endpoint
        case "password":
            ada.set_password("another")
            ada.save()
        case "deactivation":
            ada.is_active = False
            ada.save()
            assert not PushSubscription.objects.exists()
        case "expiry":
            session = PushSubscription.objects.get(endpoint=browser.endpoint).session
            session.expire_date = timezone.now()
            session.save()
        case "key":
            owner_keys.rotate(vapid.OWNER)
    factories.message(factories.chat(ada, grace), grace)
    send_all()
    assert push_service.received(browser) == []
    is_other_sent = end in {"sign-out", "expiry"}
    assert len(push_service.received(other)) == is_other_sent
    assert PushSubscription.objects.count() == is_other_sent


@pytest.mark.parametrize(
    "change",
    [
        {"endpoint": "http://push.example/a"},
        {"endpoint": "https://127.0.0.1/a"},
        {"endpoint": "https://push.example:22/a"},
        {"endpoint": "https://push.example/" + "a" * 2048},
        {"endpoint": "push"},
        {"p256dh": "B" * 87},
        {"p256dh": "B" * 86},
        {"auth": "A" * 21},
        {"auth": "A" * 24},
        {"more": 1},
    ],
)
def test_what_no_message_can_be_sent_with_is_refused(
    ada: User, push_service: PushService, change: dict[str, Any]
) -> None:
    body = {**push_service.browser("ada").subscription, **change}
    answer = subscribe(signed_in(ada), body)
    assert answer.status_code == 400, answer.json()
    assert not PushSubscription.objects.exists()


def test_a_browser_subscribes_once_for_the_person_who_is_signed_in(
    ada: User, grace: User, push_service: PushService, browser: PushBrowser
) -> None:
    assert subscribe(signed_in(ada), browser.subscription).status_code == 200
    assert PushSubscription.objects.get().user == ada
    assert subscribe(signed_in(grace), browser.subscription).status_code == 201
    assert PushSubscription.objects.get().user == grace


def test_a_person_has_so_many_devices_lists_and_removes_them(
    ada: User, grace: User, push_service: PushService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "DEVICES_MAX", 2)
    client = signed_in(ada)
    made = [subscribe(client, push_service.browser(str(n)).subscription).json() for n in range(3)]
    listed = client.get(PATH).json()["data"]
    assert [row["id"] for row in listed] == [made[2]["id"], made[1]["id"]]
    assert set(listed[0]) == {"id", "device", "created_at", "sent_at", "failures"}
    path = f"{PATH}/{made[1]['id']}"
    assert signed_in(grace).delete(path).status_code == 404
    assert client.delete(path).status_code == 204
    assert client.delete(path).status_code == 404
    assert [row["id"] for row in client.get(PATH).json()["data"]] == [made[2]["id"]]


def test_the_key_is_made_once_and_stored_encrypted(ada: User) -> None:
    client = signed_in(ada)
    first = client.get("/api/v1/me/push-key").json()["key"]
    owner_keys.forget()
    assert client.get("/api/v1/me/push-key").json()["key"] == first
    row = PublishedKey.objects.get(owner=vapid.OWNER)
    assert "PRIVATE" not in row.secret
    assert row.algorithm == "ES256"


def test_an_erasure_takes_the_devices_and_an_export_has_them(
    ada: User, browser: PushBrowser, tmp_path: Path
) -> None:
    with (tmp_path / "export.zip").open("wb") as file:
        export_person(ada, file)
    about = json.loads(zipfile.ZipFile(tmp_path / "export.zip").read("person.json"))
    assert [one["endpoint"] for one in about["push_subscriptions"]] == [browser.endpoint]
    assert "p256dh" not in about["push_subscriptions"][0]
    erasure.erase_profile(ada.pk)
    assert not PushSubscription.objects.exists()


def test_deliveries_are_forgotten_after_a_while(
    ada: User, grace: User, push_service: PushService, browser: PushBrowser
) -> None:
    factories.message(factories.chat(ada, grace), grace)
    send_all()
    now = timezone.now()
    assert deliveries.forget_old(now, limit=10) == 0
    assert deliveries.forget_old(now + timedelta(hours=2), limit=10) == 1
    assert len(push_service.received(browser)) == 1


@pytest.mark.django_db(transaction=True)
def test_a_running_server_sends_a_message_once_to_who_is_away(
    web: httpx.Client,
    alice: Person,
    bob: Person,
    push_service: PushService,
    celery_worker_thread: None,
) -> None:
    browser, chat = push_service.browser("alice"), shared_chat(alice, bob)
    by_key = web.post(PATH, json=browser.subscription, headers=alice.headers)
    assert by_key.status_code == 403
    assert subscribe(signed_in(alice.user), browser.subscription).status_code == 201
    path = f"/api/v1/chats/{chat.pk}/messages"
    for text in ("for the others", "@alice look", "for the others"):
        assert web.post(path, json={"content": text}, headers=bob.headers).status_code == 201
    wait_until(lambda: bool(push_service.received(browser)))
    wait_until(lambda: not PushDelivery.objects.filter(finished_at=None).exists())
    assert [shown["body"] for shown in push_service.received(browser)] == ["@alice look"]

"""Recipients, frequency and retries of push deliveries."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from chat_app.conversation import deletion
from chat_app.members import receipts
from chat_app.models import (
    MessageThread,
    NotificationLevel,
    Participant,
    PushDelivery,
    PushSubscription,
    ThreadFollower,
)
from chat_app.people import settings as person_settings
from chat_app.people.settings import SettingsChange
from chat_app.push import deliveries
from chat_app.push.news import PER_MINUTE, WAIT_SECONDS, queue_news
from chat_app.push.payloads import BYTES_MAX
from tests import factories
from tests.chat_app.push.push_rounds import PATH, make_due, mention, send_all, signed_in, subscribe
from tests.client import wait_until
from tests.live_server import Person, shared_chat

if TYPE_CHECKING:
    import httpx
    from django.contrib.auth.models import User

    from chat_app.models import Chat
    from tests.push_service import PushBrowser, PushService

pytestmark = pytest.mark.django_db

WIDE = "\N{MATHEMATICAL FRAKTUR CAPITAL A}"


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
    new_browser = push_service.browser("ada")
    assert subscribe(signed_in(ada), new_browser.subscription).status_code == 201
    factories.message(chat, grace, "After")
    send_all()
    assert [notification["body"] for notification in push_service.received(new_browser)] == [
        "After"
    ]


def test_every_device_of_a_person_is_sent_it_and_the_author_is_not(
    ada: User, grace: User, push_service: PushService, browser: PushBrowser
) -> None:
    phone, browser_of_grace = push_service.browser("phone"), push_service.browser("grace")
    assert subscribe(signed_in(ada), phone.subscription).status_code == 201
    assert subscribe(signed_in(grace), browser_of_grace.subscription).status_code == 201
    factories.message(factories.chat(ada, grace), grace)
    send_all()
    assert len(push_service.received(browser)) == len(push_service.received(phone)) == 1
    assert push_service.received(browser_of_grace) == []


def test_of_a_group_mentions_and_followed_threads_are_sent(
    ada: User, grace: User, chat: Chat, push_service: PushService, browser: PushBrowser
) -> None:
    root = factories.message(chat, grace, "for all")
    mentioning = factories.message(chat, grace, "@ada look")
    mention(mentioning, ada)
    followed = factories.message(chat, grace, "a reply", thread=root.pk)
    thread = MessageThread.objects.create(
        root=root, chat=chat, last_seq=followed.seq, last_at=timezone.now()
    )
    ThreadFollower.objects.create(thread=thread, user=ada)
    other = factories.message(chat, grace, "another")
    factories.message(chat, grace, "unfollowed", thread=other.pk)
    send_all()
    # Two deliveries run side by side.
    by_title = {notice["title"]: notice for notice in push_service.received(browser)}
    assert sorted(by_title) == ["grace replied in a thread in Plans", "grace · Plans"]
    assert by_title["grace · Plans"]["message"] == mentioning.pk
    assert by_title["grace replied in a thread in Plans"]["thread"] == root.pk


@pytest.mark.parametrize("reason", ["muted", "left", "quiet", "read", "deleted", "level", "old"])
def test_a_notification_that_has_become_unwanted_is_not_sent(
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
    (notification,) = push_service.received(browser)
    assert notification == {
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


@pytest.mark.sampled(1)
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
    assert [notification["body"] for notification in push_service.received(browser)] == [
        "@alice look"
    ]

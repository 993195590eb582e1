"""Webhooks after a member leaves, with restricted keys, and after deletions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils import timezone

from agents_app.rest.rights import Rights
from chat_app.models import Participant
from sessions_app.access.keys import KeyRequest, make_key
from sessions_app.models import Webhook, WebhookDelivery
from sessions_app.states import DeliveryState
from sessions_app.webhooks import deliveries
from tests.client import wait_until
from tests.live_server import shared_chat
from tests.sessions_app.webhooks.chat_webhooks import PATH, all_sent, make, say

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Person
    from tests.webhook_receiver import Receiver


def test_a_message_deleted_before_the_retry_is_not_sent(
    web: httpx.Client, alice: Person, receiver: Receiver
) -> None:
    chat = shared_chat(alice)
    make(web, alice, chat, receiver, types=["message.created"])
    receiver.statuses = [500]
    message = say(web, alice, chat, "plover")
    wait_until(lambda: WebhookDelivery.objects.filter(http_status=500).exists())
    web.delete(f"/api/v1/messages/{message['id']}", headers=alice.headers)
    WebhookDelivery.objects.update(due_at=timezone.now())
    wait_until(lambda: len(receiver.bodies) == 2)
    assert b"plover" not in receiver.seen[1][1]
    assert receiver.bodies[1]["id"] == receiver.bodies[0]["id"]


def test_nothing_is_sent_to_who_left_the_chat(
    web: httpx.Client, alice: Person, bob: Person, receiver: Receiver
) -> None:
    chat = shared_chat(alice, bob)
    make(web, bob, chat, receiver)
    Participant.objects.filter(chat=chat, user=bob.user).update(left_at=timezone.now())
    say(web, alice, chat, "private")
    wait_until(lambda: Webhook.objects.get().disabled_at is not None)
    assert Webhook.objects.get().disabled_reason == deliveries.LEFT
    assert receiver.seen == []


def test_queued_events_are_not_sent_to_a_member_who_left(
    web: httpx.Client, alice: Person, bob: Person, receiver: Receiver
) -> None:
    chat = shared_chat(alice, bob)
    make(web, bob, chat, receiver, types=["message.created"])
    receiver.statuses = [500]
    say(web, alice, chat, "private")
    wait_until(lambda: WebhookDelivery.objects.filter(http_status=500).exists())
    Participant.objects.filter(chat=chat, user=bob.user).update(left_at=timezone.now())
    WebhookDelivery.objects.update(due_at=timezone.now())
    wait_until(lambda: Webhook.objects.get().disabled_at is not None)
    assert len(receiver.seen) == 1


def test_a_restricted_key_sees_the_webhooks_of_its_chats(web: httpx.Client, alice: Person) -> None:
    chats = [shared_chat(alice), shared_chat(alice)]
    for chat in chats:
        body = {"chat": chat.pk, "url": "https://example.org/"}
        assert web.post(PATH, json=body, headers=alice.headers).status_code == 201

    def headers(*scopes: str) -> dict[str, str]:
        rights = Rights(scopes=frozenset(scopes), chats=frozenset({chats[0].pk}))
        new_key = make_key(alice.user.pk, KeyRequest(name="ci", rights=rights))
        return {"Authorization": f"Bearer {new_key.secret}"}

    key = headers("webhooks:*", "chats:read")
    assert [row["chat"] for row in web.get(PATH, headers=key).json()["data"]] == [chats[0].pk]
    for number, chat in enumerate(chats):
        body = {"chat": chat.pk, "url": "https://example.org/"}
        assert web.post(PATH, json=body, headers=key).status_code == (201, 404)[number]
    body = {"chat": chats[0].pk, "url": "https://example.org/"}
    for lacking in (headers("webhooks:write"), headers("webhooks:read", "chats:read")):
        assert web.post(PATH, json=body, headers=lacking).status_code == 403


def test_a_key_that_reads_no_chats_has_nothing_sent_to_an_address_of_its_own(
    web: httpx.Client, alice: Person, receiver: Receiver
) -> None:
    chat = shared_chat(alice)
    path = f"{PATH}/{make(web, alice, chat, receiver, types=['message.created'])['id']}"
    say(web, alice, chat, "hello")
    wait_until(lambda: WebhookDelivery.objects.filter(status=DeliveryState.SENT).exists())
    again = f"{path}/deliveries/{WebhookDelivery.objects.get().pk}/redeliver"
    rights = Rights(scopes=frozenset({"webhooks:*"}))
    key = make_key(alice.user.pk, KeyRequest(name="ci", rights=rights))
    lacking = {"Authorization": f"Bearer {key.secret}"}
    for answer in (
        web.patch(path, json={"url": "https://example.org/"}, headers=lacking),
        web.patch(path, json={"after": 0}, headers=lacking),
        web.post(again, headers=lacking),
    ):
        assert answer.status_code == 403
        assert "chats:read" in answer.json()["detail"]
    assert Webhook.objects.get().url == receiver.url
    assert WebhookDelivery.objects.count() == 1
    assert web.post(f"{path}/ping", headers=lacking).status_code == 202
    wait_until(all_sent)


def test_a_member_who_left_cannot_restart_a_webhook(
    web: httpx.Client, alice: Person, bob: Person, receiver: Receiver
) -> None:
    chat = shared_chat(alice, bob)
    path = f"{PATH}/{make(web, bob, chat, receiver, types=['message.created'])['id']}"
    Participant.objects.filter(chat=chat, user=bob.user).update(left_at=timezone.now())
    say(web, alice, chat, "private")
    wait_until(lambda: Webhook.objects.get().disabled_at is not None)
    seq = Webhook.objects.get().queued_seq
    for change in ({"enabled": True}, {"after": 2**53 - 1}, {"enabled": True, "name": "mine"}):
        assert web.patch(path, json=change, headers=bob.headers).status_code == 404, change
    row = Webhook.objects.get()
    assert (row.queued_seq, row.disabled_reason, row.name) == (seq, deliveries.LEFT, "")
    assert web.patch(path, json={"name": "mine"}, headers=bob.headers).status_code == 200
    assert web.delete(path, headers=bob.headers).status_code == 204

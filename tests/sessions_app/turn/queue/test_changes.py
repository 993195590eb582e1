"""Removing and starting queued messages, and the queue in the admin."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.utils import timezone

from sessions_app.models import QueuedTurn, Response
from tests import factories
from tests.client import UampClient, wait_until
from tests.sessions_app.turn.queue.messages import (
    inside,
    queue,
    refused,
    texts_of_people,
    until_texts,
)

if TYPE_CHECKING:
    import httpx

    from chat_app.models import Chat
    from tests.live_server import Dial, Person


def test_who_may_remove_and_start_a_waiting_message(
    dial: Dial, bob: Person, mallory: Person, web: httpx.Client, chat: Chat, busy: UampClient
) -> None:
    other = inside(dial, bob, chat)
    queue(busy, "@echo of alice")
    until_texts(other, "@echo of alice")
    queue(other, "@echo of bob")
    until_texts(other, "@echo of alice", "@echo of bob")
    mine, theirs = map(str, QueuedTurn.objects.order_by("id").values_list("id", flat=True))
    other.send("queue.remove", item_id=mine)
    assert refused(other) == "forbidden"
    other.send("queue.start", item_id=mine)
    assert refused(other) == "forbidden"
    # The owner of the chat removes, and does not speak for others.
    busy.send("queue.start", item_id=theirs)
    assert refused(busy) == "forbidden"
    for unknown in ("999999", "x", "1" * 30):
        other.send("queue.remove", item_id=unknown)
        assert refused(other) == "message_not_found"
    url = f"/api/v1/chats/{chat.pk}/queue"
    assert web.get(url, headers=mallory.headers).status_code == 404
    assert web.delete(f"{url}/{mine}", headers=mallory.headers).status_code == 404
    assert web.post(f"{url}/{mine}/start", headers=mallory.headers).status_code == 404
    assert web.delete(f"{url}/{mine}", headers=bob.headers).status_code == 403
    data = web.get(url, headers=bob.headers).json()["data"]
    assert [(row["id"], row["text"]) for row in data] == [
        (mine, "@echo of alice"),
        (theirs, "@echo of bob"),
    ]
    other.send("queue.start", item_id=theirs)
    wait_until(lambda: "@echo of bob" in texts_of_people(chat))
    assert Response.objects.get(agent__name="endless").finished_at is None
    assert web.delete(f"{url}/{theirs}", headers=bob.headers).status_code == 404
    busy.send("queue.remove", item_id=mine)
    until_texts(other)
    assert "@echo of alice" not in texts_of_people(chat)


def test_an_owner_removes_what_others_queued(
    dial: Dial, alice: Person, bob: Person, web: httpx.Client, chat: Chat, busy: UampClient
) -> None:
    other = inside(dial, bob, chat)
    queue(other, "of bob")
    until_texts(busy, "of bob")
    row = QueuedTurn.objects.get()
    url = f"/api/v1/chats/{chat.pk}/queue/{row.pk}"
    assert web.delete(url, headers=alice.headers).status_code == 204
    assert not QueuedTurn.objects.exists()


def test_the_admin_shows_the_queue(chat: Chat, busy: UampClient, client: Any) -> None:
    queue(busy, "of alice")
    until_texts(busy, "of alice")
    client.force_login(factories.superuser())
    row = QueuedTurn.objects.get()
    assert client.get("/admin/sessions_app/queuedturn/").status_code == 200
    page = client.get(f"/admin/sessions_app/queuedturn/{row.pk}/change/")
    assert page.status_code == 200


def test_a_message_that_is_being_sent_is_not_removed(chat: Chat, busy: UampClient) -> None:
    queue(busy, "later")
    until_texts(busy, "later")
    QueuedTurn.objects.update(status="starting", due_at=timezone.now() + timedelta(hours=1))
    busy.send("queue.remove", item_id=str(QueuedTurn.objects.get().pk))
    assert refused(busy) == "message_not_found"

"""Limits of the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sessions_app.models import QueuedTurn
from tests.sessions_app.turn.queue.messages import inside, queue, refused, until_texts

if TYPE_CHECKING:
    from pytest_django import Settings

    from chat_app.models import Chat
    from tests.client import UampClient
    from tests.live_server import Dial, Person


def test_the_queue_has_room_for_so_many(
    chat: Chat, busy: UampClient, dial: Dial, bob: Person, settings: Settings
) -> None:
    settings.UAMP_QUEUED_PER_USER = 1
    settings.UAMP_QUEUED_PER_CHAT = 2
    queue(busy, "one")
    until_texts(busy, "one")
    queue(busy, "two")
    assert refused(busy) == "queue_full"
    other = inside(dial, bob, chat)
    queue(other, "three")
    until_texts(other, "one", "three")
    settings.UAMP_QUEUED_PER_USER = 9
    queue(other, "four")
    assert refused(other) == "queue_full"
    assert QueuedTurn.objects.count() == 2


def test_what_is_queued_is_bounded_in_bytes_and_belongs_to_a_chat_of_people(
    busy: UampClient, dial: Dial, alice: Person, settings: Any
) -> None:
    settings.UAMP_MESSAGE_BYTES = 1000
    queue(busy, "x" * 40_000)
    assert refused(busy) == "event_too_large"
    private = dial(alice)
    private.create_session(agent="echo")
    queue(private, "hello")
    assert refused(private) == "invalid_event"
    busy.send("response.create", queue=True, replaces="msg_1")
    assert refused(busy) == "invalid_event"
    assert not QueuedTurn.objects.exists()


def test_what_is_queued_counts_as_text_of_the_day(busy: UampClient, settings: Any) -> None:
    settings.UAMP_TEXT_BYTES_PER_DAY = 1000
    queue(busy, "x" * 2000)
    assert refused(busy) == "rate_limited"
    assert not QueuedTurn.objects.exists()

"""The number of queries that the lists of the REST API take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chat_app.members import participants, receipts
from chat_app.models import Chat, MessageThread, ThreadFollower
from tests import factories
from tests.chat_app.rest.rest_caller import signed_in

if TYPE_CHECKING:
    from django.contrib.auth.models import User

pytestmark = pytest.mark.django_db


def follow_thread(chat: Chat, *, by: User, replied: User) -> None:
    """Make a thread with a reply that is new to its follower."""
    root = factories.message(chat, by)
    reply = factories.message(chat, replied, thread=root.pk)
    thread = MessageThread.objects.create(
        root=root, chat=chat, replies=1, last_seq=reply.seq, last_at=reply.created_at
    )
    ThreadFollower.objects.create(thread=thread, user=by)


LISTS = (
    "chats",
    "chats/{id}/messages?render=html",
    "chats/{id}/events",
    "chats/{id}/receipts",
    "chats/{id}/queue",
    "sessions",
    "agents",
    "users",
    "threads?limit=50",
)


def test_a_list_of_50_takes_as_many_queries_as_a_list_of_1() -> None:
    ada = factories.user("ada")
    agent = factories.agent("agent0")
    chat = factories.chat(ada, agent)
    client = signed_in(ada)

    def add(number: int) -> None:
        person = factories.user(f"user{number}")
        other = factories.chat(ada, person, agent)
        factories.message(other, person)
        participants.add_participant(chat_id=chat.pk, added_by=ada, user=person)
        message = factories.message(chat, person)
        receipts.mark_read(chat_id=chat.pk, user_id=person.pk, message_id=message.pk)
        session = factories.session(ada, chat, agent=agent)
        factories.queued_turn(person, session)
        follow_thread(other, by=ada, replied=person)

    def queries(rows: int) -> dict[str, int]:
        counts = {}
        for path in LISTS:
            with CaptureQueriesContext(connection) as captured:
                listed = client.get("/api/v1/" + path.format(id=chat.pk)).json()["data"]
            assert len(listed) >= (min(rows, 2) if path == "agents" else rows), path
            counts[path] = len(captured)
        return counts

    add(1)
    # What a process remembers is read once.
    queries(1)
    few = queries(1)
    for number in range(2, 51):
        add(number)
    factories.agent("agent1")
    assert queries(50) == few
    assert max(few.values()) <= 7, few

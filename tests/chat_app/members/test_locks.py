"""Locks on a chat while it changes: they hold up another change, not rows that name it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import connection, transaction

from chat_app.members.participants import add_participant
from chat_app.models import Participant
from tests import factories
from tests.threads import thread_pool

if TYPE_CHECKING:
    from django.contrib.auth.models import User

WAIT_SECONDS = 60


@pytest.mark.django_db(transaction=True)
def test_a_person_is_added_while_another_opens_a_session() -> None:
    """On SQLite, which has one writer, the session would be the only transaction."""
    if connection.vendor == "sqlite":
        return
    owner = factories.user("ada")
    chat = factories.chat(owner)
    added = factories.user("ben")

    def add(person: User) -> Participant:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = '5s'")
            return add_participant(chat_id=chat.pk, added_by=owner, user=person)
        finally:
            connection.close()

    with thread_pool(1) as pool, transaction.atomic():
        factories.session(owner, chat)
        with connection.cursor() as cursor:
            # The keys are checked, and their rows locked, as a commit does it.
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        pool.submit(add, added).result(WAIT_SECONDS)

    assert Participant.objects.filter(chat=chat, user=added).exists()

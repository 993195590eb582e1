"""Exports of long chats: a page costs what is in it, and not what is in the chat."""

from __future__ import annotations

import pytest
from django.db import connection
from django.utils import timezone

from chat_app.log.signatures import signatures_of, stored_hashes
from chat_app.models import ChatEvent
from sessions_app.models import Response
from tests import factories
from tests.growth.costs import counted

ANSWERS = 1_000


@pytest.mark.django_db
def test_the_signatures_of_a_page_do_not_read_the_whole_chat() -> None:
    """Without statistics, SQLite prefers the index of a chat; `tests/growth` has PostgreSQL."""
    if connection.vendor != "sqlite":
        pytest.skip("its planner reads small tables as a whole")
    person = factories.user()
    chat = factories.chat(person)
    agent = factories.agent()
    session = factories.session(person, chat)
    now = timezone.now()
    ids = [f"resp_{number}" for number in range(ANSWERS)]
    Response.objects.bulk_create(
        Response(
            id=response_id,
            chat=chat,
            session=session,
            agent=agent,
            output=[response_id],
            status="completed",
            finished_at=now,
        )
        for response_id in ids
    )
    ChatEvent.objects.bulk_create(
        ChatEvent(
            chat=chat,
            seq=1_000 + number,
            type="response.done",
            response_id=response_id,
            payload={"signature": response_id},
            created_at=now,
        )
        for number, response_id in enumerate(ids)
    )
    page = ids[-25:]
    with counted() as cost:
        signed, stored = signatures_of(chat.pk, page), stored_hashes(chat.pk, page)
    assert signed == {response_id: response_id for response_id in page}
    assert stored.keys() == set(page)
    assert cost.amount < ANSWERS, cost
    assert signatures_of("chat_other", page) == {}
    assert stored_hashes("chat_other", page) == {}

"""The text so far of running answers is kept for the process that goes on with them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from django.db import connections, transaction

import uamp
from sessions_app import database
from sessions_app.models import Response
from sessions_app.store import responses
from tests import factories

if TYPE_CHECKING:
    from chat_app.models import Chat

OUTPUT = (
    uamp.TextContent(text="It's "),
    uamp.ToolCallContent(tool_call=uamp.ToolCallData(id="c", name="find", arguments="{}")),
    uamp.TextContent(text="50 % “done”"),
)


@pytest.fixture
def chat(database_threads: None) -> Chat:
    return factories.chat(factories.user())


def flush_of(response: Response, fence: int = 1) -> responses.Flush:
    return responses.Flush(
        response_id=response.pk, fence=fence, output=OUTPUT, inferences=[{"number": 1}]
    )


def test_answers_are_kept_together(chat: Chat) -> None:
    agent = factories.agent()
    rows = [factories.response(agent, chat) for _ in range(3)]
    waiting = factories.response(agent, chat, status="waiting")
    assert responses.flush_responses([flush_of(row) for row in [*rows, waiting]]) == {
        row.pk for row in [*rows, waiting]
    }
    for row in Response.objects.all():
        assert row.text == "It's 50 % “done”"
        assert row.inferences == [{"number": 1}]
        assert [item["type"] for item in row.output] == ["text", "tool_call", "text"]


def test_ended_and_lost_responses_are_not_flushed(chat: Chat) -> None:
    agent = factories.agent()
    ended = factories.response(agent, chat, status="completed", text="whole")
    elsewhere = factories.response(agent, chat, text="theirs", fence=2)
    responses.flush_responses([flush_of(ended), flush_of(elsewhere)])
    ended.refresh_from_db()
    elsewhere.refresh_from_db()
    assert (ended.text, elsewhere.text) == ("whole", "theirs")


@pytest.mark.postgres
def test_a_response_that_is_being_written_is_left_for_the_next_time(chat: Chat) -> None:
    agent = factories.agent()
    locked, free = factories.response(agent, chat), factories.response(agent, chat)
    flushed_ids: set[str] = set()

    def flush() -> None:
        flushed_ids.update(
            database.scoped(responses.flush_responses, [flush_of(locked), flush_of(free)])
        )
        connections.close_all()

    with transaction.atomic():
        Response.objects.select_for_update().get(pk=locked.pk)
        thread = threading.Thread(target=flush)
        thread.start()
        thread.join(10)
        assert flushed_ids == {free.pk}

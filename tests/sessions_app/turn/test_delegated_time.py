"""The time that delegated work may take."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from chat_app.contents import references
from sessions_app.records import CallAnswer
from sessions_app.tools import calls, delegated_calls
from tests import factories
from tests.sessions_app.turn.delegation import answer_frames, answer_text, doer, task_for
from tests.sessions_app.turn.team_tools import order
from tests.sessions_app.turn.test_delegation import TOOLS

if TYPE_CHECKING:
    from pytest_django import Settings

    from tests.live_server import Dial, Person


@pytest.fixture(autouse=True)
def _tools(settings: Settings) -> None:
    settings.UAMP_SERVER_TOOLS = [*settings.UAMP_SERVER_TOOLS, *TOOLS]
    settings.UAMP_LEASE_SECONDS = 5


def test_an_answer_that_comes_too_late_changes_nothing(alice: Person) -> None:
    boss = factories.response(doer("boss"), factories.chat(alice.user))
    call = factories.tool_call(boss, name="delegate", kind="agent", status="waiting")
    content = factories.content(alice.user)
    answers = [
        CallAnswer(result=text, is_error=False, content_items=items)
        for text, items in (("first", ()), ("second", (references.item_of(content),)))
    ]
    for answer in answers:
        delegated_calls.answer_call(call.pk, answer, at=timezone.now())
    call.refresh_from_db()
    assert (call.status, call.result, call.content_items) == ("done", "first", [])
    assert not content.uses.exists()


def test_work_that_waits_for_a_person_does_not_run_out_of_time(alice: Person) -> None:
    boss = factories.response(doer("boss"), factories.chat(alice.user), status="waiting")
    late = timezone.now() - timedelta(seconds=1)
    delegated_call, lost = (
        factories.tool_call(boss, name="delegate", kind="agent", status="waiting", deadline=late)
        for _ in range(2)
    )
    chat = factories.chat(alice.user)
    session = factories.session(alice.user, chat, parent_call=delegated_call)
    factories.response(doer("worker"), chat, session=session)
    assert calls.expire_calls() == [lost]
    delegated_call.refresh_from_db()
    assert delegated_call.status == "waiting"


def test_the_time_of_the_other_one_is_not_the_answers(dial: Dial, settings: Settings) -> None:
    doer("boss", "worker", max_seconds=1)
    doer("worker")
    # Two seconds of words.
    frames = answer_frames(dial(), "boss", task_for("worker", order(words=40)))
    assert answer_text(frames).startswith("received: word0 word1 ")

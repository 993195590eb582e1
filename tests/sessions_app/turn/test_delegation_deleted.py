"""Work of other agents and the deletion of the message that it was done for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from chat_app.models import Message
from sessions_app.models import Response
from tests.client import TERMINAL, wait_until
from tests.sessions_app.turn.delegation import answer_frames, answer_text, doer, task_for
from tests.sessions_app.turn.team_tools import order

if TYPE_CHECKING:
    from tests.live_server import Dial, Person


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_work_goes_with_the_message_that_it_was_done_for(
    dial: Dial, web: httpx.Client, alice: Person, role: str
) -> None:
    doer("boss", "middle")
    doer("middle", "worker")
    doer("worker")
    frames = answer_frames(
        dial(alice), "boss", task_for("middle", task_for("worker", order(say="a secret")))
    )
    assert "a secret" in answer_text(frames)
    chat_id = Response.objects.get(pk=frames[-1]["response_id"]).chat_id
    copies = Message.objects.filter(content__contains="a secret")
    assert copies.exclude(chat_id=chat_id).count() == 4

    message = copies.get(chat_id=chat_id, role=role)
    gone = web.delete(f"/api/v1/messages/{message.pk}", headers=alice.headers)

    assert gone.status_code == httpx.codes.NO_CONTENT
    assert not copies.exclude(chat_id=chat_id).exists()
    hits = web.get("/api/v1/search", params={"q": "secret"}, headers=alice.headers).json()["data"]
    assert {hit["chat_id"] for hit in hits} == {chat_id}


def test_work_that_ends_after_its_message_was_deleted_goes_too(
    dial: Dial, web: httpx.Client, alice: Person
) -> None:
    doer("boss", "middle")
    doer("middle", "worker")
    doer("worker")
    client = dial(alice)
    client.create_session(agent="boss")
    client.send(
        "input.text",
        text=task_for("middle", task_for("worker", order(say="a secret", words=20))),
    )
    client.send("response.create")
    running = Response.objects.filter(agent__name="worker", status="in_progress")
    wait_until(running.exists)
    chat_id = Response.objects.get(agent__name="boss").chat_id
    question = Message.objects.get(chat_id=chat_id)

    gone = web.delete(f"/api/v1/messages/{question.pk}", headers=alice.headers)
    assert (gone.status_code, running.exists()) == (httpx.codes.NO_CONTENT, True)
    client.until(*TERMINAL)

    copies = Message.objects.filter(content__contains="a secret")
    assert {copy.chat_id for copy in copies} == {chat_id}
    assert Message.objects.exclude(chat_id=chat_id).filter(deleted_at=None).count() == 0
    assert Message.objects.exclude(chat_id=chat_id).count() == 4

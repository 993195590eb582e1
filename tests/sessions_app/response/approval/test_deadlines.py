"""Time limits of approvals, and answers that end first."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from sessions_app.models import ToolCall
from sessions_app.tools.tasks import cancel_call
from tests.client import TERMINAL, Frame, new_event, output_text
from tests.live_server import shared_chat
from tests.sessions_app.response.approval.questions import (
    answer_text,
    approve,
    asked_of,
    asker,
    errors,
    task,
)
from tests.sessions_app.turn.team_tools import order

if TYPE_CHECKING:
    from pathlib import Path

    import httpx
    from pytest_django import Settings

    from tests.live_server import Dial, Person


def start_tool_processes(dial: Dial, journal: Path) -> None:
    """Run a tool to its end, because a process's first call waits until its fork server is up."""
    asker("unhurried")
    client = dial()
    client.create_session(agent="unhurried")
    client.ask(task(journal))
    approve(client, asked_of(client))
    assert answer_text(client).endswith("received: 1 steps")


def test_a_question_without_an_answer_expires(
    dial: Dial, settings: Settings, journal: Path
) -> None:
    settings.UAMP_APPROVAL_SECONDS = 0.5
    asker()
    client = dial()
    client.create_session(agent="asker")
    client.ask(task(journal))
    question = asked_of(client)
    frames = client.until(*TERMINAL)
    (done,) = [f for f in frames if f["type"] == "tool.approval_done"]
    assert (done["call_id"], done["approved"]) == (question["call_id"], False)
    assert "user_id" not in done
    assert output_text(frames[-1]) == "failed: The call was not allowed in time."
    event_id = approve(client, question)
    assert errors(client.settle()) == [("unknown_call", event_id)]
    assert not journal.exists()


@pytest.mark.usefixtures("celery_worker_thread")
@pytest.mark.parametrize("is_delegated", [False, True])
def test_the_time_that_a_person_takes_is_not_the_answers(
    dial: Dial, journal: Path, *, is_delegated: bool
) -> None:
    start_tool_processes(dial, journal)
    asker(max_seconds=4)
    asker("boss", tools=[], approvals=[], delegates=["asker"], max_seconds=4)
    text = task(journal)
    if is_delegated:
        text = order(call="delegate", arguments={"agent": "asker", "task": text})
    client = dial()
    client.create_session(agent="boss" if is_delegated else "asker")
    client.ask(text)
    question = asked_of(client)
    time.sleep(4.5)
    approve(client, question)
    assert answer_text(client).endswith("received: 1 steps")


@pytest.mark.usefixtures("celery_worker_thread")
def test_the_time_of_an_allowed_tool_is_the_answers(dial: Dial, journal: Path) -> None:
    start_tool_processes(dial, journal)
    asker(max_seconds=2)
    client = dial()
    client.create_session(agent="asker")
    steps = {"steps": 60, "pause": 0.1, "journal": str(journal)}
    client.ask(order(call="steps", arguments=steps))
    approve(client, asked_of(client))
    assert client.until(*TERMINAL)[-1]["error"]["code"] == "timeout"


@pytest.mark.usefixtures("celery_worker_thread", "dial")
def test_a_batch_that_allows_a_tool_brings_the_answer(
    web: httpx.Client, alice: Person, journal: Path
) -> None:
    asker()
    asking = [
        new_event("session.create", session={"id": "sess_of_alice"}, agent="asker"),
        new_event("input.text", text=task(journal)),
        new_event("response.create"),
    ]
    frames = web.post("/uamp", json=asking, headers=alice.headers).json()
    question = frames[-1]
    assert question["type"] == "tool.approval_required"
    names = ("call_id", "response_id", "session_id")
    allowing = [new_event("tool.approve", **{name: question[name] for name in names})]
    answered = web.post("/uamp", json=allowing, headers=alice.headers).json()
    assert answered[-1]["type"] == "response.done"
    assert output_text(answered[-1]) == "received: 1 steps"


def test_cancelling_the_answer_withdraws_the_question(
    dial: Dial, alice: Person, bob: Person, journal: Path
) -> None:
    asker()
    asker("boss", tools=[], approvals=[], delegates=["asker"])
    chat = shared_chat(alice, bob, agents=("asker", "boss"))
    client, other = dial(alice), dial(bob)
    for each in (client, other):
        each.create_session(chat=chat.pk)
        each.settle()
    inner = order(call="delegate", arguments={"agent": "asker", "task": task(journal)})
    for text in (task(journal), inner):
        client.ask(f"@{'boss' if text is inner else 'asker'} {text}")
        response_created = client.until("response.created")[-1]
        question = asked_of(client)
        assert (question["response_id"] == response_created["response_id"]) is (text is not inner)
        asked_of(other)
        client.send("response.cancel", response_id=response_created["response_id"])
        for each in (client, other):
            awaited_types = {"response.cancelled", "tool.approval_done"}
            frames: list[Frame] = []
            while awaited_types - {f["type"] for f in frames}:
                frames.append(each.receive())
            (done,) = [f for f in frames if f["type"] == "tool.approval_done"]
            assert (done["call_id"], done["approved"]) == (question["call_id"], False)
        event_id = approve(client, question)
        assert ("unknown_call", event_id) in errors(client.settle())
    assert not journal.exists()
    assert not ToolCall.objects.filter(status__in=ToolCall.OPEN).exists()


def test_an_operator_cancels_a_call_that_waits_for_approval(
    dial: Dial, alice: Person, bob: Person, journal: Path
) -> None:
    asker()
    chat = shared_chat(alice, bob, agents=("asker",))
    client, other = dial(alice), dial(bob)
    for each in (client, other):
        each.create_session(chat=chat.pk)
        each.settle()
    client.ask(f"@asker {task(journal)}")
    question = asked_of(client)
    asked_of(other)
    call = ToolCall.objects.get(status="asking")
    assert cancel_call(call.pk, attempts=0)
    assert not cancel_call(call.pk, attempts=0)
    for each in (client, other):
        awaited_types = {"response.done", "tool.approval_done"}
        frames: list[Frame] = []
        while awaited_types - {f["type"] for f in frames}:
            frames.append(each.receive())
        done = next(f for f in frames if f["type"] == "tool.approval_done")
        assert (done["call_id"], done["approved"]) == (question["call_id"], False)
        end = next(f for f in frames if f["type"] == "response.done")
        assert output_text(end) == "failed: The tool was cancelled."
    event_id = approve(client, question)
    assert ("unknown_call", event_id) in errors(client.settle())
    assert not journal.exists()

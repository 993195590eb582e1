"""The person who approves a call, and decisions that count once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from sessions_app.models import Response, ToolCall
from tests.live_server import person, shared_chat
from tests.sessions_app.model_server import call_chunks, model_server
from tests.sessions_app.model_server import text_chunks as model_said
from tests.sessions_app.process.server_processes import resumed
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

    from tests.live_server import Dial, Person


# --- Yes and no ---


@pytest.mark.usefixtures("celery_worker_thread")
def test_a_tool_runs_once_it_was_allowed(dial: Dial, alice: Person, journal: Path) -> None:
    asker()
    client = dial(alice)
    client.create_session(agent="asker")
    client.ask(task(journal))
    question = asked_of(client)
    call = ToolCall.objects.get()
    assert {name: question[name] for name in ("call_id", "response_id", "agent", "user_id")} == {
        "call_id": call.call_id,
        "response_id": call.response_id,
        "agent": "asker",
        "user_id": str(alice.user.pk),
    }
    assert (question["name"], question["arguments"]) == ("steps", call.arguments)
    assert question["expires_at"] == int(call.deadline.timestamp())
    assert client.during(0.5) == []
    assert not journal.exists()
    approve(client, question)
    done = client.until("tool.approval_done")[-1]
    assert (done["approved"], done["username"]) == (True, "alice")
    assert answer_text(client) == "received: 1 steps"
    assert len(journal.read_text().splitlines()) == 1
    call.refresh_from_db()
    assert (call.decided_by, call.status) == (alice.user, "done")


def test_a_refusal_and_its_reason_are_what_the_model_reads(
    dial: Dial, alice: Person, journal: Path
) -> None:
    asker()
    client = dial(alice)
    client.create_session(agent="asker")
    client.ask(task(journal))
    approve(client, asked_of(client), approved=False, reason="Not on a Sunday.")
    assert client.until("tool.approval_done")[-1]["approved"] is False
    assert answer_text(client) == (
        "failed: The call was not allowed by alice. They say: Not on a Sunday."
    )
    assert not journal.exists()


@pytest.mark.usefixtures("celery_worker_thread")
def test_a_visitor_decides_in_a_session_of_their_own(dial: Dial, journal: Path) -> None:
    asker()
    client = dial()
    client.create_session(agent="asker")
    client.ask(task(journal))
    question = asked_of(client)
    assert "user_id" not in question
    approve(client, question)
    assert answer_text(client) == "received: 1 steps"


def test_a_short_tool_that_would_have_to_be_allowed_is_not_had(dial: Dial, journal: Path) -> None:
    asker(tools=["note", "gated"], approvals=["note"])
    client = dial()
    client.create_session(agent="asker")
    client.ask(order(call="note", arguments={"journal": str(journal)}))
    assert answer_text(client).startswith("failed: ")
    assert not journal.exists()


# --- Who ---


def test_only_who_asked_and_the_owners_of_the_chat_decide(
    dial: Dial, alice: Person, bob: Person, mallory: Person, journal: Path
) -> None:
    asker()
    carol = person("carol")
    chat = shared_chat(alice, bob, carol, agents=("asker",))
    clients = {who.user.username: dial(who) for who in (alice, bob, carol)}
    for client in clients.values():
        client.create_session(chat=chat.pk)
        client.settle()
    clients["bob"].ask(f"@asker {task(journal)}")
    questions = {name: asked_of(client) for name, client in clients.items()}
    assert len({(q["call_id"], q["user_id"]) for q in questions.values()}) == 1
    question = questions["carol"]

    stranger = dial(mallory)
    stranger.create_session(agent="echo")
    for client in (clients["carol"], stranger):
        event_id = approve(client, question)
        assert errors(client.settle()) == [("unknown_call", event_id)]
    assert ToolCall.objects.get().status == "asking"

    approve(clients["alice"], question, approved=False)
    for client in clients.values():
        done = client.until("tool.approval_done")[-1]
        assert (done["approved"], done["username"]) == (False, "alice")
        assert "not allowed by alice" in answer_text(client)


def test_the_asker_decides_in_a_chat_of_another_person(
    dial: Dial, alice: Person, bob: Person, journal: Path
) -> None:
    asker()
    chat = shared_chat(alice, bob, agents=("asker",))
    client = dial(bob)
    client.create_session(chat=chat.pk)
    client.ask(f"@asker {task(journal)}")
    approve(client, asked_of(client), approved=False)
    assert "not allowed by bob" in answer_text(client)


# --- Once ---


def test_the_same_answer_again_is_fine_and_another_one_is_refused(
    dial: Dial, alice: Person, journal: Path
) -> None:
    asker()
    client = dial(alice)
    client.create_session(agent="asker")
    client.ask(task(journal))
    question = asked_of(client)
    approve(client, question, approved=False)
    answer_text(client)
    approve(client, question, approved=False)
    assert errors(client.settle()) == []
    event_id = approve(client, question, approved=True)
    assert errors(client.settle()) == [("unknown_call", event_id)]
    elsewhere = approve(client, {**question, "response_id": "resp_other"}, approved=False)
    assert errors(client.settle()) == [("unknown_call", elsewhere)]
    assert not journal.exists()
    assert ToolCall.objects.get().status == "failed"


def test_a_decision_that_fits_two_calls_decides_neither(
    dial: Dial, alice: Person, journal: Path
) -> None:
    arguments = json.dumps({"steps": 1, "pause": 0, "journal": str(journal)})
    names = ("one", "two")
    with model_server(call_chunks(("call_1", "steps", arguments))) as model:
        for name in names:
            model.agent(name, tools=["steps"], approvals=["steps"])
        chat = shared_chat(alice, agents=names, trigger="always")
        client = dial(alice)
        client.create_session(chat=chat.pk)
        client.ask("Work")
        questions = [asked_of(client) for _ in names]
        assert {question["call_id"] for question in questions} == {"call_1"}
        event_id = approve(client, questions[0], response_id=None)
        assert errors(client.settle()) == [("invalid_event", event_id)]
        assert [call.status for call in ToolCall.objects.all()] == ["asking", "asking"]
        approve(client, questions[0], approved=False)
        done = client.until("tool.approval_done")[-1]
        assert done["response_id"] == questions[0]["response_id"]
        model.answers = [model_said("Done")]
        approve(client, questions[1], approved=False)
        done = client.until("tool.approval_done")[-1]
        assert done["response_id"] == questions[1]["response_id"]


def test_a_member_who_opens_the_chat_later_is_asked_too(
    dial: Dial, alice: Person, bob: Person, mallory: Person, journal: Path
) -> None:
    asker()
    chat = shared_chat(alice, bob, agents=("asker",))
    client = dial(alice)
    created = client.create_session(chat=chat.pk)
    client.ask(f"@asker {task(journal)}")
    question = asked_of(client)
    client.cut()

    late = dial(bob)
    late.create_session(chat=chat.pk)
    again = dial(alice)
    resumed(again, created, created["seq"])
    reported = [asked_of(late), asked_of(again)]
    assert {q["call_id"] for q in reported} == {question["call_id"]}
    elsewhere = dial(mallory)
    elsewhere.create_session(agent="echo")
    assert elsewhere.settle() == []
    approve(again, question, approved=False)
    answer_text(again)
    # No client is asked for what is decided.
    later = dial(bob)
    later.create_session(chat=chat.pk)
    assert "tool.approval_required" not in {f["type"] for f in later.settle()}


# --- Through others ---


@pytest.mark.usefixtures("celery_worker_thread")
def test_what_another_agent_wants_to_do_is_asked_where_the_work_began(
    dial: Dial, alice: Person, bob: Person, journal: Path
) -> None:
    asker()
    asker("boss", tools=[], approvals=[], delegates=["asker"])
    chat = shared_chat(alice, bob, agents=("boss",))
    owner, client = dial(alice), dial(bob)
    for each in (owner, client):
        each.create_session(chat=chat.pk)
        each.settle()
    text = order(call="delegate", arguments={"agent": "asker", "task": task(journal)})
    client.ask(f"@boss {text}")
    question = asked_of(owner)
    child = Response.objects.get(agent__name="asker")
    assert (question["agent"], question["response_id"]) == ("asker", child.pk)
    assert question["user_id"] == str(bob.user.pk)
    assert child.chat_id != chat.pk
    approve(client, asked_of(client))
    for each in (owner, client):
        assert answer_text(each) == "received: received: 1 steps"

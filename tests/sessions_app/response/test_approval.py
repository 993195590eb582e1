"""Tool calls that a person has to allow: who may, once, for how long, and what the model reads."""

from __future__ import annotations

import json
import shutil
import signal
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from agents_app.models import Agent
from sessions_app import database, services
from sessions_app.access import auth
from sessions_app.models import Response, ToolCall
from tests.client import TERMINAL, Frame, UampClient, new_event, output_text
from tests.live_server import person, shared_chat
from tests.sessions_app.process.server_processes import Server, prepared, resumed
from tests.sessions_app.response.running import Hearer, ask, process
from tests.sessions_app.turn.team_tools import order
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx
    from pytest_django import Settings

    from sessions_app.process.registry import Process
    from tests.live_server import Dial, Person

__all__ = ["prepared", "process"]

TOOLS = [
    "tests.sessions_app.turn.team_tools.STEPS",
    "tests.sessions_app.turn.team_tools.GATED",
    "tests.sessions_app.response.step_tools.note",
]
ASKER = (
    "from tests.sessions_app.turn import team_tools\n"
    "from agents_app.models import Agent\n"
    'Agent.objects.create(name="asker", is_public=True, options={"script": "doer"},'
    ' tools=["steps"], approvals=["steps"])'
)


@pytest.fixture(autouse=True)
def _tools(request: pytest.FixtureRequest) -> None:
    if "dial" in request.fixturenames:
        settings = request.getfixturevalue("settings")
        settings.UAMP_SERVER_TOOLS = [*settings.UAMP_SERVER_TOOLS, *TOOLS]
        settings.UAMP_SWEEP_SECONDS = 0.2


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Give the file in which the tool leaves a line when it runs."""
    return tmp_path / "journal"


def asker(name: str = "asker", **fields: Any) -> Agent:
    """Make an agent whose tool `steps` has to be allowed."""
    defaults: dict[str, Any] = {
        "is_public": True,
        "options": {"script": "doer"},
        "tools": ["steps"],
        "approvals": ["steps"],
    }
    return Agent.objects.create(name=name, **{**defaults, **fields})


def task(journal: Path) -> str:
    """Return the agent's order: one step."""
    steps = {"steps": 1, "pause": 0, "journal": str(journal)}
    return order(call="steps", arguments=steps)


def asked_of(client: UampClient) -> Frame:
    """Wait for the question and return it."""
    return client.until("tool.approval_required")[-1]


def approve(client: UampClient, question: Frame, **fields: Any) -> str:
    """Answer a question; allow it by default."""
    answer = {"call_id": question["call_id"], "response_id": question["response_id"]}
    return client.send("tool.approve", **{**answer, **fields})


def said(client: UampClient) -> str:
    """Wait for the end of the answer and return its text."""
    end = client.until(*TERMINAL)[-1]
    assert end["type"] == "response.done", end
    return output_text(end)


def errors(frames: list[Frame]) -> list[tuple[str, str]]:
    """Return the codes of refusals, and the events that they answer."""
    return [
        (f["error"]["code"], f["error"]["details"]["event_id"])
        for f in frames
        if f["type"] == "session.error"
    ]


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
    assert said(client) == "received: 1 steps"
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
    assert said(client) == ("failed: The call was not allowed by alice. They say: Not on a Sunday.")
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
    assert said(client) == "received: 1 steps"


def test_a_short_tool_that_would_have_to_be_allowed_is_not_had(dial: Dial, journal: Path) -> None:
    asker(tools=["note", "gated"], approvals=["note"])
    client = dial()
    client.create_session(agent="asker")
    client.ask(order(call="note", arguments={"journal": str(journal)}))
    assert said(client).startswith("failed: ")
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
        sent = approve(client, question)
        assert errors(client.settle()) == [("unknown_call", sent)]
    assert ToolCall.objects.get().status == "asking"

    approve(clients["alice"], question, approved=False)
    for client in clients.values():
        done = client.until("tool.approval_done")[-1]
        assert (done["approved"], done["username"]) == (False, "alice")
        assert "not allowed by alice" in said(client)


def test_the_asker_decides_in_a_chat_of_another_person(
    dial: Dial, alice: Person, bob: Person, journal: Path
) -> None:
    asker()
    chat = shared_chat(alice, bob, agents=("asker",))
    client = dial(bob)
    client.create_session(chat=chat.pk)
    client.ask(f"@asker {task(journal)}")
    approve(client, asked_of(client), approved=False)
    assert "not allowed by bob" in said(client)


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
    said(client)
    approve(client, question, approved=False)
    assert errors(client.settle()) == []
    sent = approve(client, question, approved=True)
    assert errors(client.settle()) == [("unknown_call", sent)]
    elsewhere = approve(client, {**question, "response_id": "resp_other"}, approved=False)
    assert errors(client.settle()) == [("unknown_call", elsewhere)]
    assert not journal.exists()
    assert ToolCall.objects.get().status == "failed"


def test_who_opens_the_chat_later_is_asked_too(
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
    said(again)
    # No client is asked for what is decided.
    later = dial(bob)
    later.create_session(chat=chat.pk)
    assert "tool.approval_required" not in {f["type"] for f in later.settle()}


# --- Time ---


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
    sent = approve(client, question)
    assert errors(client.settle()) == [("unknown_call", sent)]
    assert not journal.exists()


@pytest.mark.usefixtures("celery_worker_thread")
@pytest.mark.parametrize("is_delegated", [False, True])
def test_the_time_that_a_person_takes_is_not_the_answers(
    dial: Dial, journal: Path, *, is_delegated: bool
) -> None:
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
    assert said(client).endswith("received: 1 steps")


@pytest.mark.usefixtures("celery_worker_thread")
def test_the_time_of_an_allowed_tool_is_the_answers(dial: Dial, journal: Path) -> None:
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


def test_who_cancels_the_answer_takes_the_question_back(
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
        begun = client.until("response.created")[-1]
        question = asked_of(client)
        assert (question["response_id"] == begun["response_id"]) is (text is not inner)
        asked_of(other)
        client.send("response.cancel", response_id=begun["response_id"])
        for each in (client, other):
            wanted = {"response.cancelled", "tool.approval_done"}
            frames: list[Frame] = []
            while wanted - {f["type"] for f in frames}:
                frames.append(each.receive())
            (done,) = [f for f in frames if f["type"] == "tool.approval_done"]
            assert (done["call_id"], done["approved"]) == (question["call_id"], False)
        sent = approve(client, question)
        assert ("unknown_call", sent) in errors(client.settle())
    assert not journal.exists()
    assert not ToolCall.objects.filter(status__in=ToolCall.OPEN).exists()


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
        assert said(each) == "received: received: 1 steps"


# --- Death ---


@pytest.fixture
def killable(prepared: Path, tmp_path: Path) -> Iterator[Server]:
    """Give a server whose agent asks first, not started."""
    shutil.copytree(prepared, tmp_path / "data")
    server = Server(tmp_path / "data", settings="tests.sessions_app.turn.team_settings")
    yield server
    if server.process is not None:
        server.end(signal.SIGKILL)


def test_a_question_survives_the_death_of_the_server(killable: Server, journal: Path) -> None:
    killable.run(ASKER)
    killable.start()
    client = killable.dial()
    created = client.create_session(agent="asker")
    client.ask(task(journal))
    begun = client.expect("response.created")
    question = asked_of(client)
    killable.end(signal.SIGKILL)
    client.close()
    killable.start()
    again = killable.dial()
    resumed(again, created, begun["seq"])
    asked = asked_of(again)
    assert (asked["call_id"], asked["response_id"]) == (
        question["call_id"],
        begun["response_id"],
    )
    approve(again, asked, approved=False, reason="No.")
    end = again.until(*TERMINAL)[-1]
    assert end["response_id"] == begun["response_id"]
    reported = "The call was not allowed by the visitor. They say: No."
    assert output_text(end) == f"failed: {reported}"
    # A result is JSON also when another process took it up (UAMP §8.4.2).
    results = [i["tool_result"] for i in end["response"]["output"] if i["type"] == "tool_result"]
    assert [json.loads(result["result"]) for result in results] == [reported]
    assert killable.query("SELECT status, count(*) FROM sessions_app_toolcall GROUP BY status") == [
        ("failed", 1)
    ]


async def test_a_call_that_was_allowed_waits_for_no_person(
    process: Process, settings: Settings, journal: Path
) -> None:
    settings.UAMP_SERVER_TOOLS = [*settings.UAMP_SERVER_TOOLS, *TOOLS]
    await database.run(asker)
    opening = partial(
        services.open_session,
        principal=auth.anonymous(),
        transport="websocket",
        create=ev.SessionCreate(),
        agent_name="asker",
        chat_id=None,
    )
    hearer = Hearer()
    run = await ask(await database.run(opening), task(journal), hearer)
    await hearer.until(lambda: run.undecided_calls)
    assert run.waits_for_client
    run.decide_calls(run.undecided_calls)
    # Its task has not run yet: an exchange that waits for the answer must not end meanwhile.
    assert run.undecided_calls
    assert not run.waits_for_client

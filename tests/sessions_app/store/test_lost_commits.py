"""The answer to a COMMIT is lost: what is sent again under the same ids is not paid again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from django.db import OperationalError, connections

from chat_app.models import Message
from sessions_app import database
from sessions_app.models import Response, Session
from sessions_app.process.history import History
from tests.client import TERMINAL, Frame, new_event, text_of, wait_until
from tests.faults.commit_proxy import CommitProxy
from tests.sessions_app.billing.paid_agents import clean, earned, priced, rich, usd, wallet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agents_app.models import Agent
    from chat_app.models import Chat
    from tests.client import UampClient
    from tests.live_server import Dial, Person

from payments_app.spending import approvals
from tests.live_server import shared_chat

TURNS = 12
CUT_CHANCE = 0.4


@pytest.fixture
def paid(alice: Person) -> Agent:
    """Give an agent that may take what it costs of alice without asking."""
    agent = priced("paid", per_answer="0.25")
    approvals.approve(rich(alice).user.pk, agent.pk, usd("1"))
    return agent


@pytest.fixture
def chat(alice: Person, paid: Agent) -> Chat:
    """Give a chat of alice with the agent."""
    return shared_chat(alice, agents=("paid",), trigger="always")


@pytest.fixture
def lossy_line(database_threads: None) -> Iterator[CommitProxy]:
    """Let this process reach PostgreSQL over a line that can lose answers to COMMIT, unpooled.

    It begins before the server and ends after it: a connection that was made without a pool cannot
    be given back to one.
    """
    default_database = connections.databases["default"]
    before = {name: default_database[name] for name in ("HOST", "PORT", "OPTIONS")}
    proxy = CommitProxy(
        default_database["HOST"] or "127.0.0.1", int(default_database["PORT"] or 5432), CUT_CHANCE
    )
    _close_connections()
    options = {name: value for name, value in default_database["OPTIONS"].items() if name != "pool"}
    default_database.update(HOST="127.0.0.1", PORT=str(proxy.port), OPTIONS=options)
    yield proxy
    _close_connections()
    default_database.update(before)
    proxy.close()


def _close_connections() -> None:
    database.close_connections()
    connections.close_all()


def open_again(dial: Dial, who: Person, chat: Chat, session_id: str) -> UampClient:
    """Open a new connection and resume a session; retry while the server cannot store it."""
    for _ in range(20):
        client = dial(who)
        resume = {"session_id": session_id, "after": 0} if session_id else None
        fields = {"resume": resume} if resume else {}
        client.send("session.create", session={}, chat=chat.pk, **fields)
        if client.until("session.created", "session.error")[-1]["type"] == "session.created":
            client.settle()
            return client
    raise AssertionError("no session could be opened")


def ask_until_stored(client: UampClient, frames: list[Frame]) -> str:
    """Send a turn until it has begun, always under the same ids; return how it ended."""
    for _ in range(20):
        for frame in frames:
            client.send_raw(json.dumps(frame))
        received = client.until("session.error", *TERMINAL, timeout=60)[-1]
        if received["type"] != "session.error":
            kind: str = received["type"]
            return kind
        assert received["error"]["code"] == "unavailable", received
    raise AssertionError("the turn was never stored")


@pytest.mark.postgres
def test_a_turn_whose_commit_was_lost_is_paid_once(
    lossy_line: CommitProxy, dial: Dial, alice: Person, paid: Agent, chat: Chat
) -> None:
    with lossy_line.losing():
        client = open_again(dial, alice, chat, "")
        session_id = open_session_id(alice)
        for number in range(TURNS):
            frames = [new_event("input.text", text=f"Turn {number}"), new_event("response.create")]
            ask_until_stored(client, frames)
            client.close()
            # The client never saw the end: it sends the same again, on another connection.
            client = open_again(dial, alice, chat, session_id)
            ask_until_stored(client, frames)
    wait_until(lambda: not Response.objects.filter(status__in=Response.LIVE).exists(), 30)
    assert lossy_line.cut > 0
    assert Message.objects.filter(role="user").count() == TURNS
    assert Response.objects.count() == TURNS
    completed = Response.objects.filter(status="completed").count()
    assert completed >= TURNS // 2
    assert earned(paid) == str(usd("0.25") * completed)
    assert wallet(alice).available == usd("10") - usd("0.25") * completed
    assert clean()


def open_session_id(who: Person) -> str:
    """Return the id of a person's only session."""
    return Session.objects.filter(user=who.user).latest("created_at").pk


def test_reads_after_the_commit_are_asked_again(
    dial: Dial, alice: Person, paid: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that is lost after the turn was written must not lose the turn."""
    client = dial(alice)
    client.create_session(agent="paid")
    read_before, failures = (
        History.before,
        [OperationalError("the server closed the connection")] * 2,
    )

    async def lost(self: History, chat_id: str, seq: int) -> object:
        if failures:
            raise failures.pop()
        return await read_before(self, chat_id, seq)

    monkeypatch.setattr(History, "before", lost)
    assert text_of(client.answer("Hello")) == "Hello"
    assert failures == []
    wait_until(lambda: earned(paid) == "0.25")

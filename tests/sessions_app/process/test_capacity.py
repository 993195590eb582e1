"""The answers that a process starts and carries, over a real socket: counted by the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chat_app.models import Message
from sessions_app.models import Response
from tests.client import TERMINAL, wait_until
from tests.live_server import quick_agent, shared_chat
from tests.sessions_app.billing.paid_agents import pay, priced, rich

if TYPE_CHECKING:
    from pytest_django import Settings

    from tests.client import UampClient
    from tests.live_server import Dial, Person

AGENTS = ("one", "two", "three")
ALL = "@one @two @three Hello"
LOOK = {
    "type": "function",
    "function": {"name": "search", "parameters": {"type": "object"}},
}


def refusal(client: UampClient, text: str, **fields: Any) -> str:
    """Ask, and return the code of the error."""
    client.ask(text, **fields)
    code: str = client.until("session.error", "response.error")[-1]["error"]["code"]
    return code


def member(dial: Dial, *people: Person) -> UampClient:
    """Give a socket of the first person in a chat with the agents."""
    client = dial(people[0])
    client.create_session(chat=shared_chat(*people, agents=AGENTS).pk)
    return client


@pytest.fixture
def free(demo: object) -> None:
    """Give agents that answer at once."""
    for name in AGENTS:
        quick_agent(name, "echo")


@pytest.fixture
def unpaid(demo: object) -> None:
    """Give agents that wait for money."""
    for name in AGENTS:
        priced(name, per_answer="1")


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("free")
@pytest.mark.parametrize(
    ("setting", "limit", "code"),
    [
        ("UAMP_RESPONSES_PER_MINUTE", 2, "rate_limited"),
        ("UAMP_RESPONSES_PER_TURN", 2, "queue_full"),
        ("UAMP_RESPONSES_PER_PERSON", 2, "queue_full"),
        ("UAMP_RUNS_PER_PROCESS", 2, "busy"),
    ],
)
def test_a_turn_is_refused_whole_that_starts_too_many(
    dial: Dial, alice: Person, settings: Settings, setting: str, limit: int, code: str
) -> None:
    setattr(settings, setting, limit)
    client = member(dial, alice)
    assert refusal(client, ALL) == code
    assert not Response.objects.exists()
    assert not Message.objects.exists()
    if setting != "UAMP_RESPONSES_PER_MINUTE":
        client.ask("@one @two Hello")
        for _ in range(2):
            assert client.until(*TERMINAL)[-1]["type"] == "response.done"


@pytest.mark.usefixtures("free")
def test_a_minute_has_so_many_answers_however_they_are_asked_for(
    dial: Dial, alice: Person, settings: Settings
) -> None:
    settings.UAMP_RESPONSES_PER_MINUTE = 4
    client = member(dial, alice)
    client.ask(ALL)
    for _ in AGENTS:
        client.until(*TERMINAL)
    client.ask("@one Hello")
    assert client.until(*TERMINAL)[-1]["type"] == "response.done"
    assert refusal(client, "@one Hello") == "rate_limited"


@pytest.mark.usefixtures("unpaid")
def test_answers_that_wait_for_money_are_their_persons_and_take_no_room_of_others(
    dial: Dial, alice: Person, bob: Person, settings: Settings
) -> None:
    settings.UAMP_RUNS_PER_PROCESS = 3
    settings.UAMP_RESPONSES_PER_PERSON = 4
    client = member(dial, alice)
    client.ask(ALL)
    demands = [client.until("payment.required")[-1] for _ in AGENTS]
    # Other people have the whole process.
    other = dial(bob)
    other.create_session(agent="echo")
    assert other.answer("Hello")[-1]["type"] == "response.done"
    # In every chat of theirs together.
    second = dial(alice)
    second.create_session(chat=shared_chat(alice, agents=AGENTS).pk)
    assert refusal(second, "@one @two Hello") == "queue_full"
    second.ask("@one Hello")
    second.until("payment.required")
    assert refusal(second, "@one Hello") == "queue_full"
    # What is paid goes on, and leaves its place.
    rich(alice)
    pay(client, demands[0])
    client.until(*TERMINAL)
    second.ask("@one Hello")
    second.until("payment.required")


def test_an_answer_that_waits_for_a_client_takes_no_room(
    dial: Dial, alice: Person, bob: Person, settings: Settings
) -> None:
    settings.UAMP_RUNS_PER_PROCESS = 1
    client = dial(alice)
    client.create_session(agent="tool-user", session={"tools": [LOOK]})
    client.ask("Look")
    call = client.until("tool.call")[-1]
    other = dial(bob)
    other.create_session(agent="echo")
    wait_until(lambda: other.answer("Hello")[-1]["type"] == "response.done")
    client.send("tool.result", call_id=call["call_id"], result="seen")
    assert client.until(*TERMINAL)[-1]["type"] == "response.done"

"""The number of times a turn waits for another thread: for its facts, its start and its end.

The signature of an answer is made on a thread of its own, without the database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from agents_app import selectors
from agents_app.models import Agent
from chat_app.models import Message
from tests.live_server import Dial, Person, shared_chat
from tests.sessions_app.turn.thread_hops import recorded

if TYPE_CHECKING:
    from chat_app.models import Chat
    from tests.client import UampClient

FACTS: Final = "sessions_app/turn/facts.py"
BEGIN: Final = "sessions_app/turn/start.py"
END: Final = ["sessions_app/response/end/signature.py", "sessions_app/response/end/finish.py"]


def modules_in(hops: list[str]) -> list[str]:
    """Return the modules that waited, and print the lines that waited."""
    print(len(hops), *hops, sep="\n  ")  # noqa: T201 the figure that the test is for
    return [hop.partition(":")[0] for hop in hops]


@pytest.fixture(autouse=True)
def _lasting_specs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the cache of agents last for a test, however slow the machine is."""
    monkeypatch.setattr(selectors, "SPEC_SECONDS", 3600.0)


@pytest.fixture
def chat(alice: Person, bob: Person) -> Chat:
    """Return a chat of two people and an agent that answers when it is mentioned."""
    return shared_chat(alice, bob)


@pytest.fixture
def shared(dial: Dial, alice: Person, chat: Chat) -> UampClient:
    """Return a client in the shared chat, in which the agent has answered once."""
    client = dial(alice)
    client.create_session(chat=chat.pk)
    client.answer("@echo Hello")
    client.settle()
    return client


def test_a_private_turn_waits_for_its_beginning_and_its_end(dial: Dial, alice: Person) -> None:
    client = dial(alice)
    client.create_session(agent="echo")
    client.answer("Hello")
    with recorded() as hops:
        client.answer("Hello again")
    assert modules_in(hops) == [BEGIN, *END]


def test_a_shared_turn_also_waits_for_its_facts(shared: UampClient) -> None:
    with recorded() as hops:
        shared.answer("@echo Hello again")
    assert modules_in(hops) == [FACTS, BEGIN, *END]


def test_a_turn_reads_uncached_rows_with_its_facts(
    shared: UampClient, dial: Dial, bob: Person, chat: Chat
) -> None:
    read_by(bob, dial, chat)
    shared.until("message.read")
    # Saving an agent drops it from the cache.
    Agent.objects.get(name="echo").save()
    with recorded() as hops:
        shared.answer("@echo Hello again")
    assert modules_in(hops) == [FACTS, BEGIN, *END]


def test_a_turn_that_may_be_queued_reads_first_whether_the_chat_is_busy(
    shared: UampClient,
) -> None:
    with recorded() as hops:
        shared.send("input.text", text="@echo Hello again")
        shared.send("response.create", queue=True)
        shared.until("response.done")
    assert modules_in(hops) == [FACTS, FACTS, BEGIN, *END]


def test_a_reply_in_a_thread_waits_for_its_facts_once(shared: UampClient, chat: Chat) -> None:
    root, answer = Message.objects.filter(chat=chat).order_by("seq").values_list("pk", flat=True)
    with recorded() as hops:
        shared.answer("@echo Hello again", thread=root, reply_to=answer)
    # The replies before it are read once it has its place in the log.
    first_modules = [FACTS, BEGIN, "sessions_app/turn/threads.py"]
    assert modules_in(hops)[:3] == first_modules


def test_a_message_that_no_agent_answers_reads_no_history(
    shared: UampClient, dial: Dial, bob: Person, chat: Chat
) -> None:
    read_by(bob, dial, chat)
    shared.until("message.read")
    with recorded() as hops:
        shared.ask("Only for people")
        shared.until("message.created")
        shared.settle()
    assert modules_in(hops) == [FACTS, BEGIN]


def read_by(person: Person, dial: Dial, chat: Chat) -> None:
    """Have a person read the chat; the log has that, but not the history that is cached."""
    reader = dial(person)
    reader.create_session(chat=chat.pk)
    reader.send("message.read", message_id=str(Message.objects.latest("seq").pk))
    reader.until("message.read")

"""The cost of a connected agent: its owner's price, paid by who agreed, no more than agreed."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from agents_app.models import Agent
from payments_app.models import Hold
from sessions_app.models import Response
from tests.client import TERMINAL, output_text, wait_until
from tests.sessions_app.billing.paid_agents import earned, pay, rich, wallet
from tests.sessions_app.connected.daemons import Daemon, token_for

if TYPE_CHECKING:
    from tests.client import Frame, UampClient
    from tests.live_server import Dial, Person


def priced_daemon(dial: Dial, owner: Person, **pricing: Any) -> tuple[Daemon, Agent]:
    """Return a daemon of a public agent with a price."""
    daemon = Daemon(dial(path="/ws"))
    daemon.register("helper", token_for(owner, "helper"))
    agent = Agent.objects.get(name="helper")
    agent.is_public, agent.pricing = True, pricing
    agent.save()
    return daemon, agent


def payer(dial: Dial, who: Person) -> UampClient:
    """Return a client of a person with money, with a session of the agent."""
    client = dial(rich(who))
    client.create_session(agent="helper")
    return client


def asked_and_paid(client: UampClient, text: str = "hello") -> None:
    """Ask, and pay what is demanded before the daemon is asked."""
    client.ask(text)
    pay(client, client.until("payment.required")[-1])
    client.until("payment.accepted")


def end_of(client: UampClient) -> Frame:
    """Return the terminal event, when what is left is given back."""
    end = client.until(*TERMINAL)[-1]
    wait_until(lambda: not Hold.objects.filter(state="active").exists())
    return end


def test_an_answer_is_paid_before_the_daemon_is_asked(
    dial: Dial, alice: Person, bob: Person
) -> None:
    daemon, agent = priced_daemon(dial, alice, per_answer="0.01")
    client = payer(dial, bob)
    client.ask("hello")
    demand = client.until("payment.required")[-1]
    # The daemon receives nothing that is not paid.
    assert daemon.socket.settle() == []
    pay(client, demand)
    turn = daemon.turn()
    daemon.say(turn, "paid")
    # It cannot ask for more than its owner's price.
    requirements = {"amount": "5", "currency": "USD", "schemes": [{"scheme": "token"}]}
    daemon.send(turn, "payment.required", requirements=requirements)
    refused = daemon.socket.expect("payment.error")
    assert (refused["session_id"], refused["can_retry"]) == (turn["session_id"], False)
    daemon.end(turn)
    assert output_text(end_of(client)) == "paid"
    assert Decimal(str(wallet(bob).posted)) == Decimal("9.99")
    assert Decimal(earned(agent)) > 0


def test_no_more_tokens_are_paid_than_went_through_the_socket(
    dial: Dial, alice: Person, bob: Person
) -> None:
    daemon, _ = priced_daemon(dial, alice, output_per_1k="1", input_per_1k="0")
    client = payer(dial, bob)
    asked_and_paid(client)
    turn = daemon.turn()
    daemon.say(turn, "0123456789")
    claimed = {"input_tokens": 10**9, "output_tokens": 10**9}
    daemon.send(turn, "usage.delta", delta=claimed)
    daemon.send(turn, "usage.delta", delta=claimed)
    daemon.end(turn)
    end = end_of(client)
    usage = end["response"]["usage"]
    assert usage["output_tokens"] == 10
    assert usage["input_tokens"] <= 2000
    assert usage["cost"]["total_cost"] == 0.01


@pytest.mark.parametrize("text", ["hello", "hello " * 200])
def test_no_more_input_is_paid_than_the_conversation_has(
    dial: Dial, alice: Person, bob: Person, text: str
) -> None:
    daemon, _ = priced_daemon(dial, alice, output_per_1k="1", input_per_1k="0")
    client = payer(dial, bob)
    asked_and_paid(client, text)
    turn = daemon.turn()
    conversation_bytes = len(json.dumps(turn["messages"]).encode())
    daemon.say(turn, "yes")
    daemon.send(turn, "usage.delta", delta={"input_tokens": 10**9, "output_tokens": 1})
    daemon.end(turn)
    assert 0 < end_of(client)["response"]["usage"]["input_tokens"] <= conversation_bytes + 20


@pytest.mark.parametrize("late", [{}, {"input_tokens": 10**9}])
def test_input_is_paid_once_however_often_a_daemon_reports(
    dial: Dial, alice: Person, bob: Person, late: dict[str, int]
) -> None:
    daemon, agent = priced_daemon(dial, alice, input_per_1k="1", output_per_1k="1")
    client = payer(dial, bob)
    asked_and_paid(client, "hello " * 100)
    turn = daemon.turn()
    size = len(json.dumps(turn["messages"]).encode())
    for _ in range(30):
        daemon.say(turn, "x")
        daemon.send(turn, "usage.delta", delta={"output_tokens": 1})
    daemon.send(turn, "usage.delta", delta={"output_tokens": 1, **late})
    # What follows the last report is output, and no further inference.
    daemon.say(turn, "tail")
    daemon.end(turn)
    usage = end_of(client)["response"]["usage"]
    assert 150 <= usage["input_tokens"] <= size + 20
    assert usage["output_tokens"] == 31
    assert float(earned(agent)) == (usage["input_tokens"] + 31) / 1000


def test_estimated_output_is_not_paid_again(dial: Dial, alice: Person, bob: Person) -> None:
    daemon, agent = priced_daemon(dial, alice, output_per_1k="1")
    client = payer(dial, bob)
    asked_and_paid(client)
    turn = daemon.turn()
    daemon.say(turn, "t" * 400)
    daemon.send(turn, "usage.delta", delta={"input_tokens": 5})
    daemon.send(turn, "usage.delta", delta={"input_tokens": 1, "output_tokens": 400})
    daemon.end(turn)
    assert end_of(client)["response"]["usage"]["output_tokens"] == 100
    assert float(earned(agent)) == 0.1


def test_refused_calls_of_a_daemon_do_not_count_as_input(
    dial: Dial, alice: Person, bob: Person
) -> None:
    daemon, _ = priced_daemon(dial, alice, output_per_1k="1", input_per_1k="0")
    client = payer(dial, bob)
    asked_and_paid(client)
    turn = daemon.turn()
    size = len(json.dumps(turn).encode())
    for number in range(20):
        daemon.send(turn, "tool.call", call_id=f"c{number}", name="none", arguments="{}")
        daemon.socket.expect("tool.result")
    daemon.say(turn, "0123456789")
    daemon.send(turn, "usage.delta", delta={"input_tokens": 10**9, "output_tokens": 1})
    daemon.end(turn)
    assert 0 < end_of(client)["response"]["usage"]["input_tokens"] <= size


def test_a_second_price_of_a_daemon_ends_its_answer(dial: Dial, alice: Person, bob: Person) -> None:
    daemon, _ = priced_daemon(dial, alice, per_answer="0.01")
    client = payer(dial, bob)
    asked_and_paid(client)
    turn = daemon.turn()
    requirements = {"amount": "5", "currency": "USD", "schemes": [{"scheme": "token"}]}
    for _ in range(2):
        daemon.send(turn, "payment.required", requirements=requirements)
    assert daemon.socket.expect("payment.error")["can_retry"] is False
    assert end_of(client)["error"]["code"] == "provider_error"


@pytest.mark.parametrize(
    ("text", "code", "due"), [("half", "interrupted", "0.01"), ("", "agent_offline", "0")]
)
def test_a_lost_daemon_is_paid_what_it_delivered(
    dial: Dial, alice: Person, bob: Person, text: str, code: str, due: str
) -> None:
    daemon, agent = priced_daemon(dial, alice, per_answer="0.01")
    client = payer(dial, bob)
    asked_and_paid(client)
    turn = daemon.turn()
    if text:
        daemon.say(turn, text)
        client.until("response.delta")
    daemon.socket.cut()
    assert end_of(client)["error"]["code"] == code
    assert Response.objects.get().status == "failed"
    assert Decimal(str(wallet(bob).posted)) == 10 - Decimal(due)
    assert Decimal(earned(agent)) == Decimal(due)


def test_a_priced_tool_of_a_daemon_is_paid(dial: Dial, alice: Person, bob: Person) -> None:
    daemon, _ = priced_daemon(dial, alice, per_answer="0.01", tools={"search": "0.05"})
    client = payer(dial, bob)
    asked_and_paid(client)
    turn = daemon.turn()
    call = {"type": "tool_call", "call_id": "c1", "name": "search", "arguments": "{}"}
    daemon.send(turn, "response.delta", delta=call)
    # The tool has a price of its own, which is asked for before its call is shown.
    demand = client.until("payment.required")[-1]
    assert demand["requirements"]["amount"] == "0.05"
    pay(client, demand)
    result = {"type": "tool_result", "id": "c1", "result": "ok"}
    daemon.send(turn, "response.delta", delta=result)
    daemon.say(turn, "found")
    daemon.end(turn)
    end = end_of(client)
    assert end["response"]["usage"]["cost"]["total_cost"] == 0.06

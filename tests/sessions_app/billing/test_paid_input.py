"""No inference is sent before the input that it reads is reserved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agents_app.runtime.agent_run import RunRequest
from agents_app.selectors import AgentSpec
from payments_app.spending import approvals
from sessions_app.billing.weights import usual_input, whole_input
from sessions_app.models import Response
from sessions_app.process.history import History
from tests.client import TERMINAL, wait_until
from tests.sessions_app.billing.paid_agents import clean, earned, pay, priced, rich, usd
from uamp import Message

if TYPE_CHECKING:
    from chat_app.log.history import HistoryMessage
    from tests.client import UampClient
    from tests.live_server import Dial, Person

LONG = "word " * 800


def inferences_before_the_card(client: UampClient) -> int:
    """Stop the running answer at its card, and return how many inferences it had sent."""
    demand = client.until("payment.required", *TERMINAL)[-1]
    assert demand["type"] == "payment.required", demand
    client.send("response.cancel", response_id=demand["response_id"])
    client.until("response.cancelled")
    wait_until(clean)
    return len(Response.objects.get(pk=demand["response_id"]).inferences or ())


@pytest.mark.parametrize("change", ["edit", "meanwhile"])
def test_an_inference_reads_no_more_than_is_reserved(
    dial: Dial, alice: Person, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the history changed before the reservation, or between it and the start."""
    agent = priced("paid", input_per_1k="1")
    approvals.approve(rich(alice).user.pk, agent.pk, usd("0.5"))
    client = dial(alice)
    client.create_session(agent="paid")
    message_id = next(
        frame["message_id"] for frame in client.answer("Hi") if frame["type"] == "response.created"
    )
    client.send("message.edit", message_id=message_id, content=LONG)
    client.until("message.edited")
    if change == "meanwhile":

        async def about(_history: History, _chat_id: str, _seq: int | None) -> list[HistoryMessage]:
            return []

        monkeypatch.setattr(History, "about", about)
    client.ask("And now?")
    assert inferences_before_the_card(client) == 0


def test_each_inference_of_a_step_is_reserved(dial: Dial, alice: Person) -> None:
    agent = priced("paid", input_per_1k="1")
    agent.strategy = "react"
    agent.save()
    approvals.approve(rich(alice).user.pk, agent.pk, usd("1.5"))
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask(LONG)
    assert inferences_before_the_card(client) == 1


def test_input_beyond_the_context_window_is_neither_reserved_nor_charged(
    dial: Dial, alice: Person
) -> None:
    agent = priced("paid", "slow", input_per_1k="1", output_per_1k="1")
    agent.options = {**agent.options, "context_window": 100}
    agent.save()
    rich(alice)
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask(LONG)
    demand = client.until("payment.required")[-1]
    assert demand["requirements"]["amount"] == "0.612"
    pay(client, demand)
    event = client.until("response.delta", "payment.required", *TERMINAL)[-1]
    assert event["type"] == "response.delta", event
    client.send("response.cancel", response_id=demand["response_id"])
    client.until("response.cancelled")
    wait_until(clean)
    assert usd("0.1") < usd(earned(agent)) < usd("0.612")


def test_an_estimate_of_the_input_may_exceed_the_context_window() -> None:
    spec = AgentSpec(id="a", name="a", provider="scripted", options={"context_window": 100})
    request = RunRequest(response_id="r1", history=[Message(role="user", content=LONG)])
    assert whole_input(spec, request, {}) == len(LONG) / 4
    assert usual_input(spec, request).input_tokens == 100

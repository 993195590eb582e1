"""Charges for paid answers, and the ids in their log lines."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agents_app.providers import scripts
from payments_app.models import Hold
from sessions_app.billing.reservations import AnswerCharge, settle_all
from tests.client import TERMINAL, wait_until
from tests.log_lines import with_ids
from tests.sessions_app.billing.paid_agents import clean, earned, pay, priced, rich, usd, wallet
from tests.threads import join_threads
from upp.providers.scripted import Pause, Step, Text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import httpx
    from pytest_django import Settings

    from agents_app.selectors import AgentSpec
    from tests.live_server import Dial, Person
    from upp import LLMRequest


def test_the_lines_of_a_paid_answer_have_the_id_of_its_payment(
    dial: Dial,
    alice: Person,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken(request: LLMRequest, spec: AgentSpec) -> AsyncGenerator[Step, None]:
        yield Text("One")
        raise RuntimeError("the script broke")

    monkeypatch.setitem(scripts.SCRIPTS, "broken", broken)
    priced("paid", "broken", per_answer="0.25")
    rich(alice)
    with with_ids(caplog, logging.INFO) as lines:
        client = dial(alice)
        client.create_session(agent="paid")
        client.ask("Hello")
        pay(client, client.until("payment.required")[-1])
        accepted = client.until("payment.accepted")[-1]
        client.until(*TERMINAL)
        failed = [line for line in lines if line.response_id and "failed" in line.getMessage()]
    assert failed
    assert {line.payment_id for line in failed} == {accepted["payment_id"]}
    assert Hold.objects.get().pk == accepted["payment_id"]


def test_the_line_of_an_unpaid_charge_has_the_ids_of_its_answer(
    caplog: pytest.LogCaptureFixture, alice: Person
) -> None:
    del alice
    charge = AnswerCharge(
        response_id="resp_unheld",
        chat_id="chat_1",
        agent_id=priced("paid", per_answer="1").pk,
        amount=usd("1"),
        protocol="uamp",
        transfer_id="tr_unheld",
    )
    with with_ids(caplog, logging.ERROR) as lines:
        assert settle_all([charge]) == {}
    (line,) = [line for line in lines if "stays unpaid" in line.getMessage()]
    assert (line.response_id, line.payment_id) == ("resp_unheld", "tr_unheld")


def test_two_answers_on_money_for_one(dial: Dial, alice: Person, demo: Any) -> None:
    agent = priced("paid", per_answer="1")
    rich(alice, "1")
    outcomes: list[str] = []

    def buy() -> None:
        client = dial(alice)
        client.create_session(agent="paid")
        client.ask("Hello")
        pay(client, client.until("payment.required")[-1])
        outcomes.append(client.until("response.done", "payment.error")[-1]["type"])

    buyers = [threading.Thread(target=buy) for _ in range(2)]
    for buyer in buyers:
        buyer.start()
    join_threads(buyers)
    assert sorted(outcomes) == ["payment.error", "response.done"]
    wait_until(lambda: earned(agent) == "1")
    assert str(wallet(alice).available) == "0"


def test_tokens_are_billed_as_they_were_counted(dial: Dial, alice: Person) -> None:
    agent = priced("paid", input_per_1k="1", output_per_1k="10")
    rich(alice)
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask("one two three four five")
    demand = client.until("payment.required")[-1]
    # 512 tokens of output and an estimate of the input are reserved.
    assert usd("5.12") < usd(demand["requirements"]["amount"]) < usd("5.2")
    pay(client, demand)
    done = client.until("response.done")[-1]["response"]
    usage = done["usage"]
    cost = usd("0.001") * usage["input_tokens"] + usd("0.01") * usage["output_tokens"]
    assert usage["cost"]["total_cost"] == float(str(cost))
    wait_until(lambda: earned(agent) == str(cost))
    assert wallet(alice).available == usd("10") - cost
    assert clean()


@pytest.mark.parametrize(
    ("rule", "least", "limit"),
    [
        ({}, "1", "1.1"),
        # A word of the slow agent has two tokens, and a few are said before it is stopped.
        ({"unfinished": "share", "expected_tokens": 2}, "1", "1.1"),
        ({"unfinished": "share", "expected_tokens": 10_000}, "0.0001", "0.2"),
    ],
)
def test_a_stopped_answer_costs_what_its_agent_says(
    dial: Dial, web: httpx.Client, alice: Person, rule: dict[str, Any], least: str, limit: str
) -> None:
    agent = priced("paid", "slow", per_answer="1", output_per_1k="1", **rule)
    rich(alice)
    client = dial(alice)
    created = client.create_session(agent="paid")
    client.ask("Count")
    pay(client, client.until("payment.required")[-1])
    client.until("response.delta")
    client.until("response.delta")
    client.send("response.cancel")
    client.until("response.cancelled")
    wait_until(lambda: not Hold.objects.filter(state="active").exists())
    spent = usd("10") - wallet(alice).available
    assert usd(least) <= spent < usd(limit)
    assert earned(agent) == str(spent)
    path = f"/api/v1/chats/{created['chat']}/payments"
    (receipt,) = web.get(path, headers=alice.headers).json()["data"]
    assert receipt["unfinished"] == rule.get("unfinished", "whole")
    assert receipt["amount"] == str(spent)


def test_an_answer_that_is_stopped_at_its_last_word_is_paid(
    dial: Dial, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nearly(_agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
        yield Text("All of it but the last word")
        yield Pause(60)
        yield Text(".")

    monkeypatch.setitem(scripts.SCRIPTS, "nearly", nearly)
    agent = priced("paid", "nearly", per_answer="1")
    rich(alice)
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask("Hello")
    pay(client, client.until("payment.required")[-1])
    client.until("response.delta")
    client.send("response.cancel")
    client.until("response.cancelled")
    wait_until(lambda: earned(agent) == "1")
    assert clean()


def test_an_answer_that_is_stopped_before_its_first_word_costs_its_input(
    dial: Dial, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    was_sent = threading.Event()

    async def silent(_agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
        was_sent.set()
        yield Pause(60)
        yield Text("Too late")

    monkeypatch.setitem(scripts.SCRIPTS, "silent", silent)
    agent = priced("paid", "silent", per_answer="1", input_per_1k="1")
    rich(alice)
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask("Hello" * 100)
    pay(client, client.until("payment.required")[-1])
    assert was_sent.wait(10)
    client.send("response.cancel")
    cost = client.until("response.cancelled")[-1]["usage"]["cost"]
    # 125 tokens of input and those of its instructions; no price of an answer.
    assert usd("0.125") <= usd(str(cost["input_cost"])) < usd("0.2")
    assert (cost["answer_cost"], cost["total_cost"]) == (0, cost["input_cost"])
    wait_until(lambda: earned(agent) == str(cost["total_cost"]))
    assert clean()


@pytest.mark.parametrize(
    ("policy", "charged"), [("delivered", "1"), ("usage", "0"), ("none", "0"), ("full", "1")]
)
def test_a_failure_of_the_provider_costs_what_was_delivered_unless_the_operator_says_otherwise(
    dial: Dial, alice: Person, settings: Settings, policy: str, charged: str
) -> None:
    settings.UAMP_CHARGE_UNFINISHED = policy
    agent = priced("paid", "fail", per_answer="1")
    rich(alice)
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask("Hello")
    pay(client, client.until("payment.required")[-1])
    assert client.until(*TERMINAL)[-1]["type"] == "response.error"
    wait_until(lambda: not Hold.objects.filter(state="active").exists())
    assert earned(agent) == charged

"""Answers that have a price, over a real socket: asked, paid, settled (UAMP §3.3, §7.2)."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agents_app import sponsorships
from agents_app.providers import scripts
from chat_app.members.agreed_prices import prices_in
from chat_app.members.chats import ChatChange, update_chat
from payments_app.models import Hold, Transfer
from payments_app.spending import approvals
from sessions_app.billing.reservations import AnswerCharge, settle_all
from sessions_app.models import PaymentRequest, Response
from tests.client import TERMINAL, text_of, wait_until
from tests.live_server import Dial, Person, shared_chat
from tests.log_lines import with_ids
from tests.sessions_app.billing.paid_agents import (
    WALLET,
    clean,
    earned,
    pay,
    priced,
    rich,
    types,
    usd,
    wallet,
)
from tests.threads import join_threads
from upp.providers.scripted import Pause, Step, Text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import httpx
    from pytest_django import Settings

    from agents_app.selectors import AgentSpec
    from upp import LLMRequest


def test_a_turn_is_paid_as_the_specification_prints_it(dial: Dial, alice: Person) -> None:
    agent = priced("paid", per_answer="0.25")
    rich(alice)
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask("Hello to you")
    begun = client.until("payment.required")
    assert types(begun) == ["response.created", "payment.required"]
    asked = begun[-1]
    assert asked["requirements"]["amount"] == "0.25"
    assert asked["requirements"]["currency"] == "USD"
    assert {"scheme": "token", "network": "uamp"} in asked["requirements"]["schemes"]
    assert WALLET in asked["requirements"]["schemes"]
    assert asked["requirements"]["expires_at"] > 0
    pay(client, asked)
    frames = client.until("payment.balance")
    assert types(frames) == [
        "payment.accepted",
        "response.delta",
        "response.done",
        "payment.balance",
    ]
    accepted, balance = frames[0], frames[-1]
    assert accepted["balance_remaining"] == "9.75"
    assert accepted["payment_id"]
    assert frames[-2]["response"]["usage"]["cost"]["total_cost"] == 0.25
    assert (balance["balance"], balance["balance_remaining"]) == ("9.75", "9.75")
    assert (balance["currency"], balance["estimated_remaining"]) == ("USD", 39)
    assert balance["threshold"] == "1.25"
    assert balance["low_balance_warning"] is False
    assert "expires_at" not in balance
    assert (str(wallet(alice).available), earned(agent)) == ("9.75", "0.25")
    assert clean()


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


def test_a_payment_announces_the_mandate_that_the_operator_set(
    dial: Dial, alice: Person, settings: Settings
) -> None:
    settings.UAMP_AP2 = {
        "mandate_uri": "https://mandates.example/1",
        "credential_types": ["VerifiableCredential"],
    }
    priced("paid", per_answer="0.25")
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask("Hello")
    asked = client.until("payment.required")[-1]
    assert asked["requirements"]["ap2"] == settings.UAMP_AP2


def test_nothing_is_asked_of_a_free_agent(dial: Dial, alice: Person) -> None:
    client = dial(alice)
    client.create_session(agent="echo")
    assert types(client.answer("Hello")) == ["response.created", "response.delta", "response.done"]
    assert not PaymentRequest.objects.exists()


def test_no_word_is_said_before_it_is_paid(dial: Dial, alice: Person) -> None:
    priced("paid", per_answer="1")
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask("Hello")
    client.until("payment.required")
    assert [f for f in client.during(0.5) if f["type"] == "response.delta"] == []
    assert Response.objects.get().status == "waiting"


def test_a_payer_who_has_too_little_is_refused_and_can_pay_later(dial: Dial, alice: Person) -> None:
    agent = priced("paid", per_answer="1")
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask("Hello")
    asked = client.until("payment.required")[-1]
    pay(client, asked)
    refused = client.until("payment.error")[-1]
    assert refused["code"] == "insufficient_balance"
    assert (refused["balance_required"], refused["balance_current"]) == ("1", "0")
    assert refused["can_retry"] is True
    rich(alice, "1")
    pay(client, asked)
    assert text_of(client.until("response.done")) == "Hello"
    assert earned(agent) == "1"


@pytest.mark.parametrize(
    ("payment", "said", "balance"),
    [
        (
            {"scheme": "balance", "amount": "0.5"},
            "You offered 0.5 USD; 1 USD are due. Submit at least that.",
            ("1", "10"),
        ),
        (
            {"scheme": "balance", "network": "evil"},
            "Pay on the network uamp, not 'evil'.",
            (None, None),
        ),
        ({"scheme": "balance", "network": ""}, "Pay on the network uamp, not ''.", (None, None)),
        ({"scheme": "balance", "currency": "JPY"}, "Pay in USD, not 'JPY'.", (None, None)),
        ({"scheme": "token"}, "Name the payment token in `token`.", (None, None)),
        ({"scheme": "crypto"}, "Pay with the scheme token or balance, not 'crypto'.", (None, None)),
    ],
)
def test_a_bad_payment_says_what_to_do_and_what_is_there(
    dial: Dial, alice: Person, payment: dict[str, str], said: str, balance: tuple[str | None, ...]
) -> None:
    priced("paid", per_answer="1")
    rich(alice)
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask("Hello")
    pay(client, client.until("payment.required")[-1], **payment)
    refused = client.until("payment.error")[-1]
    assert refused["message"] == said
    assert (refused.get("balance_required"), refused.get("balance_current")) == balance
    assert refused["can_retry"] is True


def test_a_payment_that_comes_twice_is_taken_once(dial: Dial, alice: Person) -> None:
    agent = priced("paid", per_answer="1")
    rich(alice)
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask("Hello")
    asked = client.until("payment.required")[-1]
    pay(client, asked)
    pay(client, asked)
    frames = client.until("payment.balance")
    late = [f for f in [*frames, *client.settle()] if f["type"] == "session.error"]
    assert [error["error"]["code"] for error in late] == ["payment_not_due"]
    assert [f["type"] for f in frames].count("payment.accepted") == 1
    assert (str(wallet(alice).available), earned(agent)) == ("9", "1")


def test_an_unpaid_answer_ends(dial: Dial, alice: Person, settings: Settings) -> None:
    settings.UAMP_PAYMENT_SECONDS = 0.5
    settings.UAMP_SWEEP_SECONDS = 0.3
    agent = priced("paid", per_answer="1")
    rich(alice)
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask("Hello")
    asked = client.until("payment.required")[-1]
    ended = client.until(*TERMINAL)[-1]
    assert ended["error"]["code"] == "payment_timeout"
    pay(client, asked)
    assert client.until("session.error")[-1]["error"]["code"] == "payment_not_due"
    assert (str(wallet(alice).available), earned(agent)) == ("10", "0")
    assert clean()


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
    asked = client.until("payment.required")[-1]
    # 512 tokens of output and an estimate of the input are reserved.
    assert usd("5.12") < usd(asked["requirements"]["amount"]) < usd("5.2")
    pay(client, asked)
    done = client.until("response.done")[-1]["response"]
    usage = done["usage"]
    cost = usd("0.001") * usage["input_tokens"] + usd("0.01") * usage["output_tokens"]
    assert usage["cost"]["total_cost"] == float(str(cost))
    wait_until(lambda: earned(agent) == str(cost))
    assert wallet(alice).available == usd("10") - cost
    assert clean()


@pytest.mark.parametrize(
    ("rule", "least", "most"),
    [
        ({}, "1", "1.1"),
        # A word of the slow agent has two tokens, and a few are said before it is stopped.
        ({"unfinished": "share", "expected_tokens": 2}, "1", "1.1"),
        ({"unfinished": "share", "expected_tokens": 10_000}, "0.0001", "0.2"),
    ],
)
def test_a_stopped_answer_costs_what_its_agent_says(
    dial: Dial, web: httpx.Client, alice: Person, rule: dict[str, Any], least: str, most: str
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
    assert usd(least) <= spent < usd(most)
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
    sent = threading.Event()

    async def silent(_agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
        sent.set()
        yield Pause(60)
        yield Text("Too late")

    monkeypatch.setitem(scripts.SCRIPTS, "silent", silent)
    agent = priced("paid", "silent", per_answer="1", input_per_1k="1")
    rich(alice)
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask("Hello" * 100)
    pay(client, client.until("payment.required")[-1])
    assert sent.wait(10)
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


@pytest.mark.usefixtures("brisk")
def test_a_text_that_grows_beyond_its_reservation_pauses_until_it_is_topped_up(
    dial: Dial, alice: Person
) -> None:
    agent = priced("paid", "slow", output_per_1k="1")
    rich(alice)
    client = dial(alice)
    client.create_session(agent="paid")
    client.send("input.text", text="Count")
    client.send("response.create", response={"max_tokens": 100})
    first = client.until("payment.required")[-1]
    assert "extra" not in first
    pay(client, first)
    more = client.until("payment.required", timeout=30)[-1]
    assert more["extra"] == {"action": "topup"}
    assert more["requirements"]["extra"]["action"] == "topup"
    assert more["response_id"] == first["response_id"]
    quiet = client.during(0.6)
    assert [f for f in quiet if f["type"] == "response.delta"] == []
    frames = [more]
    while frames[-1]["type"] not in TERMINAL:
        pay(client, frames[-1])
        frames = client.until(*TERMINAL, "payment.required", timeout=30)
    assert frames[-1]["type"] == "response.done"
    output = frames[-1]["response"]["output"][0]["text"]
    assert output.split() == [f"word{n}" for n in range(1, 201)]
    assert Response.objects.count() == 1
    wait_until(lambda: earned(agent) == "0.2")
    assert clean()


@pytest.mark.usefixtures("brisk")
def test_who_takes_back_what_they_allowed_is_asked_for_the_rest(dial: Dial, alice: Person) -> None:
    agent = priced("paid", "slow", output_per_1k="1")
    rich(alice)
    approvals.approve(alice.user.pk, agent.pk, usd("5"))
    client = dial(alice)
    client.create_session(agent="paid")
    client.send("input.text", text="Count")
    client.send("response.create", response={"max_tokens": 100})
    client.until("payment.accepted")
    held = wallet(alice).held
    approvals.withdraw(alice.user.pk, agent.pk)
    reported, asked = client.until("payment.required", timeout=30)[-2:]
    assert (reported["type"], reported["code"]) == ("payment.error", "mandate_revoked")
    assert reported["can_retry"] is True
    assert reported["balance_required"] == asked["requirements"]["amount"]
    assert asked["extra"] == {"action": "topup"}
    assert wallet(alice).held == held
    frames = [asked]
    while frames[-1]["type"] not in TERMINAL:
        pay(client, frames[-1])
        frames = client.until(*TERMINAL, "payment.required", timeout=30)
        assert "mandate_revoked" not in [frame.get("code") for frame in frames]
    assert frames[-1]["type"] == "response.done"
    wait_until(lambda: earned(agent) == "0.2")
    assert clean()


def test_the_owner_of_a_chat_may_pay_for_all(dial: Dial, alice: Person, bob: Person) -> None:
    agent = priced("paid", per_answer="1")
    rich(alice)
    chat = shared_chat(alice, bob, agents=("paid",))
    update_chat(chat_id=chat.pk, changed_by=alice.user, change=ChatChange(payer="owner"))
    client = dial(bob)
    client.create_session(chat=chat.pk)
    client.ask("@paid Hello")
    assert text_of(client.until("response.done")) == "Hello"
    wait_until(lambda: earned(agent) == "1")
    assert str(wallet(alice).available) == "9"


def test_an_agents_owner_may_pay_for_it(dial: Dial, alice: Person, bob: Person) -> None:
    agent = priced("paid", per_answer="1")
    agent.owner = rich(bob).user
    agent.save()
    sponsorships.sponsor(agent.pk, bob.user, {"total": "5"})
    chat = shared_chat(alice, agents=("paid",))
    chat.payer = "sponsor"
    chat.save()
    client = dial(alice)
    client.create_session(chat=chat.pk)
    client.ask("@paid Hello")
    client.until("response.done")
    wait_until(lambda: earned(agent) == "1")
    assert str(wallet(bob).available) == "9"


def test_an_empty_pool_is_said_and_nothing_runs(dial: Dial, alice: Person) -> None:
    priced("paid", per_answer="1")
    chat = shared_chat(rich(alice), agents=("paid",))
    chat.payer, chat.agreed_prices = "pool", prices_in(chat.pk)
    chat.save()
    client = dial(alice)
    client.create_session(chat=chat.pk)
    client.ask("@paid Hello")
    ended = client.until(*TERMINAL)[-1]
    assert ended["error"]["code"] == "payment_required"
    assert str(wallet(alice).available) == "10"


def test_others_in_the_chat_neither_pay_nor_see_the_payers_balance(
    dial: Dial, alice: Person, bob: Person
) -> None:
    priced("paid", per_answer="1")
    rich(alice)
    rich(bob)
    chat = shared_chat(alice, bob, agents=("paid",))
    asker, other = dial(alice), dial(bob)
    asker.create_session(chat=chat.pk)
    other.create_session(chat=chat.pk)
    asker.ask("@paid Hello")
    asked = asker.until("payment.required")[-1]
    pay(other, asked)
    pay(asker, asked)
    asker.until("payment.balance")
    received = other.until("response.done")
    assert not [f for f in received if f["type"].startswith("payment.")]
    assert "payment_not_due" in [
        f["error"]["code"] for f in received if f["type"] == "session.error"
    ]
    assert str(wallet(bob).available) == "10"


def test_the_others_see_for_whose_payment_an_answer_waits(
    dial: Dial, alice: Person, bob: Person
) -> None:
    priced("paid", per_answer="1")
    chat = shared_chat(rich(alice), bob, agents=("paid",))
    asker, other = dial(alice), dial(bob)
    asker.create_session(chat=chat.pk)
    other.create_session(chat=chat.pk)
    asker.ask("@paid Hello")
    received = asker.until("payment.required")
    asked = received[-1]
    later = dial(bob)
    later.create_session(chat=chat.pk)
    for client in (other, later):
        waits = client.until("progress")[-1]
        assert (waits["target"], waits["target_id"]) == ("response", asked["response_id"])
        assert waits["stage"] == "waiting_for_payment"
        assert waits["message"] == f"Waits for {alice.user.username}'s payment"
    pay(asker, asked)
    received += asker.until("payment.balance")
    assert "progress" not in types(received)
    for client in (other, later):
        ended = client.until("response.done")
        stages = [f["stage"] for f in ended if f["type"] == "progress"]
        assert stages == ["in_progress"]
    latest = dial(bob)
    latest.create_session(chat=chat.pk)
    latest.ask("Thanks")
    assert "progress" not in types(latest.until("message.created"))


def test_who_comes_back_is_asked_again(dial: Dial, alice: Person) -> None:
    priced("paid", per_answer="1")
    chat = shared_chat(rich(alice), agents=("paid",))
    client = dial(alice)
    client.create_session(chat=chat.pk)
    client.ask("@paid Hello")
    asked = client.until("payment.required")[-1]
    client.cut()
    again = dial(alice)
    again.create_session(chat=chat.pk)
    repeated = again.until("payment.required")[-1]
    assert repeated["requirements"] == asked["requirements"]
    pay(again, repeated)
    assert text_of(again.until("response.done")) == "Hello"


@pytest.mark.parametrize(
    ("payment", "code"),
    [
        ({"scheme": "token", "token": "ptok_missing"}, "token_invalid"),
        ({"scheme": "token"}, "payment_failed"),
        ({"scheme": "crypto", "network": "base"}, "payment_failed"),
        ({"scheme": "balance", "amount": "0.5"}, "payment_failed"),
        ({"scheme": "balance", "amount": "1e3"}, "payment_failed"),
        ({"scheme": "balance", "amount": "-1"}, "payment_failed"),
        ({"scheme": "balance", "amount": "\uff11"}, "payment_failed"),
        ({"scheme": "balance", "amount": "1.0000000001"}, "payment_failed"),
    ],
)
def test_a_bad_payment_is_named_and_moves_nothing(
    dial: Dial, alice: Person, payment: dict[str, str], code: str
) -> None:
    priced("paid", per_answer="1")
    rich(alice)
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask("Hello")
    asked = client.until("payment.required")[-1]
    pay(client, asked, **payment)
    assert client.until("payment.error", "session.error")[-1]["code"] == code
    assert str(wallet(alice).available) == "10"
    assert not Transfer.objects.exclude(kind__contains="top").exists()
    assert PaymentRequest.objects.get().status == "waiting"

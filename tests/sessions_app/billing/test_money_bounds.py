"""No number of a client makes an answer cheaper than its price, on any transport."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone

import uamp
from agents_app.providers import scripts
from payments_app import services as ledger
from payments_app import x402
from payments_app.models import Hold
from payments_app.money import InvalidAmount, Money
from payments_app.spending import approvals
from sessions_app.billing import requests, usage
from sessions_app.billing.payers import Purchase
from sessions_app.billing.reservations import AnswerCharge, Reservation
from sessions_app.models import PaymentRequest, Response, Session
from sessions_app.response import payment_guard
from tests import factories
from tests.client import TERMINAL, Frame, UampClient, new_event, wait_until
from tests.live_server import Person
from tests.sessions_app.billing.paid_agents import clean, earned, pay, priced, rich, usd, wallet
from upp.conversation.turn import TokenUsage
from upp.providers.scripted import Step, Text, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from django.test import Client

    from agents_app.models import Agent
    from agents_app.selectors import AgentSpec
    from tests.live_server import Dial
    from upp import LLMRequest

PRICES = {"per_answer": "0.25", "output_per_1k": "1"}
BAD = [-10_000_000, -1, 0, 1.5, 10**12, 2**53 - 1, "1", True]


def _turn(session: dict[str, Any], response: dict[str, Any]) -> list[Frame]:
    return [
        new_event("session.create", uamp_version="1.0", session=session, agent="paid"),
        new_event("input.text", text="Hello"),
        new_event("response.create", response=response),
    ]


def _nothing_ran() -> None:
    assert not Response.objects.exists()
    assert not PaymentRequest.objects.exists()
    assert not Hold.objects.exists()


def test_no_max_tokens_of_a_socket_makes_an_answer_free(dial: Dial) -> None:
    priced("paid", **PRICES)
    for value in BAD:
        # A connection is closed after a few bad frames.
        client = dial()
        client.create_session(agent="paid")
        client.send("input.text", text="Hello")
        client.send("response.create", response={"max_tokens": value})
        refused = client.until("session.error", *TERMINAL)[-1]
        assert refused["error"]["code"] == "invalid_event", value
        client.send("session.update", session={"extensions": {"max_tokens": value}})
        refused = client.until("session.error", "session.updated")[-1]
        assert refused["error"]["code"] == "invalid_event", value
    _nothing_ran()


@pytest.mark.parametrize("path", ["/uamp", "/uamp/stream"])
def test_no_max_tokens_of_a_batch_makes_an_answer_free(
    dial: Dial, web: httpx.Client, path: str
) -> None:
    priced("paid", **PRICES)
    for value in BAD:
        for turn in (
            _turn({}, {"max_tokens": value}),
            _turn({"extensions": {"max_tokens": value}}, {}),
            _turn({"extensions": {"openai": {"max_tokens": value}}}, {}),
        ):
            answer = web.post(path, json=turn)
            assert answer.status_code < httpx.codes.INTERNAL_SERVER_ERROR
            assert answer.status_code != httpx.codes.PAYMENT_REQUIRED, answer.text
            assert "invalid_event" in answer.text
            assert "response.delta" not in answer.text
    _nothing_ran()


def test_a_row_that_is_older_than_the_bounds_makes_no_answer_free(dial: Dial) -> None:
    priced("paid", **PRICES)
    client = dial()
    created = client.create_session(agent="paid")
    row = Session.objects.get(pk=created["session"]["id"])
    row.config = {**row.config, "extensions": {"max_tokens": -10_000_000}}
    row.save()
    again = dial()
    again.send("session.create", resume={"session_id": row.pk, "after": 0}, session={})
    again.until("capabilities")
    again.ask("Hello")
    refused = again.until("session.error", *TERMINAL)[-1]
    assert refused["error"]["code"] == "invalid_event"
    _nothing_ran()


def test_what_is_more_than_the_ledger_counts_is_refused_in_words(dial: Dial) -> None:
    priced("paid", per_answer="999999999", output_per_1k="999999999")
    client = dial()
    client.create_session(agent="paid")
    client.send("input.text", text="Hello")
    client.send("response.create", response={"max_tokens": uamp.MAX_TOKENS})
    refused = client.until("session.error", *TERMINAL)[-1]
    assert refused["error"]["code"] == "invalid_event"
    assert "reserved" in refused["error"]["message"]
    _nothing_ran()


def test_an_agent_whose_tools_alone_cost_demands_nothing_of_a_batch(
    dial: Dial, web: httpx.Client
) -> None:
    priced("paid", tools={"fetch_page": "0.01"})
    answer = web.post("/uamp", json=_turn({}, {}))
    assert answer.status_code == httpx.codes.OK
    assert "response.done" in answer.text
    assert not Hold.objects.exists()


@pytest.mark.parametrize("tokens", [-5_000, 10**15])
def test_what_a_provider_counts_neither_pays_back_nor_breaks_the_end(
    dial: Dial, alice: Person, monkeypatch: pytest.MonkeyPatch, tokens: int
) -> None:
    async def absurd(_agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
        yield Text("Hello")
        yield Usage(TokenUsage(input_tokens=tokens, output_tokens=tokens, total_tokens=tokens))

    monkeypatch.setitem(scripts.SCRIPTS, "absurd", absurd)
    agent = priced("paid", "absurd", **PRICES, input_per_1k="1")
    rich(alice)
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask("Hello")
    pay(client, client.until("payment.required")[-1])
    ended = client.until(*TERMINAL)[-1]
    if tokens < 0:
        assert ended["type"] == "response.done"
        # By estimate two tokens were read and two were written.
        assert earned(agent) == "0.254"
    else:
        assert ended["error"]["code"] == "payment_required"
        assert wallet(alice).available < usd("10")
    assert clean()


# --- Where money is reserved ---


def _reservation(amount: Money) -> Reservation:
    purchase = Purchase(chat_id="chat", agent_id="agent", agent="paid", asset="USD", asker_id=None)
    return Reservation(response_id="resp", purchase=purchase, amount=amount)


def test_less_than_nothing_is_neither_reserved_nor_charged_nor_demanded() -> None:
    less, nothing = Money(-1), Money(0)
    for refused in (
        lambda: _reservation(less),
        lambda: AnswerCharge(
            response_id="r", chat_id="c", agent_id="a", amount=less, protocol="uamp"
        ),
        lambda: x402.requirements(nothing, resource_url="/", description="", agent="paid"),
        lambda: x402.requirements(less, resource_url="/", description="", agent="paid"),
        lambda: requests.ask("r", fence=1, number=1, amount=nothing, payer_id=None, action=""),
    ):
        with pytest.raises(InvalidAmount):
            refused()
    assert not _reservation(nothing).amount


@pytest.mark.django_db
def test_a_reservation_is_never_below_the_price_of_an_answer() -> None:
    spec = _spec("paid")
    for used in (-10_000_000, -1, 0, 1):
        step = uamp.UsageStats(input_tokens=used, output_tokens=used, cached_tokens=used)
        assert usage.reservation(spec, step) >= usd("0.25")
        assert not Money(0) > usage.bill(spec.pricing, step, {}, provider="anthropic").total


def _spec(name: str) -> AgentSpec:
    from agents_app.selectors import get_spec  # noqa: PLC0415

    return get_spec(priced(name, **PRICES).pk)


# --- Trials ---


def _try(client: Client, agent: Agent) -> str:
    path = reverse("admin:agents_app_agent_try", args=[agent.pk])
    return client.post(path, {"prompt": "Hello"}).content.decode()


@pytest.mark.usefixtures("database_threads")
def test_a_trial_is_paid_by_the_operator_who_tries(client: Client) -> None:
    agent = priced("paid", per_answer="0.25", output_per_1k="1")
    operator = Person(User.objects.create_superuser("operator"), "")
    client.force_login(operator.user)
    refused = _try(client, agent)
    assert "payment_required" in refused
    assert "Hello</p>" not in refused
    assert not Hold.objects.exists()
    rich(operator)
    assert "<p>Hello</p>" in _try(client, agent)
    assert earned(agent) == "0.251"
    assert wallet(operator).available == usd("10") - usd("0.251")
    assert clean()


@pytest.mark.usefixtures("database_threads")
@pytest.mark.parametrize(
    ("script", "pricing", "cost"),
    [
        # What was delivered before a provider failed is paid.
        ("fail", {"per_answer": "1"}, "1"),
        ("echo", {"tools": {"fetch_page": "1"}}, "0"),
    ],
)
def test_a_trial_costs_what_an_answer_costs(
    client: Client, script: str, pricing: dict[str, Any], cost: str
) -> None:
    agent = priced("paid", script, **pricing)
    operator = rich(Person(User.objects.create_superuser("operator"), ""))
    client.force_login(operator.user)
    page = _try(client, agent)
    assert f'<td id="trial-cost">{cost} USD</td>' in page
    assert earned(agent) == cost
    assert wallet(operator).available == usd("10") - usd(cost)
    assert clean()


def _half_done(dial: Dial, alice: Person) -> tuple[UampClient, Frame]:
    """Have an answer that is paid wait for its client's tool; return that call."""
    client = dial(alice)
    tool = {"type": "function", "function": {"name": "lookup"}}
    client.create_session(agent="paid", session={"tools": [tool]})
    client.ask("Look it up")
    first = client.until("payment.required", "tool.call")[-1]
    if first["type"] == "tool.call":
        return client, first
    pay(client, first)
    return client, client.until("tool.call")[-1]


def test_a_payment_is_requested_again_when_its_hold_was_voided(
    dial: Dial, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operator voids a hold while its answer waits: the next step does not run on nothing."""
    monkeypatch.setattr(payment_guard, "HELD_SECONDS", 0.0)
    agent = priced("paid", "tool-user", per_answer="0.25")
    rich(alice)
    client, call = _half_done(dial, alice)
    ledger.void(key="void", hold_id=Hold.objects.get().pk)
    client.send("tool.result", call_id=call["call_id"], result="{}")
    again = client.until("payment.required", *TERMINAL)[-1]
    assert again["type"] == "payment.required"
    assert again["requirements"]["amount"] == "0.25"
    pay(client, again)
    assert client.until(*TERMINAL)[-1]["type"] == "response.done"
    assert earned(agent) == "0.25"
    assert clean()


def test_an_operator_does_not_void_what_an_answer_still_runs_on(dial: Dial, alice: Person) -> None:
    agent = priced("paid", "tool-user", per_answer="0.25")
    rich(alice)
    client, call = _half_done(dial, alice)
    root = factories.superuser()
    with pytest.raises(ledger.AnswerRuns):
        ledger.void(key="void", hold_id=Hold.objects.get().pk, by=root.pk)
    client.send("tool.result", call_id=call["call_id"], result="{}")
    assert client.until(*TERMINAL)[-1]["type"] == "response.done"
    assert earned(agent) == "0.25"
    assert clean()


def test_a_hold_does_not_run_out_under_an_answer_that_waits(dial: Dial, alice: Person) -> None:
    agent = priced("paid", "tool-user", per_answer="0.25")
    rich(alice)
    client, call = _half_done(dial, alice)
    past = timezone.now() - timedelta(seconds=1)
    Hold.objects.update(expires_at=past)
    wait_until(lambda: Hold.objects.exclude(state="active", expires_at=past).exists())
    assert Hold.objects.get().state == "active"
    client.send("tool.result", call_id=call["call_id"], result="{}")
    assert client.until(*TERMINAL)[-1]["type"] == "response.done"
    assert earned(agent) == "0.25"
    assert clean()


@pytest.mark.parametrize("is_allowed", [True, False])
def test_an_answer_whose_hold_is_gone_is_charged_anew_or_says_that_it_was_not_paid(
    dial: Dial, alice: Person, monkeypatch: pytest.MonkeyPatch, *, is_allowed: bool
) -> None:
    monkeypatch.setattr(payment_guard, "FRESH_SECONDS", 0.0)
    agent = priced("paid", "tool-user", per_answer="0.25")
    rich(alice)
    if is_allowed:
        approvals.approve(alice.user.pk, agent.pk, usd("5"))
    client, call = _half_done(dial, alice)
    ledger.void(key="void", hold_id=Hold.objects.get().pk)
    client.send("tool.result", call_id=call["call_id"], result="{}")
    done = client.until(*TERMINAL)[-1]
    paid = "0.25" if is_allowed else "0"
    assert done["response"]["usage"]["cost"]["total_cost"] == float(paid)
    assert earned(agent) == paid
    assert clean()

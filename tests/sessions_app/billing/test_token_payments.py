"""Answers paid with tokens, by approval and within limits, and tools that cost (UAMP §7.2)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from django.db import transaction

from agents_app.tools.registry import ToolError, tool
from chat_app.models import Chat
from payments_app import selectors as ledger_rows
from payments_app import services as ledger
from payments_app.models import Hold
from payments_app.spending import approvals, limits
from payments_app.tokens import endings, issuance
from payments_app.tokens import lookup as token_lookup
from sessions_app.billing import payers, reservations
from tests.client import TERMINAL, text_of, wait_until
from tests.payments_app.funded_accounts import authorize
from tests.sessions_app.billing.paid_agents import (
    clean,
    earned,
    pay,
    priced,
    rich,
    types,
    usd,
    wallet,
)

if TYPE_CHECKING:
    import httpx
    from pytest_django import Settings

    from tests.client import UampClient
    from tests.live_server import Dial, Person


@tool(long_running=False)
def weigh(query: str) -> str:
    """Weigh words; heavy ones break the scales."""
    if "heavy" in query:
        raise ToolError("The scales broke.")
    return f"{len(query)} grams"


def issue(who: Person, amount: str = "1", **fields: Any) -> issuance.IssuedToken:
    """Issue a token of a person."""
    values: dict[str, Any] = {"expires_in": 600, **fields}
    return issuance.issue(key="token", user_id=who.user.pk, amount=usd(amount), **values)


def ends(token: issuance.IssuedToken) -> int:
    """Return the time at which a token ends, as events say it."""
    assert token.expires_at is not None
    return int(token.expires_at.timestamp())


def test_a_token_of_the_session_pays_without_asking(dial: Dial, alice: Person) -> None:
    agent = priced("paid", per_answer="0.25")
    token = issue(rich(alice))
    client = dial()
    client.create_session(agent="paid", payment_token=token.token)
    assert types(client.answer("Hello")) == [
        "response.created",
        "payment.accepted",
        "response.delta",
        "response.done",
    ]
    balance = client.until("payment.balance")[-1]
    assert (balance["balance"], balance["low_balance_warning"]) == ("0.75", True)
    assert balance["expires_at"] == ends(token)
    assert earned(agent) == "0.25"


def test_a_token_in_a_session_update_pays_the_waiting_response(dial: Dial, alice: Person) -> None:
    priced("paid", per_answer="0.25")
    token = issue(rich(alice))
    client = dial()
    client.create_session(agent="paid")
    client.ask("Hello")
    client.until("payment.required")
    client.send("session.update", payment_token=token.token)
    assert text_of(client.until("response.done")) == "Hello"


@pytest.mark.parametrize("form", ["opaque", "jwt"])
def test_a_token_that_is_submitted_pays(dial: Dial, alice: Person, form: str) -> None:
    agent = priced("paid", per_answer="0.25")
    token = issue(rich(alice), form=form)
    client = dial()
    client.create_session(agent="paid")
    client.ask("Hello")
    pay(client, client.until("payment.required")[-1], scheme="token", token=token.token)
    assert text_of(client.until("response.done")) == "Hello"
    assert client.until("payment.balance")[-1]["expires_at"] == ends(token)
    wait_until(lambda: earned(agent) == "0.25")


def spoil_expired(who: Person) -> str:
    token = issue(who, expires_in=0.01)
    return token.token


def spoil_revoked(who: Person) -> str:
    token = issue(who)
    endings.revoke(token_id=token.id, user_id=who.user.pk)
    return token.token


def spoil_foreign(who: Person) -> str:
    return issue(who, audience=("other",)).token


def spoil_small(who: Person) -> str:
    return issue(who, "0.1").token


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (spoil_expired, "token_expired"),
        (spoil_revoked, "token_invalid"),
        (spoil_foreign, "token_invalid"),
        (spoil_small, "insufficient_balance"),
    ],
)
def test_a_bad_token_is_named_and_moves_nothing(
    dial: Dial, alice: Person, spoil: Any, code: str
) -> None:
    agent = priced("paid", per_answer="0.25")
    token = spoil(rich(alice))
    client = dial()
    client.create_session(agent="paid")
    client.ask("Hello")
    demand = client.until("payment.required")[-1]
    client.during(0.05)
    pay(client, demand, scheme="token", token=token)
    refused = client.until("payment.error")[-1]
    assert (refused["code"], refused["can_retry"]) == (code, True)
    assert earned(agent) == "0"
    assert not Hold.objects.filter(state="active").exists()


@pytest.mark.usefixtures("brisk")
def test_a_token_that_runs_low_is_topped_up_while_the_answer_pauses(
    dial: Dial, web: httpx.Client, alice: Person, settings: Settings
) -> None:
    settings.UAMP_RESERVE_TOKENS = 20
    agent = priced("paid", "slow", output_per_1k="1")
    token = issue(rich(alice), "0.03")
    client = dial(alice)
    client.create_session(agent="paid", payment_token=token.token)
    client.ask("Count")
    more = client.until("payment.required", timeout=30)[-1]
    assert more["extra"] == {"action": "topup"}
    topped = web.post(
        f"/api/payments/tokens/{token.id}/topup",
        headers={**alice.headers, "Idempotency-Key": "more"},
        json={"amount": "1"},
    )
    assert topped.is_success, topped.text
    pay(client, more, scheme="token", token=token.token)
    frames = client.until(*TERMINAL, "payment.required", timeout=30)
    assert frames[-1]["type"] == "response.done"
    words = frames[-1]["response"]["output"][0]["text"].split()
    assert words == [f"word{number}" for number in range(1, 201)]
    wait_until(lambda: earned(agent) == "0.2")
    assert clean()


def test_what_a_person_always_allows_is_not_asked_for(dial: Dial, alice: Person) -> None:
    agent = priced("paid", per_answer="0.25")
    approvals.approve(rich(alice).user.pk, agent.pk, usd("0.3"))
    client = dial(alice)
    client.create_session(agent="paid")
    assert "payment.required" not in types(client.answer("Hello"))
    wait_until(lambda: earned(agent) == "0.25")


def test_more_than_a_person_always_allows_is_asked_for(dial: Dial, alice: Person) -> None:
    agent = priced("paid", per_answer="0.25")
    approvals.approve(rich(alice).user.pk, agent.pk, usd("0.2"))
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask("Hello")
    client.until("payment.required")
    assert earned(agent) == "0"


def test_a_limit_per_day_holds_for_the_wallet(dial: Dial, alice: Person) -> None:
    agent = priced("paid", per_answer="0.25")
    rich(alice)
    limits.set_limits(alice.user.pk, [limits.Limit(period="day", agent_id="", amount=usd("0.4"))])
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask("Hello")
    pay(client, client.until("payment.required")[-1])
    client.until("payment.balance")
    client.ask("Hello")
    pay(client, client.until("payment.required")[-1])
    refused = client.until("payment.error")[-1]
    assert (refused["code"], refused["can_retry"]) == ("rate_limited", False)
    assert earned(agent) == "0.25"


def limit(who: Person, amount: str) -> None:
    """Let a person spend so much a day."""
    limits.set_limits(who.user.pk, [limits.Limit(period="day", agent_id="", amount=usd(amount))])


def test_a_limit_applies_to_a_standing_approval(dial: Dial, alice: Person) -> None:
    agent = priced("paid", per_answer="0.25")
    approvals.approve(rich(alice).user.pk, agent.pk, usd("1"))
    limit(alice, "0.4")
    client = dial(alice)
    client.create_session(agent="paid")
    client.answer("Hello")
    client.until("payment.balance")
    client.ask("Hello")
    client.until("payment.required")
    assert (earned(agent), str(wallet(alice).held)) == ("0.25", "0")


def test_a_limit_holds_within_a_group_of_turns(alice: Person) -> None:
    agent = priced("paid", per_answer="0.25")
    rich(alice)
    limit(alice, "0.4")
    account = ledger.account_of_user(alice.user.pk).id
    purchase = payers.Purchase(
        chat_id="", agent_id=agent.pk, agent="paid", asset="USD",
        asker_id=alice.user.pk,
    )  # fmt: skip
    token_reservations = [
        reservations.Reservation(
            response_id=f"resp_{number}",
            purchase=purchase,
            amount=usd("0.25"),
            source=payers.Source(account_id=account, user_id=alice.user.pk),
        )
        for number in range(3)
    ]
    with transaction.atomic():
        payments = reservations.reserve_all(token_reservations)
    assert [pk for pk, payment in payments.items() if payment.first] == ["resp_0"]
    assert str(wallet(alice).held) == "0.25"


@pytest.mark.usefixtures("database_threads")
def test_an_account_that_was_rolled_back_is_created_again() -> None:
    """An id that is remembered too early would refuse every later answer of the agent."""
    reference = ("agent", "agent_new", "USD")
    with suppress(RuntimeError), transaction.atomic():
        payers.account_ids([reference])
        raise RuntimeError("the write failed")
    account_id = payers.account_ids([reference])[reference]
    assert ledger_rows.balance(account_id).posted == usd("0")
    assert payers.account_ids([reference]) == {reference: account_id}


def test_no_more_than_what_was_reserved_is_taken(alice: Person) -> None:
    agent = priced("paid", per_answer="0.25")
    account = ledger.account_of_user(rich(alice).user.pk).id
    authorize(key="h", account_id=account, amount=usd("0.25"), response_id="resp_1")
    charge = reservations.AnswerCharge(
        response_id="resp_1", chat_id="", agent_id=agent.pk, amount=usd("3"), protocol="uamp"
    )
    with transaction.atomic():
        assert reservations.settle_all([charge]) == {"resp_1": usd("9.75")}
    assert (str(wallet(alice).available), earned(agent)) == ("9.75", "0.25")
    assert clean()


def test_a_token_is_spent_within_the_limits_of_its_owner(dial: Dial, alice: Person) -> None:
    agent = priced("paid", per_answer="0.25")
    token = issue(rich(alice))
    limit(alice, "0.4")
    client = dial()
    client.create_session(agent="paid", payment_token=token.token)
    client.answer("Hello")
    client.until("payment.balance")
    client.ask("Hello")
    demand = client.until("payment.required")[-1]
    pay(client, demand, scheme="token", token=token.token)
    assert client.until("payment.error")[-1]["code"] == "rate_limited"
    assert (earned(agent), str(token_lookup.by_id(token.id).available)) == ("0.25", "0.75")


@pytest.mark.usefixtures("brisk")
def test_a_token_that_paid_when_asked_keeps_its_limit_for_an_answer(
    dial: Dial, alice: Person
) -> None:
    priced("paid", "slow", output_per_1k="1")
    token = issue(rich(alice), per_use=usd("0.15"))
    client = dial()
    client.create_session(agent="paid")
    client.send("input.text", text="Count")
    client.send("response.create", response={"max_tokens": 100})
    pay(client, client.until("payment.required")[-1], scheme="token", token=token.token)
    more = client.until("payment.required", timeout=30)[-1]
    assert more["extra"] == {"action": "topup"}
    hold = Hold.objects.get(state="active")
    assert hold.amount <= usd("0.15").amount


@pytest.mark.parametrize(("text", "cost"), [("feather", "0.5"), ("heavy", "0")])
def test_a_tool_is_paid_when_it_has_worked(
    dial: Dial, alice: Person, settings: Settings, text: str, cost: str
) -> None:
    settings.UAMP_SERVER_TOOLS = [f"{__name__}.weigh"]
    agent = priced("paid", "tool-user", tools={"weigh": "0.5"})
    agent.tools = ["weigh"]
    agent.save()
    token = issue(rich(alice))
    client = dial(alice)
    client.create_session(agent="paid", payment_token=token.token)
    client.answer(text)
    wait_until(lambda: not Hold.objects.filter(state="active").exists())
    assert earned(agent) == cost
    assert clean()


def test_an_unpaid_tool_does_not_run(dial: Dial, alice: Person, settings: Settings) -> None:
    settings.UAMP_SERVER_TOOLS = [f"{__name__}.weigh"]
    settings.UAMP_PAYMENT_SECONDS = 0.5
    settings.UAMP_SWEEP_SECONDS = 0.3
    agent = priced("paid", "tool-user", tools={"weigh": "0.5"})
    agent.tools = ["weigh"]
    agent.save()
    client = dial(rich(alice))
    client.create_session(agent="paid")
    client.ask("feather")
    demand = client.until("payment.required")[-1]
    assert demand["requirements"]["reason"] == "tool_usage"
    ended = client.until(*TERMINAL)[-1]
    assert ended["error"]["code"] == "payment_timeout"
    assert earned(agent) == "0"
    assert str(wallet(alice).available) == "10"
    assert Chat.objects.count() == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("place", ["create", "update", "input", "header", "query"])
def test_a_token_that_is_not_taken_is_named_when_money_is_due(
    dial: Dial, alice: Person, place: str
) -> None:
    agent = priced("paid", per_answer="0.25")
    client = _shown(dial, place, "foreign")
    frames = client.until("payment.required")
    assert types(frames) == ["response.created", "payment.error", "payment.required"]
    assert (frames[1]["code"], frames[1]["can_retry"]) == ("token_invalid", True)
    assert frames[1]["response_id"] == frames[2]["response_id"]
    pay(client, frames[-1], scheme="token", token=issue(rich(alice)).token)
    assert text_of(client.until("response.done")) == "Hello"
    wait_until(lambda: earned(agent) == "0.25")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("place", ["create", "update", "input", "header", "query"])
def test_a_token_pays_wherever_a_client_may_put_it(dial: Dial, alice: Person, place: str) -> None:
    agent = priced("paid", per_answer="0.25")
    client = _shown(dial, place, issue(rich(alice)).token)
    frames = client.until("response.done")
    assert "payment.required" not in types(frames)
    assert "payment.error" not in types(frames)
    wait_until(lambda: earned(agent) == "0.25")


def _shown(dial: Dial, place: str, token: str) -> UampClient:
    """Show a token in one of its places, and ask."""
    path = f"/uamp?payment_token={token}" if place == "query" else "/uamp"
    client = dial(None, path, {"X-Payment-Token": token} if place == "header" else None)
    client.create_session(agent="paid", **({"payment_token": token} if place == "create" else {}))
    if place == "update":
        client.send("session.update", payment_token=token)
        client.expect("session.updated")
    client.send(
        "input.text", text="Hello", **({"payment_token": token} if place == "input" else {})
    )
    client.send("response.create")
    return client

"""Remote agents that have to be paid over there, from the budget of their owner."""

from __future__ import annotations

from asyncio import to_thread
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING

import pytest

from agents_app.models import Agent
from agents_app.remote.onward import OnwardPayments, OverBudget, cost_in
from payments_app.models import Hold
from tests.agents_app.remote.test_loopback import far
from tests.client import wait_until
from tests.sessions_app.billing.paid_agents import (
    clean,
    earned,
    pay,
    priced,
    rich,
    usd,
    wallet,
)
from tests.sessions_app.turn.delegation import answer_text

if TYPE_CHECKING:
    import httpx

    from tests.conftest import ServerAddress
    from tests.live_server import Dial, Person

BUDGET = "/api/payments/onward/far"


@pytest.fixture
def paid(demo: ServerAddress, bob: Person) -> Agent:
    """Give an agent that asks two cents for an answer; `far` asks it with the key of bob."""
    agent = priced("dear", per_answer="0.02")
    row = far(demo, bob, "uamp", "dear", options={"pays_per_answer": "0.05"}, owner=bob.user)
    row.pricing = {"per_answer": "0.25"}
    row.save()
    rich(bob)
    return agent


def budget(web: httpx.Client, who: Person) -> dict[str, str]:
    """Return the parts of the budget of `far` that are left, held and spent."""
    amounts = web.get(BUDGET, headers=who.headers).json()
    return {name: amounts[name] for name in ("left", "held", "spent")}


def test_an_answer_is_paid_on_both_servers(
    demo: ServerAddress, dial: Dial, web: httpx.Client, alice: Person, bob: Person, paid: Agent
) -> None:
    assert web.put(BUDGET, headers=bob.headers, json={"amount": "0.5"}).json()["left"] == "0.5"
    rich(alice)
    client = dial(alice)
    created = client.create_session(agent="far")
    client.ask("hello there")
    pay(client, client.until("payment.required")[-1])
    frames = client.until("response.done", "response.error")
    assert answer_text(frames) == "hello there"

    wait_until(lambda: earned(paid) == "0.02")
    assert budget(web, bob) == {"left": "0.48", "held": "0", "spent": "0.02"}
    assert str(wallet(bob).available) == "9.98"
    assert str(wallet(alice).available) == "9.75"
    assert earned(Agent.objects.get(name="far")) == "0.25"
    path = f"/api/v1/chats/{created['chat']}/payments"
    receipt = web.get(path, headers=alice.headers).json()["data"][0]
    assert (receipt["amount"], receipt["paid_onward"]) == ("0.25", "0.02")
    assert clean()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("amount", "options"),
    [
        ("0", {"pays_per_answer": "0.05"}),
        ("0.019", {"pays_per_answer": "0.05"}),
        ("1", {"pays_per_answer": "0.01"}),
        ("1", {}),
    ],
)
def test_what_is_above_the_budget_is_not_paid(
    demo: ServerAddress,
    dial: Dial,
    web: httpx.Client,
    alice: Person,
    bob: Person,
    paid: Agent,
    amount: str,
    options: dict[str, str],
) -> None:
    row = Agent.objects.get(name="far")
    row.options, row.pricing = options, {}
    row.save()
    web.put(BUDGET, headers=bob.headers, json={"amount": amount})
    client = dial(alice)
    client.create_session(agent="far")
    client.ask("hello there")
    error = client.until("response.error")[-1]["error"]
    assert error["code"] == "quota_exceeded"
    assert "far" in error["message"]
    assert budget(web, bob) == {"left": amount, "held": "0", "spent": "0"}
    assert str(wallet(bob).posted) == "10"
    assert earned(paid) == "0"
    wait_until(lambda: not Hold.objects.filter(state="active").exists())
    assert Agent.objects.get(name="far").failures == 0, "it is no fault of the other side"


def test_a_budget_is_set_by_the_owner_alone(
    demo: ServerAddress, web: httpx.Client, alice: Person, bob: Person, paid: Agent
) -> None:
    assert web.put(BUDGET, headers=alice.headers, json={"amount": "1"}).status_code == 403
    refused = web.put("/api/payments/onward/dear", headers=bob.headers, json={"amount": "1"})
    assert refused.status_code == 403, "it is of another owner"
    web.put(BUDGET, headers=bob.headers, json={"amount": "1"})
    assert web.put(BUDGET, headers=bob.headers, json={"amount": "0.4"}).json()["left"] == "0.4"
    Agent.objects.filter(name="far").update(owner=alice.user)
    assert budget(web, alice)["left"] == "0"
    assert clean()
    assert usd("10") == wallet(bob).available


@pytest.mark.parametrize(
    ("cost", "currency", "expected"),
    [
        (0.02, "USD", "0.02"),
        (1e-10, None, "1E-9"),
        (0, None, "0"),
        (-1, None, "None"),
        (float("inf"), None, "None"),
        (1e19, None, "None"),
        (10**30, None, "None"),
        (999_999_999, None, "999999999"),
        (True, None, "None"),
        ("1", None, "None"),
        (1, "EUR", "None"),
    ],
)
def test_a_stated_cost_is_read(cost: object, currency: object, expected: str) -> None:
    amount = cost_in(cost, currency)
    assert (str(amount) if amount is None else f"{amount.normalize()}") == expected


# --- What the budget is charged ---

TRUSTED = {"trusts_cost": True}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("options", "submitted", "cost", "spent"),
    [
        ({}, ["0.02"], None, "0.02"),
        ({}, ["0.02"], "0", "0.02"),
        ({}, ["0.02"], "0.01", "0.02"),
        ({}, ["0.02", "0.03"], "0.05", "0.05"),
        ({}, ["0.02", "0.03"], "0", "0.05"),
        (TRUSTED, ["0.02"], None, "0.02"),
        (TRUSTED, ["0.02"], "0", "0"),
        (TRUSTED, ["0.02"], "7", "0.02"),
        (TRUSTED, ["0.02", "0.03"], "0.04", "0.04"),
        (TRUSTED, ["0.02", "0.03"], "0.01", "0.01"),
    ],
)
async def test_a_budget_is_charged_what_was_submitted_or_a_cost_that_is_trusted(
    web: httpx.Client,
    bob: Person,
    paid: Agent,
    options: dict[str, bool],
    submitted: list[str],
    cost: str | None,
    spent: str,
) -> None:
    payments = await budgeted(web, bob, options)
    for amount in submitted:
        await payments.reserve(amount, "USD")
    await payments.settle(None if cost is None else Decimal(cost))
    left = f"{(Decimal('0.1') - Decimal(spent)).normalize():f}"
    assert await to_thread(budget, web, bob) == {"left": left, "held": "0", "spent": spent}
    assert await to_thread(clean)


@pytest.mark.parametrize(("options", "spent"), [({}, "0.05"), (TRUSTED, "0.02")])
async def test_a_refused_payment_counts_unless_the_server_is_trusted(
    web: httpx.Client, bob: Person, paid: Agent, options: dict[str, bool], spent: str
) -> None:
    payments = await budgeted(web, bob, options)
    await payments.reserve("0.02", "USD")
    await payments.reserve("0.03", "USD")
    payments.refused()
    await payments.settle()
    assert (await to_thread(budget, web, bob))["spent"] == spent


async def test_the_limit_of_an_answer_counts_what_its_earlier_runs_paid(
    web: httpx.Client, bob: Person, paid: Agent
) -> None:
    before = await budgeted(web, bob, {})
    await before.reserve("0.06", "USD")
    await before.settle()

    later = await budgeted(web, bob, {})
    with pytest.raises(OverBudget, match="more than its owner allows"):
        await later.reserve("0.05", "USD")
    await later.reserve("0.04", "USD")


async def test_what_a_dead_process_submitted_is_charged_whatever_the_next_answer_costs(
    web: httpx.Client, bob: Person, paid: Agent
) -> None:
    await (await budgeted(web, bob, TRUSTED)).reserve("0.06", "USD")

    row = await Agent.objects.aget(name="far")
    later = OnwardPayments(row.pk, "resp_1", {"pays_per_answer": "0.1", **TRUSTED})
    await later.reserve("0.03", "USD")
    await later.settle(Decimal("0.01"))
    assert await to_thread(budget, web, bob) == {"left": "0.03", "held": "0", "spent": "0.07"}


async def budgeted(web: httpx.Client, bob: Person, options: dict[str, bool]) -> OnwardPayments:
    """Return the payments of an answer of `far`, within a budget of ten cents."""
    await to_thread(partial(web.put, BUDGET, headers=bob.headers, json={"amount": "0.1"}))
    row = await Agent.objects.aget(name="far")
    return OnwardPayments(row.pk, "resp_1", {"pays_per_answer": "0.1", **options})

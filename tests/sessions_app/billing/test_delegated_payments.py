"""Work for another agent that has a price: paid as what is asked for in its chat (ADR 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agents_app.providers.scripts import SCRIPTS
from chat_app.members.agreed_prices import prices_in
from payments_app import selectors as ledger_rows
from payments_app import services as ledger
from payments_app.models import Transfer
from payments_app.spending import approvals
from payments_app.tokens import issuance
from sessions_app.billing import payers
from tests.client import TERMINAL, Frame, UampClient, new_event, wait_until
from tests.live_server import shared_chat
from tests.sessions_app.billing.paid_agents import (
    WALLET,
    clean,
    earned,
    pay,
    rich,
    types,
    usd,
    wallet,
)
from tests.sessions_app.turn.delegation import answer_text, doer, task_for
from tests.sessions_app.turn.team_tools import order
from upp import ToolResultMessage
from upp.providers.scripted import Call, Pause, Reasoning, Text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import httpx
    from pytest_django import Settings

    from agents_app.models import Agent
    from agents_app.selectors import AgentSpec
    from chat_app.models import Chat
    from tests.live_server import Dial, Person
    from upp import LLMRequest
    from upp.providers.scripted import Step

TASK = task_for("paid", order(say="done"))


@pytest.fixture
def paid(demo: object) -> Agent:
    """Give an agent that costs a quarter, and one that gives it work for nothing."""
    doer("boss", "paid")
    return doer("paid", pricing={"per_answer": "0.25"})


def frames_to_the_end(client: UampClient) -> list[Frame]:
    """Return the frames until the answer has ended and its payer knows the balance."""
    frames = client.until(*TERMINAL, "payment.balance")
    return frames + client.until(*(set(TERMINAL) | {"payment.balance"}) - {frames[-1]["type"]})


def chat_that_pays(rule: str, *people: Person) -> Chat:
    """Make a chat in which an agent passes everything on, and this rule names the payer."""
    chat = shared_chat(*people, agents=("boss",), trigger="always")
    chat.payer, chat.payer_user = rule, people[0].user if rule == "owner" else None
    chat.agreed_prices = prices_in(chat.pk)
    chat.save()
    return chat


def charged_chats() -> set[str]:
    """Return the chats that charges were for."""
    return set(Transfer.objects.filter(kind="answer").values_list("chat_id", flat=True))


def test_the_asker_is_asked_for_the_price_of_delegated_work(
    dial: Dial, alice: Person, paid: Agent
) -> None:
    rich(alice)
    client = dial(alice)
    created = client.create_session(agent="boss")
    client.ask(TASK)
    demand = client.until("payment.required")[-1]
    assert demand["requirements"]["amount"] == "0.25"
    pay(client, demand)
    frames = frames_to_the_end(client)
    assert [f["response_id"] for f in frames if f["type"].startswith("payment.")] == [
        demand["response_id"]
    ] * 2
    (ended,) = [f for f in frames if f["type"] in TERMINAL]
    assert answer_text([ended]) == "received: done"
    assert (str(wallet(alice).available), earned(paid)) == ("9.75", "0.25")
    # The work was asked for here: its cost counts here.
    assert charged_chats() == {created["chat"]}
    assert clean()


def test_the_token_of_the_session_pays_for_delegated_work(
    dial: Dial, alice: Person, paid: Agent
) -> None:
    issued = issuance.issue(key="t", user_id=rich(alice).user.pk, amount=usd("1"), expires_in=600)
    client = dial()
    client.create_session(agent="boss", payment_token=issued.token)
    frames = client.answer(TASK)
    assert answer_text(frames) == "received: done"
    assert "payment.required" not in types(frames)
    wait_until(lambda: earned(paid) == "0.25")


@pytest.mark.parametrize("by", ["paid", "mid"])
def test_an_approval_is_for_a_question_however_often_agents_pass_work_on(
    dial: Dial, alice: Person, paid: Agent, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """Four pieces of work at once, directly or through an agent in between, and money for two."""

    async def spend(_agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
        if isinstance(request.messages[-1], ToolResultMessage):
            yield Text("spent")
            return
        task = order(say="done") if by == "paid" else TASK
        for _ in range(4):
            yield Call(name="delegate", arguments={"agent": by, "task": task})

    monkeypatch.setitem(SCRIPTS, "spender", spend)
    doer("spender", by, options={"script": "spender"})
    doer("mid", "paid")
    approvals.approve(rich(alice).user.pk, paid.pk, usd("0.6"))
    client = dial(alice)
    client.create_session(agent="spender")
    client.ask("Spend.")
    demands = [client.until("payment.required")[-1] for _ in range(2)]
    assert len({demand["response_id"] for demand in demands}) == 2
    wait_until(lambda: earned(paid) == "0.5")
    assert str(wallet(alice).available) == "9.5"
    for demand in demands:
        client.send("response.cancel", response_id=demand["response_id"])
    assert answer_text(client.until(*TERMINAL)) == "spent"
    # The next question has as much again.
    client.ask("Spend.")
    client.until("payment.required")
    wait_until(lambda: earned(paid) == "1")


def test_unpaid_work_is_cancelled_alone(dial: Dial, alice: Person, paid: Agent) -> None:
    """The payer may refuse it; the agent that passed it on reads that, and goes on."""
    rich(alice)
    client = dial(alice)
    client.create_session(agent="boss")
    client.ask(TASK)
    demand = client.until("payment.required")[-1]
    client.send("response.cancel", response_id=demand["response_id"])
    frames = client.until("payment.error")
    assert (frames[-1]["response_id"], frames[-1]["can_retry"]) == (demand["response_id"], False)
    ended = [f for f in frames if f["type"] in TERMINAL] or client.until(*TERMINAL)
    assert answer_text(ended[-1:]) == "failed: paid was stopped."
    pay(client, demand)
    assert client.until("session.error")[-1]["error"]["code"] == "payment_not_due"
    assert str(wallet(alice).available) == "10"


def test_no_other_person_cancels_delegated_work(
    dial: Dial, alice: Person, bob: Person, paid: Agent
) -> None:
    rich(alice)
    client, stranger = dial(alice), dial(bob)
    client.create_session(agent="boss")
    stranger.create_session(agent="boss")
    client.ask(TASK)
    demand = client.until("payment.required")[-1]
    stranger.send("response.cancel", response_id=demand["response_id"])
    refused = stranger.until("session.error")[-1]
    assert refused["error"]["code"] == "nothing_to_cancel"
    pay(client, demand)
    (ended,) = [f for f in frames_to_the_end(client) if f["type"] in TERMINAL]
    assert answer_text([ended]) == "received: done"


def test_work_that_is_not_paid_in_time_is_no_longer_due(
    dial: Dial, alice: Person, paid: Agent, settings: Settings
) -> None:
    settings.UAMP_PAYMENT_SECONDS = 1
    client = dial(rich(alice))
    client.create_session(agent="boss")
    client.ask(TASK)
    demand = client.until("payment.required")[-1]
    late = client.until("payment.error", timeout=30)[-1]
    assert (late["response_id"], late["can_retry"]) == (demand["response_id"], False)


@pytest.mark.parametrize("stopped", ["at the demand", "after it expired"])
def test_a_stop_is_a_refusal_only_while_delegated_work_waits_for_its_payment(
    dial: Dial,
    alice: Person,
    paid: Agent,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    stopped: str,
) -> None:
    async def ponder(_agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
        if isinstance(request.messages[-1], ToolResultMessage):
            yield Reasoning("I do it myself.")
            yield Pause(60)
        yield Call(name="delegate", arguments={"agent": "paid", "task": order(say="done")})

    has_expired = stopped == "after it expired"
    settings.UAMP_PAYMENT_SECONDS = 1 if has_expired else 60
    monkeypatch.setitem(SCRIPTS, "ponder", ponder)
    ponderer = doer("ponderer", "paid", pricing={"per_answer": "1"}, options={"script": "ponder"})
    approvals.approve(rich(alice).user.pk, ponderer.pk, usd("1"))
    client = dial(alice)
    client.create_session(agent="ponderer")
    client.ask("Think.")
    client.until("payment.required")
    if has_expired:
        client.until("thinking", timeout=30)
    client.send("response.cancel")
    client.until("response.cancelled")
    wait_until(clean)
    assert earned(ponderer) == ("1" if has_expired else "0")


def test_a_visitor_is_asked_for_the_price_of_delegated_work(
    dial: Dial, alice: Person, paid: Agent
) -> None:
    issued = issuance.issue(key="t", user_id=rich(alice).user.pk, amount=usd("1"), expires_in=600)
    client = dial()
    client.create_session(agent="boss")
    client.ask(TASK)
    demand = client.until("payment.required")[-1]
    pay(client, demand, scheme="token", token=issued.token)
    frames = frames_to_the_end(client)
    assert "payment.accepted" in types(frames)
    assert earned(paid) == "0.25"


def test_the_owner_of_the_chat_pays_for_delegated_work(
    dial: Dial, alice: Person, bob: Person, paid: Agent
) -> None:
    chat = chat_that_pays("owner", rich(alice), bob)
    owner, client = dial(alice), dial(bob)
    owner.create_session(chat=chat.pk)
    client.create_session(chat=chat.pk)
    client.ask(TASK)
    assert answer_text(client.until(*TERMINAL)) == "received: done"
    wait_until(lambda: earned(paid) == "0.25")
    assert str(wallet(alice).available) == "9.75"
    received = frames_to_the_end(owner)
    (left,) = [f["balance"] for f in received if f["type"] == "payment.balance"]
    assert left == "9.75"
    assert charged_chats() == {chat.pk}


def test_the_pool_of_the_chat_pays_for_delegated_work_of_any_depth(
    dial: Dial, alice: Person, paid: Agent
) -> None:
    doer("chief", "boss")
    chat = shared_chat(rich(alice), agents=("chief",), trigger="always")
    chat.payer, chat.agreed_prices = "pool", prices_in(chat.pk)
    chat.save()
    pool = payers.pool_of(chat.pk, "USD")
    wallet_id = ledger.account_of_user(alice.user.pk).id
    ledger.transfer(key="pool", debit=wallet_id, credit=pool, amount=usd("1"))
    client = dial(alice)
    client.create_session(chat=chat.pk)
    client.ask(task_for("boss", TASK))
    assert answer_text(client.until(*TERMINAL, timeout=30)) == "received: received: done"
    wait_until(lambda: str(ledger_rows.balance(pool).available) == "0.75")
    assert charged_chats() == {chat.pk}
    assert clean()


def test_a_receipt_says_what_an_answer_passed_on_cost(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, paid: Agent
) -> None:
    chat = chat_that_pays("owner", rich(alice), bob)
    client = dial(bob)
    client.create_session(chat=chat.pk)
    client.ask(TASK)
    ended = client.until(*TERMINAL)[-1]
    wait_until(lambda: earned(paid) == "0.25")

    def receipts(who: Person) -> list[dict[str, Any]]:
        answer = web.get(f"/api/v1/chats/{chat.pk}/payments", headers=who.headers)
        rows: list[dict[str, Any]] = answer.json()["data"]
        return rows

    (seen,) = receipts(bob)
    assert (seen["response_id"], seen["agent"]) == (ended["response_id"], "boss")
    assert (seen["amount"], seen["currency"], seen["paid_by"]) == ("0", "USD", "other")
    (work,) = seen["delegated"]
    assert (work["agent"], work["amount"], work["paid_by"]) == ("paid", "0.25", "other")
    assert work["transfers"] == []
    (receipt,) = receipts(alice)
    assert receipt["delegated"][0]["paid_by"] == "you"
    assert len(receipt["delegated"][0]["transfers"]) == 1


def test_a_batch_ends_where_delegated_work_has_to_be_paid(
    web: httpx.Client, alice: Person, paid: Agent
) -> None:
    """The next batch pays and receives the rest, as when the answer itself has to be paid."""
    rich(alice)
    turn = [
        new_event("session.create", uamp_version="1.0", session={}, agent="boss"),
        new_event("input.text", text=TASK),
        new_event("response.create"),
    ]
    received = web.post("/uamp", json=turn, headers=alice.headers).json()
    assert received[-1]["type"] == "payment.required"
    submit = new_event(
        "payment.submit",
        session_id=received[0]["session_id"],
        response_id=received[-1]["response_id"],
        payment=WALLET,
    )
    rest = web.post("/uamp", json=[submit], headers=alice.headers).json()
    (ended,) = [f for f in rest if f["type"] in TERMINAL]
    assert answer_text([ended]) == "received: done"
    wait_until(lambda: earned(paid) == "0.25")

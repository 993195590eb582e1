"""A key's budget bounds all that is requested with the key, no matter who pays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from django.db.models import Sum

from agents_app import sponsorships
from chat_app.members.agreed_prices import prices_in
from chat_app.models import Chat
from payments_app import services as ledger
from payments_app.models import Transfer
from payments_app.money import Money
from payments_app.spending import approvals
from payments_app.tokens import issuance
from sessions_app.access import keys
from sessions_app.billing import payers
from sessions_app.models import ApiKey
from tests.client import TERMINAL, wait_until
from tests.live_server import quick_agent, shared_chat
from tests.sessions_app.access.scoped_keys import key_of
from tests.sessions_app.billing.paid_agents import WALLET, clean, priced, rich, usd
from tests.sessions_app.turn.delegation import doer, task_for
from tests.sessions_app.turn.team_tools import order

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_app.models import Agent
    from tests.client import Frame, UampClient
    from tests.live_server import Dial, Person

BUDGET: Final = "1.5"
"""More than one answer of a dollar, and less than two."""

pytestmark = pytest.mark.usefixtures("brisk")


@pytest.fixture
def agents(demo: object) -> list[Agent]:
    """Give agents that cost a dollar an answer, or two for all that `count` says."""
    quick_agent("talk", "slow")
    doer("boss", "worker")
    return [
        priced("dear", per_answer="1"),
        priced("count", "slow", output_per_1k="10"),
        doer("worker", pricing={"per_answer": "1"}),
    ]


@pytest.fixture
def chat(agents: list[Agent], alice: Person, bob: Person) -> Chat:
    """Give a chat of bob's, in which alice asks."""
    return shared_chat(rich(bob, "50"), rich(alice, "50"), agents=("dear", "count", "boss", "talk"))


class Asking:
    """A session of a chat, whose cards are paid as far as that is allowed."""

    def __init__(self, client: UampClient, payment: dict[str, Any]) -> None:
        self.client = client
        self._payment = payment

    def finish(self) -> list[str]:
        """Pay each card once until the answer ends; return the codes of refusals and failures."""
        codes: list[str] = []
        while True:
            frame: Frame = self.client.until(
                "payment.required", "payment.error", "session.error", *TERMINAL, timeout=30
            )[-1]
            match frame["type"]:
                case "payment.required":
                    self.client.send(
                        "payment.submit",
                        response_id=frame["response_id"],
                        payment=self._payment,
                    )
                case "payment.error" if frame["can_retry"] is False and codes:
                    # The withdrawn demand of delegated work.
                    continue
                case "payment.error":
                    codes.append(frame["code"])
                    self.client.send("response.cancel", response_id=frame["response_id"])
                case "session.error":
                    raise AssertionError(frame)
                case "response.error":
                    return [*codes, "failed"]
                case _:
                    return codes


# --- Who pays ---


def _approval(agents: list[Agent], chat: Chat, alice: Person, bob: Person) -> dict[str, Any]:
    del chat, bob
    for agent in agents:
        approvals.approve(alice.user.pk, agent.pk, usd("5"))
    return {}


def _token(agents: list[Agent], chat: Chat, alice: Person, bob: Person) -> dict[str, Any]:
    del agents, chat, bob
    issued = issuance.issue(key="t", user_id=alice.user.pk, amount=usd("9"), expires_in=600)
    return {"scheme": "token", "network": "uamp", "token": issued.token}


def _balance(agents: list[Agent], chat: Chat, alice: Person, bob: Person) -> dict[str, Any]:
    del agents, chat, alice, bob
    return {}


def _owner(agents: list[Agent], chat: Chat, alice: Person, bob: Person) -> dict[str, Any]:
    del agents, alice
    _choose(chat, "owner", payer_user=bob.user)
    return {}


def _pool(agents: list[Agent], chat: Chat, alice: Person, bob: Person) -> dict[str, Any]:
    del agents, alice
    _choose(chat, "pool")
    account, pool = ledger.account_of_user(bob.user.pk).id, payers.pool_of(chat.pk, "USD")
    ledger.transfer(key="fill", debit=account, credit=pool, amount=usd("40"))
    return {}


def _sponsor(agents: list[Agent], chat: Chat, alice: Person, bob: Person) -> dict[str, Any]:
    del alice
    _choose(chat, "sponsor")
    for agent in agents:
        agent.owner = bob.user
        agent.save()
        sponsorships.sponsor(agent.pk, bob.user, {"total": "40"})
    return {}


def _choose(chat: Chat, payer: str, **fields: Any) -> None:
    values = {"payer": payer, "agreed_prices": prices_in(chat.pk), **fields}
    Chat.objects.filter(pk=chat.pk).update(**values)


SOURCES: Final = {
    "owner": _owner,
    "pool": _pool,
    "sponsor": _sponsor,
    "approval": _approval,
    "token on request": _token,
    "token of the session": _token,
    "balance on request": _balance,
}


# --- How it starts ---


def _asked(asking: Asking, _bob: UampClient) -> list[str]:
    asking.client.ask("@dear Hello")
    return asking.finish()


def _answers(asking: Asking, bob: UampClient) -> list[str]:
    return [*_asked(asking, bob), *_asked(asking, bob)]


def _top_up(asking: Asking, _bob: UampClient) -> list[str]:
    asking.client.send("input.text", text="@count please")
    asking.client.send("response.create", response={"max_tokens": 100})
    return asking.finish()


def _again(asking: Asking, bob: UampClient) -> list[str]:
    codes = _asked(asking, bob)
    while True:
        message = asking.client.until("message.created")[-1]["message"]
        if message["sender_kind"] == "agent":
            break
    asking.client.send("response.create", replaces=message["id"])
    return [*codes, *asking.finish()]


def _delegated(asking: Asking, _bob: UampClient) -> list[str]:
    codes = []
    for text in ("one", "two"):
        asking.client.ask("@boss " + task_for("worker", order(say=text)))
        codes += asking.finish()
    return codes


def _queued(asking: Asking, bob: UampClient) -> list[str]:
    codes = _asked(asking, bob)
    bob.settle()
    bob.ask("@talk please")
    running = bob.until("response.created")[-1]["response_id"]
    asking.client.send("input.text", text="@dear Hello")
    asking.client.send("response.create", queue=True)
    asking.client.until("queue.updated")
    bob.send("response.cancel", response_id=running)
    asking.client.until("response.cancelled", "response.done")
    return [*codes, *asking.finish()]


DOORS: Final[dict[str, Callable[[Asking, UampClient], list[str]]]] = {
    "answers": _answers,
    "top-up": _top_up,
    "made again": _again,
    "delegated": _delegated,
    "queued": _queued,
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("source", SOURCES)
def test_a_budget_bounds_what_is_requested_with_the_key(
    dial: Dial,
    alice: Person,
    bob: Person,
    agents: list[Agent],
    chat: Chat,
    source: str,
) -> None:
    payment = SOURCES[source](agents, chat, alice, bob)
    token = {"payment_token": payment["token"]} if source == "token of the session" else {}
    other = dial(bob)
    other.create_session(chat=chat.pk)
    outcomes = {}
    for name, door in DOORS.items():
        before = charged()
        client = dial(key_of(alice, budget=budget()))
        client.create_session(chat=chat.pk, **token)
        refusals = door(Asking(client, payment or WALLET), other)
        client.close()
        wait_until(clean)
        # The newest key's.
        *_, state = keys.budgets_of(
            list(ApiKey.objects.filter(has_budget=True).order_by("pk"))
        ).values()
        assert state.spent == charged() - before, name
        # A text of digits is held at more than it costs.
        least = usd("0.5" if name == "top-up" else "0.9")
        assert least <= state.spent <= usd(BUDGET), name
        outcomes[name] = refusals
    # No one is asked to pay what only the key's budget forbids, unless they are the asker.
    is_asked = source not in {"owner", "pool"}
    expected = {name: ["rate_limited" if is_asked else "failed"] for name in DOORS}
    if not is_asked:
        # The agent that had the work done reads that it failed.
        expected["delegated"] = []
    assert outcomes == expected


def charged() -> Money:
    """Return the cost of all answers."""
    rows = Transfer.objects.filter(kind="answer")
    return Money(rows.aggregate(total=Sum("amount", default=0))["total"], "USD")


def budget(amount: str = BUDGET) -> keys.KeyBudget:
    """Return the budget of a key for a day."""
    return keys.KeyBudget(amount=usd(amount), period="day")


def demand(client: UampClient, chat: Chat, text: str, **response: Any) -> Frame:
    """Ask in a chat, and return the card."""
    client.create_session(chat=chat.pk)
    client.send("input.text", text=text)
    client.send("response.create", response=response)
    return client.until("payment.required")[-1]


def submit(client: UampClient, payment_demand: Frame, payment: dict[str, Any]) -> Frame:
    """Pay, and return the outcome."""
    client.send("payment.submit", response_id=payment_demand["response_id"], payment=payment)
    return client.until("payment.accepted", "payment.error")[-1]


def test_a_budget_counts_what_the_key_pays_for_others_and_ends_with_the_card(
    dial: Dial, alice: Person, bob: Person, agents: list[Agent], chat: Chat
) -> None:
    """A token that a key with a budget submits pays the card, and no more without a question."""
    asker, payer = dial(alice), dial(key_of(alice, budget=budget()))
    payer.create_session(chat=chat.pk)
    payment_demand = demand(asker, chat, "@count please", max_tokens=100)
    token = _token(agents, chat, alice, bob)
    assert submit(payer, payment_demand, token)["type"] == "payment.accepted"
    more = payer.until("payment.required", timeout=30)[-1]
    assert submit(payer, more, token)["code"] == "rate_limited"
    (state,) = keys.budgets_of(list(ApiKey.objects.filter(has_budget=True))).values()
    assert state.held == usd("1")
    # The person, whose own session asked, may pay the rest.
    assert submit(asker, more, WALLET)["type"] == "payment.accepted"
    asker.send("response.cancel", response_id=more["response_id"])
    asker.until("response.cancelled")
    wait_until(clean)


def test_no_second_key_pays_beyond_the_budget_of_the_one_that_asked(
    dial: Dial, alice: Person, agents: list[Agent], chat: Chat
) -> None:
    del agents
    asker = dial(key_of(alice, budget=budget("0.5")))
    unlimited, other = dial(alice), dial(key_of(alice, budget=budget()))
    for client in (unlimited, other):
        client.create_session(chat=chat.pk)
    payment_demand = demand(asker, chat, "@dear Hello")
    for client, code in ((unlimited, "rate_limited"), (other, "payment_failed")):
        assert submit(client, payment_demand, WALLET)["code"] == code
    asker.send("response.cancel", response_id=payment_demand["response_id"])
    asker.until("response.cancelled")
    assert clean()

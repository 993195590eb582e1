"""A person pays by their own act only: the payer of a chat chose it and is still there."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from agents_app import sponsorships
from chat_app.members import membership
from chat_app.members import payers as chat_payers
from chat_app.models import ChatEvent, Participant
from payments_app import selectors as ledger_rows
from payments_app import services as ledger
from payments_app.models import Hold
from sessions_app.billing import payers
from tests.client import TERMINAL, text_of, wait_until
from tests.live_server import quick_agent, shared_chat
from tests.sessions_app.billing.paid_agents import clean, earned, pay, priced, rich, usd, wallet
from tests.threads import join_threads

if TYPE_CHECKING:
    from agents_app.models import Agent
    from chat_app.models import Chat
    from tests.client import Frame, UampClient
    from tests.live_server import Dial, Person


@pytest.fixture
def paid(demo: object) -> Agent:
    """Give an agent that costs a dollar."""
    return priced("paid", per_answer="1")


@pytest.fixture
def chat(paid: Agent, alice: Person, bob: Person) -> Chat:
    """Give a chat that alice owns, with bob and the agent."""
    return shared_chat(rich(alice), rich(bob), agents=("paid",))


def choose(web: httpx.Client, who: Person, chat: Chat, payer: str) -> httpx.Response:
    """Set the payer."""
    return web.patch(f"/api/v1/chats/{chat.pk}", headers=who.headers, json={"payer": payer})


def leave(web: httpx.Client, who: Person, chat: Chat) -> None:
    """Leave a chat."""
    member = Participant.objects.get(chat=chat, user=who.user)
    path = f"/api/v1/chats/{chat.pk}/participants/{member.pk}"
    assert web.delete(path, headers=who.headers).is_success


def add(web: httpx.Client, by: Person, who: Person, chat: Chat) -> None:
    """Add a person to a chat."""
    path = f"/api/v1/chats/{chat.pk}/participants"
    added = web.post(path, headers=by.headers, json={"user": who.user.username})
    assert added.is_success, added.text


def ask(dial: Dial, who: Person, chat: Chat) -> str:
    """Ask the agent, and return what comes first: its end, or a demand."""
    client = dial(who)
    client.create_session(chat=chat.pk)
    client.ask("@paid Hello")
    kind: str = client.until("payment.required", *TERMINAL)[-1]["type"]
    client.close()
    return kind


def rule(chat: Chat) -> tuple[str, int | None]:
    """Return the payer in a chat now."""
    chosen = chat_payers.payers_of([chat.pk])[chat.pk]
    return chosen.rule, chosen.owner_id


def test_an_owner_who_rejoins_owns_nothing_and_pays_nothing(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, chat: Chat
) -> None:
    assert choose(web, alice, chat, "owner").is_success
    assert ask(dial, bob, chat) == "response.done"
    wait_until(lambda: str(wallet(alice).available) == "9")
    leave(web, alice, chat)
    # The member who has been there the longest owns it, and does not pay for what alice paid.
    assert membership.is_owner(chat.pk, bob.user.pk)
    assert rule(chat) == ("asker", None)
    reported = ChatEvent.objects.filter(chat=chat, type="chat.updated").last()
    assert reported is not None
    assert reported.payload["payer"] == "asker"
    add(web, bob, alice, chat)
    assert not membership.is_owner(chat.pk, alice.user.pk)
    assert ask(dial, bob, chat) == "payment.required"
    assert (str(wallet(alice).available), str(wallet(bob).available)) == ("9", "10")


def test_an_owner_pays_who_chose_it(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, chat: Chat
) -> None:
    Participant.objects.filter(chat=chat, user=bob.user).update(role="owner")
    assert choose(web, bob, chat, "owner").is_success
    assert rule(chat) == ("owner", bob.user.pk)
    # Another owner does not take it over.
    assert choose(web, alice, chat, "owner").status_code == httpx.codes.FORBIDDEN
    assert rule(chat) == ("owner", bob.user.pk)
    assert ask(dial, alice, chat) == "response.done"
    wait_until(lambda: str(wallet(bob).available) == "9")
    assert str(wallet(alice).available) == "10"
    # An owner who did not choose it, lost the role or was switched off does not pay.
    Participant.objects.filter(chat=chat, user=bob.user).update(role="member")
    assert rule(chat) == ("asker", None)
    Participant.objects.filter(chat=chat, user=bob.user).update(role="owner")
    bob.user.is_active = False
    bob.user.save()
    assert rule(chat) == ("asker", None)
    chat.refresh_from_db()
    chat.payer_user = None
    chat.save()
    assert rule(chat) == ("asker", None)


@pytest.mark.parametrize("payer", ["owner", "pool"])
def test_a_member_adds_no_agent_that_others_pay_for(
    web: httpx.Client, alice: Person, bob: Person, chat: Chat, payer: str
) -> None:
    quick_agent("dear", "echo")
    members = f"/api/v1/chats/{chat.pk}/participants"
    assert choose(web, alice, chat, payer).is_success
    refused = web.post(members, json={"agent": "dear"}, headers=bob.headers)
    assert refused.status_code == httpx.codes.FORBIDDEN
    assert not Participant.objects.filter(chat=chat, agent__name="dear").exists()
    assert web.post(members, json={"agent": "dear"}, headers=alice.headers).is_success
    assert choose(web, alice, chat, "asker").is_success
    quick_agent("other", "echo")
    assert web.post(members, json={"agent": "other"}, headers=bob.headers).is_success


@pytest.mark.parametrize("payer", ["owner", "pool"])
def test_an_admin_does_not_set_when_agents_answer_that_others_pay_for(
    web: httpx.Client, alice: Person, bob: Person, chat: Chat, payer: str
) -> None:
    Participant.objects.filter(chat=chat, user=bob.user).update(role="admin")
    agent = Participant.objects.filter(chat=chat, agent__isnull=False).first()
    assert agent is not None
    path = f"/api/v1/chats/{chat.pk}/participants/{agent.pk}"

    def answers_always(who: Person) -> httpx.Response:
        return web.patch(path, json={"trigger": "always"}, headers=who.headers)

    assert choose(web, alice, chat, payer).is_success
    assert answers_always(bob).status_code == httpx.codes.FORBIDDEN
    agent.refresh_from_db()
    assert agent.trigger != "always"
    assert answers_always(alice).is_success
    assert choose(web, alice, chat, "asker").is_success
    assert answers_always(bob).is_success


def half_done(dial: Dial, who: Person, chat: Chat) -> tuple[UampClient, Frame]:
    """Ask an agent that has a price and calls a tool of its client; return that call."""
    client = dial(who)
    tool = {"type": "function", "function": {"name": "lookup"}}
    client.create_session(chat=chat.pk, session={"tools": [tool]})
    client.send("input.text", text="@helper Look it up")
    client.send("response.create", response={"max_tokens": 100})
    return client, client.until("tool.call")[-1]


@pytest.fixture
def helper(demo: object) -> Agent:
    """Give an agent that needs a second reservation after a call of its client's tool."""
    return priced("helper", "tool-user", input_per_1k="1", output_per_1k="1")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("ends", ["owner leaves", "owner stops", "pool stops", "sponsor stops"])
def test_a_payer_who_stops_pays_what_is_held_and_who_asked_is_asked_for_the_rest(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, helper: Agent, ends: str
) -> None:
    owned(helper, rich(alice))
    chat = shared_chat(alice, rich(bob), agents=("helper",))
    rule, _, how = ends.partition(" ")
    account = ledger.account_of_user(alice.user.pk).id
    if rule == "pool":
        payer, account = account, payers.pool_of(chat.pk, "USD")
        ledger.transfer(key="fill", debit=payer, credit=account, amount=usd("5"))
    budget = {"budgets": [{"period": "total", "amount": "5"}]}
    sponsorship = "/api/payments/sponsorships/helper"
    assert web.put(sponsorship, headers=alice.headers, json=budget).is_success
    assert choose(web, alice, chat, rule).is_success
    had = ledger_rows.balance(account).posted
    client, call = half_done(dial, bob, chat)
    held_amount = ledger_rows.balance(account).held
    assert held_amount
    if how == "leaves":
        leave(web, alice, chat)
    elif rule == "sponsor":
        assert web.delete(sponsorship, headers=alice.headers).is_success
    else:
        assert choose(web, alice, chat, "asker").is_success
    client.send("tool.result", call_id=call["call_id"], result='"found"')
    demand = client.until("payment.required", *TERMINAL)[-1]
    assert demand["type"] == "payment.required"
    assert ledger_rows.balance(account).held == held_amount
    pay(client, demand)
    assert client.until(*TERMINAL)[-1]["type"] == "response.done"
    wait_until(clean)
    payer_share = had - ledger_rows.balance(account).posted
    assert payer_share <= held_amount
    assert earned(helper) == str(payer_share + (usd("10") - wallet(bob).posted))


def test_the_payer_asked_after_another_left_does_not_receive_the_others_balance(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, helper: Agent
) -> None:
    chat = shared_chat(rich(alice), rich(bob), agents=("helper",))
    assert choose(web, alice, chat, "owner").is_success
    client, call = half_done(dial, bob, chat)
    leave(web, alice, chat)
    client.send("tool.result", call_id=call["call_id"], result='"found"')
    demand = client.until("payment.required")[-1]
    client.send("response.cancel", response_id=demand["response_id"])
    client.until("response.cancelled")
    wait_until(clean)
    assert [frame for frame in client.during(0.5) if frame["type"] == "payment.balance"] == []


def test_the_pool_pays_as_far_as_it_goes_then_who_asks_is_asked(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, chat: Chat
) -> None:
    pool = payers.pool_of(chat.pk, "USD")
    ledger.transfer(
        key="fill",
        debit=ledger.account_of_user(alice.user.pk).id,
        credit=pool,
        amount=usd("1.5"),
    )
    assert choose(web, alice, chat, "pool").is_success
    assert ask(dial, bob, chat) == "response.done"
    wait_until(clean)
    client = dial(bob)
    client.create_session(chat=chat.pk)
    client.ask("@paid Hello")
    pay(client, client.until("payment.required", *TERMINAL)[-1])
    received = client.until("payment.balance")
    # The balance is bob's, not the pool's.
    assert received[-1]["balance"] == "9"
    assert text_of(received) == "Hello"
    assert str(ledger_rows.balance(pool).available) == "0.5"
    wait_until(clean)


# --- Sponsors ---


def sponsor(web: httpx.Client, who: Person, *budgets: tuple[str, str]) -> httpx.Response:
    """Have an owner sponsor the agent."""
    return web.put(
        "/api/payments/sponsorships/paid",
        headers=who.headers,
        json={"budgets": [{"period": period, "amount": amount} for period, amount in budgets]},
    )


def owned(agent: Agent, by: Person) -> Agent:
    """Give an agent its owner."""
    agent.owner = by.user
    agent.save()
    return agent


def test_no_chat_makes_an_agents_owner_pay_who_did_not_agree(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, mallory: Person, paid: Agent
) -> None:
    owned(paid, rich(bob))
    chat = shared_chat(rich(mallory), agents=("paid",))
    refused = choose(web, mallory, chat, "sponsor")
    assert refused.status_code == httpx.codes.BAD_REQUEST
    assert "owner who pays" in refused.text
    # Also where the row says it: only the owner's own word counts.
    chat.payer = "sponsor"
    chat.save()
    assert ask(dial, mallory, chat) == "payment.required"
    assert sponsor(web, mallory, ("total", "5")).status_code == httpx.codes.FORBIDDEN
    assert ask(dial, mallory, chat) == "payment.required"
    assert str(wallet(bob).available) == "10"


def test_a_sponsor_pays_as_far_as_the_budget_goes_then_who_asks_is_asked(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, paid: Agent
) -> None:
    owned(paid, rich(bob))
    assert sponsor(web, bob, ("day", "5"), ("total", "2")).is_success
    chat = shared_chat(rich(alice), agents=("paid",))
    assert choose(web, alice, chat, "sponsor").is_success
    client = dial(alice)
    client.create_session(chat=chat.pk)
    for _ in range(2):
        client.ask("@paid Hello")
        received = client.until("response.done")
        # What the sponsor has left is theirs to know.
        assert not [f for f in [*received, *client.settle()] if f["type"].startswith("payment.")]
    wait_until(lambda: str(wallet(bob).posted) == "8")
    (state,) = web.get("/api/payments/sponsorships", headers=bob.headers).json()["sponsorships"]
    assert [(b["period"], b["spent"], b["left"]) for b in state["budgets"]] == [
        ("day", "2", "3"),
        ("total", "2", "0"),
    ]
    client.ask("@paid Hello")
    pay(client, client.until("payment.required")[-1])
    received = client.until("payment.balance")
    assert text_of(received) == "Hello"
    assert received[-1]["balance"] == "9"
    assert (str(wallet(alice).available), str(wallet(bob).available)) == ("9", "8")
    assert earned(paid) == "3"
    assert clean()


def test_a_sponsor_ends_it_at_once_and_so_does_another_owner(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, mallory: Person, paid: Agent
) -> None:
    owned(paid, rich(bob))
    assert sponsor(web, bob, ("month", "5")).is_success
    chat = shared_chat(rich(alice), agents=("paid",))
    assert choose(web, alice, chat, "sponsor").is_success
    assert ask(dial, alice, chat) == "response.done"
    path = "/api/payments/sponsorships/paid"
    assert web.delete(path, headers=alice.headers).status_code == httpx.codes.NOT_FOUND
    assert web.delete(path, headers=bob.headers).is_success
    assert ask(dial, alice, chat) == "payment.required"
    assert sponsor(web, bob, ("month", "5")).is_success
    owned(paid, rich(mallory))
    assert ask(dial, alice, chat) == "payment.required"
    # It does not come back with the agent.
    owned(paid, bob)
    assert sponsorships.sponsors_of([paid.pk]) == {}
    assert str(wallet(mallory).available) == "10"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "budgets",
    [
        [],
        [("day", "0")],
        [("day", "-1")],
        [("year", "1")],
        [("day", "1"), ("day", "2")],
        [("day", "1e3")],
        [("total", "1" * 30)],
    ],
)
def test_a_bad_budget_is_refused(
    web: httpx.Client, bob: Person, paid: Agent, budgets: list[Any]
) -> None:
    owned(paid, bob)
    assert sponsor(web, bob, *budgets).status_code == httpx.codes.BAD_REQUEST
    assert sponsorships.budgets_of(paid.pk) == {}


def test_askers_at_once_do_not_spend_more_than_the_budget(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, paid: Agent
) -> None:
    owned(paid, rich(bob))
    assert sponsor(web, bob, ("total", "3")).is_success
    account = ledger.account_of_user(bob.user.pk).id
    outcomes: list[str] = []

    def reserve(number: int) -> None:
        authorization = ledger.Authorization(
            key=f"race:{number}",
            account_id=account,
            amount=usd("1"),
            purpose="sponsor",
            response_id=f"resp_{number}",
            agent_id=paid.pk,
        )
        try:
            ledger.authorize(authorization)
        except ledger.LimitReached as error:
            outcomes.append(error.period)
        else:
            outcomes.append("held")
        finally:
            ledger_connection_close()

    racers = [threading.Thread(target=reserve, args=(number,)) for number in range(8)]
    for racer in racers:
        racer.start()
    join_threads(racers)
    assert sorted(outcomes) == ["held"] * 3 + ["total"] * 5
    assert Hold.objects.filter(purpose="sponsor").count() == 3


def ledger_connection_close() -> None:
    """Let go of the connection of a thread."""
    from django.db import connection  # noqa: PLC0415 the thread's own

    connection.close()

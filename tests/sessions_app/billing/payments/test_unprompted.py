"""Approvals given in advance pay only for answers that the person asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chat_app.members.agents.agent_settings import AgentSettings, set_agent
from chat_app.members.participants import add_participant
from chat_app.models import Chat, Participant
from payments_app.models import Hold, Transfer
from payments_app.spending import approvals
from payments_app.tokens import issuance
from sessions_app.models import PaymentRequest, Response
from tests.client import TERMINAL, wait_until
from tests.live_server import quick_agent, shared_chat
from tests.sessions_app.billing.paid_agents import (
    clean,
    pay,
    priced,
    rich,
    token_of,
    usd,
    wallet,
)
from tests.sessions_app.turn.delegation import doer, task_for
from tests.sessions_app.turn.team_tools import order

if TYPE_CHECKING:
    from agents_app.models import Agent
    from tests.live_server import Dial, Person

ANSWERS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "a mention": ("@paid Hello", {}, True),
    "picked": ("Hello", {"agents": ["paid"]}, True),
    "by its trigger": ("Hello", {}, False),
    "in a quoted address": ("Ask me at me@paid.example", {}, False),
}
PASSED_ON: dict[str, tuple[str, bool]] = {
    "asked for": ("mention", True),
    "by its trigger": ("always", False),
}


@pytest.fixture
def paid(demo: object, alice: Person) -> Agent:
    """Give an agent that costs a dollar, which alice lets it take without asking."""
    agent = priced("paid", per_answer="1")
    approvals.approve(rich(alice).user.pk, agent.pk, usd("2"))
    return agent


def ends(dial: Dial, alice: Person, chat: Chat, text: str, **create: Any) -> str:
    """Have alice write to a chat; return whether the answer ended or asked for its payment."""
    client = dial(alice)
    client.create_session(chat=chat.pk)
    client.send("input.text", text=text)
    client.send("response.create", **create)
    end = client.until("payment.required", *TERMINAL)[-1]
    if end["type"] == "payment.required":
        assert str(wallet(alice).held) == "0"
        pay(client, end)
        assert client.until(*TERMINAL)[-1]["type"] == "response.done"
    assert clean()
    return str(end["type"])


@pytest.mark.parametrize("case", list(ANSWERS))
def test_an_approval_pays_for_what_the_person_asks_for(
    dial: Dial, alice: Person, bob: Person, paid: Agent, case: str
) -> None:
    text, create, is_asked = ANSWERS[case]
    chat = shared_chat(bob, alice, agents=("paid",), trigger="always")
    expected = "response.done" if is_asked else "payment.required"
    assert ends(dial, alice, chat, text, **create) == expected
    (row,) = Response.objects.all()
    assert row.request.get("unprompted", False) is not is_asked


@pytest.mark.parametrize("trigger", ["always", "keyword"])
@pytest.mark.parametrize("by", ["alice", "bob", "alice, then bob", "bob, then alice"])
def test_an_approval_pays_where_the_person_chose_the_trigger(
    dial: Dial, alice: Person, bob: Person, paid: Agent, by: str, trigger: str
) -> None:
    chat = shared_chat(bob, alice, agents=("paid",))
    Participant.objects.filter(chat=chat, user__isnull=False).update(role="owner")
    member = Participant.objects.get(chat=chat, agent=paid)
    for index, name in enumerate(by.split(", then ")):
        set_agent(
            chat_id=chat.pk,
            changed_by={"alice": alice, "bob": bob}[name].user,
            participant_id=member.pk,
            change=AgentSettings(trigger=trigger, keywords=("hello", str(index))),
        )
    # With `always`, the words are what has changed.
    expected = "response.done" if by.endswith("alice") else "payment.required"
    assert ends(dial, alice, chat, "Hello") == expected


def test_a_person_who_changes_no_trigger_chose_none(
    dial: Dial, alice: Person, bob: Person, paid: Agent
) -> None:
    chat = shared_chat(bob, alice, agents=("paid",), trigger="always")
    Participant.objects.filter(chat=chat, user=alice.user).update(role="owner")
    member = Participant.objects.get(chat=chat, agent=paid)
    for change in (AgentSettings(context="last"), AgentSettings(trigger="always")):
        set_agent(chat_id=chat.pk, changed_by=alice.user, participant_id=member.pk, change=change)
    assert ends(dial, alice, chat, "Hello") == "payment.required"


@pytest.mark.parametrize("opens", ["alice", "bob"])
def test_an_approval_pays_in_a_private_chat_only_for_the_person_who_opened_it(
    dial: Dial, alice: Person, bob: Person, paid: Agent, opens: str
) -> None:
    owner, other = (alice, bob) if opens == "alice" else (bob, alice)
    created = dial(owner).create_session(agent="paid")
    chat = Chat.objects.get(pk=created["chat"])
    assert chat.kind == "session"
    add_participant(chat_id=chat.pk, added_by=owner.user, user=other.user)
    expected = "response.done" if opens == "alice" else "payment.required"
    assert ends(dial, alice, chat, "Hello") == expected
    assert ends(dial, alice, chat, "@paid Hello") == "response.done"


@pytest.mark.parametrize("case", list(PASSED_ON))
def test_an_approval_pays_for_work_that_an_answer_asked_for_passes_on(
    dial: Dial, alice: Person, bob: Person, paid: Agent, case: str
) -> None:
    trigger, is_asked = PASSED_ON[case]
    paid.options = {"script": "doer"}
    paid.save()
    doer("boss", "paid")
    chat = shared_chat(bob, alice, agents=("boss",), trigger=trigger)
    text = task_for("paid", order(say="done"))
    expected = "response.done" if is_asked else "payment.required"
    names = {"agents": ["boss"]} if is_asked else {}
    assert ends(dial, alice, chat, text, **names) == expected


@pytest.mark.parametrize("case", list(PASSED_ON))
def test_an_approval_pays_for_an_agent_that_an_answer_asked_for_mentions(
    dial: Dial, alice: Person, bob: Person, paid: Agent, case: str
) -> None:
    trigger, is_asked = PASSED_ON[case]
    quick_agent("crier", "asker", asks=["paid"], says="Yours.")
    chat = shared_chat(bob, alice, agents=("crier", "paid"))
    Participant.objects.filter(chat=chat, agent__name="crier").update(trigger=trigger)
    client = dial(alice)
    client.create_session(chat=chat.pk)
    client.ask("@crier Hello" if is_asked else "Hello")
    client.until("response.done")
    end = client.until("payment.required", *TERMINAL)[-1]
    assert end["type"] == ("response.done" if is_asked else "payment.required")


@pytest.mark.parametrize("text", ["@paid Hello", "Hello"])
def test_the_token_of_a_session_pays_for_what_is_asked_for(
    dial: Dial, alice: Person, bob: Person, paid: Agent, text: str
) -> None:
    approvals.withdraw(alice.user.pk, paid.pk)
    chat = shared_chat(bob, alice, agents=("paid",), trigger="always")
    client = dial(alice)
    client.create_session(chat=chat.pk, payment_token=token_of(alice))
    client.ask(text)
    end = client.until("payment.required", *TERMINAL)[-1]
    assert (end["type"] == "response.done") is ("@" in text)


@pytest.mark.parametrize("case", ["asked for", "by its trigger", "asked for by another"])
def test_a_new_token_of_the_session_pays_only_for_what_its_person_asked_for(
    dial: Dial, alice: Person, bob: Person, paid: Agent, case: str
) -> None:
    approvals.withdraw(alice.user.pk, paid.pk)
    people = (alice, bob) if case == "asked for by another" else (bob, alice)
    chat = shared_chat(*people, agents=("paid",), trigger="always")
    client = payer = dial(alice)
    if case == "asked for by another":
        chat.payer, chat.payer_user, chat.agreed_prices = "owner", alice.user, {}
        chat.save()
        client = dial(bob)
        client.create_session(chat=chat.pk)
    payer.create_session(chat=chat.pk)
    client.ask("Hello" if case == "by its trigger" else "@paid Hello")
    demand = payer.until("payment.required")[-1]
    token = token_of(alice)
    payer.send("session.update", payment_token=token)
    if case != "asked for":
        payer.until("session.updated")
        payer.send("ping")
        payer.until("pong")
        assert PaymentRequest.objects.get().status == "waiting"
        assert not Hold.objects.exists()
        pay(payer, demand, scheme="token", token=token)
    assert payer.until(*TERMINAL)[-1]["type"] == "response.done"
    assert Transfer.objects.filter(kind="answer").count() == 1
    assert clean()


def test_an_owner_who_did_not_agree_to_the_prices_is_asked_when_others_ask(
    dial: Dial, alice: Person, bob: Person, paid: Agent
) -> None:
    chat = shared_chat(alice, bob, agents=("paid",))
    chat.payer, chat.payer_user, chat.agreed_prices = "owner", alice.user, {}
    chat.save()
    payer, asker = dial(alice), dial(bob)
    for client in (payer, asker):
        client.create_session(chat=chat.pk)
    asker.ask("@paid Hello")
    payer.until("payment.required")
    payer.ask("@paid Hello")
    assert payer.until("response.done")[-1]["type"] == "response.done"


def test_a_new_token_of_a_visitor_pays_only_for_what_its_connection_asked_for(
    dial: Dial, alice: Person, paid: Agent
) -> None:
    """Anyone who knows the id of a visitor's session may ask in it."""
    client, other = dial(), dial()
    created = client.create_session(agent="paid")
    place = {"session_id": created["session_id"], "epoch": created["epoch"], "after": 0}
    other.create_session(resume=place)
    other.ask("Hello")
    demand = other.until("payment.required")[-1]
    token = token_of(alice)
    client.send("session.update", payment_token=token)
    client.until("session.updated")
    client.ask("Good day")
    ended = client.until("response.done")[-1]
    assert ended["response_id"] != demand["response_id"]
    assert PaymentRequest.objects.get().status == "waiting"
    assert Transfer.objects.filter(kind="answer").count() == 1
    # An explicit payment names the answer that it is for.
    more = issuance.issue(key="more", user_id=alice.user.pk, amount=usd("1"), expires_in=600)
    pay(client, demand, scheme="token", token=more.token)
    wait_until(lambda: Transfer.objects.filter(kind="answer").count() == 2)
    assert clean()


def test_a_visitors_payment_without_an_answer_is_for_what_its_connection_asked_for(
    dial: Dial, alice: Person, paid: Agent
) -> None:
    client, other = dial(), dial()
    created = client.create_session(agent="paid")
    place = {"session_id": created["session_id"], "epoch": created["epoch"], "after": 0}
    other.create_session(resume=place)
    other.ask("Hello")
    foreign = other.until("payment.required")[-1]
    payment = {"scheme": "token", "token": token_of(alice)}
    client.send("payment.submit", payment=payment)
    assert client.until("session.error")[-1]["error"]["code"] == "payment_not_due"
    assert not Hold.objects.exists()
    client.ask("Good day")
    while (own := client.until("payment.required")[-1])["response_id"] == foreign["response_id"]:
        pass
    client.send("payment.submit", payment=payment)
    ended = client.until("response.done")[-1]
    assert ended["response_id"] == own["response_id"]
    assert PaymentRequest.objects.get(response_id=foreign["response_id"]).status == "waiting"
    assert clean()

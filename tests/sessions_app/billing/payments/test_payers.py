"""Possible payers: members, owners of chats, owners of agents."""

from __future__ import annotations

from agents_app import sponsorships
from chat_app.members.agreed_prices import prices_in
from chat_app.members.chats import ChatChange, update_chat
from tests.client import TERMINAL, text_of, wait_until
from tests.live_server import Dial, Person, shared_chat
from tests.sessions_app.billing.paid_agents import earned, priced, rich, wallet


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


def test_nothing_runs_with_an_empty_pool_before_the_asker_pays(dial: Dial, alice: Person) -> None:
    priced("paid", per_answer="1")
    chat = shared_chat(rich(alice), agents=("paid",))
    chat.payer, chat.agreed_prices = "pool", prices_in(chat.pk)
    chat.save()
    client = dial(alice)
    client.create_session(chat=chat.pk)
    client.ask("@paid Hello")
    received = client.until("payment.required", *TERMINAL)
    assert received[-1]["type"] == "payment.required"
    assert not [frame for frame in received if frame["type"] == "response.delta"]
    assert str(wallet(alice).available) == "10"

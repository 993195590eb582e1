"""Budgets of agents in a chat, and of the chat: judged where money is reserved."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from django.db import connection, transaction

from chat_app.members.chats import ChatChange, update_chat
from chat_app.models import ChatEvent, Participant
from payments_app.models import Hold
from sessions_app.billing import chat_budgets
from sessions_app.billing.payers import Purchase
from sessions_app.billing.reservations import Reservation, reserve_all
from sessions_app.models import Response
from tests.client import TERMINAL, text_of, wait_until
from tests.live_server import Dial, Person, shared_chat
from tests.sessions_app.billing.paid_agents import clean, earned, priced, rich, usd, wallet
from tests.threads import join_threads, waits_for_a_lock

if TYPE_CHECKING:
    import httpx

    from chat_app.models import Chat


def owned_chat(alice: Person, **budget: str) -> Chat:
    """Return a chat whose owner pays for its agent, which has a budget."""
    chat = shared_chat(rich(alice), agents=("paid",))
    update_chat(chat_id=chat.pk, changed_by=alice.user, change=ChatChange(payer="owner"))
    Participant.objects.filter(chat=chat, agent__isnull=False).update(**budget)
    return chat


def test_an_agent_stops_when_its_budget_in_the_chat_is_used(
    dial: Dial, web: httpx.Client, alice: Person
) -> None:
    agent = priced("paid", per_answer="1")
    chat = owned_chat(alice, budget="2.5", budget_period="day")
    client = dial(alice)
    client.create_session(chat=chat.pk)
    for word in ("one", "two"):
        client.ask(f"@paid {word}")
        assert text_of(client.until("response.done")) == word
    wait_until(lambda: earned(agent) == "2")
    client.ask("@paid three")
    stopped = client.until("agent.stopped")[-1]
    assert (stopped["agent"], stopped["reason"]) == ("paid", "budget")
    assert "$0.50 of $2.50" in stopped["message"]
    assert Response.objects.filter(chat=chat).count() == 2
    budget_rows = web.get(f"/api/v1/chats/{chat.pk}/budgets", headers=alice.headers).json()["data"]
    assert [(row["agent"], row["spent"], row["held"], row["left"]) for row in budget_rows] == [
        ("paid", "2", "0", "0.5")
    ]
    # An owner raises it, and the agent answers again; the budget of the chat stops it next.
    place = Participant.objects.get(chat=chat, agent=agent).pk
    client.send("participant.update", participant_id=place, budget="9")
    client.until("participant.updated")
    client.send("chat.update", budget="3", budget_period="total")
    client.until("chat.updated")
    client.ask("@paid three")
    assert text_of(client.until("response.done")) == "three"
    wait_until(lambda: earned(agent) == "3")
    client.ask("@paid four")
    assert client.until("agent.stopped")[-1]["reason"] == "chat_budget"
    assert ChatEvent.objects.filter(chat=chat, type="agent.stopped").count() == 2
    assert str(wallet(alice).available) == "7"
    assert clean()


def test_an_answer_that_reaches_the_budget_ends_with_what_it_wrote(
    dial: Dial, alice: Person
) -> None:
    priced("paid", output_per_1k="10")
    chat = owned_chat(alice, budget="4", budget_period="total")
    client = dial(alice)
    client.create_session(chat=chat.pk)
    client.send("input.text", text="@paid " + "word " * 1200)
    client.send("response.create", response={"max_tokens": 300})
    ended = client.until(*TERMINAL)[-1]
    assert ended["type"] == "response.error"
    assert ended["error"]["code"] == "payment_required"
    assert "budget of paid" in ended["error"]["message"]
    wait_until(lambda: not Hold.objects.filter(state="active").exists())
    assert wallet(alice).available >= usd("6")
    assert clean()


@pytest.mark.postgres
@pytest.mark.usefixtures("demo")
def test_two_answers_that_begin_at_once_do_not_both_take_the_last_of_a_budget(
    alice: Person,
) -> None:
    """The budget is that of the chat of the question; delegated work has locked its own alone."""
    agent = priced("paid", per_answer="1")
    chat = owned_chat(alice, budget="1.5", budget_period="day")
    purchase = Purchase(
        chat_id=chat.pk, agent_id=agent.pk, agent="paid", asset="USD", asker_id=alice.user.pk
    )
    is_reserved: dict[str, bool] = {}

    def begin(name: str) -> None:
        reservation = Reservation(response_id=name, purchase=purchase, amount=usd("1"))
        is_reserved[name] = reserve_all([reservation])[name].first is not None

    def begin_later() -> None:
        try:
            with transaction.atomic():
                begin("resp_b")
        finally:
            connection.close()

    second = threading.Thread(target=begin_later)
    with transaction.atomic():
        begin("resp_a")
        second.start()
        wait_until(lambda: not second.is_alive() or waits_for_a_lock())
    join_threads([second])
    assert is_reserved == {"resp_a": True, "resp_b": False}
    with pytest.raises(chat_budgets.BudgetReached):
        chat_budgets.check(chat.pk, agent.pk, usd("1"))

"""Usage by the person who asked: for those who pay, and for owners of a pool."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from payments_app.models import Hold
from payments_app.spending.approvals import approve
from tests.live_server import shared_chat
from tests.sessions_app.billing.paid_agents import priced, rich, usd

if TYPE_CHECKING:
    import httpx

    from agents_app.models import Agent
    from chat_app.models import Chat
    from tests.live_server import Person


@pytest.fixture
def paid(demo: object) -> Agent:
    """Give an agent that costs a dollar."""
    return priced("paid", per_answer="1")


def get(web: httpx.Client, who: Person, path: str) -> Any:
    """Return the reply to a GET."""
    answer = web.get(f"/api/v1/{path}", headers=who.headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def ask(web: httpx.Client, who: Person, chat: Chat) -> None:
    """Ask the agent in a chat, and wait for its answer."""
    body = {"content": "@paid hello", "wait": 60}
    path = f"/api/v1/chats/{chat.pk}/messages"
    result = web.post(path, json=body, headers=who.headers, timeout=90).json()
    assert [response["status"] for response in result["responses"]] == ["completed"], result


def choose(web: httpx.Client, who: Person, chat: Chat, payer: str) -> None:
    """Set the payer of a chat."""
    path = f"/api/v1/chats/{chat.pk}"
    assert web.patch(path, headers=who.headers, json={"payer": payer}).is_success


def rows(usage: Any) -> list[tuple[str, str, str, int]]:
    """Return (id, name, amount, charges) of each row."""
    return [(row["id"], row["name"], row["amount"], row["charges"]) for row in usage["data"]]


def test_an_owner_who_pays_sees_who_asked_and_an_asker_who_does_not_pay_sees_nothing(
    web: httpx.Client, alice: Person, bob: Person, paid: Agent
) -> None:
    chat = shared_chat(rich(alice), bob, agents=("paid",))
    choose(web, alice, chat, "owner")
    for who in (bob, alice, bob):
        ask(web, who, chat)
    ada, bo = str(alice.user.pk), str(bob.user.pk)
    usage = get(web, alice, "usage?by=person")
    assert rows(usage) == [
        (bo, bob.user.username, "2", 2),
        (ada, alice.user.username, "1", 1),
    ]
    assert rows(get(web, bob, "usage?by=person")) == []
    detailed_usage = get(web, alice, "usage?by=day,agent,protocol,person")
    assert (detailed_usage["by"], detailed_usage["has_more"]) == (
        "day,agent,protocol,person",
        False,
    )
    today = datetime.now(UTC).date().isoformat()
    assert [(row["keys"], row["names"], row["amount"]) for row in detailed_usage["data"]] == [
        (
            {"day": today, "agent": paid.pk, "protocol": "rest", "person": pk},
            {"agent": "paid", "person": name},
            amount,
        )
        for pk, name, amount in (
            (bo, bob.user.username, "2"),
            (ada, alice.user.username, "1"),
        )
    ]
    for wrong in ("by=weekday", "by=person,", "by=user", "people=1"):
        refused = web.get(f"/api/v1/usage?{wrong}", headers=alice.headers)
        assert refused.status_code == 400, wrong


def test_owners_see_who_asked_at_the_expense_of_the_pool(
    web: httpx.Client, alice: Person, bob: Person, mallory: Person, paid: Agent
) -> None:
    chat = shared_chat(rich(alice), bob, agents=("paid",))
    path = f"chats/{chat.pk}/pool"
    key = {"Idempotency-Key": "fill"}
    filled = web.post(f"/api/v1/{path}", json={"amount": "5"}, headers={**alice.headers, **key})
    assert filled.is_success
    choose(web, alice, chat, "pool")
    ask(web, bob, chat)
    expected = [(str(bob.user.pk), bob.user.username, "1", 1)]
    assert rows(get(web, alice, f"{path}/usage?by=person")) == expected
    assert rows(get(web, alice, "usage?by=person")) == []
    for who, status in ((bob, 403), (mallory, 404)):
        refused = web.get(f"/api/v1/{path}/usage?by=person", headers=who.headers)
        assert refused.status_code == status
        assert bob.user.username not in refused.text


def test_a_sponsor_does_not_see_which_strangers_asked(
    web: httpx.Client, alice: Person, bob: Person, paid: Agent
) -> None:
    paid.owner = rich(bob).user
    paid.save()
    budget = {"budgets": [{"period": "day", "amount": "5"}]}
    path = "/api/payments/sponsorships/paid"
    assert web.put(path, headers=bob.headers, json=budget).is_success
    chats = [shared_chat(rich(alice), agents=("paid",)), shared_chat(bob, agents=("paid",))]
    for who, chat in zip((alice, bob), chats, strict=True):
        choose(web, who, chat, "sponsor")
        ask(web, who, chat)
    usage = get(web, bob, "usage?by=person")
    expected = {("", "", "1", 1), (str(bob.user.pk), bob.user.username, "1", 1)}
    assert set(rows(usage)) == expected
    assert set(Hold.objects.values_list("asker_id", flat=True)) == {alice.user.pk, bob.user.pk}


def test_what_a_person_pays_after_being_asked_counts_as_theirs(
    web: httpx.Client, alice: Person, paid: Agent
) -> None:
    chat = shared_chat(rich(alice), agents=("paid",))
    approve(alice.user.pk, paid.pk, usd("5"))
    ask(web, alice, chat)
    assert rows(get(web, alice, "usage?by=person")) == [
        (str(alice.user.pk), alice.user.username, "1", 1)
    ]

"""A key that may not pay, or has a budget, does not commit its person's money through a chat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chat_app.models import Chat, Participant, PayerRule
from payments_app.money import Money
from sessions_app.access import keys
from tests.live_server import Person, shared_chat
from tests.sessions_app.access.scoped_keys import FORBIDDEN, key_of, refusal
from tests.sessions_app.billing.paid_agents import priced

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from tests.live_server import Dial


def budgeted(person: Person) -> Person:
    """Return a person with a key of all scopes and a budget."""
    return key_of(person, budget=keys.KeyBudget(amount=Money.parse("1"), period="day"))


def writing(person: Person) -> Person:
    """Return a person with a key that changes chats and asks, and does not pay."""
    return key_of(person, "chats:read", "chats:write", "messages:write")


def paying(person: Person) -> Person:
    """Return a person with a key that changes chats and pays."""
    return key_of(person, "chats:read", "chats:write", "payments:write")


# The payer before, the event, and its fields, which REST has too.
COMMITS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "the owner pays": ("asker", "chat.update", {"payer": "owner"}),
    "the pool pays": ("asker", "chat.update", {"payer": "pool"}),
    "the asker pays": ("owner", "chat.update", {"payer": "asker"}),
    "a budget": ("owner", "chat.update", {"budget": "100"}),
    "no budget": ("owner", "chat.update", {"budget": ""}),
    "the period": ("owner", "chat.update", {"budget_period": "total"}),
    "a title and a payer": ("asker", "chat.update", {"title": "x", "payer": "owner"}),
    "an agent the owner pays": ("owner", "participant.add", {"agent": "dear"}),
    "an agent the pool pays": ("pool", "participant.add", {"agent": "dear"}),
    "the budget of an agent": ("asker", "participant.update", {"budget": "5"}),
    "when an agent answers": ("owner", "participant.update", {"trigger": "always"}),
    "what an agent reads": ("pool", "participant.update", {"context": "addressed"}),
}


def state(chat: Chat) -> list[Any]:
    """Return everything about a chat that decides who pays what."""
    members = Participant.objects.filter(chat=chat).order_by("pk")
    rows = members.values_list("agent", "trigger", "context", "budget", "budget_period", "left_at")
    chats = Chat.objects.filter(pk=chat.pk)
    return [*chats.values_list("payer", "payer_user", "budget", "budget_period", "title"), *rows]


@pytest.mark.sampled
@pytest.mark.parametrize("key", [budgeted, writing])
@pytest.mark.parametrize("commit", list(COMMITS))
def test_a_key_that_may_not_commit_money_does_not_change_who_pays_what(
    dial: Dial, web: httpx.Client, alice: Person, commit: str, key: Callable[[Person], Person]
) -> None:
    before, event, fields = COMMITS[commit]
    priced("dear", per_answer="1")
    chat = shared_chat(alice, agents=("echo",))
    chat.payer, chat.budget, chat.budget_period = PayerRule(before), "1", "day"
    chat.payer_user = alice.user if before == "owner" else None
    chat.save()
    member = Participant.objects.get(chat=chat, agent__name="echo")
    stored, narrow = state(chat), key(alice)
    path = f"/api/v1/chats/{chat.pk}"
    method, where = {
        "chat.update": ("PATCH", path),
        "participant.add": ("POST", f"{path}/participants"),
        "participant.update": ("PATCH", f"{path}/participants/{member.pk}"),
    }[event]
    refused = web.request(method, where, json=fields, headers=narrow.headers)
    assert refused.status_code == FORBIDDEN, refused.text
    assert refused.json()["code"] == "forbidden"
    if key is writing:
        assert refused.json()["scope"] == "payments:write"
    else:
        assert "budget" in refused.json()["detail"]
    client = dial(narrow)
    client.create_session(chat=chat.pk)
    more = {"participant_id": member.pk} if event == "participant.update" else {}
    client.send(event, **fields, **more)
    assert refusal(client)["code"] == "forbidden"
    assert state(chat) == stored
    # A key that may pay does it.
    done = web.request(method, where, json=fields, headers=paying(alice).headers)
    assert done.is_success, done.text
    assert state(chat) != stored


def test_a_key_that_may_not_pay_adds_agents_where_each_asker_pays(
    web: httpx.Client, alice: Person
) -> None:
    priced("dear", per_answer="1")
    chat = shared_chat(alice)
    path = f"/api/v1/chats/{chat.pk}/participants"
    assert web.post(path, json={"agent": "dear"}, headers=writing(alice).headers).is_success

"""An owner who pays for a chat pays the prices that they agreed to, and is asked for others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest

from agents_app.models import Agent
from agents_app.pricing import Pricing
from chat_app.models import Chat, Participant
from tests.client import TERMINAL
from tests.live_server import shared_chat
from tests.sessions_app.billing.paid_agents import clean, pay, priced, rich, wallet
from tests.sessions_app.turn.delegation import doer

if TYPE_CHECKING:
    from tests.live_server import Dial, Person

DEARER: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "the same": ({"per_answer": "1"}, {"per_answer": "1.0"}, True),
    "cheaper": ({"per_answer": "1"}, {"per_answer": "0.5"}, True),
    "an answer": ({"per_answer": "1"}, {"per_answer": "1.000000001"}, False),
    "input": ({"per_answer": "1"}, {"per_answer": "1", "input_per_1k": "0.1"}, False),
    "output": ({"output_per_1k": "1"}, {"output_per_1k": "2"}, False),
    "a cache that costs more": (
        {"input_per_1k": "1"}, {"input_per_1k": "1", "cache_read_per_1k": "2"}, False,
    ),
    "no cheap cache": (
        {"input_per_1k": "1", "cache_read_per_1k": "0"}, {"input_per_1k": "1"}, False,
    ),
    "sound": ({"output_per_1k": "1"}, {"output_per_1k": "1", "audio_output_per_1k": "2"}, False),
    "a new tool": ({"per_answer": "1"}, {"per_answer": "1", "tools": {"t": "1"}}, False),
    "a dearer tool": ({"tools": {"t": "1"}}, {"tools": {"t": "2"}}, False),
    "a tool less": ({"tools": {"t": "1", "u": "1"}}, {"tools": {"t": "1"}}, True),
    "no share": ({"unfinished": "share", "expected_tokens": 9}, {}, False),
    "fewer tokens": (
        {"unfinished": "share", "expected_tokens": 9},
        {"unfinished": "share", "expected_tokens": 8},
        False,
    ),
    "a share": ({}, {"unfinished": "share", "expected_tokens": 8}, True),
}  # fmt: skip


@pytest.mark.parametrize("case", list(DEARER))
def test_prices_are_within_the_agreed_ones_if_none_is_higher(case: str) -> None:
    agreed, now, is_within = DEARER[case]
    assert Pricing(**now).is_within(Pricing(**agreed)) is is_within


def choose(web: httpx.Client, who: Person, chat: Chat, **change: str) -> int:
    """Change the chat, and return the status."""
    return web.patch(f"/api/v1/chats/{chat.pk}", headers=who.headers, json=change).status_code


@pytest.fixture
def paid(demo: object) -> Agent:
    """Give an agent that costs a dollar."""
    return priced("paid", per_answer="1")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "how", ["dearer", "cheaper", "added by another owner", "added by the payer"]
)
def test_the_owner_who_pays_is_asked_for_prices_they_did_not_agree_to(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, paid: Agent, how: str
) -> None:
    is_added = how.startswith("added")
    chat = shared_chat(rich(alice), rich(bob), agents=() if is_added else ("paid",))
    Participant.objects.filter(chat=chat, user=bob.user).update(role="owner")
    assert choose(web, alice, chat, payer="owner") == httpx.codes.OK
    if is_added:
        adder = alice if how.endswith("payer") else bob
        body = {"agent": "paid", "trigger": "mention"}
        path = f"/api/v1/chats/{chat.pk}/participants"
        assert web.post(path, json=body, headers=adder.headers).is_success
    else:
        paid.pricing = {"per_answer": "2" if how == "dearer" else "0.5"}
        paid.save()
    payer, asker = dial(alice), dial(bob)
    for client in (payer, asker):
        client.create_session(chat=chat.pk)
    asker.ask("@paid Hello")
    if how in {"cheaper", "added by the payer"}:
        assert asker.until(*TERMINAL)[-1]["type"] == "response.done"
        assert wallet(alice).posted != wallet(bob).posted
        return
    demand = payer.until("payment.required")[-1]
    assert (str(wallet(alice).posted), str(wallet(alice).held)) == ("10", "0")
    # Who asked learns that the payer is asked, and cannot be made to pay.
    waiting = asker.until("progress")[-1]
    assert (waiting["stage"], waiting["message"]) == (
        "waiting_for_payment",
        "Waiting for alice's payment",
    )
    pay(payer, demand)
    assert asker.until(*TERMINAL)[-1]["type"] == "response.done"
    # Choosing again agrees to the prices of now.
    assert choose(web, alice, chat, payer="owner") == httpx.codes.OK
    asker.ask("@paid Hello")
    assert asker.until("payment.required", *TERMINAL)[-1]["type"] == "response.done"
    assert str(wallet(bob).posted) == "10"
    assert clean()


@pytest.mark.parametrize("how", ["the same", "dearer", "added by an owner"])
def test_the_pool_pays_no_prices_that_no_owner_agreed_to(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, paid: Agent, how: str
) -> None:
    is_added = how.startswith("added")
    chat = shared_chat(rich(alice), rich(bob), agents=() if is_added else ("paid",))
    assert choose(web, alice, chat, payer="pool") == httpx.codes.OK
    headers = {**alice.headers, "Idempotency-Key": "fill"}
    path = f"/api/v1/chats/{chat.pk}"
    assert web.post(f"{path}/pool", json={"amount": "9"}, headers=headers).is_success
    if is_added:
        body = {"agent": "paid", "trigger": "mention"}
        assert web.post(f"{path}/participants", json=body, headers=alice.headers).is_success
    elif how == "dearer":
        # Bob owns the agent, and takes what is left in the pool.
        paid.owner, paid.pricing = bob.user, {"per_answer": "9"}
        paid.save()
    client = dial(bob)
    client.create_session(chat=chat.pk)
    client.ask("@paid Hello")
    frame = client.until("payment.required", *TERMINAL)[-1]
    if how != "dearer":
        assert frame["type"] == "response.done"
        assert web.get(f"{path}/pool", headers=alice.headers).json()["available"] == "8"
        return
    # The asker may pay the new price.
    assert frame["type"] == "payment.required"
    pay(client, frame)
    assert client.until(*TERMINAL)[-1]["type"] == "response.done"
    assert web.get(f"{path}/pool", headers=alice.headers).json()["available"] == "9"
    assert str(wallet(bob).posted) == "1"
    assert clean()


@pytest.mark.parametrize(
    "change", [{"payer": "asker"}, {"payer": "owner"}, {"budget": "100"}, {"budget": ""}]
)
def test_the_owner_who_pays_alone_changes_the_payer_and_the_budgets(
    web: httpx.Client, alice: Person, bob: Person, paid: Agent, change: dict[str, str]
) -> None:
    chat = shared_chat(alice, bob, agents=("paid",))
    Participant.objects.filter(chat=chat, user=bob.user).update(role="owner")
    assert choose(web, alice, chat, payer="owner", budget="1") == httpx.codes.OK
    before = Chat.objects.values("payer", "payer_user", "budget").get(pk=chat.pk)
    assert choose(web, bob, chat, **change) == httpx.codes.FORBIDDEN
    member = Participant.objects.get(chat=chat, agent=paid).pk
    path = f"/api/v1/chats/{chat.pk}/participants/{member}"
    assert web.patch(path, json={"budget": "9"}, headers=bob.headers).status_code == 403
    assert Chat.objects.values("payer", "payer_user", "budget").get(pk=chat.pk) == before
    assert choose(web, alice, chat, **change) == httpx.codes.OK


@pytest.mark.parametrize("rule", ["owner", "asker"])
def test_an_agent_that_is_removed_and_added_again_keeps_its_budget(
    web: httpx.Client, alice: Person, bob: Person, paid: Agent, rule: str
) -> None:
    chat = shared_chat(alice, bob, agents=("paid",))
    role = "owner" if rule == "owner" else "admin"
    Participant.objects.filter(chat=chat, user=bob.user).update(role=role)
    assert choose(web, alice, chat, payer=rule) == httpx.codes.OK
    member = Participant.objects.get(chat=chat, agent=paid).pk
    path = f"/api/v1/chats/{chat.pk}/participants"
    budget = {"budget": "1", "budget_period": "total"}
    assert web.patch(f"{path}/{member}", json=budget, headers=alice.headers).is_success
    assert web.patch(f"{path}/{member}", json={"budget": ""}, headers=bob.headers).is_error
    assert web.delete(f"{path}/{member}", headers=bob.headers).is_success
    body = {"agent": "paid", "trigger": "mention"}
    added = web.post(path, json=body, headers=bob.headers)
    assert (added.status_code, added.json()["budget"]) == (httpx.codes.CREATED, "1")
    budgets = web.get(f"/api/v1/chats/{chat.pk}/budgets", headers=alice.headers).json()["data"]
    assert [(row["agent"], row["left"]) for row in budgets] == [("paid", "1")]


def test_an_agent_that_the_payer_removed_is_not_paid_again_without_asking(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, paid: Agent
) -> None:
    chat = shared_chat(rich(alice), rich(bob), agents=("paid",))
    Participant.objects.filter(chat=chat, user=bob.user).update(role="owner")
    assert choose(web, alice, chat, payer="owner") == httpx.codes.OK
    member = Participant.objects.get(chat=chat, agent=paid).pk
    path = f"/api/v1/chats/{chat.pk}/participants"
    assert web.delete(f"{path}/{member}", headers=alice.headers).is_success
    body = {"agent": "paid", "trigger": "mention"}
    assert web.post(path, json=body, headers=bob.headers).is_success
    payer, asker = dial(alice), dial(bob)
    for client in (payer, asker):
        client.create_session(chat=chat.pk)
    asker.ask("@paid Hello")
    demand = payer.until("payment.required", *TERMINAL)[-1]
    assert demand["type"] == "payment.required"
    assert (str(wallet(alice).posted), str(wallet(alice).held)) == ("10", "0")
    payer.send("response.cancel", response_id=demand["response_id"])
    asker.until(*TERMINAL)
    assert clean()


def test_an_agent_that_leaves_takes_the_prices_that_only_it_led_to(
    web: httpx.Client, alice: Person, paid: Agent
) -> None:
    doer("boss", "paid", "other")
    doer("chief", "other")
    priced("other", per_answer="1")
    chat = shared_chat(alice, agents=("boss", "chief"))
    assert choose(web, alice, chat, payer="owner") == httpx.codes.OK

    def agreed() -> set[str]:
        prices = Chat.objects.get(pk=chat.pk).agreed_prices or {}
        return set(Agent.objects.filter(pk__in=prices).values_list("name", flat=True))

    assert agreed() == {"boss", "chief", "paid", "other"}
    member = Participant.objects.get(chat=chat, agent__name="boss").pk
    path = f"/api/v1/chats/{chat.pk}/participants/{member}"
    assert web.delete(path, headers=alice.headers).is_success
    assert agreed() == {"chief", "other"}

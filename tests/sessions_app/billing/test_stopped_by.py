"""The right to stop a paid answer, and its cost then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chat_app.models import Participant, ParticipantRole
from payments_app.spending import approvals
from sessions_app.access import keys
from sessions_app.models import Response
from tests.client import TERMINAL, wait_until
from tests.live_server import Person, shared_chat
from tests.sessions_app.billing.paid_agents import clean, priced, rich, usd, wallet
from tests.sessions_app.turn.delegation import doer, task_for

if TYPE_CHECKING:
    import httpx

    from agents_app.models import Agent
    from chat_app.models import Chat
    from payments_app.money import Money
    from tests.client import UampClient
    from tests.live_server import Dial

ASKER, OWNER, OTHER_OWNER, ADMIN, MEMBER = "bob", "alice", "mallory", "admin", "member"
WHOLE, PART, REFUSED = "whole", "part", "refused"
FORBIDDEN = 403

# The rule of the chat, who stops the answer, and what it then costs.
STOPS: dict[tuple[str, str], str] = {
    ("asker", ASKER): WHOLE,
    ("asker", OWNER): PART,
    ("asker", ADMIN): REFUSED,
    ("asker", MEMBER): REFUSED,
    ("owner", ASKER): WHOLE,
    ("owner", OWNER): WHOLE,
    ("owner", OTHER_OWNER): PART,
    ("owner", ADMIN): REFUSED,
    ("owner", MEMBER): REFUSED,
}


@pytest.fixture
def slow(mallory: Person) -> Agent:
    """Give an agent of two dollars that answers slowly; mallory owns it."""
    agent = priced("dear", "slow", per_answer="2")
    agent.owner = mallory.user
    agent.save()
    return agent


def chat_of(rule: str, stopper: str, people: list[Person]) -> Chat:
    """Make a chat of alice's with bob and mallory, whose role is that of who stops."""
    chat = shared_chat(*people, agents=("dear",), trigger="always")
    role = {OTHER_OWNER: ParticipantRole.OWNER, ADMIN: ParticipantRole.ADMIN}.get(stopper)
    Participant.objects.filter(chat=chat, user__username="mallory").update(
        role=role or ParticipantRole.MEMBER
    )
    return chat


def ask(dial: Dial, who: Person, chat: Chat) -> tuple[UampClient, str]:
    """Ask, and return what answers, once its first word is there."""
    client = dial(who)
    client.create_session(chat=chat.pk)
    client.ask("@dear Count")
    response_id: str = client.until("response.delta")[-1]["response_id"]
    return client, response_id


def paid(*people: Person) -> Money:
    """Return the payments of these people, who had ten dollars each."""
    total = usd("0")
    for person in people:
        total += usd("10") - wallet(person).posted
    return total


@pytest.mark.sampled
@pytest.mark.parametrize("transport", ["uamp", "rest"])
@pytest.mark.parametrize(("rule", "stopper"), list(STOPS))
def test_neither_a_member_nor_a_payee_makes_others_pay_for_what_they_stopped(
    dial: Dial, web: httpx.Client, slow: Agent, alice: Person, bob: Person, mallory: Person,
    rule: str, stopper: str, transport: str,
) -> None:  # fmt: skip
    chat = chat_of(rule, stopper, [rich(alice), rich(bob), mallory])
    approvals.approve(bob.user.pk, slow.pk, usd("2"))
    path = f"/api/v1/chats/{chat.pk}"
    assert web.patch(path, json={"payer": rule}, headers=alice.headers).is_success
    client, response_id = ask(dial, bob, chat)
    who = {ASKER: bob, OWNER: alice}.get(stopper, mallory)
    if transport == "rest":
        cancel = web.post(f"/api/v1/responses/{response_id}/cancel", headers=who.headers)
        code = cancel.json().get("code")
    else:
        other = dial(who)
        other.create_session(chat=chat.pk)
        other.send("response.cancel", response_id=response_id)
        code = None
        if STOPS[rule, stopper] == REFUSED:
            code = other.until("session.error")[-1]["error"]["code"]
    if STOPS[rule, stopper] == REFUSED:
        assert code == "forbidden"
        assert Response.objects.get().cancel_requested_at is None
        client.send("response.cancel", response_id=response_id)
        client.until(*TERMINAL)
        return
    assert client.until(*TERMINAL)[-1]["type"] == "response.cancelled"
    wait_until(clean)
    cost = paid(alice, bob)
    assert paid(alice if rule == "asker" else bob) == usd("0")
    if STOPS[rule, stopper] == WHOLE:
        assert cost == usd("2")
    else:
        assert usd("0") < cost < usd("1")
        (receipt,) = web.get(f"{path}/payments", headers=bob.headers).json()["data"]
        assert receipt["unfinished"] == "share"


@pytest.mark.parametrize("how", ["switches the agent off", "removes the asker", "removes it"])
def test_an_answer_ended_by_another_person_costs_its_asker_no_more_than_a_share(
    dial: Dial, web: httpx.Client, slow: Agent, bob: Person, mallory: Person, how: str
) -> None:
    chat = shared_chat(mallory, rich(bob), agents=("dear",), trigger="always")
    approvals.approve(bob.user.pk, slow.pk, usd("2"))
    ask(dial, bob, chat)
    path = f"/api/v1/chats/{chat.pk}/participants"
    members = Participant.objects.filter(chat=chat)
    if how == "switches the agent off":
        slow.is_enabled = False
        slow.save()
    elif how == "removes the asker":
        place = members.get(user=bob.user).pk
        assert web.delete(f"{path}/{place}", headers=mallory.headers).is_success
    else:
        place = members.get(agent=slow).pk
        assert web.delete(f"{path}/{place}", headers=mallory.headers).is_success
    wait_until(lambda: Response.objects.get().finished_at is not None)
    wait_until(clean)
    assert usd("0") < paid(bob) < usd("1")


def test_a_member_stops_an_answer_without_a_price(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person
) -> None:
    priced("dear", "slow")
    chat = shared_chat(alice, bob, agents=("dear",), trigger="always")
    client, response_id = ask(dial, alice, chat)
    cancel = web.post(f"/api/v1/responses/{response_id}/cancel", headers=bob.headers)
    assert cancel.is_success
    assert client.until(*TERMINAL)[-1]["type"] == "response.cancelled"


@pytest.mark.parametrize("how", ["leaves", "deletes the chat", "the payer removes the asker"])
def test_an_asker_or_payer_who_takes_the_right_to_an_answer_pays_its_whole_price(
    dial: Dial, web: httpx.Client, slow: Agent, alice: Person, bob: Person, how: str
) -> None:
    by_payer = how == "the payer removes the asker"
    people = [rich(alice), bob] if by_payer else [rich(bob), alice]
    chat = shared_chat(*people, agents=("dear",), trigger="always")
    path = f"/api/v1/chats/{chat.pk}"
    if by_payer:
        assert web.patch(path, json={"payer": "owner"}, headers=alice.headers).is_success
    else:
        approvals.approve(bob.user.pk, slow.pk, usd("2"))
    ask(dial, bob, chat)
    place = Participant.objects.get(chat=chat, user=bob.user).pk
    what = path if how == "deletes the chat" else f"{path}/participants/{place}"
    by = alice if by_payer else bob
    assert web.delete(what, headers=by.headers).is_success
    wait_until(lambda: Response.objects.get().finished_at is not None)
    wait_until(clean)
    assert paid(people[0]) == usd("2")


def test_a_payee_who_switches_off_the_agent_that_passed_work_on_is_paid_a_share_of_it(
    dial: Dial, slow: Agent, bob: Person, mallory: Person
) -> None:
    boss = doer("boss", "dear", owner=mallory.user)
    chat = shared_chat(rich(bob), agents=("boss",), trigger="always")
    approvals.approve(bob.user.pk, slow.pk, usd("2"))
    client = dial(bob)
    client.create_session(chat=chat.pk)
    client.ask(task_for("dear", "Count"))
    while client.until("response.delta")[-1]["delta"]["type"] != "tool_progress":
        pass
    boss.is_enabled = False
    boss.save()
    wait_until(lambda: not Response.objects.filter(finished_at__isnull=True).exists())
    wait_until(clean)
    assert usd("0") < paid(bob) < usd("1")


EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS = "urn:ietf:params:oauth:token-type:access_token"


@pytest.mark.parametrize("whose", ["the asker's", "another's"])
def test_an_asker_who_revokes_the_key_that_passed_their_token_on_pays_the_whole_price(
    dial: Dial, web: httpx.Client, slow: Agent, bob: Person, mallory: Person, whose: str
) -> None:
    chat = shared_chat(rich(bob), agents=("dear",), trigger="always")
    approvals.approve(bob.user.pk, slow.pk, usd("2"))
    owner = bob if whose == "the asker's" else mallory
    passing = keys.make_key(owner.user.pk, keys.KeyRequest(name="passes on"))
    person_key = keys.make_key(bob.user.pk, keys.KeyRequest(name="own"))
    client = {"client_id": person_key.key.prefix, "client_secret": person_key.secret}
    form = {"grant_type": "client_credentials", **client}
    token = web.post("/auth/token", data=form).json()["access_token"]
    form = {
        "grant_type": EXCHANGE,
        "subject_token": token,
        "subject_token_type": ACCESS,
        "client_id": passing.key.prefix,
        "client_secret": passing.secret,
    }
    token = web.post("/auth/token", data=form).json()["access_token"]
    ask(dial, Person(bob.user, token), chat)
    keys.revoke_key(passing.key, by=owner.user)
    wait_until(lambda: Response.objects.get().finished_at is not None)
    wait_until(clean)
    if whose == "the asker's":
        assert paid(bob) == usd("2")
    else:
        assert usd("0") < paid(bob) < usd("1")


def test_an_asker_does_not_choose_the_share_that_others_leave_to_pay(
    dial: Dial, web: httpx.Client, slow: Agent, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice, rich(bob), agents=("dear",), trigger="always")
    approvals.approve(bob.user.pk, slow.pk, usd("2"))
    client = dial(bob)
    client.create_session(chat=chat.pk)
    client.ask("@dear Count", response={"max_tokens": 1_000_000})
    response_id = client.until("response.delta")[-1]["response_id"]
    cancel = web.post(f"/api/v1/responses/{response_id}/cancel", headers=alice.headers)
    assert cancel.is_success
    client.until(*TERMINAL)
    wait_until(clean)
    # At least one token of 512, which are reserved without a limit.
    assert usd("0.0039") <= paid(bob) < usd("1")

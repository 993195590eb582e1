"""REST: an answer says what it waits for, and its payer pays it without a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from payments_app.models import Hold
from sessions_app.models import Response
from tests.client import wait_until
from tests.live_server import shared_chat
from tests.sessions_app.billing.paid_agents import clean, earned, priced, rich, token_of, wallet

if TYPE_CHECKING:
    import httpx

    from agents_app.models import Agent
    from tests.live_server import Person


@pytest.fixture
def paid(demo: object) -> Agent:
    """Give an agent that costs half a dollar."""
    return priced("paid", per_answer="0.5")


def waiting(web: httpx.Client, who: Person, *others: Person) -> Any:
    """Ask the agent in a chat, and return its answer, which waits for a payment."""
    chat = shared_chat(who, *others, agents=("paid",))
    body = {"agent": "paid", "content": "hello", "chat": chat.pk, "wait": 60}
    response = web.post("/api/v1/responses", json=body, headers=who.headers, timeout=90)
    (answer,) = response.json()["responses"]
    return answer


def pay(web: httpx.Client, who: Person, answer: Any, **body: str) -> httpx.Response:
    """Pay for an answer over REST."""
    path = f"/api/v1/responses/{answer['id']}/payment"
    return web.post(path, json=body, headers=who.headers)


def test_an_answer_that_waits_for_a_payment_is_paid_over_rest(
    web: httpx.Client, alice: Person, bob: Person, paid: Agent
) -> None:
    answer = waiting(web, rich(alice, "1"), rich(bob))
    (due,) = answer["waiting_for"]
    assert answer["status"] == "waiting"
    assert (due["kind"], due["amount"], due["currency"]) == ("payment", "0.5", "USD")
    # Another member is not asked, and a stranger finds nothing.
    refused = pay(web, bob, answer)
    assert (refused.status_code, refused.json()["code"]) == (400, "payment_not_due")
    assert not Hold.objects.exists()
    done = pay(web, alice, answer)
    assert done.status_code == 200, done.text
    assert done.json() == {"response_id": answer["id"], "amount": "0.5", "currency": "USD"}
    path = f"/api/v1/responses/{answer['id']}"
    wait_until(lambda: web.get(path, headers=alice.headers).json()["status"] == "completed")
    ended = web.get(path, headers=alice.headers).json()
    assert (ended["text"], ended["waiting_for"]) == ("hello", [])
    again = pay(web, alice, answer)
    assert (again.status_code, again.json()["code"]) == (400, "payment_not_due")
    assert (str(wallet(alice).available), earned(paid)) == ("0.5", "0.5")
    assert Hold.objects.get().asker_id == alice.user.pk
    assert clean()


def test_a_token_pays_and_a_refused_payment_leaves_the_answer_waiting(
    web: httpx.Client, alice: Person, bob: Person, mallory: Person, paid: Agent
) -> None:
    answer = waiting(web, alice)
    poor = pay(web, alice, answer)
    assert (poor.status_code, poor.json()["code"]) == (402, "insufficient_balance")
    bad = pay(web, alice, answer, token="x")
    assert (bad.status_code, bad.json()["code"]) == (402, "payment_token_invalid")
    assert pay(web, mallory, answer).status_code == 404
    assert pay(web, alice, answer, tokens="x").status_code == 400
    assert Response.objects.get().status == "waiting"
    done = pay(web, alice, answer, token=token_of(bob))
    assert done.status_code == 200, done.text
    wait_until(lambda: Response.objects.get().status == "completed")
    assert earned(paid) == "0.5"
    assert clean()

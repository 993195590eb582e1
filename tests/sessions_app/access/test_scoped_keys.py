"""A key may do what its scopes, chats, agents, protocols and budget allow, on every transport."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from agents_app.models import Agent
from payments_app import services as ledger
from payments_app.money import Money
from payments_app.spending import approvals
from sessions_app.access import keys
from sessions_app.models import ApiKey, PaymentRequest
from tests.client import output_text, wait_until
from tests.live_server import Person, quick_agent, shared_chat
from tests.sessions_app.access.scoped_keys import FORBIDDEN, NOT_FOUND, key_of, refusal
from tests.sessions_app.billing.paid_agents import priced

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Dial


def test_a_key_does_what_its_scopes_allow_on_every_transport(
    dial: Dial, web: httpx.Client, alice: Person
) -> None:
    chat = shared_chat(alice)
    reader = key_of(alice, "chats:read")
    # REST
    path = f"/api/v1/chats/{chat.pk}"
    assert web.get(path, headers=reader.headers).status_code == 200
    refused = web.patch(path, json={"title": "x"}, headers=reader.headers)
    assert refused.status_code == FORBIDDEN
    assert refused.json()["code"] == "forbidden"
    assert refused.json()["scope"] == "chats:write"
    assert "chats:write" in refused.json()["detail"]
    assert web.get("/api/payments/balance", headers=reader.headers).json()["scope"] == (
        "payments:read"
    )
    assert web.get("/agents/echo/info", headers=reader.headers).status_code == FORBIDDEN
    # A socket: it opens and reads, and does not write.
    client = dial(reader)
    client.create_session(chat=chat.pk)
    client.send("input.text", text="@echo Hello")
    error = refusal(client)
    assert (error["code"], error["details"]["scope"]) == ("forbidden", "messages:write")
    # The dialects of others
    completion_request = {"model": "echo", "messages": [{"role": "user", "content": "Hello"}]}
    refused = web.post("/v1/chat/completions", json=completion_request, headers=reader.headers)
    assert refused.status_code == FORBIDDEN
    assert "messages:write" in refused.json()["error"]["message"]
    batch = [
        {"type": "session.create", "event_id": "e1", "session": {}, "uamp_version": "1.0"},
    ]
    writer = key_of(alice, "messages:write")
    (event,) = web.post("/uamp", json=batch, headers=writer.headers).json()
    assert event["error"]["details"]["scope"] == "chats:read"
    both = key_of(alice, "chats:read", "messages:*")
    answer = web.post("/v1/chat/completions", json=completion_request, headers=both.headers)
    assert answer.json()["choices"][0]["message"]["content"] == "Hello"


def test_the_token_of_a_session_has_its_own_rights(dial: Dial, alice: Person) -> None:
    client = dial(alice)
    reader = key_of(alice, "chats:read")
    client.create_session(agent="echo", token=reader.key)
    client.send("input.text", text="Hello")
    assert refusal(client)["code"] == "forbidden"
    client.send("session.update", token=key_of(alice, "chats:read", "messages:write").key)
    client.expect("session.updated")
    assert output_text(client.answer("Hello")[-1]) == "Hello"
    client.send("session.create", session={}, token=key_of(alice, "messages:write").key)
    assert refusal(client)["details"]["scope"] == "chats:read"


def test_a_key_of_one_chat_finds_no_other(dial: Dial, web: httpx.Client, alice: Person) -> None:
    mine, other = shared_chat(alice), shared_chat(alice)
    narrow = key_of(alice, chats=[mine.pk])
    absent = web.get("/api/v1/chats/chat_none", headers=narrow.headers)
    foreign = web.get(f"/api/v1/chats/{other.pk}", headers=narrow.headers)
    assert foreign.status_code == absent.status_code == NOT_FOUND
    assert foreign.json()["detail"] == absent.json()["detail"]
    assert web.get(f"/api/v1/chats/{mine.pk}", headers=narrow.headers).status_code == 200
    listed = web.get("/api/v1/chats", headers=narrow.headers).json()["data"]
    assert [chat["id"] for chat in listed] == [mine.pk]
    for method, path in (("GET", "/api/v1/search?q=x"), ("POST", "/api/v1/chats")):
        assert web.request(method, path, headers=narrow.headers).status_code == FORBIDDEN
    owner = dial(alice)
    session_id = owner.create_session(chat=other.pk)["session_id"]
    owner.answer("@echo There")
    message = web.get(f"/api/v1/chats/{other.pk}/messages", headers=alice.headers).json()["data"][0]
    assert web.get(f"/api/v1/messages/{message['id']}", headers=narrow.headers).status_code == (
        NOT_FOUND
    )
    client = dial(narrow)
    client.send("session.create", session={}, chat=other.pk)
    assert refusal(client)["code"] == "chat_not_found"
    client.send("session.create", session={}, agent="echo")
    assert refusal(client)["code"] == "forbidden"
    client.send("session.create", session={}, resume={"session_id": session_id})
    assert refusal(client)["code"] == "unknown_session"
    client.send("chats.watch")
    assert refusal(client)["code"] == "forbidden"
    client.create_session(chat=mine.pk)
    assert output_text(client.answer("@echo Here")[-1])
    # A session cannot be given the token of another chat.
    owner.send("session.update", token=narrow.key)
    assert refusal(owner)["code"] == "unauthorized"


def test_a_key_of_one_agent_asks_no_other(dial: Dial, web: httpx.Client, alice: Person) -> None:
    echo = Agent.objects.get(name="echo")
    quick_agent("second", "echo")
    narrow = key_of(alice, agents=[echo.pk])
    listed = web.get("/api/v1/agents", headers=narrow.headers).json()["data"]
    assert [agent["name"] for agent in listed] == ["echo"]
    assert web.get("/v1/models", headers=narrow.headers).json()["data"][0]["id"] == "echo"
    assert web.get("/agents/second/info", headers=narrow.headers).status_code == NOT_FOUND
    client = dial(narrow)
    client.send("session.create", session={}, agent="second")
    assert refusal(client)["code"] == "agent_not_found"
    chat = shared_chat(alice, agents=("echo", "second"))
    client.create_session(chat=chat.pk)
    client.ask("@second Hello")
    assert refusal(client)["code"] == "forbidden"
    client.ask("@echo Hello")
    client.until("response.done")


def test_a_key_is_for_its_protocols_alone(dial: Dial, web: httpx.Client, alice: Person) -> None:
    rest = key_of(alice, protocols=["rest"])
    assert web.get("/api/v1/chats", headers=rest.headers).status_code == 200
    completion_request = {"model": "echo", "messages": [{"role": "user", "content": "Hello"}]}
    refused = web.post("/v1/chat/completions", json=completion_request, headers=rest.headers)
    assert refused.status_code == FORBIDDEN
    assert "OpenAI Chat Completions" in refused.json()["error"]["message"]
    with pytest.raises(Exception, match="403"):
        dial(rest)
    socket = dial(alice)
    socket.send("session.create", session={}, token=rest.key)
    assert refusal(socket)["code"] == "forbidden"
    # Its ticket is no way around.
    ticket = web.post("/api/v1/tickets", headers=rest.headers).json()["ticket"]
    assert web.post(f"/uamp?ticket={ticket}", json=[]).status_code == FORBIDDEN
    other = key_of(alice, protocols=["completions"])
    assert web.get("/api/v1/chats", headers=other.headers).status_code == FORBIDDEN
    assert (
        web.post("/v1/chat/completions", json=completion_request, headers=other.headers).status_code
        == 200
    )


def test_a_key_pays_no_more_than_its_budget(dial: Dial, web: httpx.Client, alice: Person) -> None:
    account = ledger.account_of_user(alice.user.pk)
    ledger.top_up(
        key="a", account=account.id, amount=Money.parse("5"), provider="test", external_id="a"
    )
    agent = priced("dear", per_answer="1")
    approvals.approve(alice.user.pk, agent.pk, Money.parse("1"))
    budget = keys.KeyBudget(amount=Money.parse("2"), period="day")
    narrow = key_of(alice, budget=budget)
    client = dial(narrow)
    client.create_session(agent="dear")
    for _ in range(2):
        assert output_text(client.answer("Hello")[-1]) == "Hello"
    client.ask("Hello")
    needed = client.until("payment.required")[-1]
    # Nor by hand, from the person's own balance.
    client.send("payment.submit", response_id=needed["response_id"], payment={"scheme": "balance"})
    assert client.until("payment.error")[-1]["code"] == "rate_limited"
    (key_row,) = [
        key
        for key in web.get("/api/v1/keys", headers=alice.headers).json()["data"]
        if key["budget"]
    ]
    assert key_row["budget"]["spent"] == "2"
    assert key_row["budget"]["amount"] == "2"
    # What would take money out of the account, make a second key, or raise limits, is refused.
    for method, path in (
        ("POST", "/api/payments/tokens"),
        ("POST", "/api/payments/lock"),
        ("PUT", "/api/payments/limits"),
        ("POST", "/api/v1/keys"),
        ("PUT", "/api/payments/approvals/dear"),
    ):
        body: dict[str, Any] = {"name": "more", "scopes": ["*"]} if "keys" in path else {}
        refused = web.request(method, path, json=body, headers=narrow.headers)
        assert refused.status_code == FORBIDDEN, path
        assert "budget" in refused.json()["detail"], path
    # The person's own money is not bounded by the key's budget.
    owner = dial(alice)
    owner.create_session(agent="dear")
    assert output_text(owner.answer("Hello")[-1]) == "Hello"
    assert web.put("/api/payments/limits", json={"limits": []}, headers=alice.headers).is_success
    assert keys.budgets_of(list(ApiKey.objects.all()))


def test_a_key_reads_what_it_may_do(web: httpx.Client, alice: Person) -> None:
    chat = shared_chat(alice)
    narrow = key_of(alice, "messages:write", chats={chat.pk})

    description = web.get("/api/v1/keys/self", headers=narrow.headers)

    assert (description.json()["scopes"], description.json()["chats"]) == (
        ["messages:write"],
        [chat.pk],
    )
    assert description.json()["user_id"] == str(alice.user.pk)
    assert (
        web.get(f"/api/v1/keys/{description.json()['id']}", headers=narrow.headers).status_code
        == 403
    )
    # A person's cookie is no key.
    browser = Client()
    browser.force_login(alice.user)
    assert browser.get("/api/v1/keys/self").status_code == 404


def test_members_of_nested_objects_are_checked_too(web: httpx.Client, alice: Person) -> None:
    budget = {"amount": "1", "period": "day", "curency": "USD"}
    body = {"name": "bot", "scopes": ["chats:read"], "budget": budget}

    refused = web.post("/api/v1/keys", json=body, headers=alice.headers)

    assert refused.status_code == 400
    assert refused.json()["errors"] == [{"pointer": "/budget/curency", "detail": "Unknown member."}]


def test_a_key_with_a_budget_pays_for_answers_over_rest(web: httpx.Client, alice: Person) -> None:
    account = ledger.account_of_user(alice.user.pk)
    ledger.top_up(
        key="a", account=account.id, amount=Money.parse("5"), provider="test", external_id="a"
    )
    priced("dear", per_answer="1")
    chat = shared_chat(alice, agents=("dear",), trigger="always")
    narrow = key_of(alice, budget=keys.KeyBudget(amount=Money.parse("1.5"), period="day"))

    def pay() -> httpx.Response:
        """Ask, and pay for the answer once it waits for that."""
        answer = web.post(
            f"/api/v1/chats/{chat.pk}/messages", json={"content": "Hello"}, headers=narrow.headers
        )
        (response,) = answer.json()["responses"]
        wait_until(lambda: PaymentRequest.objects.filter(response_id=response["id"]).exists())
        path = f"/api/v1/responses/{response['id']}/payment"
        return web.post(path, json={}, headers=narrow.headers)

    paid, refused = pay(), pay()

    assert (paid.status_code, paid.json()["amount"]) == (200, "1")
    assert (refused.status_code, refused.json()["payment"]["code"]) == (402, "rate_limited")
    assert "limit" in refused.json()["detail"]

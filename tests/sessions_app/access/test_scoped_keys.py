"""A key may do what its scopes, chats, agents, protocols and budget allow, on every transport."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client
from django.utils import timezone

from agents_app.models import Agent
from agents_app.rest.rights import ALL, Rights
from audit_app.models import AuditRecord
from payments_app import services as ledger
from payments_app.money import Money
from payments_app.spending import approvals
from sessions_app.access import connect_tokens, keys
from sessions_app.models import ApiKey, PaymentRequest
from tests import factories
from tests.client import output_text, wait_until
from tests.live_server import Person, quick_agent, shared_chat
from tests.sessions_app.billing.paid_agents import priced

if TYPE_CHECKING:
    import httpx

    from tests.client import UampClient
    from tests.live_server import Dial

FORBIDDEN, NOT_FOUND, UNAUTHORIZED = 403, 404, 401


def key_of(person: Person, *scopes: str, **more: Any) -> Person:
    """Return a person with a key of these scopes instead of the one of all rights."""
    narrowed: dict[str, Any] = {
        name: frozenset(more.pop(name)) for name in ("chats", "agents", "protocols") if name in more
    }
    rights = Rights(scopes=frozenset(scopes or {"*"}), **narrowed)
    wanted = keys.KeyRequest(name="narrow", rights=rights, **more)
    return Person(person.user, keys.make_key(person.user.pk, wanted).secret)


def refusal(client: UampClient) -> dict[str, Any]:
    """Return the next error of a socket."""
    error: dict[str, Any] = client.until("session.error")[-1]["error"]
    return error


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
    asked = {"model": "echo", "messages": [{"role": "user", "content": "Hello"}]}
    refused = web.post("/v1/chat/completions", json=asked, headers=reader.headers)
    assert refused.status_code == FORBIDDEN
    assert "messages:write" in refused.json()["error"]["message"]
    batch = [
        {"type": "session.create", "event_id": "e1", "session": {}, "uamp_version": "1.0"},
    ]
    writer = key_of(alice, "messages:write")
    (event,) = web.post("/uamp", json=batch, headers=writer.headers).json()
    assert event["error"]["details"]["scope"] == "chats:read"
    both = key_of(alice, "chats:read", "messages:*")
    answer = web.post("/v1/chat/completions", json=asked, headers=both.headers)
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
    whole = dial(alice)
    session_id = whole.create_session(chat=other.pk)["session_id"]
    whole.answer("@echo There")
    sent = web.get(f"/api/v1/chats/{other.pk}/messages", headers=alice.headers).json()["data"][0]
    assert web.get(f"/api/v1/messages/{sent['id']}", headers=narrow.headers).status_code == (
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
    whole.send("session.update", token=narrow.key)
    assert refusal(whole)["code"] == "unauthorized"


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
    asked = {"model": "echo", "messages": [{"role": "user", "content": "Hello"}]}
    refused = web.post("/v1/chat/completions", json=asked, headers=rest.headers)
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
    assert web.post("/v1/chat/completions", json=asked, headers=other.headers).status_code == 200


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
    (shown,) = [
        key
        for key in web.get("/api/v1/keys", headers=alice.headers).json()["data"]
        if key["budget"]
    ]
    assert shown["budget"]["spent"] == "2"
    assert shown["budget"]["amount"] == "2"
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
    own = dial(alice)
    own.create_session(agent="dear")
    assert output_text(own.answer("Hello")[-1]) == "Hello"
    assert web.put("/api/payments/limits", json={"limits": []}, headers=alice.headers).is_success
    assert keys.budgets_of(list(ApiKey.objects.all()))


def test_a_key_reads_what_it_may_do(web: httpx.Client, alice: Person) -> None:
    chat = shared_chat(alice)
    narrow = key_of(alice, "messages:write", chats={chat.pk})

    own = web.get("/api/v1/keys/self", headers=narrow.headers)

    assert (own.json()["scopes"], own.json()["chats"]) == (["messages:write"], [chat.pk])
    assert web.get(f"/api/v1/keys/{own.json()['id']}", headers=narrow.headers).status_code == 403
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
        sent = web.post(
            f"/api/v1/chats/{chat.pk}/messages", json={"content": "Hello"}, headers=narrow.headers
        )
        (asked,) = sent.json()["responses"]
        wait_until(lambda: PaymentRequest.objects.filter(response_id=asked["id"]).exists())
        path = f"/api/v1/responses/{asked['id']}/payment"
        return web.post(path, json={}, headers=narrow.headers)

    paid, refused = pay(), pay()

    assert (paid.status_code, paid.json()["amount"]) == (200, "1")
    assert (refused.status_code, refused.json()["payment"]["code"]) == (402, "rate_limited")
    assert "limit" in refused.json()["detail"]


def test_a_secret_is_replaced_at_once_or_after_a_time(
    dial: Dial, web: httpx.Client, alice: Person
) -> None:
    made = web.post(
        "/api/v1/keys", json={"name": "bot", "scopes": ["chats:*", "messages:write"]},
        headers=alice.headers,
    )  # fmt: skip
    assert made.status_code == 201
    assert made.headers["Cache-Control"].startswith("no-store")
    first = Person(alice.user, made.json()["secret"])
    path = f"/api/v1/keys/{made.json()['id']}"
    socket = dial(first)
    rotated = web.post(f"{path}/rotate", json={"keep_seconds": 60}, headers=alice.headers).json()
    second = Person(alice.user, rotated["secret"])
    assert second.key.startswith(rotated["prefix"])
    assert second.key != first.key
    for person in (first, second):
        assert web.get("/api/v1/chats", headers=person.headers).status_code == 200
    assert socket.during(0.7) == []
    # At once: the two before are not good any more, and their sockets end.
    third = web.post(f"{path}/rotate", headers=alice.headers).json()["secret"]
    for person in (first, second):
        assert web.get("/api/v1/chats", headers=person.headers).status_code == UNAUTHORIZED
    assert socket.close_code() == 4401
    assert web.get("/api/v1/chats", headers={"x-api-key": third}).status_code == 200
    assert web.get(path, headers=alice.headers).json()["used_at"] is not None
    assert web.delete(path, headers=alice.headers).status_code == 204
    assert web.get("/api/v1/chats", headers={"x-api-key": third}).status_code == UNAUTHORIZED
    recorded = AuditRecord.objects.filter(kind="sessions_app.apikey").order_by("id")
    assert [row.action for row in recorded] == [
        "key.made", "key.rotated", "key.rotated", "key.revoked",
    ]  # fmt: skip
    assert {(row.actor_id, row.object_id) for row in recorded} == {
        (alice.user.pk, made.json()["id"])
    }
    assert "chats:* messages:write" in recorded[0].detail
    assert not any(secret.key[13:] in str(vars(row)) for row in recorded for secret in (first,))
    for method in ("GET", "DELETE"):
        assert web.request(method, path, headers=alice.headers).status_code == NOT_FOUND
    assert web.post(f"{path}/rotate", headers=alice.headers).status_code == NOT_FOUND


def test_a_key_revokes_no_key_with_more_rights_but_always_itself(
    web: httpx.Client, alice: Person
) -> None:
    maker = key_of(alice, "keys:*", "chats:read")
    whole = ApiKey.objects.get(user=alice.user, name="tests")
    equal = ApiKey.objects.create(
        user=alice.user, prefix="uak_equal", sha256="1" * 64, scopes=["chats:read"]
    )
    _, token = connect_tokens.issue(alice.user.pk, "helper", by=ALL)
    paths = [f"/api/v1/keys/{whole.pk}", f"/api/v1/connect-tokens/{token.key.pk}"]
    for path in paths:
        refused = web.delete(path, headers=maker.headers)
        assert refused.status_code == FORBIDDEN, path
    assert not ApiKey.objects.filter(revoked_at__isnull=False).exists()
    assert web.delete(f"/api/v1/keys/{equal.pk}", headers=maker.headers).status_code == 204
    # Itself, whatever its scopes and limits are.
    helper = token.key.rights.agents
    for own in (maker, key_of(alice, "chats:read"), key_of(alice, agents=helper)):
        shown = web.get("/api/v1/keys/self", headers=own.headers)
        assert shown.status_code == 200, shown.text
        path = f"/api/v1/keys/{shown.json()['id']}"
        assert web.delete(path, headers=own.headers).status_code == 204
        assert web.get("/api/v1/keys/self", headers=own.headers).status_code == UNAUTHORIZED


def test_a_key_makes_no_key_with_more_rights_and_takes_over_none(
    web: httpx.Client, alice: Person, bob: Person
) -> None:
    maker = key_of(alice, "keys:*", "chats:read")
    asked = {"name": "child", "scopes": ["chats:read"]}
    child = web.post("/api/v1/keys", json=asked, headers=maker.headers)
    assert child.status_code == 201
    for more in ({"scopes": ["*"]}, {"scopes": ["chats:write"]}):
        refused = web.post("/api/v1/keys", json={**asked, **more}, headers=maker.headers)
        assert refused.status_code == FORBIDDEN
    whole = ApiKey.objects.get(user=alice.user, name="tests")
    rotated = web.post(f"/api/v1/keys/{whole.pk}/rotate", headers=maker.headers)
    assert rotated.status_code == FORBIDDEN
    foreign = f"/api/v1/keys/{child.json()['id']}"
    assert web.get(foreign, headers=bob.headers).status_code == NOT_FOUND
    assert web.post(f"{foreign}/rotate", headers=bob.headers).status_code == NOT_FOUND
    assert web.delete(foreign, headers=bob.headers).status_code == NOT_FOUND


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("scopes", ["chats:delete"]),
        ("scopes", []),
        ("chats", ["chat_none"]),
        ("chats", []),
        ("agents", ["agent_none"]),
        ("protocols", ["telnet"]),
        ("budget", {"amount": "-1", "period": "day"}),
        ("budget", {"amount": "1", "period": "year"}),
        ("budget", {"amount": "1", "period": "day", "currency": "USDC"}),
        ("expires_at", "2001-01-01T00:00:00Z"),
        ("owner", "bob"),
    ],
)
def test_a_key_that_cannot_be_is_refused(
    web: httpx.Client, alice: Person, field: str, value: Any
) -> None:
    body = {"name": "odd", "scopes": ["*"], field: value}
    refused = web.post("/api/v1/keys", json=body, headers=alice.headers)
    assert refused.status_code == 400, refused.text
    assert refused.json()["errors"][0]["pointer"].startswith(f"/{field}")


def test_agents_of_a_key_are_given_by_id_or_name(web: httpx.Client, alice: Person) -> None:
    named, by_id = factories.agent("named"), factories.agent("by-id")
    factories.agent("hidden", is_public=False)

    def create(*agents: str) -> httpx.Response:
        body = {"name": "narrow", "scopes": ["chats:read"], "agents": agents}
        return web.post("/api/v1/keys", json=body, headers=alice.headers)

    made = create("named", by_id.pk)

    assert made.status_code == 201
    assert set(made.json()["agents"]) == {named.pk, by_id.pk}
    assert [create(name).status_code for name in ("hidden", "nonexistent")] == [400, 400]


def test_a_secret_that_was_replaced_ends_with_its_key(alice: Person, web: httpx.Client) -> None:
    wanted = keys.KeyRequest(name="short", expires_at=timezone.now() + timedelta(hours=1))
    made = keys.make_key(alice.user.pk, wanted)
    keys.rotate_key(made.key, by=alice.user, keep=timedelta(days=30))
    kept = ApiKey.objects.get(pk=made.key.pk).previous_until
    assert kept is not None
    assert kept <= timezone.now() + keys.KEEPS_SECRET
    ApiKey.objects.filter(pk=made.key.pk).update(expires_at=timezone.now())
    refused = web.get("/api/v1/chats", headers={"x-api-key": made.secret})
    assert (refused.status_code, refused.json()["code"]) == (UNAUTHORIZED, "token_expired")

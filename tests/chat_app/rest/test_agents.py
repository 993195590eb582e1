"""Agents over REST: who may make and change them, and what is refused (docs/rest.md)."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Permission
from django.utils import timezone

from agents_app import selectors
from agents_app.models import Agent
from agents_app.remote import health
from chat_app.rest.members import agents
from payments_app import services as ledger
from tests import factories
from tests.agents_app.remote.pages import pages
from tests.chat_app.rest.rest_caller import bearer, check_problem, post
from tests.http_server import LocalServer, serving
from tests.payments_app.funded_accounts import usd

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.test import Client
    from pytest_django import Settings

pytestmark = pytest.mark.django_db

NEW = {"name": "helper", "options": {"script": "echo"}, "pricing": {"per_answer": "0.01"}}


def allowed(user: User) -> User:
    """Let a person make and change agents."""
    rights = Permission.objects.filter(codename__in=("add_agent", "change_agent"))
    user.user_permissions.set(rights)
    return user


def patch(client: Client, path: str, body: Any) -> Any:
    return client.patch(path, json.dumps(body), content_type="application/json")


def test_people_with_the_right_make_and_change_their_agents() -> None:
    ada, bob = factories.user("ada"), factories.user("bob")
    client, path = bearer(ada), "/api/v1/agents/helper"
    check_problem(post(client, "/api/v1/agents", NEW), 403, "forbidden")
    allowed(ada)
    created = post(client, "/api/v1/agents", {**NEW, "instructions": "the secret prompt"})
    assert (created.status_code, created["Location"]) == (201, path)
    assert created.json()["configuration"]["instructions"] == "the secret prompt"
    agent = Agent.objects.get()
    assert (agent.owner, agent.is_public, agent.pricing) == (ada, False, {"per_answer": "0.01"})
    # It is private, and then others use it and change nothing.
    other = bearer(allowed(bob))
    check_problem(other.get(path), 404, "not_found")
    check_problem(patch(other, path, {"is_public": True}), 404, "not_found")
    assert patch(client, path, {"is_public": True, "is_enabled": True}).status_code == 200
    assert "configuration" not in other.get(path).json()
    check_problem(patch(other, path, {"description": "mine"}), 403, "forbidden")
    # One that is switched off is its owner's to switch on again.
    assert patch(client, path, {"is_enabled": False}).status_code == 200
    check_problem(other.get(path), 404, "not_found")
    assert patch(client, path, {"is_enabled": True}).json()["configuration"]["is_enabled"]


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"name": "a b"}, "/name"),
        ({"options": {"script": "none"}}, "/options"),
        ({"options": {"api_key": "sk-1"}}, "/options"),
        ({"options": {"script": "echo", "nonsense": 1}}, "/options"),
        ({"provider": "anthropic", "options": {}}, "/model"),
        (
            {
                "provider": "openai_compat",
                "model": "m",
                "options": {"base_url": "https://10.0.0.1/v1"},
            },
            "/options",
        ),
        (
            {"provider": "google", "model": "m", "options": {"api_key_env": "OTHER_API_KEY"}},
            "/options",
        ),
        ({"pricing": {"per_answer": "much"}}, "/pricing"),
        ({"tools": ["no_such_tool"]}, "/tools"),
        ({"delegates": ["no-such-agent"]}, "/delegates"),
        ({"max_steps": 33}, "/max_steps"),
        ({"strategy": "guess"}, "/strategy"),
        ({"owner": 1}, "/owner"),
        ({"instructions": "a" * 70_000}, ""),
    ],
)
def test_an_agent_that_could_not_answer_is_refused(change: dict[str, Any], pointer: str) -> None:
    client = bearer(allowed(factories.user("ada")))
    problem = check_problem(post(client, "/api/v1/agents", {**NEW, **change}), 400, "invalid")
    assert pointer in [error["pointer"] for error in problem["errors"]]
    assert not Agent.objects.exists()


def test_an_agent_delegates_to_those_that_its_owner_may_use() -> None:
    ada, bob = allowed(factories.user("ada")), factories.user("bob")
    client, path = bearer(ada), "/api/v1/agents/helper"
    for name, owner, is_public in (("hers", ada, False), ("his", bob, False), ("open", bob, True)):
        Agent.objects.create(name=name, owner=owner, is_public=is_public)
    texts = []
    for name in ("his", "none"):
        problem = check_problem(
            post(client, "/api/v1/agents", {**NEW, "delegates": [name]}), 400, "invalid"
        )
        texts.append(str(problem["errors"]).replace(name, "NAME"))
    assert texts[0] == texts[1]
    assert not Agent.objects.filter(name="helper").exists()
    created = post(client, "/api/v1/agents", {**NEW, "delegates": ["hers", "open"]})
    assert created.status_code == 201
    check_problem(patch(client, path, {"delegates": ["his"]}), 400, "invalid")
    agent = Agent.objects.get(name="helper")
    assert agent.delegates == ["hers", "open"]
    # One that becomes private is not asked, and leaves the agent editable.
    Agent.objects.filter(name="open").update(is_public=False)
    assert patch(client, path, {"description": "mine"}).status_code == 200
    assert selectors.get_spec(agent.pk).delegates == (("hers", ""),)


def test_an_agent_whose_address_became_forbidden_can_be_switched_off(settings: Settings) -> None:
    client, path = bearer(allowed(factories.user("ada"))), "/api/v1/agents/helper"
    settings.UAMP_MODEL_ALLOW_HOSTS = ["10.0.0.1:443"]
    options = {"base_url": "https://10.0.0.1/v1"}
    values = {**NEW, "provider": "openai_compat", "model": "m", "options": options}
    assert post(client, "/api/v1/agents", values).status_code == 201
    settings.UAMP_MODEL_ALLOW_HOSTS = []
    check_problem(patch(client, path, {"description": "mine"}), 400, "invalid")
    assert patch(client, path, {"is_enabled": False}).status_code == 200


def test_a_name_is_used_once() -> None:
    client = bearer(allowed(factories.user("ada")))
    assert post(client, "/api/v1/agents", NEW).status_code == 201
    check_problem(post(client, "/api/v1/agents", {**NEW, "name": "HELPER"}), 400, "invalid")
    assert agents.AgentView.write_scope == "agents:write"


def test_entries_are_the_callers_own_and_their_cursor_too() -> None:
    clients = {}
    for name in ("ada", "bob"):
        user = factories.user(name)
        account = ledger.account_of_user(user.pk)
        for number in range(3):
            key = f"{name}{number}"
            ledger.top_up(
                key=key, account=account.id, amount=usd("1"), provider="t", external_id=key
            )
        clients[name] = bearer(user)
    path = "/api/v1/ledger/entries?limit=2"
    first = clients["ada"].get(path).json()
    assert (len(first["data"]), first["has_more"]) == (2, True)
    rest = clients["ada"].get(f"{path}&cursor={first['next_cursor']}").json()
    assert (len(rest["data"]), rest["next_cursor"]) == (1, None)
    for wrong in (first["next_cursor"] + "x", "x"):
        check_problem(clients["ada"].get(f"{path}&cursor={wrong}"), 400, "invalid_cursor")
    of_another = clients["bob"].get(f"{path}&cursor={first['next_cursor']}")
    check_problem(of_another, 400, "invalid_cursor")
    usage = clients["ada"].get("/api/v1/usage?by=chat&days=2").json()
    assert (usage["by"], usage["data"]) == ("chat", [])
    assert clients["ada"].get("/api/v1/usage?by=day").json()["by"] == "day"


REMOTE = {
    "name": "far",
    "kind": "remote",
    "url": "https://agents.example/v1",
    "protocol": "completions",
    "model": "their-agent",
}


def test_a_remote_agent_is_made_by_the_same_rules_and_its_key_is_never_returned() -> None:
    client, path = bearer(allowed(factories.user("ada"))), "/api/v1/agents/far"
    created = post(client, "/api/v1/agents", {**REMOTE, "key": "sesame-open"})
    assert created.status_code == 201
    assert created.json()["configuration"]["url"] == REMOTE["url"]
    assert "sesame" not in created.content.decode()
    assert "sesame" not in client.get(path).content.decode()
    secret = Agent.objects.get().secret
    assert secret
    assert "sesame" not in secret
    patch(client, path, {"description": "far away"})
    assert Agent.objects.get().secret == secret
    patch(client, path, {"url": "https://elsewhere.example/v1"})
    assert Agent.objects.get().secret == ""
    for change, pointer in (
        ({"url": "http://10.0.0.1/"}, "/url"),
        ({"url": "https://localhost/"}, "/url"),
        ({"protocol": ""}, "/protocol"),
        ({"model": ""}, "/model"),
        ({"key": "a b"}, "/key"),
        ({"kind": "hosted", "options": {"script": "echo"}, "key": "k"}, "/key"),
    ):
        problem = check_problem(patch(client, path, change), 400, "invalid")
        assert pointer in [error["pointer"] for error in problem["errors"]], change


def test_the_key_of_a_model_is_stored_for_its_vendor_and_never_returned() -> None:
    client, path = bearer(allowed(factories.user("ada"))), "/api/v1/agents/own"
    values = {"name": "own", "provider": "anthropic", "model": "m1", "key": "sesame-open"}
    created = post(client, "/api/v1/agents", values)
    assert created.status_code == 201, created.content
    assert "sesame" not in created.content.decode() + client.get(path).content.decode()
    stored = Agent.objects.get().secret
    assert stored
    assert "sesame" not in stored
    patch(client, path, {"model": "m2"})
    assert Agent.objects.get().secret == stored
    patch(client, path, {"key": ""})
    assert Agent.objects.get().secret == ""


@pytest.mark.django_db(transaction=True)
def test_discovery_and_probes_over_rest(settings: Settings) -> None:
    ada = factories.user("ada")
    client, path = bearer(ada), "/api/v1/agents/far"
    look = "/api/v1/agent-discovery"
    check_problem(post(client, look, {"url": "https://agents.example"}), 403, "forbidden")
    allowed(ada)
    card = {"name": "W", "url": "http://127.0.0.1:1/rpc", "description": "A card."}
    with serving(LocalServer(pages({"/.well-known/agent-card.json": card}))) as other:
        discovery = post(client, look, {"url": other.origin}).json()
        way = {"protocol": "a2a_03", "url": card["url"], "model": "", "streams": False}
        assert (discovery["name"], discovery["ways"]) == ("W", [way])
        for body in ({"url": "https://localhost/"}, {"url": other.origin, "key": "a b"}):
            check_problem(post(client, look, body), 400, "invalid")
        new = {"name": "far", "kind": "remote", "protocol": "a2a_03", "url": other.origin}
        agent_health = post(client, "/api/v1/agents", new).json()["health"]
        assert (agent_health["state"], agent_health["failures"], agent_health["found"]["name"]) == (
            "online",
            0,
            "W",
        )
        assert agent_health["probed_at"]

        health.failed(Agent.objects.get().pk, "It was not there.")
        Agent.objects.update(
            failures=health.FAILURES, retry_at=timezone.now() + timedelta(seconds=60)
        )
        paused = client.get(path).json()["health"]
        assert (paused["state"], paused["last_error"]) == ("paused", "It was not there.")
        probed = client.post(f"{path}/probe").json()["health"]
        assert (probed["state"], probed["failures"]) == ("online", 0)
    gone = client.post(f"{path}/probe").json()["health"]
    assert (gone["failures"], gone["found"]["name"]) == (1, "W")
    settings.UAMP_TRIALS_PER_MINUTE = 0
    check_problem(client.post(f"{path}/probe"), 429, "rate_limit_exceeded")
    other_client = bearer(allowed(factories.user("bob")))
    check_problem(other_client.post(f"{path}/probe"), 404, "not_found")

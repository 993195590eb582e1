"""An operator does not make themselves a reader of what a person's agent is sent."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse

from agents_app.models import Agent
from agents_app.outbound.keys import encrypted_key, key_for
from agents_app.providers.clients import model_place
from agents_app.remote.addresses import target_of
from audit_app.authority import SEES_CONTENT
from tests import factories
from tests.agents_app.admin.test_admin import form

pytestmark = pytest.mark.django_db

MODEL: dict[str, Any] = {"provider": "openai_compat", "model": "m", "tools": []}


@pytest.fixture
def developer() -> Client:
    user = factories.user("dora", is_staff=True)
    user.groups.add(Group.objects.get(name="Developer"))
    client = Client()
    client.force_login(user)
    return client


def _saved(client: Client, agent: Agent, **values: Any) -> dict[str, list[str]]:
    """Save the form of an agent; return what was refused."""
    url = reverse("admin:agents_app_agent_change", args=[quote(agent.pk)])
    answer = client.post(url, form(owner=str(agent.owner_id or ""), **values))
    return {} if answer.status_code == 302 else dict(answer.context["adminform"].form.errors)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("owner", {"owner": "own"}),
        ("owner", {"owner": ""}),
        ("name", {"name": "helper-before"}),
        ("is_public", {"is_public": "on"}),
        ("pricing", {"pricing__per_answer": "9"}),
        ("kind", {"kind": "connected", "options": "{}"}),
        ("url", {"kind": "remote", "url": "https://mine.example/v1", "protocol": "completions"}),
        ("delegates", {"delegates": ["mine"]}),
        ("tools", {"tools": ["csv_report", "fetch_page"]}),
        ("provider", {**MODEL, "options": '{"base_url": "https://mine.example/v1"}'}),
    ],
)
def test_only_who_may_act_as_the_owner_changes_who_reads(
    developer: Client, field: str, values: dict[str, Any]
) -> None:
    dora, eve = User.objects.get(username="dora"), factories.user("eve")
    Agent.objects.create(name="mine", owner=dora, is_public=True)
    options, tools = {"script": "echo"}, ["csv_report"]
    agent = Agent.objects.create(name="helper", owner=eve, options=options, tools=tools)
    if values.get("owner") == "own":
        values = {"owner": str(dora.pk)}
    url = reverse("admin:agents_app_agent_change", args=[quote(agent.pk)])
    answer = developer.post(url, {**form(owner=str(eve.pk)), **values})
    assert answer.status_code == 200
    errors = answer.context["adminform"].form.errors
    assert any("Only eve" in words for words in errors[field]), errors
    agent.refresh_from_db()
    assert (agent.owner, agent.kind, agent.url, agent.delegates) == (eve, "hosted", "", [])
    assert agent.tools == ["csv_report"]


def test_the_address_of_a_model_is_not_moved(developer: Client) -> None:
    options = {"base_url": "https://model.example/v1"}
    agent = Agent.objects.create(
        name="helper", owner=factories.user("eve"), options=options, **MODEL
    )
    moved = _saved(developer, agent, **MODEL, options='{"base_url": "https://mine.example/v1"}')
    assert "Only eve" in moved["options"][0]
    same = '{"base_url": "https://model.example/v1", "timeout": 30}'
    assert _saved(developer, agent, **MODEL, options=same) == {}


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("key", {"key": "sk-mine"}),
        ("remove_key", {"remove_key": "on"}),
        ("options", {"options": '{"api_key_env": "MINE_API_KEY"}'}),
    ],
)
def test_the_account_that_a_model_is_called_with_stays(
    developer: Client, field: str, values: dict[str, Any]
) -> None:
    secret = encrypted_key("sk-eves", model_place("openai_compat", None))
    agent = Agent.objects.create(name="helper", owner=factories.user("eve"), secret=secret, **MODEL)
    assert "Only eve" in _saved(developer, agent, **{**MODEL, "options": "{}", **values})[field][0]
    agent.refresh_from_db()
    assert (agent.secret, agent.options) == (secret, {})


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("model", {"model": "mine"}),
        ("key", {"key": "sk-mine"}),
        ("options", {"options": '{"pays_per_answer": "9"}'}),
        ("options", {"options": '{"pays_per_answer": "1", "trusts_cost": true}'}),
    ],
)
def test_a_remote_agent_stays_what_its_owner_chose(
    developer: Client, field: str, values: dict[str, Any]
) -> None:
    remote = {
        "kind": "remote", "url": "https://agents.example/v1", "protocol": "completions",
        "model": "far", "tools": [],
    }  # fmt: skip
    agent = Agent.objects.create(
        name="helper", owner=factories.user("eve"), options={"pays_per_answer": "1"}, **remote
    )
    data = {**remote, "options": '{"pays_per_answer": "1"}', **values}
    assert "Only eve" in _saved(developer, agent, **data)[field][0]
    agent.refresh_from_db()
    assert (agent.model, agent.secret, agent.options) == ("far", "", {"pays_per_answer": "1"})


def test_a_key_is_not_sent_as_a_capability_token(admin_client: Client) -> None:
    """The key of another protocol is dropped when the agent becomes one of a peer."""
    url, name = "https://agents.example/v1", "did:web:agents.example:agents:sage"
    place = target_of(url).place
    remote = {"kind": "remote", "url": url, "model": name, "options": "{}", "tools": []}
    agent = Agent.objects.create(
        name="helper", kind="remote", url=url, protocol="completions", model=name,
        secret=encrypted_key("sesame-open", place),
    )  # fmt: skip
    assert _saved(admin_client, agent, **remote, protocol="completions") == {}
    agent.refresh_from_db()
    assert key_for(agent.secret, place) == "sesame-open"
    assert _saved(admin_client, agent, **remote, protocol="envelope") == {}
    agent.refresh_from_db()
    assert (agent.protocol, agent.secret) == ("envelope", "")
    for key in ({"key": "a.token"}, {"max_steps": "3"}):
        assert _saved(admin_client, agent, **remote, protocol="envelope", **key) == {}
    agent.refresh_from_db()
    assert key_for(agent.secret, place) == "a.token"


def test_reformatted_prices_are_not_a_change(developer: Client) -> None:
    prices = {"per_answer": "0.10", "output_per_1k": "0", "tools": {}, "unfinished": "whole"}
    agent = Agent.objects.create(
        name="helper", owner=factories.user("eve"), options={"script": "echo"}, pricing=prices
    )
    page = {"tools": [], "pricing__per_answer": "0.10"}
    assert _saved(developer, agent, **page, instructions="Be brief.") == {}
    agent.refresh_from_db()
    assert (agent.instructions, agent.pricing) == ("Be brief.", {"per_answer": "0.1"})
    for price in ("0.1000001", "0", "x"):
        assert "pricing" in _saved(developer, agent, **{**page, "pricing__per_answer": price})
    # Prices that an earlier release stored, and that cannot be read.
    Agent.objects.update(pricing={"per_answer": "-1"})
    agent.refresh_from_db()
    assert "Only eve" in _saved(developer, agent, **page)["pricing"][0]


def test_everything_else_is_an_operators_to_change(developer: Client) -> None:
    eve, dora = factories.user("eve"), User.objects.get(username="dora")
    options, tools = {"script": "echo"}, ["csv_report"]
    agent = Agent.objects.create(name="helper", owner=eve, options=options, tools=tools)
    assert _saved(developer, agent, instructions="Be brief.", max_steps="3", tools=[]) == {}
    agent.refresh_from_db()
    assert (agent.instructions, agent.max_steps, agent.tools) == ("Be brief.", 3, [])
    # Agents of the operator, and of the server, are theirs.
    for owner in (dora, None):
        Agent.objects.update(owner=owner)
        agent.refresh_from_db()
        assert _saved(developer, agent, delegates=[]) == {}
    Agent.objects.update(owner=eve)
    agent.refresh_from_db()
    contents = Permission.objects.get(
        codename=SEES_CONTENT.partition(".")[2], content_type__app_label="chat_app"
    )
    dora.user_permissions.add(contents)
    developer.force_login(User.objects.get(pk=dora.pk))
    url = reverse("admin:agents_app_agent_change", args=[quote(agent.pk)])
    assert developer.post(url, form(owner=str(dora.pk))).status_code == 302

"""Connect tokens, over REST and in the shell: whose they are, what they may do, and their end."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import CommandError, call_command

from agents_app.models import Agent
from sessions_app.models import ApiKey
from sessions_app.rest.access.connecting import FIRST_AGENT
from tests.live_server import Dial, Person, person
from tests.sessions_app.connected.daemons import Daemon

if TYPE_CHECKING:
    import httpx
    from pytest_django import Settings

PATH = "/api/v1/connect-tokens"
FORBIDDEN, NOT_FOUND, CONFLICT, INVALID = 403, 404, 409, 400


def test_a_free_name_becomes_a_private_connected_agent_of_the_person(
    web: httpx.Client, alice: Person
) -> None:
    response = web.post(PATH, json={"agent": "helper"}, headers=alice.headers)
    assert response.status_code == 201, response.text
    assert "no-store" in response.headers["cache-control"]
    token = response.json()
    agent = Agent.objects.get(name="helper")
    assert (agent.kind, agent.owner_id, agent.is_public) == ("connected", alice.user.pk, False)
    assert (token["agent"], token["agent_id"], token["online"]) == ("helper", agent.pk, False)
    # The same agent gets a second token; both are listed, without their secrets.
    again = web.post(PATH, json={"agent": "Helper"}, headers=alice.headers).json()
    assert again["agent_id"] == agent.pk
    listed = web.get(PATH, headers=alice.headers).json()["data"]
    assert [row["id"] for row in listed] == [again["id"], token["id"]]
    assert not any("secret" in row for row in listed)


def test_a_connect_token_does_nothing_but_connect(web: httpx.Client, alice: Person) -> None:
    token = web.post(PATH, json={"agent": "helper"}, headers=alice.headers).json()
    headers = {"Authorization": f"Bearer {token['secret']}"}
    for path in ("/api/v1/chats", "/api/v1/me", "/api/v1/keys", PATH):
        assert web.get(path, headers=headers).status_code == FORBIDDEN, path
    refused = web.post(PATH, json={"agent": "other"}, headers=headers)
    assert refused.status_code == FORBIDDEN


def test_a_revoked_token_is_no_longer_listed(web: httpx.Client, alice: Person) -> None:
    token = web.post(PATH, json={"agent": "helper"}, headers=alice.headers).json()
    stranger = person("stranger")
    path = f"{PATH}/{token['id']}"
    assert web.get(path, headers=stranger.headers).status_code == NOT_FOUND
    assert web.delete(path, headers=stranger.headers).status_code == NOT_FOUND
    assert web.delete(path, headers=alice.headers).status_code == 204
    assert web.get(PATH, headers=alice.headers).json()["data"] == []
    # An API key that is no connect token is not shown here.
    key = web.get("/api/v1/keys", headers=alice.headers).json()["data"][0]["id"]
    assert web.get(f"{PATH}/{key}", headers=alice.headers).status_code == NOT_FOUND


@pytest.mark.parametrize("name", ["echo", "of-bob", "Of-Bob"])
def test_the_name_of_another_agent_is_refused(web: httpx.Client, alice: Person, name: str) -> None:
    web.post(PATH, json={"agent": "of-bob"}, headers=person("bob").headers)
    refused = web.post(PATH, json={"agent": name}, headers=alice.headers)
    assert refused.status_code == FORBIDDEN
    assert web.get(PATH, headers=alice.headers).json()["data"] == []


@pytest.mark.parametrize("name", ["", "a b", ".dot", "x" * 65, "nul\x00"])
def test_an_impossible_name_is_refused(web: httpx.Client, alice: Person, name: str) -> None:
    refused = web.post(PATH, json={"agent": name}, headers=alice.headers)
    assert refused.status_code == INVALID, refused.text
    assert not Agent.objects.filter(kind="connected").exists()


def test_a_person_has_so_many_connected_agents(
    web: httpx.Client, alice: Person, settings: Settings
) -> None:
    settings.UAMP_CONNECTED_AGENTS = 1
    assert web.post(PATH, json={"agent": "one"}, headers=alice.headers).status_code == 201
    refused = web.post(PATH, json={"agent": "two"}, headers=alice.headers)
    assert refused.status_code == CONFLICT
    assert refused.json()["code"] == "too_many_agents"
    assert web.post(PATH, json={"agent": "one"}, headers=alice.headers).status_code == 201


def test_the_token_that_the_command_prints_registers_the_agent(dial: Dial, alice: Person) -> None:
    printed = io.StringIO()
    call_command("connect_token", alice.user.username, "helper", "--json", stdout=printed)
    output = json.loads(printed.getvalue())
    daemon = Daemon(dial())
    daemon.register(output["agent"], output["connect_token"])
    agent = Agent.objects.get(name="helper")
    assert (agent.owner, agent.kind, agent.is_public) == (alice.user, "connected", False)


def test_the_command_makes_no_token_for_the_agent_of_another_person(
    alice: Person, bob: Person
) -> None:
    call_command("connect_token", alice.user.username, "helper", stdout=io.StringIO())
    before = ApiKey.objects.count()
    for username, agent in ((bob.user.username, "helper"), ("stranger", "mine"), ("bob", "a b")):
        with pytest.raises(CommandError):
            call_command("connect_token", username, agent)
    assert ApiKey.objects.count() == before


async def test_the_first_agent_that_the_page_shows_answers() -> None:
    module: dict[str, Any] = {}
    exec(FIRST_AGENT, module)  # noqa: S102 what people save as my_agent.py
    turn = await module["agent"].query("hello")
    assert turn.response.text == "You said: hello"

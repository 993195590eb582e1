"""Connect tokens, over REST and in the shell: whose they are, what they may do, and their end."""

from __future__ import annotations

import html
import io
import json
import shlex
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import CommandError, call_command
from packaging.requirements import Requirement

from agents_app.models import Agent
from sessions_app.models import ApiKey
from sessions_app.rest.access.connecting import FIRST_AGENT, INSTALL, INSTALL_WHEELS
from tests.live_server import Dial, Person, person
from tests.sessions_app.connected.daemons import Daemon

if TYPE_CHECKING:
    import httpx
    from django.test import Client
    from pytest_django import Settings

PATH = "/api/v1/connect-tokens"
ROOT = Path(__file__).resolve().parents[3]
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


@pytest.mark.parametrize("command", [INSTALL, INSTALL_WHEELS])
def test_the_page_and_the_guide_print_the_same_install_command(
    client: Client, alice: Person, command: str
) -> None:
    client.force_login(alice.user)
    page = client.post("/account/agents/tokens", {"agent": "helper"}, follow=True)
    assert f"{command}</code>" in html.unescape(page.content.decode())
    assert f"`{command}`" in (ROOT / "docs" / "agents.md").read_text()


def test_the_install_commands_name_every_package_of_this_server_that_they_need() -> None:
    """None of them is on a package index, so pip must be given each."""
    projects = {}
    for argument in shlex.split(INSTALL)[2:]:
        path, _, extra = argument.removesuffix("]").partition("[")
        project = tomllib.loads((ROOT / path / "pyproject.toml").read_text())["project"]
        projects[project["name"]] = project, extra
    for project, extra in projects.values():
        required = [*project["dependencies"]]
        required += project["optional-dependencies"][extra] if extra else []
        names = {Requirement(text).name for text in required}
        assert {name for name in names if name.startswith("uamp-server")} <= projects.keys()
    wheel = Requirement(shlex.split(INSTALL_WHEELS)[-1])
    assert wheel.extras == {projects[wheel.name][1]} == {"serve"}


async def test_the_first_agent_that_the_page_shows_answers() -> None:
    module: dict[str, Any] = {}
    exec(FIRST_AGENT, module)  # noqa: S102 what people save as my_agent.py
    turn = await module["agent"].query("hello")
    assert turn.response.text == "You said: hello"

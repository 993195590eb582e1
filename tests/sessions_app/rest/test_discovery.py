"""Discovery: what any client reads of the server, its agents and its events (UAMP §9.2)."""

from __future__ import annotations

import pytest
from django.test import Client

import uamp
from sessions_app.access.auth import create_api_key
from tests import factories
from uamp.documents.schema import schema_names

pytestmark = pytest.mark.django_db


def test_the_server_says_what_it_can_do() -> None:
    body = Client().get("/capabilities").json()
    assert body["id"] == "uamp-server"
    assert body["supports_streaming"] is True
    assert "text" in body["modalities"]
    assert "message.edit" in body["conversation"]["client_events"]


def test_agents_are_listed_as_models() -> None:
    echo = factories.agent("echo")
    factories.agent("private", is_public=False)
    assert Client().get("/models").json() == {
        "object": "list",
        "data": [
            {
                "id": "echo",
                "object": "model",
                "created": int(echo.created_at.timestamp()),
                "owned_by": "uamp-server",
            }
        ],
    }


def test_info_names_the_agents_and_where_to_connect() -> None:
    factories.agent("a.b", description="Repeats.")
    body = Client().get("/info").json()
    assert (body["name"], body["uamp_version"]) == ("UAMP server", uamp.VERSION)
    assert body["version"].count(".") == 2
    assert body["endpoints"]["websocket"] == "/uamp"
    (agent,) = body["agents"]
    assert (agent["name"], agent["description"]) == ("a.b", "Repeats.")
    assert agent["endpoints"]["event_stream"] == "/agents/a.b/events/stream"
    info = Client().get(agent["endpoints"]["info"]).json()
    assert {k: info[k] for k in agent} == agent


@pytest.mark.parametrize("what", ["capabilities", "models", "info"])
def test_an_agent_is_found_by_a_caller_who_may_use_it(what: str) -> None:
    ada = factories.user("ada")
    factories.agent("Mine", is_public=False, owner=ada)
    factories.agent("off", is_enabled=False)
    stranger = Client().get(f"/agents/mine/{what}")
    anonymous = Client().get(f"/agents/nothere/{what}")
    assert (stranger.status_code, anonymous.status_code) == (404, 404)
    varying_members = {"instance", "request_id"}
    bodies = [
        {k: v for k, v in r.json().items() if k not in varying_members}
        for r in (stranger, anonymous)
    ]
    assert bodies[0] == bodies[1]
    assert Client().get(f"/agents/off/{what}").status_code == 404
    key = create_api_key(ada, name="tests")
    owner = Client(headers={"Authorization": f"Bearer {key}"})
    assert owner.get(f"/agents/MINE/{what}").status_code == 200
    signed_in = Client()
    signed_in.force_login(ada)
    assert signed_in.get(f"/agents/mine/{what}").status_code == 200


def test_a_bad_key_is_refused_although_none_is_needed() -> None:
    factories.agent("echo")
    response = Client(headers={"Authorization": "Bearer uak_nope"}).get("/models")
    assert (response.status_code, response["WWW-Authenticate"]) == (401, "Bearer")
    assert response.json()["code"] == "unauthorized"


def test_an_agents_instructions_and_options_are_not_reported() -> None:
    factories.agent("echo", instructions="the secret", options={"script": "echo", "k": "secret"})
    for path in ("/info", "/models", "/agents/echo/info", "/agents/echo/capabilities"):
        assert "secret" not in Client().get(path).content.decode()


def test_discovery_is_read_only() -> None:
    answer = Client().post("/info")
    assert (answer.status_code, answer["Allow"]) == (405, "GET, HEAD")
    assert answer.json()["detail"] == "This path takes GET and HEAD, not POST."


def test_every_event_has_its_schema() -> None:
    index = Client().get("/schemas/uamp/1.0/").json()
    assert sorted(index["schemas"]) == schema_names()
    for path in index["schemas"].values():
        response = Client().get(path)
        assert (response.status_code, response["Content-Type"]) == (200, "application/schema+json")
        assert response.json()["$id"] == path
    assert Client().get("/schemas/uamp/1.0/nothing.json").status_code == 404

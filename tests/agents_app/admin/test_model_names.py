"""The models that the form of an agent suggests: from where, with which key, and for whom."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.admin.utils import quote
from django.core.cache import cache
from django.urls import reverse

from agents_app.models import Agent
from agents_app.outbound.keys import encrypted_key
from agents_app.providers.model_lists import MAX_MODELS
from tests.agents_app.admin.test_trial import operator, signed_in
from tests.agents_app.web_server import WebServer, web_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.test import Client
    from pytest_django import Settings

pytestmark = pytest.mark.django_db

NEW = "admin:agents_app_agent_models"
STORED = "admin:agents_app_agent_models_of"


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def vendor(settings: Settings) -> Iterator[WebServer]:
    with web_server() as server:
        settings.UAMP_MODEL_ALLOW_HOSTS = [server.place]
        lists(server, "gpt-small", "gpt-large", "text-embedding-3")
        yield server


def lists(server: WebServer, *names: str) -> None:
    """Let the server list these models, as OpenAI's API does."""
    body = json.dumps({"data": [{"id": name} for name in names]})
    server.page("/v1/models", body, "application/json")


def suggested(client: Client, server: WebServer, agent: Agent | None = None, **values: str) -> Any:
    address = reverse(NEW) if agent is None else reverse(STORED, args=[agent.pk])
    data = {"provider": "openai_compat", "options__base_url": server.url("/v1"), **values}
    answer = client.post(address, data)
    assert answer.status_code == 200
    return answer.json()["models"]


def test_the_models_that_chat_are_suggested_and_asked_for_once(
    admin_client: Client, vendor: WebServer
) -> None:
    for _ in range(3):
        assert suggested(admin_client, vendor) == ["gpt-large", "gpt-small"]
    ((path, headers),) = vendor.asked
    assert path == "/v1/models"
    assert headers["Authorization"] is None


def test_the_key_in_the_form_is_sent_and_the_stored_one_only_to_its_own_place(
    admin_client: Client, vendor: WebServer
) -> None:
    suggested(admin_client, vendor, key="typed-key")
    assert vendor.asked[-1][1]["Authorization"] == "Bearer typed-key"
    agent = Agent.objects.create(
        name="kept",
        provider="openai_compat",
        model="m",
        secret=encrypted_key("stored-key", f"http://{vendor.place}"),
    )
    suggested(admin_client, vendor, agent)
    assert vendor.asked[-1][1]["Authorization"] == "Bearer stored-key"
    Agent.objects.update(secret=encrypted_key("other-key", "https://elsewhere.example:443"))
    cache.clear()
    suggested(admin_client, vendor, agent)
    assert vendor.asked[-1][1]["Authorization"] is None


def test_an_address_that_is_never_called_is_not_asked(
    admin_client: Client, vendor: WebServer, settings: Settings
) -> None:
    settings.UAMP_MODEL_ALLOW_HOSTS = []
    assert suggested(admin_client, vendor) == []
    assert vendor.asked == []


def test_a_redirect_to_another_host_gets_no_key(
    admin_client: Client, vendor: WebServer, settings: Settings
) -> None:
    with web_server() as other:
        settings.UAMP_MODEL_ALLOW_HOSTS = [vendor.place, other.place]
        other.page("/v1/models", '{"data": [{"id": "claude"}]}', "application/json")
        vendor.page("/v1/models", status=302, Location=other.url("/v1/models"))
        names = suggested(admin_client, vendor, provider="anthropic", key="secret-key")
        assert names == ["claude"]
        assert vendor.asked[-1][1]["x-api-key"] == "secret-key"
        assert other.asked[-1][1]["x-api-key"] is None


@pytest.mark.parametrize(
    "body", ["", "{", "[]", '{"data": 1}', '{"data": [1]}', '{"data": [{}]}', "[" * 100_000]
)
def test_a_server_without_a_list_suggests_nothing(
    admin_client: Client, vendor: WebServer, body: str
) -> None:
    vendor.page("/v1/models", body, "application/json")
    assert suggested(admin_client, vendor) == []
    suggested(admin_client, vendor)
    assert len(vendor.asked) == 1, "a failure is kept too"


def test_a_list_is_bounded(admin_client: Client, vendor: WebServer) -> None:
    lists(vendor, "x" * 201, *(f"model-{number:04}" for number in range(MAX_MODELS + 5)))
    names = suggested(admin_client, vendor)
    assert (len(names), names[0]) == (MAX_MODELS, "model-0000")


@pytest.mark.parametrize(
    "values",
    [
        {"provider": "scripted"},
        {"provider": "none"},
        {"options__api_key_env": "SECRET_KEY"},
        {"options__base_url": "x" * 501},
        {"options__base_url": "http://[::1"},
        {"options__base_url": "ftp://127.0.0.1/"},
        {"key": "a\0b"},
        {"provider": "openai_realtime"},
    ],
)
def test_values_that_name_no_provider_suggest_nothing(
    admin_client: Client, vendor: WebServer, values: dict[str, Any]
) -> None:
    assert suggested(admin_client, vendor, **values) == []
    assert vendor.asked == []


def test_looking_up_counts_as_a_trial(
    admin_client: Client, vendor: WebServer, settings: Settings
) -> None:
    settings.UAMP_TRIALS_PER_MINUTE = 1
    assert suggested(admin_client, vendor)
    assert suggested(admin_client, vendor, key="another") == []
    assert len(vendor.asked) == 1


def test_only_those_who_may_save_the_form_are_answered(vendor: WebServer) -> None:
    agent = Agent.objects.create(name="kept", provider="scripted", options={"script": "echo"})
    client = signed_in(operator("try_agent"))
    data = {"provider": "openai_compat", "options__base_url": vendor.url("/v1")}
    for address in (reverse(NEW), reverse(STORED, args=[agent.pk])):
        assert client.post(address, data).status_code == 403
    assert client.post(reverse(STORED, args=["agent_none"]), data).status_code == 403
    assert vendor.asked == []


def test_an_unknown_agent_is_not_found_and_a_page_is_not_asked_for(admin_client: Client) -> None:
    address = reverse(STORED, args=["agent_none"])
    assert admin_client.post(address, {"provider": "openai_compat"}).status_code == 404
    assert admin_client.get(reverse(NEW)).status_code == 405


def test_the_form_names_the_address_and_asks_nothing(
    admin_client: Client, vendor: WebServer
) -> None:
    options = {"base_url": vendor.url("/v1")}
    agent = Agent.objects.create(name="kept", provider="openai_compat", model="m", options=options)
    page = admin_client.get(reverse("admin:agents_app_agent_change", args=[quote(agent.pk)]))
    html = page.content.decode()
    assert f'<datalist id="model-list" data-address="{reverse(STORED, args=[agent.pk])}">' in html
    assert "agent_form/models.js" in html
    assert vendor.asked == []

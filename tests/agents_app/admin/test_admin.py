"""Agents in the admin."""

import json
import re
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from agents_app.admin.form_fields import PartsField
from agents_app.models import Agent
from agents_app.models.agents import ENVELOPES
from agents_app.outbound.keys import key_for
from agents_app.providers.clients import model_place
from agents_app.remote.addresses import target_of
from agents_app.remote.rules import NOT_FOR_PEERS
from tests import factories

pytestmark = pytest.mark.django_db

LIST = "admin:agents_app_agent_changelist"
ADD = "admin:agents_app_agent_add"
INPUT_VALUE = re.compile(r' value="([^"]*)"[^>]*>\Z')


def form(**values: Any) -> dict[str, Any]:
    return {
        "name": "helper",
        "description": "",
        "is_enabled": "on",
        "trigger": "mention",
        "kind": "hosted",
        "provider": "scripted",
        "model": "",
        "instructions": "",
        "options": '{"script": "echo"}',
        "tools": ["csv_report"],
        "strategy": "loop",
        "strategy_options": "{}",
        "max_steps": "10",
        **values,
    }


def _remote(**values: Any) -> dict[str, Any]:
    return form(
        kind="remote",
        url="https://agents.example/v1",
        protocol="completions",
        model="far",
        options="{}",
        tools=[],
        **values,
    )


def _of_model(**options: Any) -> dict[str, str]:
    return {"provider": "openai_compat", "model": "m", "options": json.dumps(options)}


def test_an_operator_adds_an_agent(admin_client: Client) -> None:
    response = admin_client.post(reverse(ADD), form())
    assert response.status_code == 302
    agent = Agent.objects.get()
    assert (agent.name, agent.options, agent.tools) == (
        "helper",
        {"script": "echo"},
        ["csv_report"],
    )


def test_an_operator_changes_and_finds_an_agent(admin_client: Client) -> None:
    agent = Agent.objects.create(name="helper", options={"script": "echo"}, is_public=True)
    url = reverse("admin:agents_app_agent_change", args=[quote(agent.pk)])
    assert admin_client.get(url).status_code == 200
    assert admin_client.post(url, form(max_steps="3")).status_code == 302
    agent.refresh_from_db()
    assert (agent.max_steps, agent.is_public) == (3, False)
    page = admin_client.get(reverse(LIST), {"q": "help", "is_enabled__exact": "1"})
    assert agent.name in page.content.decode()


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    ("values", "field", "reason"),
    [
        ({"name": "a b"}, "name", "Use letters"),
        (
            {"tools": ["absent"]},
            "tools",
            "No such tool: absent. This server has: present, set_state, csv_report, fetch_page, ",
        ),
        (
            {"tools": [], "approvals": ["csv_report"]},
            "approvals",
            "It does not have these tools: csv_report.",
        ),
        ({"approvals": ["absent"]}, "approvals", "Only long-running tools can wait for approval"),
        ({"options": "[]"}, "options", "JSON object"),
        ({"options": "no json"}, "options", "valid JSON"),
        ({"options": '{"script": "echo", "api_key": "k"}'}, "options", "stored encrypted"),
        ({"options": '{"script": "absent"}'}, "options", "Choose a script"),
        ({"options": "{}"}, "options", "Choose a script"),
        ({"options": '{"script": ["echo"]}'}, "options", "Expected `str`, got `array`"),
        ({"options": '{"script": "echo", "delay": "x"}'}, "options", "Expected `float`"),
        ({"options": '{"script": "echo", "base_url": ""}'}, "options", "Unknown options: base_url"),
        (_of_model(timeout="x"), "options", "Expected `float | null`, got `str`"),
        (_of_model(models=7), "options", "Expected `array`, got `int`"),
        (_of_model(params="x"), "options", "Expected `object`, got `str`"),
        (_of_model(params={"max_tokens": "x"}), "options", "Expected `int`, got `str`"),
        (_of_model(params={"stream_options": 7}), "options", "Expected `object`, got `int`"),
        (_of_model(params={"stop": None}), "options", "`params.stop` is null."),
        (_of_model(base_url="ollama"), "options", "is not an address"),
        (_of_model(base_url="http://a:b:c"), "options", "is not an address"),
        (_of_model(basse_url="http://a"), "options", "Unknown options: basse_url"),
        ({"delegates": ["absent"]}, "delegates", "No such agent: absent."),
        (
            {"options": "{}", "options__script": "absent"},
            "options",
            "Script: Select a valid choice",
        ),
        ({"options__delay": "61"}, "options", "Delay between words: Ensure this value is less"),
        ({"options__script": "echo"}, "options", "Script: Also set in the JSON"),
        (_of_model() | {"options__timeout": "0"}, "options", "Timeout: Ensure"),
        ({"pricing__per_answer": "-1"}, "pricing", "Per answer: Ensure this value is greater"),
        (
            {"pricing__per_answer": "0.0000000001"},
            "pricing",
            "Per answer: Ensure that there are no",
        ),
        ({"pricing__unfinished": "share"}, "pricing", "expected_tokens"),
        ({"pricing": '{"currency": "EUR"}'}, "pricing", "Prices must be in USD."),
        (
            {"strategy": "plan", "strategy_options__max_plan_steps": "33"},
            "strategy_options",
            "Maximum plan steps: Ensure this value is less than or equal to 32.",
        ),
        ({"provider": "openai_compat", "options": "{}"}, "model", "Enter the name of the model"),
        ({"provider": "google", "options": "{}"}, "model", "Enter the name of the model"),
        ({"strategy": "dream"}, "strategy", "valid choice"),
        ({"strategy_options": '{"steps": 3}'}, "strategy_options", "does not accept this"),
        ({"max_steps": "33"}, "max_steps", "less than or equal to 32"),
        ({"max_output_tokens": "0"}, "max_output_tokens", "greater than or equal to 1"),
        ({"max_seconds": "0"}, "max_seconds", "greater than or equal to 1"),
        ({"history_messages": "0"}, "history_messages", "greater than or equal to 1"),
    ],
)
def test_what_could_not_run_is_refused(
    admin_client: Client, values: dict[str, str], field: str, reason: str
) -> None:
    response = admin_client.post(reverse(ADD), form(**values))
    assert response.status_code == 200
    errors = response.context["adminform"].form.errors
    assert reason in " ".join(errors[field])
    assert not Agent.objects.exists()


def test_inputs_come_to_the_json_of_the_row_and_back(admin_client: Client) -> None:
    values = form(
        provider="openai_compat",
        model="m",
        options='{"params": {"seed": 7}}',
        options__base_url="http://127.0.0.1:9/v1",
        options__params__temperature="0.5",
        options__models="one\ntwo",
        options__audio="on",
        strategy="plan",
        strategy_options__allow_replan="on",
        pricing__per_answer="0.020",
        pricing__cache_read_per_1k="0",
    )
    assert admin_client.post(reverse(ADD), values).status_code == 302
    agent = Agent.objects.get()
    assert agent.options == {
        "params": {"seed": 7, "temperature": 0.5},
        "base_url": "http://127.0.0.1:9/v1",
        "models": ["one", "two"],
        "audio": True,
    }
    assert agent.strategy_options == {"allow_replan": False}
    assert agent.pricing == {"per_answer": "0.02", "cache_read_per_1k": "0"}
    # What the page shows of it is, sent back, the same row; a tool that it has gets a price.
    url = reverse("admin:agents_app_agent_change", args=[quote(agent.pk)])
    page = admin_client.get(url).context["adminform"].form
    form_data = {}
    for name in page.fields:
        bound = page[name]
        if isinstance(page.fields[name], PartsField):
            context = page.fields[name].widget.get_context(name, bound.value(), {})
            form_data[name] = context["rest"]["value"]
            for part in context["parts"]:
                if (value := INPUT_VALUE.search(part["input"])) is not None:
                    form_data[f"{name}__{part['id'].split('__', 1)[1]}"] = value[1]
        elif bound.value() not in (None, False):
            form_data[name] = bound.value()
    form_data |= {
        "options__models": "one\ntwo", "options__audio": "on", "pricing__unfinished": "whole",
        "strategy_options__allow_replan": "on", "pricing__tools__csv_report": "0.05",
    }  # fmt: skip
    assert admin_client.post(url, form_data).status_code == 302
    changed = Agent.objects.get()
    assert (changed.options, changed.strategy_options) == (agent.options, agent.strategy_options)
    assert changed.pricing == {**agent.pricing, "tools": {"csv_report": "0.05"}}


def test_an_agent_with_a_model_is_accepted(admin_client: Client) -> None:
    values = form(provider="openai_compat", model="m1", options="{}", tools=[])
    assert admin_client.post(reverse(ADD), values).status_code == 302


def test_a_remote_agent_keeps_its_key_encrypted_and_unseen(admin_client: Client) -> None:
    assert admin_client.post(reverse(ADD), _remote(key="sesame-open")).status_code == 302
    agent = Agent.objects.get()
    assert (agent.kind, agent.url, agent.protocol) == (
        "remote",
        "https://agents.example/v1",
        "completions",
    )
    assert "sesame" not in agent.secret
    place = target_of(agent.url).place
    assert key_for(agent.secret, place) == "sesame-open"

    url = reverse("admin:agents_app_agent_change", args=[quote(agent.pk)])
    page = admin_client.get(url).content.decode()
    assert "sesame" not in page
    assert "Reachable." in page

    admin_client.post(url, _remote(max_steps="3"))
    agent.refresh_from_db()
    assert key_for(agent.secret, place) == "sesame-open", "an empty field keeps it"
    admin_client.post(url, _remote() | {"url": "https://elsewhere.example/v1"})
    agent.refresh_from_db()
    assert agent.secret == "", "it does not follow to another host"
    admin_client.post(url, _remote(key="a") | {"remove_key": "on"})
    agent.refresh_from_db()
    assert agent.secret == ""


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("values", "field", "reason"),
    [
        ({"url": "http://agents.example/v1"}, "url", "not https"),
        ({"url": "https://user:pw@agents.example/"}, "url", "user information"),
        ({"url": ""}, "url", "may not be called"),
        ({"protocol": ""}, "protocol", "Choose how"),
        ({"model": ""}, "model", "Enter the agent"),
        ({"options": '{"base_url": "https://x.example"}'}, "options", "Unknown options: base_url"),
        ({"options": '{"params": {"stop": 5}}'}, "options", "Expected `str | array`, got `int`"),
        ({"strategy": "plan"}, "strategy", "choose loop"),
        ({"key": "with a space"}, "key", "no spaces"),
    ],
)
def test_a_remote_agent_that_could_not_answer_is_refused(
    admin_client: Client, values: dict[str, str], field: str, reason: str
) -> None:
    response = admin_client.post(reverse(ADD), {**_remote(), **values})
    errors = response.context["adminform"].form.errors
    assert reason in " ".join(errors[field])
    assert not Agent.objects.exists()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("protocol", sorted(ENVELOPES))
def test_only_those_who_may_change_peers_make_and_change_agents_of_peers(protocol: str) -> None:
    user = factories.user("dev", is_staff=True)
    user.groups.set([Group.objects.get(name="Developer")])
    client = Client()
    client.force_login(user)
    values = _remote() | {"protocol": protocol, "model": "did:web:agents.example:agents:sage"}

    response = client.post(reverse(ADD), values)
    assert response.context["adminform"].form.errors == {"protocol": [NOT_FOR_PEERS]}
    assert not Agent.objects.exists()
    client.post(reverse(ADD), _remote())
    agent = Agent.objects.get()
    url = reverse("admin:agents_app_agent_change", args=[quote(agent.pk)])
    client.post(url, values)
    agent.refresh_from_db()
    assert agent.protocol == "completions"

    user.user_permissions.add(Permission.objects.get(codename="change_peer_trust"))
    assert client.post(url, values).status_code == 302
    agent.refresh_from_db()
    assert agent.protocol == protocol
    user.user_permissions.clear()
    assert client.post(url, values | {"name": "mine"}).status_code == 403
    assert client.post(url, _remote(name="mine")).status_code == 403
    agent.refresh_from_db()
    assert (agent.name, agent.protocol) == ("helper", protocol)


def test_an_agent_with_a_model_keeps_its_key_encrypted_and_unseen(admin_client: Client) -> None:
    values = form(provider="anthropic", model="m1", options="{}", tools=[])
    assert admin_client.post(reverse(ADD), values | {"key": "sesame-open"}).status_code == 302
    agent = Agent.objects.get()
    assert key_for(agent.secret, model_place("anthropic", None)) == "sesame-open"
    url = reverse("admin:agents_app_agent_change", args=[quote(agent.pk)])
    assert "sesame" not in admin_client.get(url).content.decode()

    admin_client.post(url, values | {"provider": "google"})
    agent.refresh_from_db()
    assert (agent.provider, agent.secret) == ("google", ""), "it does not follow to another vendor"


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({}, "Only a remote agent, or one with a model"),
        (
            {"provider": "openai_compat", "model": "m", "options": '{"api_key_env": "X_API_KEY"}'},
            "not both",
        ),
        ({"provider": "openai_compat", "model": "m", "options": "{}", "key": "a b"}, "no spaces"),
    ],
)
def test_a_key_that_would_not_be_sent_is_refused(
    admin_client: Client, values: dict[str, str], error: str
) -> None:
    response = admin_client.post(reverse(ADD), form(**{"key": "k", **values}))
    assert error in " ".join(response.context["adminform"].form.errors["key"])
    assert not Agent.objects.exists()


REFUSED = [
    ({"base_url": "http://models.example/v1"}, "'http' is not https"),
    ({"base_url": "https://models.example:9/v1"}, "port 9 is not one of [443, 8443]"),
    ({"base_url": "https://10.0.0.1/v1"}, "10.0.0.1 is not public"),
    ({"base_url": "https://[fd00::1]/v1"}, "fd00::1 is not public"),
    ({"base_url": "https://a:b@models.example/v1"}, "the URL has user information"),
    (
        {"base_url": "https://models.example/v1", "api_key_env": "OPENAI_API_KEY"},
        "OPENAI_API_KEY may not be sent to models.example.",
    ),
    ({"api_key_env": "OTHER_API_KEY"}, "OTHER_API_KEY may not be sent to api.openai.com."),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("options", "reason"), REFUSED)
def test_an_address_that_is_never_asked_is_refused_at_its_input(
    admin_client: Client, options: dict[str, str], reason: str, settings: Settings
) -> None:
    settings.UAMP_MODEL_ALLOW_HOSTS = []
    values = form(**_of_model(), tools=[])
    values |= {f"options__{name}": value for name, value in options.items()}
    page = admin_client.post(reverse(ADD), values)
    assert reason in " ".join(page.context["adminform"].form.errors["options"])
    name = "base_url" if "base_url" in options else "api_key_env"
    assert f'id="id_options__{name}_error"' in page.content.decode()
    assert not Agent.objects.exists()
    # One that is switched off may be kept.
    del values["is_enabled"]
    assert admin_client.post(reverse(ADD), values).status_code == 302


def test_an_allowed_address_is_accepted(admin_client: Client, settings: Settings) -> None:
    settings.UAMP_MODEL_ALLOW_HOSTS = ["10.0.0.1:11434"]
    values = form(**_of_model(base_url="http://10.0.0.1:11434/v1"), tools=[])
    page = admin_client.post(reverse(ADD), values, follow=True)
    assert [str(text) for text in page.context["messages"] if "cannot answer" in str(text)] == []
    assert Agent.objects.exists()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("values", "lack"),
    [
        ({"provider": "anthropic"}, "api.anthropic.com needs a key, but none is set"),
        (
            {"provider": "openai_compat", "options__base_url": "https://api.openai.com/v1"},
            "api.openai.com needs a key, but none is set",
        ),
        (
            {"provider": "anthropic", "options__api_key_env": "ANTHROPIC_API_KEY"},
            "the environment variable ANTHROPIC_API_KEY is not set",
        ),
        ({"provider": "anthropic", "key": "sesame"}, ""),
        ({"provider": "openai_compat", "options__base_url": "https://models.example/v1"}, ""),
    ],
)
def test_a_missing_key_is_reported_when_the_form_is_saved(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch, values: dict[str, str], lack: str
) -> None:
    for name in ("ANTHROPIC", "OPENAI"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)
        monkeypatch.delenv(f"{name}_BASE_URL", raising=False)
    data = form(model="m", options="{}", tools=[]) | values
    page = admin_client.post(reverse(ADD), data, follow=True)
    warned = [str(text) for text in page.context["messages"] if "cannot answer" in str(text)]
    assert warned == (
        [f"helper cannot answer: {lack}. Enter a key, or set one on the server."] if lack else []
    )
    assert Agent.objects.get().name == "helper"

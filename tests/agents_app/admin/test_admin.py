"""Agents in the admin."""

import json
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse

from agents_app.models import Agent

pytestmark = pytest.mark.django_db

LIST = "admin:agents_app_agent_changelist"
ADD = "admin:agents_app_agent_add"


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
        "tools": '["csv_report"]',
        "strategy": "loop",
        "strategy_options": "{}",
        "max_steps": "10",
        **values,
    }


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
    found = admin_client.get(reverse(LIST), {"q": "help", "is_enabled__exact": "1"})
    assert agent.name in found.content.decode()


@pytest.mark.parametrize(
    ("values", "field", "said"),
    [
        ({"name": "a b"}, "name", "Use letters"),
        (
            {"tools": '["absent"]'},
            "tools",
            "No such tool: absent. This server has: present, set_state, csv_report, fetch_page, ",
        ),
        ({"tools": "[7]"}, "tools", "No such tool: 7"),
        (
            {"tools": "[]", "approvals": '["csv_report"]'},
            "approvals",
            "It does not have these tools: csv_report.",
        ),
        ({"approvals": '["absent"]'}, "approvals", "Only a long tool can wait for a person"),
        ({"approvals": "{}"}, "approvals", "Write a JSON list of tool names."),
        ({"tools": "{}"}, "tools", "JSON list"),
        ({"options": "[]"}, "options", "JSON object"),
        ({"options": "no json"}, "options", "valid JSON"),
        ({"options": '{"script": "echo", "api_key": "k"}'}, "options", "out of the database"),
        ({"options": '{"script": "absent"}'}, "options", "Name a script"),
        ({"options": "{}"}, "options", "Name a script"),
        ({"options": '{"script": ["echo"]}'}, "options", "Expected `str`, got `array`"),
        ({"options": '{"script": "echo", "delay": "x"}'}, "options", "Expected `float`"),
        ({"options": '{"script": "echo", "base_url": ""}'}, "options", "no such options: base_url"),
        (_of_model(timeout="x"), "options", "Expected `float | null`, got `str`"),
        (_of_model(models=7), "options", "Expected `array`, got `int`"),
        (_of_model(params="x"), "options", "Expected `object`, got `str`"),
        (_of_model(params={"max_tokens": "x"}), "options", "Expected `int | null`"),
        (_of_model(params={"generationConfig": 7}), "options", "Expected `object | null`"),
        (_of_model(base_url="ollama"), "options", "is no address"),
        (_of_model(base_url="http://a:b:c"), "options", "is no address"),
        (_of_model(basse_url="http://a"), "options", "no such options: basse_url"),
        ({"approvals": '[["csv_report"]]'}, "approvals", "Write a JSON list of tool names."),
        ({"delegates": '["absent"]'}, "delegates", "No such agent: absent."),
        ({"delegates": "[[7]]"}, "delegates", "Write a JSON list of agent names."),
        ({"provider": "openai_compat", "options": "{}"}, "model", "Name the model"),
        ({"provider": "google", "options": "{}"}, "model", "Name the model"),
        ({"strategy": "dream"}, "strategy", "valid choice"),
        ({"strategy_options": '{"steps": 3}'}, "strategy_options", "does not take this"),
        ({"max_steps": "33"}, "max_steps", "less than or equal to 32"),
        ({"max_output_tokens": "0"}, "max_output_tokens", "greater than or equal to 1"),
        ({"max_seconds": "0"}, "max_seconds", "greater than or equal to 1"),
        ({"history_messages": "0"}, "history_messages", "greater than or equal to 1"),
    ],
)
def test_what_could_not_run_is_refused(
    admin_client: Client, values: dict[str, str], field: str, said: str
) -> None:
    response = admin_client.post(reverse(ADD), form(**values))
    assert response.status_code == 200
    errors = response.context["adminform"].form.errors
    assert said in " ".join(errors[field])
    assert not Agent.objects.exists()


def test_an_agent_with_a_model_is_accepted(admin_client: Client) -> None:
    values = form(provider="openai_compat", model="m1", options="{}", tools="[]")
    assert admin_client.post(reverse(ADD), values).status_code == 302

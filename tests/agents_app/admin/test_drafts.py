"""The trial of an agent's unsaved form: what it asks, what it leaves alone, and who may."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from agents_app.models import Agent, RemoteProtocol
from audit_app.models import AuditRecord
from tests.agents_app.admin.test_admin import form
from tests.agents_app.admin.test_trial import (
    browser,
    operator,
    records_when_asked,
    signed_in,
)
from tests.live_server import counted_rows, quick_agent
from tests.sessions_app.model_server import model_server, text_chunks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django import Settings

    from tests.conftest import ServerAddress

pytestmark = pytest.mark.django_db

NEW = "admin:agents_app_agent_draft"
STORED = "admin:agents_app_agent_draft_of"


@pytest.fixture(autouse=True)
def _no_trials() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


def ask(client: Client, agent: Agent | None = None, prompt: str = "hello", **values: Any) -> Any:
    address = reverse(NEW) if agent is None else reverse(STORED, args=[agent.pk])
    return client.post(address, {**form(tools=[]), "trial-prompt": prompt, **values})


def test_a_trial_uses_the_unsaved_form_and_saves_nothing(admin_client: Client) -> None:
    with model_server(text_chunks("Ahoy")) as model:
        agent = model.agent(instructions="Be brief.")
        before, rows = Agent.objects.values().get(), counted_rows()
        values = {
            "name": agent.name, "provider": "openai_compat", "model": "m", "options": "{}",
            "options__base_url": agent.options["base_url"], "instructions": "Be a pirate.",
        }  # fmt: skip
        page = ask(admin_client, agent, "<b>hello</b>", **values)
    assert page.status_code == 200
    assert "Ahoy" in page.content.decode()
    assert "<html" not in page.content.decode()
    texts = [str(message["content"]) for message in model.requests[0]["messages"]]
    assert any("Be a pirate." in text for text in texts)
    assert not any("Be brief." in text for text in texts)
    assert Agent.objects.values().get() == before
    assert counted_rows() == rows
    record = AuditRecord.objects.get()
    assert (record.action, record.object_id) == ("agent.probed", agent.pk)
    assert record.detail == "Tried its unsaved form."
    assert LogEntry.objects.get().change_message.startswith("Tried its unsaved form: 1 steps")
    change = reverse("admin:agents_app_agent_change", args=[quote(agent.pk)])
    assert reverse(STORED, args=[agent.pk]) in admin_client.get(change).content.decode()


def test_a_trial_of_a_form_is_recorded_before_it_begins(server: ServerAddress) -> None:
    data = {
        **form(tools=[]), "name": "model", "provider": "openai_compat", "model": "m",
        "options": "{}", "trial-prompt": "hello",
    }  # fmt: skip
    records = records_when_asked(
        server,
        operator("try_agent", "view_agent", "change_agent"),
        lambda agent: reverse(STORED, args=[agent.pk]),
        data,
    )
    assert records == [("agent.probed", "Tried its unsaved form.")]


def test_a_new_agent_is_asked_before_it_has_a_row(admin_client: Client) -> None:
    page = ask(admin_client, prompt="hello", pricing__per_answer="0.5")
    assert "hello" in page.content.decode()
    # It has a price, but no account that could be paid.
    assert "Paid from your account" not in page.content.decode()
    assert not Agent.objects.exists()
    assert AuditRecord.objects.get().kind == "agents_app.agent"
    add = admin_client.get(reverse("admin:agents_app_agent_add")).content.decode()
    assert reverse(NEW) in add


def test_a_remote_draft_answers_from_its_address(server: ServerAddress, settings: Settings) -> None:
    agent = quick_agent("helper", "echo")
    with model_server(text_chunks("Ahoy from afar")) as model:
        settings.UAMP_REMOTE_ALLOW_HOSTS = [urlsplit(model.url).netloc]
        remote_fields = {"kind": "remote", "url": model.url, "model": "far", "options": "{}"}
        values = {**form(tools=[]), **remote_fields, "protocol": RemoteProtocol.COMPLETIONS.value}
        before = Agent.objects.values().get()
        with browser(server, operator("try_agent", "change_agent")) as web:
            data = {**values, "trial-prompt": "hello"}
            page = web.post(reverse(STORED, args=[agent.pk]), data=data).text
    assert "Ahoy from afar" in page
    assert (model.last["model"], model.last["messages"][-1]["content"]) == ("far", "hello")
    assert Agent.objects.values().get() == before


def test_a_remote_draft_that_fails_does_not_count_for_the_stored_agent(
    server: ServerAddress, settings: Settings
) -> None:
    settings.UAMP_REMOTE_ALLOW_HOSTS = ["127.0.0.1:9"]
    agent = quick_agent("helper", "echo")
    remote_fields = {
        "kind": "remote",
        "url": "http://127.0.0.1:9/v1",
        "model": "far",
        "options": "{}",
    }
    values = {**form(tools=[]), **remote_fields, "protocol": RemoteProtocol.COMPLETIONS.value}
    with browser(server, operator("try_agent", "change_agent")) as web:
        page = web.post(
            reverse(STORED, args=[agent.pk]), data={**values, "trial-prompt": "hello"}
        ).text
    assert "agent_offline" in page
    stored = Agent.objects.get()
    assert (stored.kind, stored.failures, stored.last_error) == ("hosted", 0, "")


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"trial-prompt": ""}, "Prompt: This field is required."),
        ({"trial-prompt": "a\0b"}, "Prompt: Null characters are not allowed."),
        ({"trial-prompt": "x" * 32_001}, "Prompt: Ensure this value has at most 32000"),
        ({"name": "a b"}, "Use letters"),
        ({"name": "a\0b"}, "Null characters are not allowed."),
        ({"max_steps": "9" * 20}, "Ensure this value is less than or equal to 32."),
        ({"owner": "9" * 20}, "Owner"),
        ({"options": '{"script": "none"}'}, "Choose a script"),
    ],
)
def test_a_form_that_could_not_be_saved_is_not_asked(
    admin_client: Client, values: dict[str, Any], problem: str
) -> None:
    page = ask(admin_client, **values)
    assert page.status_code == 200
    assert problem in page.content.decode()
    assert not AuditRecord.objects.exists()


def test_the_limit_of_trials_counts_drafts(admin_client: Client, settings: Settings) -> None:
    settings.UAMP_TRIALS_PER_MINUTE = 2
    answers = [ask(admin_client) for _ in range(5)]
    # The minute may have changed in between: three are in one of the two.
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert "You have run 2 trials in a minute." in refused.content.decode()


def test_only_operators_who_may_save_and_try_may_ask() -> None:
    agent = quick_agent("parrot", "echo")
    for right, address in (
        ("add_agent", reverse(NEW)),
        ("change_agent", reverse(STORED, args=[agent.pk])),
    ):
        assert Client().post(address).status_code == 302
        user = operator("view_agent", "try_agent")
        assert signed_in(user).post(address).status_code == 403
        change = reverse("admin:agents_app_agent_change", args=[quote(agent.pk)])
        assert 'id="draft"' not in signed_in(user).get(change).content.decode()
        user.user_permissions.set([])
        user.user_permissions.add(*operator_rights(right, "view_agent"))
        assert signed_in(user).post(address).status_code == 403
        user.user_permissions.add(*operator_rights("try_agent"))
        assert signed_in(user).post(address).status_code == 200
        assert signed_in(user).get(address).status_code == 405
        guarded = signed_in(user, enforce_csrf_checks=True)
        assert guarded.post(address).status_code == 403
        user.delete()


def operator_rights(*names: str) -> Any:
    """Return rights to agents."""
    return Permission.objects.filter(codename__in=names, content_type__app_label="agents_app")


@pytest.mark.parametrize("agent_id", ["agent_absent", "9" * 20, "a%00b"])
def test_an_id_that_no_agent_has_is_not_found(admin_client: Client, agent_id: str) -> None:
    assert admin_client.post(f"/admin/agents_app/agent/{agent_id}/draft/").status_code == 404

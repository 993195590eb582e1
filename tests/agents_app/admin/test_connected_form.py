"""The form of a connected agent in the admin: it has an owner, and neither a script nor a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.contrib.admin.utils import quote
from django.core.exceptions import ValidationError
from django.forms.models import modelform_factory
from django.urls import reverse

from agents_app import editing
from agents_app.admin.agent_form import AgentForm
from agents_app.admin.agents import DAEMONS
from agents_app.models import Agent
from agents_app.remote import health
from tests import factories
from uamp.types.capabilities import Capabilities

if TYPE_CHECKING:
    from django.test import Client
    from pytest_django import Settings

FORM = modelform_factory(Agent, form=AgentForm, fields="__all__")
pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("kind", "has_owner", "wrong"),
    [
        ("connected", True, set[str]()),
        ("connected", False, {"owner"}),
        ("hosted", True, {"options"}),
    ],
)
def test_what_answers_is_checked_by_the_kind(
    kind: str,
    has_owner: bool,  # noqa: FBT001 parametrised
    wrong: set[str],
) -> None:
    owner = factories.user("owner") if has_owner else None
    form = FORM({}, instance=Agent(name="dials-in"))
    form.full_clean()
    form.errors.clear()
    values = {"name": "dials-in", "kind": kind, "owner": owner, "provider": "scripted"}
    form.cleaned_data = {**values, "options": {}}
    form.clean()
    assert set(form.errors) == wrong


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"starts_over": False}, None),
        ({"starts_over": "no"}, "bool"),
        ({"start_over": False}, "Unknown options: start_over"),
        ({"script": "echo"}, "Unknown options: script"),
    ],
)
def test_the_options_of_a_connected_agent_are_checked(
    options: dict[str, object], words: str | None
) -> None:
    owner = factories.user("owner")
    agent = Agent.objects.create(name="dials-in", kind="connected", owner=owner)
    form = FORM({}, instance=agent)
    form.full_clean()
    form.errors.clear()
    values = {"name": "dials-in", "kind": "connected", "owner": owner, "provider": "scripted"}
    form.cleaned_data = {**values, "options": options}
    form.clean()
    errors = [*map(str, form.errors.get("options", []))]
    if words is None:
        editing.change(agent, {"options": options})
        assert Agent.objects.get().options == options
        assert not errors
    else:
        with pytest.raises(ValidationError) as refused:
            editing.change(agent, {"options": options})
        assert words in str(refused.value)
        assert words in str(errors)
        assert Agent.objects.get().options == {}


def test_the_page_lists_the_daemons_of_an_agent(admin_client: Client, settings: Settings) -> None:
    settings.UAMP_DAEMONS_PER_AGENT = DAEMONS + 1
    agent = Agent.objects.create(name="dials-in", kind="connected", owner=factories.user("owner"))
    address = reverse("admin:agents_app_agent_change", args=[quote(agent.pk)])
    assert "Not connected." in admin_client.get(address).content.decode()
    capabilities = Capabilities(id="<model>", provider="uap")
    for number in range(DAEMONS + 1):
        factories.daemon(
            f"process-{number}", agent.pk, connection=f"c{number}", capabilities=capabilities
        )
    agent.connections.filter(process="process-0").update(answers=3)
    page = admin_client.get(address).content.decode()
    assert f"{DAEMONS + 1} daemons connected." in page
    assert "process process-0, 3 running, uap &lt;model&gt;" in page
    assert page.count("process process-") == DAEMONS


def test_the_page_says_whether_an_agent_has_answered_since_its_last_error(
    admin_client: Client,
) -> None:
    agent = Agent.objects.create(name="dials-in", kind="connected", owner=factories.user("owner"))
    address = reverse("admin:agents_app_agent_change", args=[quote(agent.pk)])
    since = "It has answered since its last error."
    for count in (1, 2):
        health.daemon_failed(agent.pk, "It broke.")
        page = admin_client.get(address).content.decode()
        assert ("UTC: It broke." in page, since in page) == (True, False)
        agent.refresh_from_db()
        assert agent.failures == count
    health.answered(agent.pk)
    page = admin_client.get(address).content.decode()
    assert ("UTC: It broke." in page, since in page) == (True, True)
    health.daemon_failed("deleted", "It broke.")


def test_an_owner_prices_a_connected_agent() -> None:
    agent = Agent.objects.create(name="dials-in", kind="connected", owner=factories.user("owner"))
    editing.change(agent, {"pricing": {"per_answer": "0.01"}, "is_public": True})
    assert Agent.objects.get().pricing == {"per_answer": "0.01"}

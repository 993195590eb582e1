"""The form of a connected agent in the admin: it has an owner, and neither a script nor a model."""

from __future__ import annotations

import pytest
from django.forms.models import modelform_factory

from agents_app import editing
from agents_app.admin.agent_form import AgentForm
from agents_app.models import Agent
from tests import factories

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


def test_an_owner_prices_a_connected_agent() -> None:
    agent = Agent.objects.create(name="dials-in", kind="connected", owner=factories.user("owner"))
    editing.change(agent, {"pricing": {"per_answer": "0.01"}, "is_public": True})
    assert Agent.objects.get().pricing == {"per_answer": "0.01"}

"""The delegates in the form of an agent."""

import pytest
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse

from agents_app.models import Agent
from tests import factories
from tests.agents_app.admin.test_admin import ADD, form

pytestmark = pytest.mark.django_db


def test_delegates_are_those_that_the_owner_may_use(admin_client: Client) -> None:
    ada, bob = factories.user("ada"), factories.user("bob")
    Agent.objects.create(name="private", owner=bob)
    values = form(delegates=["private"], owner=str(ada.pk))
    response = admin_client.post(reverse(ADD), values)
    errors = response.context["adminform"].form.errors
    assert errors["delegates"] == ["The owner may not use these agents: private."]
    assert not Agent.objects.filter(name="helper").exists()
    assert admin_client.post(reverse(ADD), {**values, "owner": str(bob.pk)}).status_code == 302
    # It cannot be handed to someone who may not use them.
    helper = Agent.objects.get(name="helper")
    url = reverse("admin:agents_app_agent_change", args=[quote(helper.pk)])
    assert "delegates" in admin_client.post(url, values).context["adminform"].form.errors
    helper.refresh_from_db()
    assert helper.owner == bob

"""Connected daemons in the admin: who sees them, who may disconnect them, and what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agents_app import connections
from agents_app.models import Agent, AgentConnection, AgentKind
from agents_app.rest.rights import ALL
from audit_app.models import AuditRecord
from sessions_app.access import connect_tokens, keys
from sessions_app.admin.daemons import KEYS
from tests import factories
from uamp.types.capabilities import Capabilities

if TYPE_CHECKING:
    from sessions_app.models import ApiKey

pytestmark = pytest.mark.django_db
LIST = reverse("admin:agents_app_agentconnection_changelist")


def staff(role: str) -> Client:
    user = factories.user(role, is_staff=True)
    user.groups.set(Group.objects.filter(name=role))
    client = Client()
    client.force_login(user)
    return client


def page_of(row: Agent | AgentConnection, name: str = "disconnect") -> str:
    return reverse(f"admin:agents_app_{row._meta.model_name}_operate", args=[quote(row.pk), name])


def token() -> ApiKey:
    """Return a token for the agent of ada."""
    ada = factories.user("ada")
    return connect_tokens.issue(ada.pk, "helper", by=ALL)[1].key


def daemon(key: ApiKey, number: int = 1) -> AgentConnection:
    """Return a connection of the agent that a token is for."""
    return factories.daemon(
        f"web-{number}",
        (key.agents or [])[0],
        connection=f"c{number}",
        capabilities=Capabilities(id="1.2", provider="uap"),
        address="203.0.113.7",
        api_key_id=key.pk,
    )


def test_the_list_says_who_is_connected_from_where_with_which_token() -> None:
    key = token()
    row = daemon(key)
    AgentConnection.objects.update(answers=2)
    client = staff("Support")
    for page in (LIST, reverse("admin:agents_app_agentconnection_change", args=[row.pk])):
        text = client.get(page).content.decode()
        for fact in ("helper", "ada", "203.0.113.7", f"{key.prefix}…", "uap 1.2", "2 running"):
            assert fact in text, (page, fact)
    assert staff("Stranger").get(LIST).status_code == 403


def test_a_longer_list_takes_no_more_queries() -> None:
    key, client = token(), staff("Support")

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert client.get(LIST).status_code == 200
        return len(captured)

    daemon(key)
    queries()
    few = queries()
    for number in range(2, 9):
        daemon(key, number)
    assert queries() == few


@pytest.mark.parametrize("of_agent", [True, False])
def test_disconnecting_needs_the_right_to_change_agents(*, of_agent: bool) -> None:
    daemon(token())
    row = Agent.objects.get() if of_agent else AgentConnection.objects.get()
    client = staff("Support")
    url = page_of(row)
    assert client.get(url).status_code == 403
    assert client.post(url, {"reason": "it hung", "seen": "99"}).status_code == 403
    listed = {"action": "disconnect", "_selected_action": [row.pk], "reason": "it hung"}
    client.post(url.rpartition("operate/")[0].rpartition(f"{quote(row.pk)}/")[0], listed)
    assert AgentConnection.objects.get().disconnect_requested_at is None
    assert not AuditRecord.objects.filter(action="daemon.disconnected").exists()


@pytest.mark.parametrize("of_agent", [True, False])
def test_it_needs_a_reason_and_is_offered_while_a_daemon_is_connected(*, of_agent: bool) -> None:
    key = token()
    client = staff("Operator")
    agent = Agent.objects.get()
    page_url = reverse("admin:agents_app_agent_change", args=[quote(agent.pk)])
    assert page_of(agent) not in client.get(page_url).content.decode()
    connected = daemon(key)
    row = agent if of_agent else connected
    if not of_agent:
        page_url = reverse("admin:agents_app_agentconnection_change", args=[row.pk])
    assert f'href="{page_of(row)}"' in client.get(page_url).content.decode()
    seen = client.get(page_of(row)).context["form"].initial["seen"]
    page = client.post(page_of(row), {"seen": seen, "reason": ""})
    assert page.context["form"].errors["reason"] == ["This field is required."]
    assert AgentConnection.objects.get().disconnect_requested_at is None
    for _ in range(2):
        answer = client.post(page_of(row), {"seen": seen, "reason": "it hung"})
        assert answer.status_code == 302
    (record,) = AuditRecord.objects.filter(action="daemon.disconnected")
    assert (record.object_id, record.reason) == (agent.pk, "it hung")
    assert f'href="{page_of(row)}"' not in client.get(page_url).content.decode()
    # No process gives it an answer any more.
    assert connections.connections_of(agent.pk) == []
    page = client.get(reverse("admin:agents_app_agent_change", args=[quote(agent.pk)]))
    assert "idle, disconnecting, uap 1.2" in page.content.decode()


def test_several_are_disconnected_from_the_list() -> None:
    key = token()
    rows = [daemon(key, number) for number in range(3)]
    client = staff("Operator")
    chosen = {"action": "disconnect", "_selected_action": [row.pk for row in rows[:2]]}
    shown = {f"seen-{pk}": seen for pk, seen in client.post(LIST, chosen).context["chosen"]}
    assert client.post(LIST, {**chosen, **shown, "reason": "they hung"}).status_code == 302
    left = AgentConnection.objects.get(disconnect_requested_at=None)
    assert left == rows[2]
    assert AuditRecord.objects.filter(action="daemon.disconnected").count() == 2


def test_the_confirmation_says_what_becomes_of_answers() -> None:
    row = daemon(token())
    client = staff("Operator")

    def facts() -> str:
        text: str = client.get(page_of(row)).context["facts"]
        return text

    assert facts().startswith(
        "Disconnects 1 daemon of helper and closes sockets on which no other agent"
    )
    assert "No answer is running." in facts()
    AgentConnection.objects.update(answers=2)
    assert "2 answers are running. One that has begun will end as interrupted" in facts()
    assert "moves to another daemon" in facts()
    Agent.objects.update(options={"starts_over": False})
    assert "Each will end as interrupted" in facts()
    assert "moves to another daemon" not in facts()


def test_the_confirmation_leads_to_what_keeps_a_daemon_away() -> None:
    key = token()
    daemon(key)
    agent, client = Agent.objects.get(), staff("Operator")
    keys.make_key(key.user_id, keys.KeyRequest(name="another"))

    def facts() -> str:
        return client.get(page_of(agent)).content.decode()

    revoke = reverse("admin:sessions_app_apikey_operate", args=[key.pk, "revoke"])
    assert "will connect again within seconds" in facts()
    assert facts().count('/revoke/"') == 1
    for url in (revoke, page_of(agent, "disable")):
        assert f'<a href="{url}">' in facts()
        assert client.get(url).status_code == 200
    for _ in range(KEYS):
        connect_tokens.issue(key.user_id, "helper", by=ALL)
    assert facts().count('/revoke/"') == KEYS
    assert ">1 more</a>" in facts()
    for each in keys.keys_of(key.user_id):
        keys.revoke_key(each, by=None)
    assert "no valid connect token" in facts()
    assert page_of(agent, "disable") in facts()
    Agent.objects.update(is_enabled=False)
    assert "The agent is disabled, so no daemon can connect." in facts()


def test_an_agent_that_runs_here_has_no_daemon_to_disconnect() -> None:
    agent, client = factories.agent("helper"), staff("Operator")
    assert agent.kind == AgentKind.HOSTED
    form = {"seen": "", "reason": "it hung"}
    assert client.get(page_of(agent)).context["facts"] == "No daemon of helper is connected."
    assert client.post(page_of(agent), form).status_code == 302
    assert not AuditRecord.objects.filter(action="daemon.disconnected").exists()

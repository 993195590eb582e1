"""Tool sources in the admin: who may add them, what is shown of them, what a refresh says."""

import sys
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from agents_app.admin.mcp import SourceForm
from agents_app.mcp.places import HIDDEN
from agents_app.models import Agent, ToolSource
from tests import factories
from tests.agents_app.mcp import mcp_sources
from tests.agents_app.mcp.mcp_sources import HERE, SECRET, lines

pytestmark = pytest.mark.usefixtures("database_threads")

ADD = "admin:agents_app_toolsource_add"
LIST = "admin:agents_app_toolsource_changelist"


@pytest.fixture(autouse=True)
def _open(settings: Settings) -> None:
    settings.UAMP_SERVER_TOOLS = ["agents_app.tools.csv_report.csv_report"]
    settings.UAMP_MCP_COMMANDS = [sys.executable]
    settings.UAMP_MCP_PRIVATE_HOSTS = ["127.0.0.1:1"]


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture
def staff() -> Client:
    """Sign in an operator who may do everything with sources, and is no superuser."""
    user = User.objects.create_user("operator", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="agents_app"))
    client = Client()
    client.force_login(user)
    return client


def form(**values: Any) -> dict[str, Any]:
    return {
        "name": "demo",
        "is_enabled": "on",
        "approval": "writes",
        "seconds": "20",
        "transport": "http",
        "url": "http://127.0.0.1:1/mcp",
        "headers": "",
        "command": "",
        "args": "",
        "env": "",
        **values,
    }


def program(journal: Path, **values: Any) -> dict[str, Any]:
    """Return the form of the server of the package."""
    args = f"{HERE / 'mcp_server.py'}\n\n {journal}\r\n"
    return form(
        **{"transport": "stdio", "url": "", "command": sys.executable, "args": args, **values}
    )


def change(source: ToolSource) -> str:
    return reverse("admin:agents_app_toolsource_change", args=[source.pk])


def reported(response: Any) -> str:
    """Return the messages that the next page shows."""
    return " ".join(str(message) for message in get_messages(response.wsgi_request))


def test_a_source_is_asked_for_its_tools_when_it_is_added(
    admin_client: Client, journal: Path
) -> None:
    response = admin_client.post(reverse(ADD), program(journal))
    assert response.status_code == 302
    assert "demo has 12 tools." in reported(response)
    source = ToolSource.objects.get()
    page = admin_client.get(change(source)).content.decode()
    assert "<code>demo__add</code>" in page
    assert "Add two numbers." in page
    assert "test-server 7" in page
    listed = admin_client.get(reverse(LIST)).content.decode()
    assert sys.executable in listed


def test_a_source_that_does_not_answer_is_kept_with_its_error(admin_client: Client) -> None:
    response = admin_client.post(reverse(ADD), form())
    assert response.status_code == 302
    assert "demo did not list its tools: demo cannot be reached." in reported(response)
    source = ToolSource.objects.get()
    assert (source.error, source.refreshed_at) == ("demo cannot be reached.", None)
    assert "demo cannot be reached." in admin_client.get(change(source)).content.decode()


def test_a_source_that_is_switched_off_is_not_asked(admin_client: Client, journal: Path) -> None:
    values = program(journal)
    del values["is_enabled"]
    assert admin_client.post(reverse(ADD), values).status_code == 302
    assert ToolSource.objects.get().tools == []


def test_the_action_asks_again(admin_client: Client, journal: Path) -> None:
    mcp_sources.program(journal)
    mcp_sources.address("http://127.0.0.1:1/mcp")
    chosen = [str(pk) for pk in ToolSource.objects.values_list("pk", flat=True)]
    response = admin_client.post(
        reverse(LIST), {"action": "refresh_tools", "_selected_action": chosen}
    )
    assert "demo has 12 tools." in reported(response)
    assert "web did not list its tools: web cannot be reached." in reported(response)
    assert len(ToolSource.objects.get(name="demo").tools) == 12


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("values", "field", "reason"),
    [
        ({"name": "a__b"}, "name", "single _"),
        ({"name": "a-b"}, "name", "Use letters"),
        ({"url": "http://10.0.0.1/mcp"}, "url", "&#x27;http&#x27; is not https"),
        ({"url": ""}, "url", "is not allowed"),
        ({"headers": "no value"}, "headers", "Each line must be NAME: value"),
        ({"headers": ": b"}, "headers", "Each line must be NAME: value"),
        ({"headers": "A: b\nA: c"}, "headers", "twice"),
        ({"headers": "A: \u00e9"}, "headers", "cannot be sent"),
        ({"headers": "A: ${SECRET_KEY}"}, "headers", "names begin with MCP_"),
        ({"headers": "A: ********"}, "headers", "Enter the value of"),
        ({"transport": "stdio"}, "command", "UAMP_MCP_COMMANDS does not list it"),
        ({"transport": "stdio", "env": "TOKEN"}, "env", "Each line must be NAME=value"),
        ({"seconds": "0"}, "seconds", "greater than or equal to 1"),
        ({"approval": "perhaps"}, "approval", "valid choice"),
    ],
)
def test_what_could_not_be_used_is_refused(
    admin_client: Client, values: dict[str, str], field: str, reason: str
) -> None:
    response = admin_client.post(reverse(ADD), form(**values))
    assert response.status_code == 200
    assert reason in str(response.context["adminform"].form.errors[field])
    assert not ToolSource.objects.exists()


def test_names_are_the_same_in_upper_and_lower_case(admin_client: Client) -> None:
    mcp_sources.address("http://127.0.0.1:1/mcp")
    response = admin_client.post(reverse(ADD), form(name="WEB"))
    assert "There is already a source with this name." in response.content.decode()


# --- Secrets ---


def test_values_are_kept_and_not_shown_again(admin_client: Client, journal: Path) -> None:
    env = {"TOKEN": SECRET, "OTHER": "${MCP_OTHER}", "BOTH": f"Basic {SECRET}${{MCP_OTHER}}"}
    source = mcp_sources.program(journal, env=env, is_enabled=False)
    page = admin_client.get(change(source))
    assert SECRET not in page.content.decode()
    masked = page.context["adminform"].form.initial["env"]
    assert masked == {"TOKEN": "********", "OTHER": "${MCP_OTHER}", "BOTH": "********"}
    values = program(journal, env="\n".join(map("=".join, masked.items())), seconds="7")
    del values["is_enabled"]
    response = admin_client.post(change(source), values)
    assert response.status_code == 302, response.context["adminform"].form.errors
    source.refresh_from_db()
    assert (source.env, source.seconds) == (env, 7)


def test_a_value_that_is_not_shown_does_not_follow_to_another_place(
    admin_client: Client,
) -> None:
    source = mcp_sources.address(
        "http://127.0.0.1:1/mcp", headers={"A": SECRET, "B": "Bearer ${MCP_B}"}
    )
    moved = form(
        name="web",
        url="http://127.0.0.1:1/elsewhere",
        headers="A: ********\nB: Bearer ${MCP_B}",
    )
    response = admin_client.post(change(source), moved)
    assert "since it would be sent to another address" in response.content.decode()
    data = {**moved, "headers": "A: again\nB: Bearer ${MCP_B}"}
    assert admin_client.post(change(source), data).status_code == 302
    source.refresh_from_db()
    assert source.headers == {"A": "again", "B": "Bearer ${MCP_B}"}


def test_values_are_hidden_from_operators_who_may_only_view(journal: Path) -> None:
    viewer = User.objects.create_user("viewer", is_staff=True)
    viewer.user_permissions.set(Permission.objects.filter(codename="view_toolsource"))
    client = Client()
    client.force_login(viewer)
    source = mcp_sources.program(journal, headers={"A": SECRET})
    page = client.get(change(source))
    assert page.status_code == 200
    assert SECRET not in page.content.decode()
    assert "********" in page.content.decode()
    assert client.post(change(source), program(journal)).status_code == 403


# --- Who may ---


def test_only_superusers_let_this_server_start_programs(
    staff: Client, admin_client: Client, journal: Path
) -> None:
    refused = staff.post(reverse(ADD), program(journal))
    errors = refused.context["adminform"].form.errors
    assert errors["transport"] == ["Only superusers may let this server start programs."]
    source = mcp_sources.program(journal)
    assert staff.post(change(source), program(journal)).status_code == 403
    delete = reverse("admin:agents_app_toolsource_delete", args=[source.pk])
    assert staff.post(delete, {"post": "yes"}).status_code == 403
    response = staff.post(
        reverse(LIST), {"action": "refresh_tools", "_selected_action": [str(source.pk)]}
    )
    assert "which only superusers may do" in reported(response)
    assert lines(journal) == []
    web = mcp_sources.address("http://127.0.0.1:1/mcp")
    moved = staff.post(change(web), program(journal, name="web"))
    assert "Only superusers" in moved.content.decode()
    assert SourceForm.may_start is False
    assert admin_client.post(change(source), program(journal)).status_code == 302


@pytest.mark.parametrize("tool", ["web__*", "web__search"])
def test_only_who_may_act_as_the_owners_of_agents_moves_their_tools(
    staff: Client, admin_client: Client, tool: str
) -> None:
    eve = factories.user("eve")
    factories.agent("helper", owner=eve, tools=["csv_report", tool])
    # Neither a new source of the name nor another address.
    refused = staff.post(reverse(ADD), form(name="web"))
    assert "Agents of eve call tools of web." in str(refused.context["adminform"].form.errors)
    source = mcp_sources.address("http://127.0.0.1:1/mcp")
    values = form(name=source.name, url="http://127.0.0.1:1/mine")
    refused = staff.post(change(source), values)
    assert "Agents of eve" in refused.context["adminform"].form.errors["url"][0]
    source.refresh_from_db()
    assert source.url == "http://127.0.0.1:1/mcp"
    assert (
        staff.post(change(source), {**values, "url": source.url, "seconds": 9}).status_code == 302
    )
    assert admin_client.post(change(source), values).status_code == 302


def test_only_who_may_act_as_the_owners_of_agents_changes_the_account_of_their_tools(
    staff: Client,
) -> None:
    factories.agent("helper", owner=factories.user("eve"), tools=["web__*"])
    source = mcp_sources.address("http://127.0.0.1:1/mcp")
    ToolSource.objects.update(headers={"Authorization": "Bearer eves"})
    values = form(name=source.name, url=source.url)
    mine = {**values, "headers": "Authorization: Bearer mine"}
    refused = staff.post(change(source), mine)
    assert "Agents of eve" in refused.context["adminform"].form.errors["headers"][0]
    source.refresh_from_db()
    assert source.headers == {"Authorization": "Bearer eves"}
    same = {**values, "headers": f"Authorization: {HIDDEN}", "seconds": 9}
    assert staff.post(change(source), same).status_code == 302


def test_staff_with_the_permission_add_addresses(staff: Client) -> None:
    assert staff.post(reverse(ADD), form()).status_code == 302
    assert ToolSource.objects.get().transport == "http"


def test_staff_without_the_permission_see_nothing() -> None:
    User.objects.create_user("other", is_staff=True)
    client = Client()
    client.force_login(User.objects.get(username="other"))
    for name in (ADD, LIST):
        assert client.get(reverse(name)).status_code == 403


# --- Agents ---


def test_an_agent_may_be_given_the_tools_of_a_source(admin_client: Client, journal: Path) -> None:
    admin_client.post(reverse(ADD), program(journal))
    values = {
        "name": "helper", "is_enabled": "on", "trigger": "mention", "kind": "hosted",
        "provider": "scripted", "options": '{"script": "echo"}', "strategy": "loop",
        "strategy_options": "{}", "max_steps": "10", "delegates": [], "pricing": "{}",
        "tools": ["csv_report", "demo__*", "demo__add"],
    }  # fmt: skip
    url = reverse("admin:agents_app_agent_add")
    response = admin_client.post(url, values)
    assert response.status_code == 302, response.context["adminform"].form.errors
    assert Agent.objects.get().tools == ["csv_report", "demo__*", "demo__add"]
    response = admin_client.post(url, {**values, "name": "b", "tools": ["demo__absent"]})
    [error] = response.context["adminform"].form.errors["tools"]
    assert error.startswith("No such tool: demo__absent. This server has: ")
    assert "csv_report, demo__*, demo__add, demo__slow" in error

"""The setup page of a server without accounts, and the page that connects a model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents_app.demo import prepare_agents
from agents_app.models import Agent
from agents_app.outbound.keys import key_for
from agents_app.providers import local_servers
from agents_app.providers.clients import model_place
from audit_app.models import AuditRecord
from tests.agents_app.providers.test_model_choice import NAMES, OLLAMA, listing
from uamp_project.first_start.token import forget, is_token, setup_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_django import Settings

pytestmark = pytest.mark.django_db

PASSWORD: Final = "correct horse battery"


@pytest.fixture(autouse=True)
def _no_models(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Begin without a token and without a model, on this machine or in the environment."""
    settings.DATA_DIR = tmp_path
    monkeypatch.setattr(local_servers, "_SERVERS", (("Ollama", "http://127.0.0.1:9/v1"),))
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    yield
    forget()


def token() -> str:
    path = setup_path()
    assert path is not None
    (value,) = parse_qs(urlsplit(path).query)["token"]
    return value


def post(client: Client, **values: str) -> Any:
    form = {"token": token(), "username": "olga", "password": PASSWORD, "model": "later"}
    return client.post("/setup", form | values)


def test_the_page_needs_the_token_of_a_server_without_accounts(tmp_path: Path) -> None:
    client = Client()
    assert client.get("/setup").status_code == 404
    secret = token()
    assert token() == secret
    assert (tmp_path / "setup_token").stat().st_mode & 0o077 == 0
    for wrong in ("", "x", secret[:-1], f"{secret}x", "\ud800".encode("utf-8", "replace").decode()):
        assert client.get("/setup", {"token": wrong}).status_code == 404
        assert client.post("/setup", {"token": wrong, "username": "eve"}).status_code == 404
    assert client.get("/setup", {"token": secret}).status_code == 200

    User.objects.create_user("first")
    assert client.get("/setup", {"token": secret}).status_code == 404
    assert not is_token(secret)
    assert setup_path() is None
    assert not (tmp_path / "setup_token").exists()
    assert User.objects.count() == 1


def test_the_operator_gets_an_account_an_assistant_and_a_chat(tmp_path: Path) -> None:
    client = Client()
    answer = post(client)

    olga = User.objects.get()
    assert (olga.username, olga.is_staff, olga.is_superuser) == ("olga", True, True)
    assert olga.check_password(PASSWORD)
    assert re.fullmatch(r"/chats/chat_\w+", answer["Location"])
    assert client.get(answer["Location"]).status_code == 200
    agent = Agent.objects.get()
    assert (agent.name, agent.provider, agent.owner, agent.secret) == (
        *("assistant", "scripted", olga, ""),
    )
    chat = client.get(f"/api/v1{answer['Location']}").json()
    assert chat["title"] == "Welcome"
    assert AuditRecord.objects.filter(action="person.made", actor=olga).exists()
    assert not (tmp_path / "setup_token").exists()


def test_a_model_server_on_this_machine_is_found_and_used(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client()
    with listing(OLLAMA) as server:
        address = f"{server.url}/v1"
        monkeypatch.setattr(local_servers, "_SERVERS", (("Ollama", address),))
        page = client.get("/setup", {"token": token()}).content.decode()
        assert f'value="local:{address}" checked' in page
        assert "Ollama: llama3.2:3b, on this machine" in page
        assert post(client, model=f"local:{address}").status_code == 302
    agent = Agent.objects.get()
    assert (agent.provider, agent.model, agent.options) == (
        *("openai_compat", "llama3.2:3b", {"base_url": address}),
    )


def test_a_key_is_tried_and_stored_for_its_vendor(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client()
    with listing({"data": [{"id": "claude-small"}]}) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        assert post(client, model="anthropic", key="sesame-open").status_code == 302
        assert server.asked[0][1]["x-api-key"] == "sesame-open"
        agent = Agent.objects.get()
        assert (agent.provider, agent.model) == ("anthropic", "claude-small")
        assert key_for(agent.secret, model_place("anthropic", None)) == "sesame-open"


@pytest.mark.parametrize(
    ("values", "field", "error"),
    [
        ({"username": "two words"}, "username", "valid username"),
        ({"username": ""}, "username", "required"),
        ({"password": "short"}, "password", "too short"),
        ({"password": "password1"}, "password", "too common"),
        ({"model": "elsewhere"}, "model", "valid choice"),
        ({"model": "local:http://10.0.0.1/v1"}, "model", "valid choice"),
        ({"model": "openai_compat"}, "key", "Enter the key"),
        ({"model": "openai_compat", "key": "a b"}, "key", "no spaces"),
    ],
)
def test_a_form_that_makes_no_operator_changes_nothing(
    values: dict[str, str], field: str, error: str
) -> None:
    client = Client()
    answer = post(client, **values)

    assert answer.status_code == 400
    assert error in " ".join(answer.context["form"].errors[field])
    assert PASSWORD not in answer.content.decode()
    assert not User.objects.exists()
    assert not Agent.objects.exists()
    assert post(client).status_code == 302


def test_a_key_that_the_vendor_refuses_is_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client()
    with listing({}, status=401) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        answer = post(client, model="openai_compat", key="sesame-open")
    assert answer.status_code == 400
    assert "answered 401" in " ".join(answer.context["form"].errors["key"])
    assert "sesame" not in answer.content.decode()
    assert not User.objects.exists()


def test_another_person_who_was_faster_keeps_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    secret, client = token(), Client()
    monkeypatch.setattr("uamp_project.first_start.views.is_token", lambda text: text == secret)
    User.objects.create_user("first")
    form = {"token": secret, "username": "olga", "password": PASSWORD, "model": "later"}
    assert client.post("/setup", form)["Location"] == "/login"
    assert [user.username for user in User.objects.all()] == ["first"]
    assert not Agent.objects.exists()


# --- Connect a model ---


def signed_in(*, is_admin: bool = True) -> Client:
    client = Client()
    person = User.objects.create_user("olga", is_superuser=is_admin, is_staff=True)
    client.force_login(person)
    return client


def test_an_administrator_connects_another_model(monkeypatch: pytest.MonkeyPatch) -> None:
    prepare_agents()
    client = signed_in()
    with listing({"data": [{"id": "claude-small"}]}) as vendor, listing(OLLAMA) as local:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", vendor.url)
        address = f"{local.url}/v1"
        monkeypatch.setattr(local_servers, "_SERVERS", (("Ollama", address),))
        assert 'value="anthropic"' in client.get("/connect-model").content.decode()
        form = {"model": "anthropic", "key": "sesame-open"}
        assert client.post("/connect-model", form)["Location"] == "/"
        agent = Agent.objects.get(name="assistant")
        assert (agent.provider, agent.model) == ("anthropic", "claude-small")
        assert key_for(agent.secret, model_place("anthropic", None)) == "sesame-open"

        refused = client.post("/connect-model", {"model": "anthropic", "key": ""})
        assert (refused.status_code, Agent.objects.get(pk=agent.pk).secret) == (400, agent.secret)

        assert client.post("/connect-model", {"model": f"local:{address}"}).status_code == 302
    agent.refresh_from_db()
    assert (agent.provider, agent.model, agent.secret) == ("openai_compat", "llama3.2:3b", "")
    assert AuditRecord.objects.filter(object_id=agent.pk, action="row.changed").count() == 2


def test_the_assistant_is_made_where_there_is_none() -> None:
    assert signed_in().post("/connect-model", {"model": "later"}).status_code == 302
    assert Agent.objects.get().name == "assistant"


def test_only_administrators_connect_models() -> None:
    prepare_agents()
    before = Agent.objects.values_list("provider", "secret", "updated_at").get(name="assistant")
    form = {"model": "later"}
    assert Client().post("/connect-model", form)["Location"].startswith("/login")
    client = signed_in(is_admin=False)
    assert client.get("/connect-model").status_code == 403
    assert client.post("/connect-model", form).status_code == 403
    after = Agent.objects.values_list("provider", "secret", "updated_at").get(name="assistant")
    assert after == before

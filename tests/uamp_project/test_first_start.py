"""The setup page of a server without accounts, and the page that connects a model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.test import Client
from django.utils import timezone

from agents_app.demo import prepare_agents
from agents_app.models import Agent
from agents_app.outbound.keys import key_for
from agents_app.providers import local_servers
from agents_app.providers.clients import model_place
from audit_app.models import AuditRecord
from chat_app.browser.site import name_site, site_name
from chat_app.models import InviteLink
from tests.agents_app.providers.test_model_choice import NAMES, OLLAMA, listing
from uamp_project.account_security.adapters import SecondFactorAdapter
from uamp_project.first_start.token import forget, is_token, setup_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_django import Settings

pytestmark = pytest.mark.django_db

PASSWORD: Final = "correct horse battery"
FORM: Final = {
    "username": "olga",
    "password": PASSWORD,
    "site_name": "Harbour",
    "model": "later",
}


@pytest.fixture(autouse=True)
def _no_models(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Begin without a token and without a model, on this machine or in the environment."""
    settings.DATA_DIR = tmp_path
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
    form = FORM | {"token": token()}
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
    assert re.fullmatch(r"/setup/invitation/chat_\w+", answer["Location"])
    path = answer["Location"].removeprefix("/setup/invitation")
    assert client.get(f"/chats{path}").status_code == 200
    agent = Agent.objects.get()
    assert (agent.name, agent.provider, agent.owner, agent.secret) == (
        *("assistant", "scripted", olga, ""),
    )
    chat = client.get(f"/api/v1/chats{path}").json()
    assert chat["title"] == "Welcome"
    assert AuditRecord.objects.filter(action="person.made", actor=olga).exists()
    assert not (tmp_path / "setup_token").exists()


def run_at(address: str, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the model server at this address be the Ollama of this machine."""
    place = urlsplit(address).netloc
    settings.UAMP_MODEL_ALLOW_HOSTS = [place]
    monkeypatch.setattr(local_servers, "_PORTS", {place.rpartition(":")[2]: "Ollama"})


def test_model_servers_are_looked_for_on_this_machine_where_they_are_allowed(
    settings: Settings,
) -> None:
    settings.UAMP_MODEL_ALLOW_HOSTS = [
        *("127.0.0.1:11434", "127.0.0.1:1234", "127.0.0.1:8080", "127.0.0.1:*"),
        *("Host.Docker.Internal:11434", "ollama.intranet:11434", "[::1]:1234", ""),
    ]
    assert local_servers._places() == [
        *("127.0.0.1:11434", "127.0.0.1:1234", "host.docker.internal:11434", "[::1]:1234")
    ]
    settings.UAMP_MODEL_ALLOW_HOSTS = ["localhost:*", "localhost:1234"]
    assert local_servers._places() == ["localhost:11434", "localhost:1234"]
    settings.UAMP_MODEL_ALLOW_HOSTS = []
    assert local_servers.find_servers() == []


def test_a_model_server_on_this_machine_is_found_and_used(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client()
    with listing(OLLAMA) as server:
        address = f"{server.url}/v1"
        run_at(address, settings, monkeypatch)
        page = client.get("/setup", {"token": token()}).content.decode()
        assert f'value="local:{address}" checked' in page
        assert "Ollama: llama3.2:3b, on this machine" in page
        assert post(client, model=f"local:{address}").status_code == 302
    agent = Agent.objects.get()
    assert (agent.provider, agent.model, agent.options) == (
        *("openai_compat", "llama3.2:3b", {"base_url": address}),
    )


def test_a_model_server_with_two_names_is_listed_once(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with listing(OLLAMA) as ollama:
        run_at(ollama.url, settings, monkeypatch)
        (place,) = settings.UAMP_MODEL_ALLOW_HOSTS
        settings.UAMP_MODEL_ALLOW_HOSTS = [place, place.replace("127.0.0.1", "localhost")]
        assert [server.base_url for server in local_servers.find_servers()] == [
            f"http://{place}/v1"
        ]


def test_a_key_is_tried_and_stored_for_its_vendor(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client()
    with listing({"data": [{"id": "claude-small"}]}) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        assert post(client, model="anthropic", key="sesame-open").status_code == 302
        assert server.asked[0][1]["x-api-key"] == "sesame-open"
        agent = Agent.objects.get()
        assert (agent.provider, agent.model) == ("anthropic", "claude-small")
        assert key_for(agent.secret, model_place("anthropic", None)) == "sesame-open"


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("values", "field", "error"),
    [
        ({"username": "two words"}, "username", "valid username"),
        ({"username": ""}, "username", "required"),
        ({"password": "short"}, "password", "too short"),
        ({"password": "password1"}, "password", "too common"),
        ({"site_name": "\u200e \n"}, "site_name", "required"),
        ({"site_name": "x" * 61}, "site_name", "at most 60"),
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
    assert client.post("/setup", FORM | {"token": secret})["Location"] == "/login"
    assert [user.username for user in User.objects.all()] == ["first"]
    assert not Agent.objects.exists()


# --- The name of the server ---


def test_the_name_is_shown_on_pages_and_in_authenticators() -> None:
    client = Client()
    assert "<title>Sign in · UAMP</title>" in client.get("/login").content.decode()
    post(client, site_name=" <Harbour>:\nNorth\u202e ")

    for path in ("/", "/admin/"):
        page = client.get(path).content.decode()
        assert "&lt;Harbour&gt;: North</title>" in page
    visitor = Client().get("/login").content.decode()
    assert "<h1>&lt;Harbour&gt;: North</h1>" in visitor
    assert 'name="application-name" content="&lt;Harbour&gt;: North"' in visitor
    factors = SecondFactorAdapter()
    assert factors.get_totp_issuer() == "<Harbour>  North"
    assert factors.get_public_key_credential_rp_entity()["name"] == "<Harbour>: North"


def test_without_a_name_authenticators_show_the_host() -> None:
    assert SecondFactorAdapter().get_totp_issuer() == "localhost"
    assert SecondFactorAdapter().get_public_key_credential_rp_entity()["name"] == "UAMP"


def test_a_page_without_the_database_has_the_default_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> str:
        raise OperationalError

    name_site("Harbour")
    assert site_name() == "Harbour"
    monkeypatch.setattr("chat_app.browser.site.given_name", fail)
    assert site_name() == "UAMP"


def test_an_administrator_changes_the_name_in_the_admin() -> None:
    client = signed_in()
    response = client.post("/admin/chat_app/site/add/", {"name": "\u202eHarbour"})
    assert response.status_code == 302
    assert site_name() == "Harbour"
    assert client.post("/admin/chat_app/site/1/change/", {"name": ""}).status_code == 200
    assert client.post("/admin/chat_app/site/1/change/", {"name": "Quay"}).status_code == 302
    assert site_name() == "Quay"
    assert client.post("/admin/chat_app/site/add/", {"name": "Two"}).status_code == 403
    assert client.post("/admin/chat_app/site/1/delete/", {"post": "yes"}).status_code == 403
    assert AuditRecord.objects.filter(kind="chat_app.site").count() == 2


# --- The first invitation ---


def test_the_operator_makes_an_invitation_and_a_visitor_joins() -> None:
    client = Client()
    page = post(client)["Location"]
    assert "Create an invite link" in client.get(page).content.decode()
    assert not InviteLink.objects.exists()

    page_text = client.post(page).content.decode()
    (address,) = re.findall(r'value="(http://testserver/join/[^"]+)"', page_text)
    assert "can create an account" in page_text
    assert InviteLink.objects.get().expires_at > timezone.now()
    assert address not in client.get(page).content.decode()
    visitor = Client()
    joined = visitor.post(
        urlsplit(address).path, {"username": "vera", "password": "battery correct horse"}
    )
    assert joined["Location"] == page.replace("/setup/invitation", "/chats")


def test_where_visitors_make_no_accounts_the_page_says_so(settings: Settings) -> None:
    settings.UAMP_INVITED_ACCOUNTS = False
    client = Client()
    page = post(client)["Location"]
    assert "signs in can join" in client.post(page).content.decode()


def test_a_chat_with_as_many_links_as_it_may_have_gets_no_other(settings: Settings) -> None:
    client = Client()
    page = post(client)["Location"]
    settings.UAMP_LINKS_PER_CHAT = 0
    assert "Revoke one first" in client.post(page).content.decode()
    assert not InviteLink.objects.exists()


def test_only_administrators_in_the_chat_make_the_first_invitation() -> None:
    page = post(Client())["Location"]
    assert Client().post(page)["Location"].startswith("/login")
    stranger = Client()
    stranger.force_login(User.objects.create_superuser("stan"))
    assert stranger.post(page).status_code == 404
    person = Client()
    person.force_login(User.objects.create_user("pia"))
    assert person.get(page).status_code == 403
    assert person.post(page).status_code == 403
    assert not InviteLink.objects.exists()


# --- Connect a model ---


def signed_in(*, is_admin: bool = True) -> Client:
    client = Client()
    person = User.objects.create_user("olga", is_superuser=is_admin, is_staff=True)
    client.force_login(person)
    return client


def test_an_administrator_connects_another_model(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare_agents()
    client = signed_in()
    with listing({"data": [{"id": "claude-small"}]}) as vendor, listing(OLLAMA) as local:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", vendor.url)
        address = f"{local.url}/v1"
        run_at(address, settings, monkeypatch)
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


def test_the_assistant_is_created_if_it_is_missing() -> None:
    assert signed_in().post("/connect-model", {"model": "later"}).status_code == 302
    assert Agent.objects.get().name == "assistant"


def test_only_administrators_connect_models() -> None:
    prepare_agents()
    before = Agent.objects.values_list("provider", "secret", "updated_at").get(name="assistant")
    form = {"model": "later"}
    assert Client().post("/connect-model", form)["Location"].startswith("/login")
    client = signed_in(is_admin=False)
    refused = client.get("/connect-model")
    assert refused.status_code == 403
    assert "Open your chats" in refused.content.decode()
    assert client.post("/connect-model", form).status_code == 403
    after = Agent.objects.values_list("provider", "secret", "updated_at").get(name="assistant")
    assert after == before

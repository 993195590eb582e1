"""The last error of an agent elsewhere: who sees it where, and which errors count."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import Permission
from django.utils import timezone

from agents_app.models import Agent
from agents_app.remote import health
from agents_app.runtime.connected import claims
from tests.client import TERMINAL
from tests.gateway_app.protocols.browsers import BROWSER, signed_in
from tests.sessions_app.connected.daemons import Daemon, token_for

if TYPE_CHECKING:
    import httpx

    from tests.client import UampClient
    from tests.live_server import Dial, Person

SECRET = "sk-" + "a1B2c3D4" * 5
GERMAN = {"Accept-Language": "de"}
SINCE = "(It has answered since.)"


@pytest.fixture
def daemon(dial: Dial, alice: Person) -> Daemon:
    """Return a daemon of a public agent of alice."""
    daemon = Daemon(dial(path="/ws"))
    daemon.register("helper", token_for(alice, "helper"))
    agent = Agent.objects.get(name="helper")
    agent.is_public = True
    agent.save()
    return daemon


def asking_client(dial: Dial, who: Person) -> UampClient:
    client = dial(who)
    client.create_session(agent="helper")
    client.ask("hello")
    return client


def shown(web: httpx.Client, path: str, who: Person | None, **headers: str) -> str:
    """Return a page's text about the last error, or an empty text."""
    cookies = {} if who is None else signed_in(who)
    answer = web.get(path, headers={**BROWSER, **cookies, **headers})
    assert answer.status_code == 200, answer.text
    _, _, rest = html.unescape(answer.text).partition('data-testid="last-error">')
    return rest.partition("</small>")[0]


def test_the_owner_of_a_connected_agent_sees_its_last_error(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, daemon: Daemon
) -> None:
    client = asking_client(dial, bob)
    text = f"the model said <no>, with {SECRET}. " + "x" * 2_000
    error = {"code": "internal_error", "message": text}
    daemon.send(daemon.turn(), "response.error", error=error)
    end = client.until(*TERMINAL)[-1]
    assert (end["error"]["code"], "<no>" in end["error"]["message"]) == ("provider_error", False)

    page = shown(web, "/agents/helper", alice)
    assert page.startswith("<dt>Last error</dt>")
    assert "the model said <no>, with" in page
    assert "visible to you and to operators" in page
    assert "Letzter Fehler" in shown(web, "/agents/helper", alice, **GERMAN)
    tokens = shown(web, "/account/agents", alice)
    assert tokens.startswith("Last error, ")
    assert "the model said <no>" in tokens
    for view in (page, tokens):
        assert SECRET not in view
        assert view.count("x") <= health.ERROR_CHARS
    for other in (bob, None):
        assert shown(web, "/agents/helper", other) == ""

    # REST shows it to those who may change the agent.
    alice.user.user_permissions.add(Permission.objects.get(codename="change_agent"))
    stored = web.get("/api/v1/agents/helper", headers=alice.headers).json()["health"]
    assert (stored["state"], stored["last_error"] in html.unescape(page)) == ("online", True)
    assert "health" not in web.get("/api/v1/agents/helper", headers=bob.headers).json()
    daemon.socket.close()


def test_an_answer_whose_daemon_is_lost_is_an_error_until_the_agent_answers_again(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, daemon: Daemon
) -> None:
    client = asking_client(dial, bob)
    daemon.say(daemon.turn(), "half")
    client.until("response.delta")
    daemon.socket.cut()
    end = client.until(*TERMINAL)[-1]
    assert "The text so far is kept; ask again." in end["error"]["message"]
    for path in ("/agents/helper", "/account/agents"):
        page = shown(web, path, alice)
        assert "The agent's program disconnected during an answer." in page
        assert "ask again" not in page
        assert SINCE not in page
        german = shown(web, path, alice, **GERMAN)
        assert "Das Programm des Agenten hat die Verbindung während einer Antwort" in german

    again = Daemon(dial(path="/ws"))
    again.register("helper", token_for(alice, "helper"))
    client.ask("hello?")
    turn = again.turn()
    again.say(turn, "here")
    again.end(turn)
    assert client.until(*TERMINAL)[-1]["type"] == "response.done"
    for path in ("/agents/helper", "/account/agents"):
        assert SINCE in shown(web, path, alice)
        assert "(Er hat seitdem geantwortet.)" in shown(web, path, alice, **GERMAN)
    agent = Agent.objects.get(name="helper")
    assert (agent.failures, bool(agent.last_error)) == (0, True), "the error stays to be read"


def test_an_error_without_a_cause_is_shown_without_secrets(
    dial: Dial, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "ANSWER_CHARS", 10)
    daemon = Daemon(dial(path="/ws"))
    daemon.register(SECRET, token_for(alice, SECRET))
    client = dial(alice)
    client.create_session(agent=SECRET)
    client.ask("hello")
    daemon.say(daemon.turn(), "x" * 11)
    end = client.until(*TERMINAL)[-1]
    assert (end["error"]["code"], SECRET in end["error"]["message"]) == ("answer_too_long", True)
    stored = Agent.objects.get(name=SECRET).last_error
    assert "was stopped" in stored
    assert SECRET not in stored


def test_faults_of_others_are_not_recorded_as_the_agents_errors(
    dial: Dial, alice: Person, daemon: Daemon
) -> None:
    client = asking_client(dial, alice)
    daemon.turn()
    client.send("response.cancel")
    assert client.until(*TERMINAL)[-1]["type"] == "response.cancelled"
    daemon.socket.close()
    client.ask("anyone?")
    while client.until(*TERMINAL)[-1].get("error", {}).get("code") != "agent_offline":
        client.ask("anyone?")
    assert not Agent.objects.get(name="helper").failed_at


def test_the_owner_of_a_remote_agent_sees_its_last_error(
    web: httpx.Client, alice: Person, bob: Person
) -> None:
    Agent.objects.create(
        name="far",
        kind="remote",
        protocol="completions",
        url="https://far.example/v1",
        model="far",
        owner=alice.user,
        is_public=True,
    )
    assert shown(web, "/agents/far", alice) == ""
    health.failed(Agent.objects.get(name="far").pk, "It was not there.")
    assert "It was not there." in shown(web, "/agents/far", alice)
    assert shown(web, "/agents/far", bob) == ""
    Agent.objects.filter(name="far").update(kind="hosted", failed_at=timezone.now())
    assert shown(web, "/agents/far", alice) == ""

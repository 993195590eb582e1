"""Permissions that end: expired keys, agents that were taken away."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

import httpx
import pytest
from django.utils import timezone

from agents_app.models import Agent
from chat_app.members.participants import remove_participant
from chat_app.models import Participant
from sessions_app.access.auth import create_api_key
from sessions_app.models import ApiKey
from tests.client import output_text
from tests.live_server import quick_agent, shared_chat

if TYPE_CHECKING:
    from pytest_django import Settings

    from tests.client import UampClient
    from tests.live_server import Dial, Person


def code_of_the_next_error(client: UampClient) -> str:
    """Return the code of the error that comes before any session or answer."""
    frame = client.until("session.error", "response.error", "session.created", "response.done")[-1]
    code: str = frame["error"]["code"] if "error" in frame else frame["type"]
    return code


def test_an_expired_key_opens_no_more_sessions_on_its_socket(dial: Dial, alice: Person) -> None:
    ApiKey.objects.update(expires_at=timezone.now() + timedelta(seconds=1))
    client = dial(alice)
    chat = shared_chat(alice)
    client.during(1.1)
    client.send("session.create", session={}, chat=chat.pk)
    assert code_of_the_next_error(client) == "token_expired"
    # With a new one the socket is as good as before.
    client.send(
        "session.create", session={}, chat=chat.pk, token=create_api_key(alice.user, name="new")
    )
    assert code_of_the_next_error(client) == "session.created"


def test_a_socket_whose_token_was_renewed_outlives_the_old_token(dial: Dial, alice: Person) -> None:
    client = dial(alice)
    client.create_session(agent="echo")
    client.send("session.update", token=create_api_key(alice.user, name="new"))
    client.expect("session.updated")
    ApiKey.objects.filter(name="tests").update(revoked_at=timezone.now())
    assert client.during(0.8) == []
    assert output_text(client.answer("Still here")[-1]) == "Still here"


def test_an_agent_that_was_disabled_answers_no_more(dial: Dial, alice: Person) -> None:
    quick_agent("dear", "echo")
    client = dial(alice)
    client.create_session(agent="dear")
    assert output_text(client.answer("Hello")[-1]) == "Hello"
    agent = Agent.objects.get(name="dear")
    agent.is_enabled = False
    agent.save()
    client.ask("Hello again")
    assert code_of_the_next_error(client) == "agent_disabled"


def test_an_agent_that_left_the_chat_answers_no_more(dial: Dial, alice: Person) -> None:
    chat = shared_chat(alice, agents=("echo",))
    client = dial(alice)
    client.create_session(chat=chat.pk, agent="echo")
    assert output_text(client.answer("Hello")[-1]) == "Hello"
    agent = Participant.objects.get(chat=chat, agent__name="echo")
    remove_participant(chat_id=chat.pk, removed_by=alice.user, participant_id=agent.pk)
    client.ask("Hello again")
    assert code_of_the_next_error(client) == "agent_not_found"


@pytest.mark.parametrize("allowed", [True, False])
def test_visitors_resume_only_while_visitors_are_allowed(
    dial: Dial, settings: Settings, *, allowed: bool
) -> None:
    client = dial()
    created = client.create_session(agent="echo")
    client.close()
    settings.UAMP_ALLOW_ANONYMOUS = allowed
    again = dial()
    again.send("session.create", session={}, resume={"session_id": created["session_id"]})
    expected = "session.created" if allowed else "unknown_session"
    assert code_of_the_next_error(again) == expected


def test_the_id_of_a_visitors_session_cannot_be_guessed(dial: Dial, alice: Person) -> None:
    visitor, person = dial(), dial(alice)
    created = visitor.create_session(agent="echo", session={"id": "my-session"})
    assert re.fullmatch("sess_[0-9a-f]{32}", created["session_id"])
    assert person.create_session(session={"id": "my-session"})["session_id"] == "my-session"


@pytest.mark.parametrize("session_id", ["x" * 65, "two words", "a/b"])
def test_a_session_id_fits_everywhere(dial: Dial, alice: Person, session_id: str) -> None:
    client = dial(alice)
    client.send("session.create", session={"id": session_id})
    assert code_of_the_next_error(client) == "invalid_event"


def test_a_long_minor_version_is_accepted(dial: Dial) -> None:
    dial().create_session(uamp_version="1.0.0-draft.2026")


@pytest.mark.parametrize("bad", ["uak_\0", "%00", "schl\u00fcssel"])
def test_a_token_of_odd_characters_is_unknown_and_no_defect(web: httpx.Client, bad: str) -> None:
    answer = web.post("/uamp", params={"token": bad}, json={"events": []})
    assert answer.status_code == httpx.codes.UNAUTHORIZED


def test_a_session_id_of_odd_characters_is_unknown_and_no_defect(
    web: httpx.Client, alice: Person
) -> None:
    answer = web.get("/events/stream", params={"session_id": "sess_\0"}, headers=alice.headers)
    assert answer.status_code == httpx.codes.NOT_FOUND


def test_a_rate_of_nothing_refuses_every_turn(
    dial: Dial, alice: Person, settings: Settings
) -> None:
    settings.UAMP_RESPONSES_PER_MINUTE = 0
    client = dial(alice)
    client.create_session(agent="echo")
    client.ask("Hello")
    reported = client.until("session.error")
    assert reported[-1]["error"]["code"] == "rate_limited"
    assert reported[0]["type"] == "rate_limit"

"""Answers whose daemon is silent, whose token ends, or whose process loses the daemon."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from agents_app.models import Agent
from sessions_app.access import keys
from sessions_app.models import ApiKey, Response
from tests.client import TERMINAL, output_text, wait_until
from tests.sessions_app.connected.daemons import Daemon, token_for, wait_for_daemons

if TYPE_CHECKING:
    from pytest_django import Settings

    from tests.client import Frame, UampClient
    from tests.live_server import Dial, Person


def half_answered_turn(dial: Dial, who: Person) -> tuple[Daemon, UampClient, Frame]:
    """Return a daemon, a client that asked it, and the turn, of which half was said."""
    daemon = Daemon(dial(path="/ws"))
    daemon.register("helper", token_for(who, "helper"))
    client = dial(who)
    client.create_session(agent="helper")
    client.ask("hello")
    turn = daemon.turn()
    daemon.say(turn, "half")
    client.until("response.delta")
    return daemon, client, turn


def test_the_answer_of_a_silent_daemon_ends(dial: Dial, alice: Person, settings: Settings) -> None:
    settings.UAMP_DAEMON_SILENCE_SECONDS = 2
    _, client, _ = half_answered_turn(dial, alice)
    end = client.until(*TERMINAL)[-1]
    assert (end["type"], end["error"]["code"]) == ("response.error", "interrupted")
    wait_for_daemons("helper", 0)
    client.ask("anyone?")
    assert client.until(*TERMINAL)[-1]["error"]["code"] == "agent_offline"


@pytest.mark.parametrize("starts_over", [True, False])
def test_a_daemon_that_is_lost_before_a_word_is_replaced_if_the_agent_starts_over(
    dial: Dial, alice: Person, *, starts_over: bool
) -> None:
    first = Daemon(dial(path="/ws"))
    first.register("helper", token_for(alice, "helper"))
    agent = Agent.objects.get(name="helper")
    agent.options = {"starts_over": starts_over}
    agent.save()
    client = dial(alice)
    client.create_session(agent="helper")
    client.ask("hello")
    turn = first.turn()
    spare = Daemon(dial(path="/ws"))
    spare.register("helper", token_for(alice, "helper"))
    first.socket.cut()
    if starts_over:
        again = spare.turn()
        assert again["messages"] == turn["messages"]
        spare.say(again, "here")
        spare.end(again)
        assert output_text(client.until(*TERMINAL)[-1]) == "here"
        return
    end = client.until(*TERMINAL)[-1]
    assert (end["type"], end["error"]["code"]) == ("response.error", "interrupted")
    assert spare.socket.settle() == []


def test_the_answer_under_a_revoked_token_ends(dial: Dial, alice: Person) -> None:
    _, client, _ = half_answered_turn(dial, alice)
    keys.revoke_key(ApiKey.objects.get(scopes=["agents:connect"]), by=None)
    end = client.until(*TERMINAL)[-1]
    assert (end["type"], end["error"]["code"]) == ("response.error", "interrupted")


def test_the_last_answer_of_an_unregistered_daemon_ends_with_its_token(
    dial: Dial, alice: Person
) -> None:
    daemon, client, _ = half_answered_turn(dial, alice)
    daemon.socket.send("session.end", session_id=daemon.session_id)
    wait_for_daemons("helper", 0)
    keys.revoke_key(ApiKey.objects.get(scopes=["agents:connect"]), by=None)
    end = client.until(*TERMINAL)[-1]
    assert (end["type"], end["error"]["code"]) == ("response.error", "interrupted")


def test_the_last_answer_of_an_unregistered_daemon_ends_if_it_is_silent(
    dial: Dial, alice: Person, settings: Settings
) -> None:
    settings.UAMP_DAEMON_SILENCE_SECONDS = 2
    daemon, client, _ = half_answered_turn(dial, alice)
    daemon.socket.send("session.end", session_id=daemon.session_id)
    end = client.until(*TERMINAL)[-1]
    assert (end["type"], end["error"]["code"]) == ("response.error", "interrupted")


def test_a_run_that_another_process_claimed_stops(dial: Dial, alice: Person) -> None:
    daemon, client, turn = half_answered_turn(dial, alice)
    # What was said is written: with the next fence it would not be.
    wait_until(lambda: Response.objects.get().text == "half")
    row = Response.objects.get()
    until = timezone.now() + timedelta(hours=1)
    Response.objects.filter(pk=row.pk).update(
        fence=row.fence + 1, process="another", lease_until=until
    )
    # The process notices when it renews its leases, and its daemon works no further.
    cancel = daemon.socket.expect("response.cancel")
    assert cancel["session_id"] == turn["session_id"]
    daemon.say(turn, "stale")
    daemon.end(turn)
    assert daemon.socket.settle() == []
    frames = client.settle()
    assert not [f for f in frames if f["type"] in {"response.delta", *TERMINAL}]
    row.refresh_from_db()
    assert (row.status, row.text, row.process) == ("in_progress", "half", "another")
    # The socket takes the next turn.
    other = dial(alice)
    other.create_session(agent="helper")
    other.ask("again")
    turn = daemon.turn()
    daemon.say(turn, "fine")
    daemon.end(turn)
    wait_until(lambda: Response.objects.exclude(pk=row.pk).get().status == "completed")

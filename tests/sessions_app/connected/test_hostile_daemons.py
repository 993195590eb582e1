"""A daemon that floods, takes names, registers twice or is cut at any byte harms no other one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from agents_app.models import Agent, AgentConnection
from tests.client import TERMINAL, new_event, output_text, wait_until
from tests.sessions_app.connected.daemons import Daemon, token_for, wait_for_daemons

if TYPE_CHECKING:
    from pytest_django import Settings

    from tests.client import Frame, UampClient
    from tests.live_server import Dial, Person

FLOOD = 20
REGISTRATIONS = 64
"""The most agents on one socket."""


def registration(name: str, token: str) -> str:
    """Return a session.create that registers an agent, as a frame."""
    return json.dumps(new_event("session.create", session={"agent": name, "token": token}))


def unharmed(dial: Dial, who: Person) -> None:
    """Check that another person's daemon registers and answers."""
    daemon = Daemon(dial(path="/ws"))
    daemon.register("unharmed", token_for(who, "unharmed"))
    client = dial(who)
    client.create_session(agent="unharmed")
    client.ask("still there?")
    turn = daemon.turn()
    daemon.say(turn, "yes")
    daemon.end(turn)
    assert output_text(client.until(*TERMINAL)[-1]) == "yes"
    daemon.socket.close()


def answers_to(socket: UampClient, count: int) -> list[Frame]:
    """Return the next created sessions and errors, so many."""
    found: list[Frame] = []
    while len(found) < count:
        found.append(socket.until("session.created", "session.error")[-1])
    return found


def test_registrations_that_are_cut_leave_nothing(dial: Dial, alice: Person, bob: Person) -> None:
    token = token_for(alice, "helper")
    for _ in range(12):
        socket = dial(path="/ws")
        socket.send_raw(registration("helper", token))
        socket.cut()
    for begun in ('{"type": "session.cr', registration("helper", token)[:-2]):
        socket = dial(path="/ws")
        socket.send_raw(begun)
        socket.cut()
    unharmed(dial, bob)
    wait_until(lambda: not AgentConnection.objects.exists())
    assert not Agent.objects.get(name="helper").is_online
    client = dial(alice)
    client.create_session(agent="helper")
    client.ask("anyone?")
    assert client.until(*TERMINAL)[-1]["error"]["code"] == "agent_offline"


def test_one_name_many_times_at_once_is_one_registration(dial: Dial, alice: Person) -> None:
    token = token_for(alice, "helper")
    socket = dial(path="/ws")
    for _ in range(10):
        socket.send_raw(registration("helper", token))
    first, *others = answers_to(socket, 10)
    assert first["type"] == "session.created"
    assert {one["error"]["code"] for one in others} == {"session_exists"}
    assert AgentConnection.objects.count() == 1
    # A free name too, on two sockets at once: one agent, two daemons.
    sockets = [dial(path="/ws"), dial(path="/ws")]
    for one in sockets:
        one.send_raw(registration("brand-new", alice.key))
    for one in sockets:
        (answer,) = answers_to(one, 1)
        assert answer["type"] == "session.created", answer
    assert Agent.objects.filter(name="brand-new").count() == 1
    wait_for_daemons("brand-new", 2)


def test_two_people_who_take_a_free_name_at_once(dial: Dial, alice: Person, bob: Person) -> None:
    sockets = [(dial(path="/ws"), who) for who in (alice, bob)]
    for socket, who in sockets:
        socket.send_raw(registration("contested", who.key))
    found = [answers_to(socket, 1)[0] for socket, _ in sockets]
    refused = [one["error"]["code"] for one in found if one["type"] == "session.error"]
    assert refused == ["forbidden"]
    (owner,) = {
        who.user.pk for one, (_, who) in zip(found, sockets, strict=True) if "error" not in one
    }
    assert Agent.objects.get(name="contested").owner_id == owner


def test_a_socket_registers_so_many_agents_and_again_after_they_ended(
    dial: Dial, alice: Person, settings: Settings
) -> None:
    settings.UAMP_SESSIONS_PER_MINUTE = 100_000
    settings.UAMP_CONNECTED_AGENTS = 100_000
    socket = dial(path="/ws")
    found = []
    for number in range(REGISTRATIONS + 1):
        socket.send_raw(registration(f"many-{number}", alice.key))
        found += answers_to(socket, 1)
    *created, refused = found
    assert {one["type"] for one in created} == {"session.created"}
    assert refused["error"]["code"] == "too_many_sessions"
    # Each that ends makes room for another one.
    for one in created[:3]:
        socket.send("session.end", session_id=one["session_id"])
        socket.until("session.end")
        socket.send_raw(registration(one["agent"], alice.key))
        assert answers_to(socket, 1)[0]["type"] == "session.created"


def test_a_flood_of_registrations_is_limited(
    dial: Dial, alice: Person, bob: Person, settings: Settings
) -> None:
    settings.UAMP_SESSIONS_PER_MINUTE = 3
    socket = dial(path="/ws")
    for number in range(FLOOD):
        socket.send_raw(registration(f"flood-{number}", alice.key))
    refused = [one for one in answers_to(socket, FLOOD) if one["type"] == "session.error"]
    assert refused
    for one in refused:
        assert one["error"]["code"] == "rate_limited"
        assert one["error"]["details"]["retry_after"] > 0
    # Nothing was made for those.
    assert Agent.objects.filter(name__startswith="flood-").count() == FLOOD - len(refused)
    # So low a limit has warnings sent before each answer.
    settings.UAMP_SESSIONS_PER_MINUTE = 240
    unharmed(dial, bob)


def test_the_limit_of_agents_holds_for_registrations_at_once(
    dial: Dial, alice: Person, settings: Settings
) -> None:
    settings.UAMP_CONNECTED_AGENTS = 2
    sockets = [dial(path="/ws") for _ in range(6)]
    for number, socket in enumerate(sockets):
        socket.send_raw(registration(f"rival-{number}", alice.key))
    found = [answers_to(socket, 1)[0] for socket in sockets]
    refused = [one["error"]["code"] for one in found if one["type"] == "session.error"]
    assert refused == ["quota_exceeded"] * 4
    assert Agent.objects.filter(kind="connected").count() == 2


@pytest.mark.parametrize("event", ["response.delta", "capabilities", "response.done"])
def test_a_flood_of_events_of_no_turn_is_refused(
    dial: Dial, alice: Person, bob: Person, event: str
) -> None:
    daemon = Daemon(dial(path="/ws"))
    created = daemon.register("helper", token_for(alice, "helper"))
    fields = {
        "response.delta": {"session_id": "resp_x", "delta": {"type": "text", "text": "x"}},
        "capabilities": {"session_id": created["session_id"], "capabilities": {"id": "x" * 2000}},
        "response.done": {"session_id": "resp_x", "response_id": "resp_y"},
    }[event]
    for _ in range(300):
        daemon.socket.send(event, **fields)
    unharmed(dial, bob)
    said = daemon.socket.settle()
    codes = {frame["error"]["code"] for frame in said if frame["type"] == "session.error"}
    assert codes <= {"unknown_session", "rate_limited", "rate_limit_exceeded"}
    # The socket of the flood answers still.
    client = dial(alice)
    client.create_session(agent="helper")
    client.ask("hello")
    turn = daemon.turn()
    daemon.say(turn, "hi")
    daemon.end(turn)
    assert output_text(client.until(*TERMINAL)[-1]) == "hi"


def test_the_name_of_a_person_is_no_free_name(dial: Dial, alice: Person, bob: Person) -> None:
    """An agent of that name would speak as the person in a chat."""
    del bob
    daemon = Daemon(dial(path="/ws"))
    assert daemon.refused("bob", alice.key) == "forbidden"
    assert daemon.refused("BOB", alice.key) == "forbidden"
    # A letter of another alphabet does not make a name that looks like another one.
    assert daemon.refused("b\u043eb", alice.key) == "invalid_event"
    assert not Agent.objects.filter(kind="connected").exists()
    # Their own name is theirs.
    daemon.register("alice", alice.key)

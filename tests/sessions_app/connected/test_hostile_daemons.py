"""A daemon that floods, takes names, registers twice or is cut at any byte harms no other one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from agents_app.models import Agent, AgentConnection
from tests.client import TERMINAL, new_event, output_text, wait_until
from tests.sessions_app.connected.daemons import Daemon, token_for, wait_for_daemons
from tests.threads import thread_pool

if TYPE_CHECKING:
    import httpx
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
    frames: list[Frame] = []
    while len(frames) < count:
        frames.append(socket.until("session.created", "session.error")[-1])
    return frames


def test_registrations_that_are_cut_leave_nothing(dial: Dial, alice: Person, bob: Person) -> None:
    token = token_for(alice, "helper")
    for _ in range(12):
        socket = dial(path="/ws")
        socket.send_raw(registration("helper", token))
        socket.cut()
    for fragment in ('{"type": "session.cr', registration("helper", token)[:-2]):
        socket = dial(path="/ws")
        socket.send_raw(fragment)
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
    assert {frame["error"]["code"] for frame in others} == {"session_exists"}
    assert AgentConnection.objects.count() == 1
    # On two other sockets at once: one agent, two more daemons.
    sockets = [dial(path="/ws"), dial(path="/ws")]
    for daemon_socket in sockets:
        daemon_socket.send_raw(registration("helper", token))
    for daemon_socket in sockets:
        (answer,) = answers_to(daemon_socket, 1)
        assert answer["type"] == "session.created", answer
    wait_for_daemons("helper", 3)


def made_at_once(web: httpx.Client, requests: list[tuple[Person, str]]) -> list[int]:
    """Ask for connect tokens at the same time; return the statuses."""

    def ask(of: tuple[Person, str]) -> int:
        who, name = of
        answer = web.post("/api/v1/connect-tokens", json={"agent": name}, headers=who.headers)
        return answer.status_code

    with thread_pool(len(requests)) as pool:
        return list(pool.map(ask, requests))


def test_two_people_who_take_a_free_name_at_once(
    web: httpx.Client, alice: Person, bob: Person
) -> None:
    people = [alice, bob]
    statuses = made_at_once(web, [(who, "contested") for who in people])
    assert sorted(statuses) == [201, 403]
    owner = people[statuses.index(201)].user
    assert Agent.objects.get(name="contested").owner_id == owner.pk


def test_a_socket_registers_so_many_agents_and_again_after_they_ended(
    dial: Dial, alice: Person, settings: Settings
) -> None:
    settings.UAMP_SESSIONS_PER_MINUTE = 100_000
    settings.UAMP_CONNECTED_AGENTS = 100_000
    socket = dial(path="/ws")
    frames = []
    for number in range(REGISTRATIONS + 1):
        name = f"many-{number}"
        socket.send_raw(registration(name, token_for(alice, name)))
        frames += answers_to(socket, 1)
    *created, refused = frames
    assert {frame["type"] for frame in created} == {"session.created"}
    assert refused["error"]["code"] == "too_many_sessions"
    # Each that ends makes room for another one.
    for frame in created[:3]:
        socket.send("session.end", session_id=frame["session_id"])
        socket.until("session.end")
        socket.send_raw(registration(frame["agent"], token_for(alice, frame["agent"])))
        assert answers_to(socket, 1)[0]["type"] == "session.created"


def test_a_flood_of_registrations_is_limited(
    dial: Dial, alice: Person, bob: Person, settings: Settings
) -> None:
    settings.UAMP_SESSIONS_PER_MINUTE = 3
    socket = dial(path="/ws")
    token = token_for(alice, "flood")
    for _ in range(FLOOD):
        socket.send_raw(registration("flood", token))
    first, *others = answers_to(socket, FLOOD)
    assert first["type"] == "session.created"
    refused = [frame["error"] for frame in others if frame["error"]["code"] != "session_exists"]
    assert refused
    for error in refused:
        assert error["code"] == "rate_limited"
        assert error["details"]["retry_after"] > 0
    # So low a limit has warnings sent before each answer.
    settings.UAMP_SESSIONS_PER_MINUTE = 240
    unharmed(dial, bob)


def test_the_limit_of_agents_holds_for_tokens_that_are_made_at_once(
    web: httpx.Client, alice: Person, settings: Settings
) -> None:
    settings.UAMP_CONNECTED_AGENTS = 2
    statuses = made_at_once(web, [(alice, f"rival-{number}") for number in range(6)])
    assert sorted(statuses) == [201, 201, 409, 409, 409, 409]
    assert Agent.objects.filter(kind="connected").count() == 2


@pytest.mark.sampled(1)
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
    frames = daemon.socket.settle()
    codes = {frame["error"]["code"] for frame in frames if frame["type"] == "session.error"}
    assert codes <= {"unknown_session", "rate_limited", "rate_limit_exceeded"}
    # The socket of the flood answers still.
    client = dial(alice)
    client.create_session(agent="helper")
    client.ask("hello")
    turn = daemon.turn()
    daemon.say(turn, "hi")
    daemon.end(turn)
    assert output_text(client.until(*TERMINAL)[-1]) == "hi"


def test_the_name_of_a_person_is_taken(web: httpx.Client, alice: Person, bob: Person) -> None:
    """An agent of that name would speak as the person in a chat."""
    del bob
    # A letter of another alphabet does not make a name that looks like another one.
    # @all addresses everyone.
    names = ("bob", "BOB", "b\u043eb", "all", "Everyone")
    statuses = made_at_once(web, [(alice, name) for name in names])
    assert statuses == [403, 403, 400, 400, 400]
    assert not Agent.objects.filter(kind="connected").exists()
    # Their own name is theirs.
    assert made_at_once(web, [(alice, "alice")]) == [201]

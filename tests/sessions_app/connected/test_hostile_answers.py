"""A daemon dies at any byte of its answer, never reads, or sends more than can be kept."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any

import pytest
from websockets.frames import Frame as WireFrame
from websockets.frames import Opcode
from websockets.sync.client import connect

from agents_app.models import AgentConnection
from sessions_app.models import Response
from tests.client import TERMINAL, new_event, output_text
from tests.sessions_app.connected.daemons import Daemon, token_for, wait_for_daemons

if TYPE_CHECKING:
    from pytest_django import Settings

    from tests.client import Frame, UampClient
    from tests.conftest import ServerAddress
    from tests.live_server import Dial, Person

ANSWER = "one two three"
CUTS = 12
LONG_CHARS = 250_000
QUESTIONS = 10
"""More than fits into the buffers of a connection."""


def asker(dial: Dial, who: Person, name: str = "helper") -> UampClient:
    """Return a client with a session of an agent."""
    client = dial(who)
    client.create_session(agent=name)
    return client


def end_of(client: UampClient) -> Frame:
    """Return the terminal event of an answer."""
    return client.until(*TERMINAL)[-1]


def on_the_wire(turn: Frame) -> bytes:
    """Return the bytes of a whole answer, as a client's frames."""
    session_field = {"session_id": turn["session_id"]}
    events = [
        *(
            new_event("response.delta", **session_field, delta={"type": "text", "text": f"{word} "})
            for word in ANSWER.split()
        ),
        new_event("response.done", **session_field),
    ]
    frames = (WireFrame(Opcode.TEXT, json.dumps(event).encode()) for event in events)
    return b"".join(frame.serialize(mask=True) for frame in frames)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("cut", range(CUTS + 1))
def test_a_daemon_that_dies_at_any_byte_ends_its_answer_once(
    dial: Dial, alice: Person, cut: int
) -> None:
    daemon = Daemon(dial(path="/ws"))
    daemon.register("helper", token_for(alice, "helper"))
    client = asker(dial, alice)
    client.ask("hello")
    data = on_the_wire(daemon.turn())
    daemon.socket.socket.socket.sendall(data[: len(data) * cut // CUTS])
    daemon.socket.cut()
    end = end_of(client)
    response = Response.objects.get()
    if cut == CUTS:
        assert output_text(end).split() == ANSWER.split()
        assert response.status == "completed"
    else:
        assert end["error"]["code"] in {"agent_offline", "interrupted"}
        # Nothing is half written: a text is there up to the last whole frame.
        assert response.text.split() == ANSWER.split()[: len(response.text.split())]
        assert (end["error"]["code"] == "interrupted") == bool(response.text)
        assert response.status == "failed"
    assert [frame for frame in client.settle() if frame["type"] in TERMINAL] == []
    wait_for_daemons("helper", 0)


def test_a_daemon_that_never_reads_harms_no_other_answer(
    demo: ServerAddress, dial: Dial, alice: Person, bob: Person, settings: Settings
) -> None:
    settings.UAMP_DAEMON_SILENCE_SECONDS = 5
    unread = socket.socket()
    unread.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    unread.connect((demo.host, demo.port))
    options: dict[str, Any] = {
        "compression": None,
        "max_size": None,
        "max_queue": 1,
        "ping_interval": None,
    }
    with connect(f"{demo.ws}/ws", sock=unread, close_timeout=0, proxy=None, **options) as deaf:
        token = token_for(alice, "helper")
        session = {"agent": "helper", "token": token}
        deaf.send(json.dumps(new_event("session.create", session=session)))
        wait_for_daemons("helper", 1)
        clients = [asker(dial, alice) for _ in range(QUESTIONS)]
        for client in clients:
            client.ask("x" * LONG_CHARS)
        # Another daemon answers meanwhile.
        other = Daemon(dial(path="/ws"))
        other.register("unharmed", token_for(bob, "unharmed"))
        reader = asker(dial, bob, "unharmed")
        reader.ask("still there?")
        turn = other.turn()
        other.say(turn, "yes")
        other.end(turn)
        assert output_text(end_of(reader)) == "yes"
        codes = {end_of(client)["error"]["code"] for client in clients}
        assert codes <= {"agent_offline", "interrupted"}
        wait_for_daemons("helper", 0)
    assert set(Response.objects.values_list("status", flat=True)) == {"completed", "failed"}


def test_what_a_daemon_writes_while_its_answer_waits_is_bounded(
    dial: Dial, alice: Person, settings: Settings
) -> None:
    settings.UAMP_DAEMON_ANSWER_BYTES = 20_000
    daemon = Daemon(dial(path="/ws"))
    daemon.register("helper", token_for(alice, "helper"))
    client = dial(alice)
    tool = {"type": "function", "function": {"name": "clock", "parameters": {}}}
    client.create_session(agent="helper", session={"tools": [tool]})
    client.ask("hello")
    turn = daemon.turn()
    daemon.send(turn, "tool.call", call_id="t1", name="clock", arguments="{}")
    client.until("tool.call")
    for _ in range(30):
        daemon.say(turn, "x" * 1000)
    daemon.socket.until("response.cancel")
    # The socket is not blocked by it: a second answer comes through.
    other = asker(dial, alice)
    other.ask("and you?")
    second = daemon.turn()
    daemon.say(second, "well")
    daemon.end(second)
    assert output_text(end_of(other)) == "well"
    client.send("tool.result", call_id="t1", result='"noon"')
    end = end_of(client)
    assert (end["type"], end["error"]["code"]) == ("response.error", "answer_too_long")


def test_a_daemon_that_floods_is_read_at_its_pace_and_harms_no_other_answer(
    dial: Dial, alice: Person, settings: Settings
) -> None:
    settings.UAMP_DAEMON_EVENTS_PER_MINUTE = 60
    settings.UAMP_DAEMON_EVENTS_BURST = 5
    flooding, calm = Daemon(dial(path="/ws")), Daemon(dial(path="/ws"))
    flooding.register("helper", token_for(alice, "helper"))
    calm.register("other", token_for(alice, "other"))
    client = asker(dial, alice)
    client.ask("hello")
    turn = flooding.turn()
    words = [f"{number} " for number in range(600)]
    flooding.say(turn, *words)
    flooding.end(turn)
    client.until("response.delta")

    other_client = asker(dial, alice, "other")
    other_client.ask("hello")
    other_turn = calm.turn()
    calm.say(other_turn, "calm")
    calm.end(other_turn)
    assert output_text(end_of(other_client)) == "calm"

    # At one event a second, the rest of the flood is still in the network.
    client.send("response.cancel")
    assert end_of(client)["type"] == "response.cancelled"
    text = Response.objects.get(agent__name="helper").text
    assert "".join(words).startswith(text)
    assert 0 < len(text.split()) < len(words)


def test_a_frame_that_is_too_large_ends_the_socket_alone(
    dial: Dial, alice: Person, bob: Person
) -> None:
    daemon = Daemon(dial(path="/ws"))
    daemon.register("helper", token_for(alice, "helper"))
    client = asker(dial, alice)
    client.ask("hello")
    turn = daemon.turn()
    # The header of a frame of a gigabyte, and its beginning.
    head = bytes([0x81, 0xFF]) + (2**30).to_bytes(8) + b"mask"
    daemon.socket.socket.socket.sendall(head + b"x" * 1000)
    end = end_of(client)
    assert end["error"]["code"] == "agent_offline", turn
    wait_for_daemons("helper", 0)
    assert not AgentConnection.objects.exists()
    other = Daemon(dial(path="/ws"))
    other.register("unharmed", token_for(bob, "unharmed"))

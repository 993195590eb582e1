"""Events of agents on sockets that are no part of an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessions_app.models import Response
from tests.client import output_text, wait_until
from tests.sessions_app.connected.test_answers import asker, connected, end_of

if TYPE_CHECKING:
    from tests.live_server import Dial, Person


def test_what_belongs_to_no_answer_gets_a_typed_error(dial: Dial, alice: Person) -> None:
    daemon = connected(dial, alice)
    client = asker(dial, alice)
    client.ask("hello")
    turn = daemon.turn()
    daemon.say(turn, "done")
    daemon.end(turn)
    assert output_text(end_of(client)) == "done"
    daemon.socket.expect("session.end")
    wait_until(lambda: Response.objects.get().status == "completed")
    # A second answer to the same turn, an answer to no turn, and a client's event in a turn.
    daemon.say(turn, "second")
    assert daemon.socket.expect("session.error")["error"]["code"] == "invalid_event"
    daemon.say({**turn, "session_id": "resp_of_another"}, "x")
    assert daemon.socket.expect("session.error")["error"]["code"] == "unknown_session"
    daemon.send(turn, "input.text", text="x")
    assert daemon.socket.expect("session.error")["error"]["code"] == "invalid_event"
    daemon.socket.send_raw("{garbage")
    assert daemon.socket.expect("session.error")["error"]["code"] == "invalid_json"
    # Events of a server that are no part of an answer are unknown to it.
    daemon.send(turn, "session.created", session={"id": "sess_fake"})
    assert daemon.socket.settle() == []
    assert Response.objects.get().text == "done"
    # It answers the next turn all the same.
    client.ask("again")
    turn = daemon.turn()
    daemon.say(turn, "yes")
    daemon.end(turn)
    assert output_text(end_of(client)) == "yes"


def test_a_client_of_an_agent_cannot_answer_for_it(dial: Dial, alice: Person) -> None:
    """A socket that registered nothing sends no events of answers: they are unknown there."""
    client = asker(dial, alice, "echo")
    client.send("response.delta", response_id="resp_x", delta={"type": "text", "text": "forged"})
    client.send("response.done", response_id="resp_x")
    assert client.settle() == []


def test_a_session_of_a_chat_takes_no_event_of_an_agent(dial: Dial, alice: Person) -> None:
    """It may come on the socket of a daemon, which has sessions of chats besides."""
    daemon = connected(dial, alice)
    created = daemon.socket.create_session(agent="echo")
    fields = {"session_id": created["session_id"], "capabilities": {"id": "x"}}
    daemon.socket.send("capabilities", **fields)
    assert daemon.socket.expect("session.error")["error"]["code"] == "invalid_event"

"""Many sessions of one client: what a process does for them is bounded, and ends with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from channels.layers import get_channel_layer

from tests.client import wait_until
from tests.live_server import alice, bob, demo, dial, impatience, mallory, shared_chat
from uamp import DEFAULT_LIMITS

if TYPE_CHECKING:
    from tests.live_server import Dial, Person

__all__ = ["alice", "bob", "demo", "dial", "impatience", "mallory"]

MAX_SESSIONS = DEFAULT_LIMITS.sessions_per_chat


def test_a_person_has_few_sessions_of_one_chat_on_a_connection(
    dial: Dial, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice, bob).pk
    client = dial(alice)
    opened = [client.create_session(chat=chat)["session_id"] for _ in range(MAX_SESSIONS)]
    client.send("session.create", session={}, chat=chat)
    assert client.until("session.error")[-1]["error"]["code"] == "too_many_sessions"
    # It is no bound on other chats, and on the sessions of other people.
    client.create_session(agent="echo")
    client.create_session(chat=chat, token=bob.key)
    client.send("session.end", session_id=opened.pop())
    client.until("session.end")
    client.create_session(chat=chat)
    other = dial(alice)
    for _ in range(MAX_SESSIONS):
        other.create_session(chat=chat)
    other.send("session.create", session={}, resume={"session_id": opened[0], "after": 0})
    assert other.until("session.error")[-1]["error"]["code"] == "too_many_sessions"


def test_a_socket_leaves_the_group_of_a_chat_with_its_last_session(
    dial: Dial, alice: Person
) -> None:
    client = dial(alice)
    lasting_session_id = client.create_session(agent="echo")["session_id"]
    layer = get_channel_layer()
    before = layer.group_count
    first = client.create_session(agent="echo")
    second = client.create_session(chat=first["chat"])
    assert layer.group_count == before + 1
    for session_id in (first["session_id"], second["session_id"]):
        client.send("session.end", session_id=session_id)
        client.until("session.end")
    wait_until(lambda: layer.group_count == before)
    # The session that stays receives its chat.
    client.send("input.text", text="Hello", session_id=lasting_session_id)
    client.send("response.create", session_id=lasting_session_id)
    client.until("response.done")

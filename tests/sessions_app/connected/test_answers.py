"""A daemon answers a turn: the same events, rows and limits as of a hosted agent."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from agents_app.models import Agent
from agents_app.runtime.connected import claims as daemon_claims
from sessions_app.models import Response, ToolCall
from tests import factories
from tests.client import TERMINAL, output_text, text_of
from tests.live_server import Person, shared_chat
from tests.sessions_app.connected.daemons import Daemon, token_for

if TYPE_CHECKING:
    from pytest_django import Settings

    from tests.client import Frame, UampClient
    from tests.live_server import Dial


def connected(dial: Dial, owner: Person, name: str = "helper") -> Daemon:
    """Return a daemon that is registered for an agent."""
    daemon = Daemon(dial(path="/ws"))
    daemon.register(name, token_for(owner, name))
    return daemon


def asker(dial: Dial, who: Person, name: str = "helper", **fields: Any) -> UampClient:
    """Return a client with a session of the agent."""
    client = dial(who)
    client.create_session(agent=name, **fields)
    return client


def end_of(client: UampClient) -> Frame:
    """Return the terminal event of an answer."""
    return client.until(*TERMINAL)[-1]


def test_a_daemon_answers_with_the_whole_conversation(dial: Dial, alice: Person) -> None:
    daemon = connected(dial, alice)
    client = asker(dial, alice, session={"instructions": "Be short."})
    client.ask("hello")
    turn = daemon.turn()
    assert (turn["text"], turn["role"], turn["agent"]) == ("hello", "user", "helper")
    conversation = [(message["role"], message["content"]) for message in turn["messages"]]
    assert conversation == [("system", "Be short."), ("user", "hello")]
    assert turn["caller"] == {"user_id": str(alice.user.pk), "username": "alice", "tier": "owner"}
    daemon.say(turn, "Hel", "lo!")
    daemon.end(turn)
    frames = client.until("response.done")
    assert [f["type"] for f in frames[:2]] == ["message.created", "response.created"] or frames
    assert text_of(frames) == "Hello!"
    assert output_text(frames[-1]) == "Hello!"
    # A turn's session ends with its answer: some daemons keep it until then.
    assert daemon.socket.expect("session.end")["session_id"] == turn["session_id"]
    # The daemon's ids are its own: the response has this server's.
    response = Response.objects.get()
    assert {f["response_id"] for f in frames if "response_id" in f} == {response.pk}
    assert (response.status, response.text) == ("completed", "Hello!")
    # The second turn has the first one before it.
    client.ask("again")
    turn = daemon.turn()
    assert [m["content"] for m in turn["messages"]] == ["Be short.", "hello", "Hello!", "again"]
    daemon.end(
        turn,
        response={
            "id": "x",
            "status": "completed",
            "output": [{"type": "text", "text": "whole"}],
            "usage": {"input_tokens": 5, "output_tokens": 2},
        },
    )
    done = end_of(client)
    assert output_text(done) == "whole"
    assert done["response"]["usage"]["output_tokens"] == 2


def test_a_daemon_reads_a_picture_without_a_key(dial: Dial, alice: Person) -> None:
    daemon = connected(dial, alice)
    client = asker(dial, alice)
    picture = factories.png()
    client.send("input.image", image=base64.b64encode(picture).decode(), format="png")
    client.ask("what is this?")
    items = daemon.turn()["messages"][-1]["content_items"]
    (address,) = [item["image"]["url"] for item in items if item["type"] == "image"]
    assert httpx.get(address, trust_env=False).content == picture
    place, _, signature = address.partition("?")
    for refused in (place, f"{place}?{signature[:-3]}xxx"):
        assert httpx.get(refused, trust_env=False).status_code == 404


def test_without_a_daemon_the_agent_is_offline_at_once(dial: Dial, alice: Person) -> None:
    token_for(alice, "helper")
    client = asker(dial, alice)
    client.ask("hello")
    assert end_of(client)["error"]["code"] == "agent_offline"


def test_thinking_progress_and_own_tools_are_shown(dial: Dial, alice: Person) -> None:
    daemon = connected(dial, alice)
    client = asker(dial, alice)
    client.ask("look it up")
    turn = daemon.turn()
    daemon.send(turn, "response.created")
    daemon.send(turn, "thinking", content="hm", is_delta=True)
    # The flat deltas of the reference's daemon, and the nested ones of the specification.
    flat = {"type": "tool_call", "call_id": "c1", "name": "search", "arguments": '{"q": 1}'}
    daemon.send(turn, "response.delta", delta=flat)
    daemon.send(turn, "progress", target="tool", target_id="c1", percent=50)
    daemon.send(
        turn,
        "response.delta",
        delta={"type": "tool_result", "id": "c1", "result": "ok", "status": "success"},
    )
    daemon.send(turn, "tool.call_done", call_id="c1")
    daemon.say(turn, "found")
    daemon.end(turn)
    frames = client.until(*TERMINAL)
    kinds = [f["delta"]["type"] if f["type"] == "response.delta" else f["type"] for f in frames]
    for kind in ("thinking", "tool_call", "progress", "tool_result", "tool.call_done", "text"):
        assert kind in kinds, kinds
    output = frames[-1]["response"]["output"]
    assert [item["type"] for item in output] == ["thinking", "tool_call", "tool_result", "text"]


def test_a_daemon_calls_a_tool_of_the_client(dial: Dial, alice: Person) -> None:
    daemon = connected(dial, alice)
    tools = [{"type": "function", "function": {"name": "clock", "parameters": {}}}]
    client = asker(dial, alice, session={"tools": tools})
    client.ask("what time is it?")
    turn = daemon.turn()
    assert turn["context"]["tools"][0]["function"]["name"] == "clock"
    daemon.send(turn, "tool.call", call_id="t1", name="clock", arguments="{}")
    call = client.until("tool.call")[-1]
    assert (call["name"], call["call_id"]) == ("clock", "t1")
    assert ToolCall.objects.get().status == "waiting"
    client.send("tool.result", call_id="t1", result='"noon"')
    result = daemon.socket.expect("tool.result")
    assert (result["call_id"], result["result"], result["session_id"]) == (
        "t1",
        "noon",
        turn["session_id"],
    )
    daemon.say(turn, "It is noon.")
    daemon.end(turn)
    assert output_text(end_of(client)) == "It is noon."
    assert ToolCall.objects.get().status == "done"


def test_a_tool_that_the_client_does_not_have_is_refused(dial: Dial, alice: Person) -> None:
    daemon = connected(dial, alice)
    client = asker(dial, alice)
    client.ask("hello")
    turn = daemon.turn()
    daemon.send(turn, "tool.call", call_id="t1", name="rm", arguments="{}")
    assert daemon.socket.expect("tool.result")["is_error"] is True
    daemon.say(turn, "no tool")
    daemon.end(turn)
    assert output_text(end_of(client)) == "no tool"
    assert not ToolCall.objects.exists()


def test_a_cancel_reaches_the_daemon(dial: Dial, alice: Person) -> None:
    daemon = connected(dial, alice)
    client = asker(dial, alice)
    client.ask("hello")
    turn = daemon.turn()
    daemon.say(turn, "so far")
    client.until("response.delta")
    client.send("response.cancel")
    cancel = daemon.socket.expect("response.cancel")
    assert cancel["session_id"] == turn["session_id"]
    assert output_text(client.until(*TERMINAL)[-1]) == "so far"
    # What comes late is ignored, and so is the end of the reference's daemon.
    daemon.say(turn, "late")
    daemon.send(turn, "response.cancelled")
    assert daemon.socket.settle() == []


def test_a_daemon_that_dies_in_mid_answer_ends_it(dial: Dial, alice: Person) -> None:
    daemon, spare = connected(dial, alice), connected(dial, alice)
    client = asker(dial, alice)
    client.ask("hello")
    busy, turn = _asked(daemon, spare)
    busy.say(turn, "half")
    client.until("response.delta")
    busy.socket.cut()
    end = end_of(client)
    assert (end["type"], end["error"]["code"]) == ("response.error", "interrupted")
    assert Response.objects.get().text == "half"


def test_a_daemon_that_dies_before_it_begins_is_replaced(dial: Dial, alice: Person) -> None:
    daemon, spare = connected(dial, alice), connected(dial, alice)
    client = asker(dial, alice)
    client.ask("hello")
    busy, turn = _asked(daemon, spare)
    busy.socket.cut()
    other = spare if busy is daemon else daemon
    again = other.turn()
    assert again["messages"] == turn["messages"]
    other.say(again, "here")
    other.end(again)
    assert output_text(end_of(client)) == "here"
    assert Response.objects.get().status == "completed"


def _asked(*daemons: Daemon) -> tuple[Daemon, Frame]:
    """Return the daemon that was given the turn."""
    while True:
        for daemon in daemons:
            if frames := daemon.socket.during(0.05):
                assert [f["type"] for f in frames] == ["input.text"]
                return daemon, frames[0]


def test_the_least_busy_daemon_answers(dial: Dial, alice: Person, settings: Settings) -> None:
    settings.UAMP_DAEMON_ANSWERS = 2
    daemons = [connected(dial, alice), connected(dial, alice)]
    clients = [asker(dial, alice) for _ in range(5)]
    turn_counts = {id(daemon): 0 for daemon in daemons}
    for client in clients[:4]:
        client.ask("hello")
        busy, _ = _asked(*daemons)
        turn_counts[id(busy)] += 1
    assert list(turn_counts.values()) == [2, 2]
    clients[4].ask("one more")
    end = end_of(clients[4])
    assert end["error"]["code"] == "rate_limit_exceeded"
    assert end["error"]["details"]["retry_after"] > 0


def test_a_mention_in_a_shared_chat_asks_the_daemon(dial: Dial, alice: Person, bob: Person) -> None:
    daemon = connected(dial, alice)
    chat = shared_chat(alice, bob, agents=("helper",))
    readers = [dial(who) for who in (alice, bob)]
    for reader in readers:
        reader.create_session(chat=chat.pk)
    readers[1].ask("@helper hello")
    turn = daemon.turn()
    assert turn["caller"]["tier"] == "user"
    daemon.say(turn, "hi")
    daemon.end(turn)
    for reader in readers:
        assert output_text(end_of(reader)) == "hi"


DEFECTS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "an end without an answer": [("response.done", {})],
    "an error": [("response.error", {"error": {"code": "agent_error", "message": "no"}})],
    "a failed end": [("response.done", {"text": "Error: secret", "error": True})],
    "a result without a call": [
        ("response.delta", {"delta": {"type": "tool_result", "id": "c", "result": "1"}})
    ],
    "a call twice": [
        ("response.delta", {"delta": {"type": "tool_call", "call_id": "c", "name": "n"}})
    ]
    * 2,
    "a beginning after text": [
        ("response.delta", {"delta": {"type": "text", "text": "a"}}),
        ("response.created", {"response_id": "x"}),
    ],
    "text at a wrong offset": [
        ("response.delta", {"delta": {"type": "text", "text": "a"}, "offset": 7})
    ],
    "an unknown delta": [("response.delta", {"delta": {"type": "html"}})],
    "a call without a name": [
        ("response.delta", {"delta": {"type": "tool_call", "call_id": "c", "name": ""}})
    ],
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_of_a_daemon_ends_its_answer_alone(dial: Dial, alice: Person, defect: str) -> None:
    daemon = connected(dial, alice)
    client, other = asker(dial, alice), asker(dial, alice)
    other.ask("unharmed?")
    open_turn = daemon.turn()
    client.ask("hello")
    turn = daemon.turn()
    for type_, fields in DEFECTS[defect]:
        daemon.send(turn, type_, **fields)
    end = end_of(client)
    assert (end["type"], end["error"]["code"]) == ("response.error", "provider_error")
    assert "secret" not in end["error"]["message"]
    response = Response.objects.get(pk=end["response_id"])
    assert response.status == "failed"
    assert response.error_cause
    # The other answer on the same socket goes on.
    daemon.say(open_turn, "unharmed")
    daemon.end(open_turn)
    assert output_text(end_of(other)) == "unharmed"


def test_the_cause_of_a_failed_answer_does_not_repeat_the_answer(dial: Dial, alice: Person) -> None:
    daemon = connected(dial, alice)
    causes = []
    for answer_text in ("", "Meet Eve at noon."):
        client = asker(dial, alice)
        client.ask("hello")
        daemon.say(turn := daemon.turn(), answer_text)
        text = answer_text or "uak_12345678 is not valid"
        daemon.send(turn, "response.done", text=text, error=True)
        causes.append(Response.objects.get(pk=end_of(client)["response_id"]).error_cause)
    assert causes == ["its daemon: failed: [redacted] is not valid", "its daemon: failed: "]


def test_thoughts_without_content_are_left_out_of_the_output(dial: Dial, alice: Person) -> None:
    daemon = connected(dial, alice)
    client = asker(dial, alice)
    client.ask("hello")
    turn = daemon.turn()
    for _ in range(3):
        daemon.send(turn, "thinking", content="", stage="s" * 1000)
    daemon.say(turn, "hi")
    daemon.end(turn)
    end = end_of(client)
    assert [item["type"] for item in end["response"]["output"]] == ["text"]


@pytest.mark.parametrize(("bound", "limit"), [("THOUGHTS", 3), ("ANSWER_CHARS", 40)])
def test_thoughts_and_their_stages_have_bounds(
    dial: Dial, alice: Person, monkeypatch: pytest.MonkeyPatch, bound: str, limit: int
) -> None:
    monkeypatch.setattr(daemon_claims, bound, limit)
    daemon = connected(dial, alice)
    client = asker(dial, alice)
    # The pieces of one thought are one item.
    client.ask("hello")
    turn = daemon.turn()
    for _ in range(5):
        daemon.send(turn, "thinking", content="a", is_delta=True)
    daemon.say(turn, "hi")
    daemon.end(turn)
    assert output_text(end_of(client)) == "hi"
    client.ask("again")
    turn = daemon.turn()
    for _ in range(4):
        daemon.send(turn, "thinking", content="a", stage="s" * 10)
    daemon.end(turn)
    end = end_of(client)
    assert (end["type"], end["error"]["code"]) == ("response.error", "answer_too_long")


def test_a_daemon_of_one_turn_may_name_its_registration(dial: Dial, alice: Person) -> None:
    daemon = Daemon(dial(path="/ws"))
    created = daemon.register("helper", token_for(alice, "helper"))
    client = asker(dial, alice)
    client.ask("hello")
    turn = daemon.turn()
    named_turn = {**turn, "session_id": created["session_id"]}
    daemon.say(named_turn, "plain")
    daemon.end(named_turn)
    assert output_text(end_of(client)) == "plain"


def test_an_agent_that_is_switched_off_is_not_asked(dial: Dial, alice: Person) -> None:
    daemon = connected(dial, alice)
    client = asker(dial, alice)
    agent = Agent.objects.get(name="helper")
    agent.is_enabled = False
    agent.save()
    client.ask("hello")
    assert client.expect("session.error")["error"]["code"] == "agent_disabled"
    assert daemon.socket.settle() == []

"""Loading, listing and closing ACP sessions."""

import asyncio
import json
import threading
from typing import Any

import pytest

from gateway_app.backend import session_reader
from sessions_app.models import Response, Session
from sessions_app.turn import start
from sessions_app.turn.assembly import assemble
from tests.client import wait_until
from tests.gateway_app.acp.socket_client import HELLO, Acp
from tests.live_server import Person


def test_a_long_session_is_loaded_with_its_last_messages(acp: Acp, alice: Person) -> None:
    first = acp("echo", alice)
    session_id = first.new_session()
    for number in range(7):
        text = f"{number} " + "x" * 200_000
        prompt = [{"type": "text", "text": text}]
        first.call("session/prompt", sessionId=session_id, prompt=prompt)

    client = acp("echo", alice)
    client.call("session/load", sessionId=session_id, cwd="/", mcpServers=[])

    texts = [update["content"]["text"][0] for update in client.updates("user_message_chunk")]
    assert texts == ["2", "3", "4", "5", "6"]


def test_a_session_is_loaded_with_its_messages(acp: Acp, alice: Person, bob: Person) -> None:
    first = acp("thinker", alice)
    session_id = first.new_session()
    first.call("session/prompt", sessionId=session_id, prompt=HELLO)

    client, foreign = acp("thinker", alice), acp("thinker", bob)
    loaded = client.call("session/load", sessionId=session_id, cwd="/", mcpServers=[])

    assert loaded["result"] == {}
    questions = client.updates("user_message_chunk")
    assert [update["content"] for update in questions] == HELLO
    assert client.text() == first.text() == "I thought about it. You asked: Hello there"
    assert client.updates("agent_thought_chunk")
    assert [m.get("method") for m in client.seen][-1] is None
    client.call("session/prompt", sessionId=session_id, prompt=HELLO)
    assert client.text() == 2 * "I thought about it. You asked: Hello there"
    refused = foreign.call("session/load", sessionId=session_id, cwd="/", mcpServers=[])["error"]
    assert (refused["code"], refused["data"]["code"]) == (-32002, "unknown_session")
    assert foreign.updates("user_message_chunk") == []


def test_a_loaded_session_continues_with_the_answer_that_is_being_written(
    acp: Acp, alice: Person
) -> None:
    first = acp("slow", alice)
    session_id = first.new_session()
    params = {"sessionId": session_id, "prompt": HELLO}
    first.socket.send(
        json.dumps({"jsonrpc": "2.0", "id": 50, "method": "session/prompt", "params": params})
    )
    wait_until(lambda: Response.objects.exclude(text="").exists())

    client = acp("slow", alice)
    client.call("session/load", sessionId=session_id, cwd="/", mcpServers=[])
    while not client.text():
        client.seen.append(json.loads(client.socket.recv(timeout=60)))
    cancel = {"jsonrpc": "2.0", "method": "session/cancel", "params": params}
    first.socket.send(json.dumps(cancel))

    assert first.answer_to(50)["result"] == {"stopReason": "cancelled"}
    assert len(client.updates("user_message_chunk")) == 1
    assert first.text().startswith(client.text())


def test_sessions_are_listed_for_their_person_and_agent(
    acp: Acp, alice: Person, bob: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_reader, "SESSIONS", 2)
    client, other, foreign = acp("echo", alice), acp("slow", alice), acp("echo", bob)
    opened = [
        client.call("session/new", cwd=cwd, mcpServers=[])["result"]["sessionId"]
        for cwd in ("/a", "/b", "/a")
    ]
    other.new_session()
    foreign.new_session()

    first = client.call("session/list")["result"]
    rest = client.call("session/list", cursor=first["nextCursor"])["result"]

    assert [s["sessionId"] for s in first["sessions"]] == [opened[2], opened[1]]
    assert [(s["sessionId"], s["cwd"]) for s in rest["sessions"]] == [(opened[0], "/a")]
    assert "nextCursor" not in rest
    sessions_of_folder = client.call("session/list", cwd="/b")["result"]["sessions"]
    assert [s["sessionId"] for s in sessions_of_folder] == [opened[1]]
    bad = foreign.call("session/list", cursor=first["nextCursor"])["error"]
    assert bad["code"] == -32602
    assert acp("echo").call("session/list")["result"]["sessions"] == []


def test_a_session_that_is_ended_elsewhere_refuses_its_prompt(acp: Acp, alice: Person) -> None:
    client = acp("slow", alice)
    session_id = client.new_session()
    params = {"sessionId": session_id, "prompt": HELLO}
    client.socket.send(
        json.dumps({"jsonrpc": "2.0", "id": 50, "method": "session/prompt", "params": params})
    )
    wait_until(Response.objects.exists)
    Session.objects.update(status="closed")

    refused = client.answer_to(50)["error"]

    assert (refused["code"], refused["data"]["code"]) == (-32002, "unknown_session")
    lost = json.loads(client.socket.recv(timeout=60))
    assert lost["method"] == "_session/error"
    assert lost["params"]["sessionId"] == session_id
    assert lost["params"]["error"]["code"] == -32002
    assert client.call("session/prompt", **params)["error"]["code"] == -32002
    client.new_session()


def test_a_session_that_is_closed_answers_its_prompt(acp: Acp, alice: Person) -> None:
    client = acp("slow", alice)
    session_id = client.new_session()
    params = {"sessionId": session_id, "prompt": HELLO}
    client.socket.send(
        json.dumps({"jsonrpc": "2.0", "id": 50, "method": "session/prompt", "params": params})
    )
    wait_until(Response.objects.exists)
    close = {"jsonrpc": "2.0", "id": 51, "method": "session/close", "params": params}
    client.socket.send(json.dumps(close))

    assert client.answer_to(50)["result"] == {"stopReason": "cancelled"}
    assert client.answer_to(51)["result"] == {}
    assert [m for m in client.seen if m.get("method") == "_session/error"] == []


def test_an_answer_is_not_held_up_while_a_turn_of_another_session_starts(
    acp: Acp, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = acp("slow", alice)
    first, second = client.new_session(), client.new_session()
    starts, may_start = threading.Event(), threading.Event()

    async def assemble_slowly(*args: Any, **options: Any) -> Any:
        starts.set()
        await asyncio.to_thread(may_start.wait, 60)
        return await assemble(*args, **options)

    def send(**request: Any) -> None:
        client.socket.send(json.dumps({"jsonrpc": "2.0", **request}))

    send(id=50, method="session/prompt", params={"sessionId": first, "prompt": HELLO})
    wait_until(lambda: Response.objects.exclude(text="").exists())
    monkeypatch.setattr(start, "assemble", assemble_slowly)
    send(id=51, method="session/prompt", params={"sessionId": second, "prompt": HELLO})
    try:
        assert starts.wait(20)
        words = len(Response.objects.get().text.split())
        # Some words may have been sent before the turn began to start.
        while f"word{words + 40}" not in client.text():
            client.seen.append(json.loads(client.socket.recv(timeout=20)))
    finally:
        may_start.set()
    wait_until(lambda: Response.objects.exclude(text="").count() == len((first, second)))
    for session_id, request_id in ((first, 50), (second, 51)):
        send(method="session/cancel", params={"sessionId": session_id})
        assert client.answer_to(request_id)["result"]["stopReason"] == "cancelled"

"""The Agent Client Protocol on a WebSocket of the real server."""

import base64
import io
import json
from typing import Any

import pytest
from PIL import Image

import uamp
from chat_app.log import fanout
from sessions_app.models import Response, Session
from tests.client import wait_until
from tests.gateway_app.acp.socket_client import HELLO, Acp
from tests.gateway_app.acp.stored_answers import stored_signatures
from tests.live_server import Person


def test_a_prompt_is_thought_about_and_answered(acp: Acp, alice: Person) -> None:
    client = acp("thinker", alice)
    session_id = client.new_session()

    answer = client.call("session/prompt", sessionId=session_id, prompt=HELLO)

    assert answer["result"]["stopReason"] == "end_turn"
    assert answer["result"]["usage"]["totalTokens"] == 32
    assert client.text() == "I thought about it. You asked: Hello there"
    assert client.updates("agent_thought_chunk")
    assert Session.objects.get(pk=session_id).transport == "acp"
    assert client.socket.response is not None
    assert client.socket.response.headers["Acp-Connection-Id"]


def test_a_session_continues_in_another_connection_of_its_person(
    acp: Acp, alice: Person, bob: Person
) -> None:
    session_id = acp("echo", alice).new_session()

    client, foreign, other = acp("Echo", alice), acp("echo", bob), acp("thinker", alice)

    assert client.call("session/resume", sessionId=session_id, cwd="/")["result"] == {}
    client.call("session/prompt", sessionId=session_id, prompt=HELLO)
    assert client.text() == "Hello there"
    for method in ("session/resume", "session/load"):
        for elsewhere in (foreign, other):
            refused = elsewhere.call(method, sessionId=session_id, cwd="/")["error"]
            assert (refused["code"], refused["data"]["code"]) == (-32002, "unknown_session")


@pytest.mark.usefixtures("celery_worker_thread")
@pytest.mark.parametrize("choice", ["allow", "reject"])
def test_a_call_that_needs_approval_is_a_request_to_the_client(
    acp: Acp, alice: Person, choice: str
) -> None:
    file = io.BytesIO()
    Image.new("RGB", (8, 6), "red").save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode()
    client = acp("careful", alice)
    client.allows = choice
    session_id = client.new_session()

    answer = client.call(
        "session/prompt",
        sessionId=session_id,
        prompt=[
            {"type": "text", "text": "black and white"},
            {"type": "image", "data": data, "mimeType": "image/png"},
        ],
    )

    assert answer["result"]["stopReason"] == "end_turn"
    assert len(client.updates("tool_call")) == 1
    last = client.updates("tool_call_update")[-1]
    assert last["status"] == ("completed" if choice == "allow" else "failed")


def test_a_notification_cancels_a_prompt(acp: Acp, alice: Person) -> None:
    client = acp("slow", alice)
    session_id = client.new_session()
    params = {"sessionId": session_id, "prompt": HELLO}
    request = {"jsonrpc": "2.0", "id": 77, "method": "session/prompt", "params": params}
    client.socket.send(json.dumps(request))
    wait_until(Response.objects.exists)
    cancel = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session_id}}
    client.socket.send(json.dumps(cancel))

    assert client.answer_to(77)["result"] == {"stopReason": "cancelled"}


def test_the_dialect_of_webagents_is_spoken_on_the_same_socket(acp: Acp) -> None:
    client = acp("echo", path="acp/stream")
    assert client.call("initialize")["result"]["protocolVersion"] == "1.0"

    answer = client.call("prompt/submit", messages=[{"role": "user", "content": "Hello there"}])

    signature = answer["result"].pop("_meta")["uamp_signature"]
    assert [signature] == stored_signatures()
    assert answer["result"] == {"status": "complete", "content": "Hello there"}
    methods = [message.get("method") for message in client.seen]
    assert methods[1] == "prompt/started"
    assert "prompt/progress" in methods


def request(method: str, version: str = "2.0", **params: Any) -> str:
    """Return a request as a frame."""
    return json.dumps({"jsonrpc": version, "id": 1, "method": method, "params": params})


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("{", -32700),
        ("[]", -32600),
        (request("initialize", "1.0"), -32600),
        ('{"jsonrpc": "2.0", "id": 1, "method": null, "params": {}}', -32600),
        ('{"jsonrpc": "2.0", "id": 1}', -32600),
        (request("session/fork"), -32601),
        (request("session/prompt"), -32602),
        (request("session/prompt", sessionId="x", prompt=HELLO), -32002),
        (request("session/prompt", sessionId="x", prompt=[{"type": "image"}]), -32602),
    ],
)
def test_a_bad_frame_has_its_code_and_the_socket_stays(acp: Acp, frame: str, code: int) -> None:
    client = acp("echo")
    client.socket.send(frame)

    error = json.loads(client.socket.recv(timeout=60))["error"]

    assert error["code"] == code
    assert not Response.objects.exists()
    client.new_session()


def test_a_prompt_that_is_refused_leaves_nothing_for_the_next_one(acp: Acp, alice: Person) -> None:
    client = acp("echo", alice)
    session_id = client.new_session()
    limit = uamp.DEFAULT_LIMITS.pending_inputs
    many = [{"type": "text", "text": f"part {n} "} for n in range(limit + 1)]

    refused = client.call("session/prompt", sessionId=session_id, prompt=many)

    assert refused["error"]["data"]["code"] == "too_many_inputs"
    assert not Response.objects.exists()
    client.call("session/prompt", sessionId=session_id, prompt=HELLO)
    assert client.text() == "Hello there"


def test_a_notification_has_no_answer(acp: Acp) -> None:
    client = acp("echo")
    for method in ("session/cancel", "session/fork", "session/prompt"):
        client.socket.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": {}}))

    client.call("initialize", protocolVersion=1)

    assert len(client.seen) == 1


def test_an_answer_to_no_request_is_ignored(acp: Acp) -> None:
    client = acp("echo")
    client.socket.send('{"jsonrpc":"2.0","id":"call_1","result":{"outcome":{}}}')

    client.new_session()


def test_a_session_has_one_prompt_at_a_time(acp: Acp, alice: Person) -> None:
    client = acp("slow", alice)
    session_id = client.new_session()
    params = {"sessionId": session_id, "prompt": HELLO}
    client.socket.send(
        json.dumps({"jsonrpc": "2.0", "id": 50, "method": "session/prompt", "params": params})
    )

    second = client.call("session/prompt", **params)

    assert second["error"]["code"] == -32600
    client.socket.send(json.dumps({"jsonrpc": "2.0", "method": "session/cancel", "params": params}))
    assert client.answer_to(50)["result"]["stopReason"] == "cancelled"


def test_an_answer_that_is_written_anew_is_a_further_message(acp: Acp, alice: Person) -> None:
    client = acp("slow", alice)
    session_id = client.new_session()
    params = {"sessionId": session_id, "prompt": HELLO}
    client.socket.send(
        json.dumps({"jsonrpc": "2.0", "id": 50, "method": "session/prompt", "params": params})
    )
    while not client.text():
        client.seen.append(json.loads(client.socket.recv(timeout=60)))
    running = Response.objects.get()
    replaced = fanout.text_message(
        chat_id=running.chat_id, response_id=running.pk, text="Another beginning"
    )
    fanout.publish_from_thread(running.chat_id, [replaced])

    def rewritten() -> list[str]:
        chunks = client.updates("agent_message_chunk")
        return [u["content"]["text"] for u in chunks if u["messageId"] == f"{running.pk}-1"]

    while not rewritten():
        client.seen.append(json.loads(client.socket.recv(timeout=60)))
    client.socket.send(json.dumps({"jsonrpc": "2.0", "method": "session/cancel", "params": params}))

    assert rewritten()[0] == "Another beginning"
    thought = client.updates("agent_thought_chunk")[0]["content"]["text"]
    assert thought == "The answer was interrupted and is being rewritten."
    assert client.answer_to(50)["result"]["stopReason"] == "cancelled"


def test_the_tools_of_an_agent_are_listed_and_called_by_it_alone(acp: Acp, alice: Person) -> None:
    client = acp("careful", alice)

    tools = client.call("tools/list")["result"]["tools"]
    refused = client.call("tools/call", name=tools[0]["name"], arguments={})

    assert [tool["name"] for tool in tools] == ["edit_picture"]
    assert tools[0]["inputSchema"]["type"] == "object"
    assert refused["error"]["code"] == -32601

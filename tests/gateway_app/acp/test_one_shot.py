"""A POST that names no connection: JSON-RPC in, JSON or an event stream out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agents_app.models import Agent
from payments_app.tokens import issuance
from sessions_app.models import Response, Session
from tests.gateway_app.acp.socket_client import HELLO
from tests.gateway_app.acp.stored_answers import stored_signatures
from tests.sessions_app.access.scoped_keys import key_of
from tests.sessions_app.billing.paid_agents import priced, rich, usd
from uamp.digital_source import AI_MADE

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Person

pytestmark = pytest.mark.any_database

Rpc = dict[str, Any]
QUESTION = [{"role": "user", "content": "Hello there"}]


def call(
    web: httpx.Client, agent: str, method: str, who: Person | None = None, **params: Any
) -> Rpc:
    """Post a request and return its response, which is JSON."""
    body = {"jsonrpc": "2.0", "id": "req-1", "method": method, "params": params}
    answer = web.post(f"/agents/{agent}/acp", json=body, headers=who.headers if who else {})
    assert answer.status_code == 200, answer.text
    reply: Rpc = answer.json()
    assert reply["id"] == "req-1"
    return reply


def streamed(
    web: httpx.Client, agent: str, method: str, who: Person | None = None, **params: Any
) -> list[Rpc]:
    """Post a request and return the messages of the event stream that answers it."""
    body = {"jsonrpc": "2.0", "id": "req-1", "method": method, "params": params}
    headers = {"Accept": "text/event-stream", **(who.headers if who else {})}
    answer = web.post(f"/agents/{agent}/acp", json=body, headers=headers)
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines()]
    return [json.loads(line) for line in lines if line.startswith("{")]


def test_the_shapes_of_the_specification(web: httpx.Client) -> None:
    initialize_result = call(web, "echo", "initialize")["result"]
    answer = call(web, "echo", "prompt/submit", messages=QUESTION)
    started, *progress, last = streamed(web, "echo", "prompt/submit", messages=QUESTION)

    assert initialize_result["protocolVersion"] == "1.0"
    assert initialize_result["serverInfo"]["name"] == "echo"
    assert initialize_result["capabilities"] == {"streaming": True, "tools": True}
    results = [answer["result"], last["result"]]
    signatures = [result.pop("_meta") for result in results]
    assert signatures == [
        {"digitalSourceType": AI_MADE, "uamp_signature": stored} for stored in stored_signatures()
    ]
    assert results == [{"status": "complete", "content": "Hello there"}] * 2
    assert started["method"] == "prompt/started"
    assert started["params"] == {"requestId": "req-1"}
    assert {message["method"] for message in progress} == {"prompt/progress"}
    assert "".join(message["params"]["content"] for message in progress) == "Hello there"


def test_a_session_continues_over_several_requests(web: httpx.Client, alice: Person) -> None:
    session_id = call(web, "echo", "session/new", alice, cwd="/here")["result"]["sessionId"]
    first = call(web, "echo", "session/prompt", alice, sessionId=session_id, prompt=HELLO)
    *updates, second = streamed(
        web, "echo", "session/prompt", alice, sessionId=session_id, prompt=HELLO
    )

    assert first["result"]["content"] == "Hello there"
    assert (first["result"]["stopReason"], second["result"]["stopReason"]) == ("end_turn",) * 2
    assert updates[-1]["params"]["sessionId"] == session_id
    loaded = call(web, "echo", "session/load", alice, sessionId=session_id)["result"]
    kinds = [update["sessionUpdate"] for update in loaded["updates"]]
    assert kinds == ["user_message_chunk", "agent_message_chunk"] * 2
    *replayed, done = streamed(web, "echo", "session/load", alice, sessionId=session_id)
    assert [m["params"]["update"] for m in replayed] == loaded["updates"]
    assert done["result"] == {"sessionId": session_id}
    listed = call(web, "echo", "session/list", alice)["result"]["sessions"]
    assert [(s["sessionId"], s["cwd"]) for s in listed] == [(session_id, "/here")]
    assert Session.objects.count() == 1


def test_a_session_of_another_person_or_agent_is_not_there(
    web: httpx.Client, alice: Person, bob: Person
) -> None:
    session_id = call(web, "echo", "session/new", alice)["result"]["sessionId"]

    for method in ("session/prompt", "session/load", "session/resume", "session/close"):
        for agent, who in (("echo", bob), ("thinker", alice)):
            refused = call(web, agent, method, who, sessionId=session_id, prompt=HELLO)["error"]
            assert (refused["code"], refused["data"]["code"]) == (-32002, "unknown_session")
    assert not Response.objects.exists()
    assert Session.objects.count() == 1


@pytest.mark.parametrize("method", ["prompt/submit", "session/prompt"])
def test_an_unpaid_prompt_is_refused_and_goes_through_with_a_token(
    web: httpx.Client, alice: Person, method: str
) -> None:
    priced("dear", per_answer="0.25")
    session_id = call(web, "dear", "session/new", alice)["result"]["sessionId"]
    params = {"sessionId": session_id, "prompt": HELLO, "messages": QUESTION}
    user_id = rich(alice).user.pk
    token = issuance.issue(key="token", user_id=user_id, amount=usd("1"), expires_in=600).token

    refused = call(web, "dear", method, alice, **params)["error"]
    bad = call(web, "dear", method, alice, payment_token="ptok_unknown", **params)["error"]
    assert not Response.objects.exists()
    paid = call(web, "dear", method, alice, payment_token=token, **params)["result"]

    assert (refused["code"], bad["code"]) == (-32402, -32402)
    assert refused["data"]["accepts"]
    assert paid["content"] == "Hello there"


def test_a_growing_answer_continues_with_a_further_token(web: httpx.Client, alice: Person) -> None:
    priced("growing", output_per_1k="1")
    session_id = call(web, "growing", "session/new", alice)["result"]["sessionId"]
    user_id = rich(alice).user.pk
    first, second = [
        issuance.issue(key=f"t{n}", user_id=user_id, amount=usd(amount), expires_in=600).token
        for n, amount in enumerate(("0.6", "5"))
    ]
    long = [{"type": "text", "text": " ".join(f"word{n}" for n in range(800))}]
    params = {"sessionId": session_id, "prompt": long}

    grown = call(web, "growing", "session/prompt", alice, payment_token=first, **params)["error"]
    paid = call(web, "growing", "session/prompt", alice, payment_token=second, **params)["result"]

    assert (grown["code"], paid["stopReason"]) == (-32402, "end_turn")
    assert paid["content"] == long[0]["text"]
    assert Response.objects.count() == 1


def test_tools_are_listed_and_called_by_the_agent_alone(web: httpx.Client) -> None:
    tools = call(web, "careful", "tools/list")["result"]["tools"]

    assert [tool["name"] for tool in tools] == ["edit_picture"]
    refused = call(web, "careful", "tools/call", name="edit_picture", arguments={})["error"]
    assert refused["code"] == -32601
    assert call(web, "no-such-agent", "tools/list")["error"]["code"] == -32002


def test_a_key_lists_the_tools_of_its_agents_alone(web: httpx.Client, alice: Person) -> None:
    echo = Agent.objects.get(name="echo")
    codes = [
        call(web, name, "tools/list", who).get("error", {}).get("code")
        for who in (key_of(alice, agents=[echo.pk]), key_of(alice, "chats:write"))
        for name in ("echo", "careful")
    ]
    assert codes == [None, -32002, -32000, -32000]


def test_errors_are_those_of_json_rpc(web: httpx.Client) -> None:
    assert call(web, "echo", "session/fork")["error"]["code"] == -32601
    assert call(web, "echo", "session/prompt")["error"]["code"] == -32602
    notification = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "none"}}
    accepted = web.post("/agents/echo/acp", json={**notification, "method": "x"})
    assert (accepted.status_code, accepted.content) == (202, b"")
    assert "Content-Type" not in accepted.headers

"""Requests to an agent that is switched off, or private to others, are refused at once.

Over every protocol, in its words. The chats that such an agent is in still list it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from websockets.sync.client import connect

from agents_app.models import Agent
from chat_app.models import ChatEvent, Message
from sessions_app.models import Response
from tests.client import WAIT_SECONDS, UampClient, new_event
from tests.gateway_app.acp.socket_client import AcpClient
from tests.live_server import quick_agent, shared_chat
from tests.sessions_app.transports.http_requests import opened, post, stream_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import httpx

    from tests.conftest import ServerAddress
    from tests.live_server import Dial, Person

    Headers = Mapping[str, str]
    Ask = Callable[[ServerAddress, httpx.Client, Headers], str]

SAID = [{"role": "user", "content": "hello"}]
PARTS = [{"text": "hello"}]
OLD_PARTS = [{"kind": "text", "text": "hello"}]


def posted(path: str, body: Any) -> Ask:
    """Return a transport of one request, which returns the body of its answer."""

    def ask(_server: ServerAddress, web: httpx.Client, headers: Headers) -> str:
        return web.post(path, json=body, headers=dict(headers)).text

    return ask


def rpc(path: str, method: str, params: Any) -> Ask:
    """Return a transport of one call of JSON-RPC."""
    return posted(path, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


def task(parts: Any, role: str, **members: Any) -> dict[str, Any]:
    """Return the parameters of a message of A2A."""
    return {"message": {"messageId": "m", "role": role, **members, **parts}}


def opening(agent: str, headers: Headers) -> dict[str, Any]:
    """Return the event that opens a session, in the chat that the headers name."""
    chat = {"chat": headers["X-Chat-Id"]} if "X-Chat-Id" in headers else {}
    return new_event("session.create", uamp_version="1.0", session={}, agent=agent, **chat)


def uamp_socket(server: ServerAddress, _web: httpx.Client, headers: Headers) -> str:
    with UampClient(f"{server.ws}/uamp", headers=dict(headers)) as client:
        client.send_raw(json.dumps(opening("helper", headers)))
        return json.dumps(client.receive())


def uamp_batch(_server: ServerAddress, web: httpx.Client, headers: Headers) -> str:
    turn = [new_event("input.text", text="hello"), new_event("response.create")]
    batch = [opening("helper", headers), *turn]
    return web.post("/uamp", json=batch, headers=dict(headers)).text


def uamp_events(_server: ServerAddress, web: httpx.Client, headers: Headers) -> str:
    return web.post("/events", json=opening("helper", headers), headers=dict(headers)).text


def acp_socket(server: ServerAddress, _web: httpx.Client, headers: Headers) -> str:
    url = f"{server.ws}/agents/helper/acp"
    with connect(url, additional_headers=dict(headers), proxy=None) as socket:
        client = AcpClient(socket)
        client.call("initialize", protocolVersion=1)
        return json.dumps(client.call("session/new", cwd="/", mcpServers=[]))


def realtime(path: str) -> Ask:
    def ask(server: ServerAddress, _web: httpx.Client, headers: Headers) -> str:
        with connect(server.ws + path, additional_headers=dict(headers), proxy=None) as socket:
            return str(socket.recv(timeout=WAIT_SECONDS))

    return ask


def responses_socket(server: ServerAddress, _web: httpx.Client, headers: Headers) -> str:
    url = f"{server.ws}/agents/helper/responses"
    with connect(url, additional_headers=dict(headers), proxy=None) as socket:
        event = {"type": "response.create", "model": "helper", "input": "hello"}
        socket.send(json.dumps(event))
        while event["type"] not in {"error", "response.failed", "response.completed"}:
            event = json.loads(socket.recv(timeout=WAIT_SECONDS))
        return json.dumps(event)


def rest(_server: ServerAddress, web: httpx.Client, headers: Headers) -> str:
    chat = {"chat": headers["X-Chat-Id"]} if "X-Chat-Id" in headers else {}
    body = {"agent": "helper", "content": "hello", **chat}
    return web.post("/api/v1/responses", json=body, headers=dict(headers)).text


NEW = {"parts": PARTS}
TRANSPORTS: dict[str, Ask] = {
    "UAMP WebSocket": uamp_socket,
    "UAMP batch": uamp_batch,
    "UAMP events": uamp_events,
    "REST": rest,
    "Completions": posted("/agents/helper/chat/completions", {"messages": SAID}),
    "Completions, streamed": posted(
        "/agents/helper/chat/completions", {"messages": SAID, "stream": True}
    ),
    "Completions, by model": posted("/v1/chat/completions", {"messages": SAID, "model": "helper"}),
    "Responses": posted("/agents/helper/responses", {"input": "hello"}),
    "Responses, streamed": posted("/agents/helper/responses", {"input": "hello", "stream": True}),
    "Responses WebSocket": responses_socket,
    "Messages": posted(
        "/agents/helper/v1/messages", {"model": "m", "max_tokens": 9, "messages": SAID}
    ),
    "AG-UI": posted(
        "/agents/helper/agui",
        {"threadId": "t", "runId": "r", "messages": [{"id": "m", **SAID[0]}]},
    ),
    "A2A 1.0 JSON-RPC": rpc("/agents/helper/a2a", "SendMessage", task(NEW, "ROLE_USER")),
    "A2A 1.0 JSON-RPC, streamed": rpc(
        "/agents/helper/a2a", "SendStreamingMessage", task(NEW, "ROLE_USER")
    ),
    "A2A 0.3 JSON-RPC": rpc(
        "/agents/helper/a2a", "message/send", task({"parts": OLD_PARTS}, "user", kind="message")
    ),
    "A2A 1.0 REST": posted("/agents/helper/a2a/rest/message:send", task(NEW, "ROLE_USER")),
    "A2A 0.3 REST": posted(
        "/agents/helper/a2a/rest/v1/message:send", task({"content": PARTS}, "ROLE_USER")
    ),
    "/tasks": posted(
        "/agents/helper/tasks",
        {"message": {"role": "user", "parts": [{"type": "text", "text": "hello"}]}},
    ),
    "ACP": acp_socket,
    "ACP of webagents": rpc("/agents/helper/acp", "prompt/submit", {"messages": SAID}),
    "Realtime GA": realtime("/v1/realtime?model=helper"),
    "Realtime beta": realtime("/agents/helper/realtime"),
}


@pytest.fixture(autouse=True)
def _agents(demo: ServerAddress) -> None:
    quick_agent("helper", "echo")
    quick_agent("other", "echo")


def switch_off() -> None:
    """Switch the agent off in this process, which forgets what it remembers of it."""
    agent = Agent.objects.get(name="helper")
    agent.is_enabled = False
    agent.save()


def make_private(owner: Person | None = None) -> None:
    """Make the agent private to a person."""
    agent = Agent.objects.get(name="helper")
    agent.is_public, agent.owner = False, owner.user if owner else None
    agent.save()


@pytest.mark.sampled
@pytest.mark.parametrize("where", ["alone", "in a chat"])
@pytest.mark.parametrize("name", TRANSPORTS)
def test_the_code_and_the_reason_come_over_every_transport(
    demo: ServerAddress, web: httpx.Client, alice: Person, name: str, where: str
) -> None:
    headers = dict(alice.headers)
    if where == "in a chat":
        headers["X-Chat-Id"] = shared_chat(alice, agents=("helper", "other")).pk
    switch_off()
    answer = TRANSPORTS[name](demo, web, headers)
    assert "agent_disabled" in answer.lower(), answer
    assert "helper is switched off" in answer, answer
    assert not Response.objects.exists()
    assert not Message.objects.exists()


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", TRANSPORTS)
def test_an_agent_that_was_made_private_does_not_answer_in_a_chat_that_shows_it(
    demo: ServerAddress, web: httpx.Client, alice: Person, name: str
) -> None:
    chat = shared_chat(alice, agents=("helper", "other")).pk
    make_private()
    answer = TRANSPORTS[name](demo, web, {**alice.headers, "X-Chat-Id": chat})
    refusal = "helper is private: only its owner and operators may use it"
    if name.startswith("Realtime"):  # which reads what the agent can do before it sees the chat
        refusal = "There is no agent 'helper' that you may use."
    assert refusal in answer, answer
    assert not Response.objects.exists()
    assert not Message.objects.exists()


def test_an_agent_of_others_is_not_there_whether_it_is_switched_off_or_not(
    web: httpx.Client, alice: Person, bob: Person
) -> None:
    Agent.objects.filter(name="helper").update(is_public=False, owner=bob.user)
    path, body = "/api/v1/responses", {"agent": "helper", "content": "hello"}

    def refusal(who: Person) -> tuple[str, str]:
        problem = web.post(path, json=body, headers=who.headers).json()
        return problem["code"], problem["detail"]

    before = refusal(alice)
    switch_off()
    assert refusal(alice) == before
    assert (before[0], refusal(bob)[0]) == ("agent_not_found", "agent_disabled")


# --- Sessions that were open before ---


@pytest.mark.parametrize("is_in_chat", [False, True])
def test_an_open_session_of_uamp(dial: Dial, alice: Person, *, is_in_chat: bool) -> None:
    client = dial(alice)
    chat = {"chat": shared_chat(alice, agents=("helper",)).pk} if is_in_chat else {}
    client.create_session(agent="helper", **chat)
    switch_off()
    client.ask("hello")
    error = client.until("session.error", "response.error")[-1]["error"]
    assert (error["code"], error["message"]) == ("agent_disabled", "helper is switched off.")
    assert not Response.objects.exists()


def test_an_open_session_over_sse(web: httpx.Client) -> None:
    session_id = opened(web, agent="helper")
    with stream_of(web, session_id):
        switch_off()
        post(web, "input.text", session_id, text="hello")
        # The refusal is the answer to the request; the stream says nothing.
        answer = post(web, "response.create", session_id)
    assert (answer.status_code, answer.json()["code"]) == (404, "agent_disabled")
    assert not Response.objects.exists()


def test_an_open_session_of_acp(demo: ServerAddress, alice: Person) -> None:
    url = f"{demo.ws}/agents/helper/acp"
    with connect(url, additional_headers=alice.headers, proxy=None) as socket:
        client = AcpClient(socket)
        session_id = client.new_session()
        switch_off()
        prompt = [{"type": "text", "text": "hello"}]
        error = client.call("session/prompt", sessionId=session_id, prompt=prompt)["error"]
    assert error["data"]["code"] == "agent_disabled"


def test_an_open_session_of_realtime(demo: ServerAddress, alice: Person) -> None:
    url = f"{demo.ws}/v1/realtime?model=helper"
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    with connect(url, additional_headers=alice.headers, proxy=None) as socket:
        socket.recv(timeout=WAIT_SECONDS)
        switch_off()
        socket.send(json.dumps({"type": "conversation.item.create", "item": item}))
        socket.send(json.dumps({"type": "response.create"}))
        while "error" not in (event := json.loads(socket.recv(timeout=WAIT_SECONDS))):
            pass
    assert event["error"]["code"] == "agent_disabled"


# --- Chats with several agents ---


def test_a_mention_beside_others_is_refused_and_they_answer(dial: Dial, alice: Person) -> None:
    chat = shared_chat(alice, agents=("helper", "other"))
    switch_off()
    client = dial(alice)
    client.create_session(chat=chat.pk)
    client.ask("@helper @other hello")
    frames = client.until("agent.stopped")
    while not any(frame["type"] == "response.done" for frame in frames):
        frames += client.until("response.done")
    (stopped,) = [frame for frame in frames if frame["type"] == "agent.stopped"]
    assert (stopped["agent"], stopped["reason"]) == ("helper", "disabled")
    assert stopped["message"] == "helper does not answer: it is switched off."
    assert stopped["message_id"] == Message.objects.get(role="user").pk
    assert Response.objects.get().agent.name == "other"


def test_an_agent_that_was_not_named_says_nothing_where_another_one_answers(
    dial: Dial, alice: Person
) -> None:
    chat = shared_chat(alice, agents=("helper", "other"), trigger="always")
    switch_off()
    client = dial(alice)
    client.create_session(chat=chat.pk)
    client.answer("hello")
    assert not ChatEvent.objects.filter(type="agent.stopped").exists()
    Agent.objects.filter(name="other").update(is_enabled=False)
    client.ask("hello")
    names = {client.until("agent.stopped")[-1]["agent"] for _ in range(2)}
    assert names == {"helper", "other"}


def test_a_mention_over_requests(web: httpx.Client, alice: Person) -> None:
    chat = shared_chat(alice, agents=("helper", "other"))
    switch_off()
    body = {"content": "@helper hello"}
    answer = web.post(f"/api/v1/chats/{chat.pk}/messages", json=body, headers=alice.headers)
    assert answer.status_code == 201, answer.text
    assert answer.json()["unanswered"] == {
        "code": "agent_disabled",
        "message": "helper does not answer: it is switched off.",
    }
    # The members read what was written.
    assert Message.objects.get().content == "@helper hello"
    batch = [
        new_event("session.create", uamp_version="1.0", session={}, chat=chat.pk),
        new_event("input.text", text="@helper hello again"),
        new_event("response.create"),
    ]
    events = web.post("/uamp", json=batch, headers=alice.headers).json()
    assert "disabled" in [event.get("reason") for event in events], events
    answered = web.post(
        f"/api/v1/chats/{chat.pk}/messages", json={"content": "@other hi"}, headers=alice.headers
    )
    assert answered.json()["unanswered"] is None


def test_a_mention_by_an_agent(dial: Dial, alice: Person) -> None:
    quick_agent("curious", "asker", asks=["helper"], says="what do you think?")
    chat = shared_chat(alice, agents=("helper", "curious"))
    switch_off()
    client = dial(alice)
    client.create_session(chat=chat.pk)
    client.ask("@curious hello")
    stopped = client.until("agent.stopped")[-1]
    assert (stopped["agent"], stopped["reason"]) == ("helper", "disabled")
    assert stopped["mentioned_by"] == "curious"
    assert stopped["message"].endswith("it is switched off.")


def test_an_answer_is_not_made_again(web: httpx.Client, dial: Dial, alice: Person) -> None:
    chat = shared_chat(alice, agents=("helper", "other"))
    client = dial(alice)
    client.create_session(chat=chat.pk)
    client.answer("@helper hello")
    switch_off()
    response = Response.objects.get()
    refused = web.post(f"/api/v1/responses/{response.pk}/retry", json={}, headers=alice.headers)
    assert (refused.status_code, refused.json()["code"]) == (404, "agent_disabled")
    assert Response.objects.count() == 1


# --- Chats with an agent that was made private ---

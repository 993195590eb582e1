"""ACP over Streamable HTTP: any process answers, and streams that open late miss nothing."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone
from PIL import Image

from agents_app.models import Agent
from gateway_app.acp import methods
from payments_app.tokens import issuance
from sessions_app import http_connections
from sessions_app.models import HttpConnection, Response, Session, UnansweredRequest
from sessions_app.process import retention
from tests.client import wait_until
from tests.gateway_app.acp.http_client import HttpAcpClient
from tests.gateway_app.acp.socket_client import HELLO
from tests.live_server import shared_chat
from tests.sessions_app.access.scoped_keys import key_of
from tests.sessions_app.billing.paid_agents import priced, rich, usd

if TYPE_CHECKING:
    import httpx

    from gateway_app.acp.methods import AcpPort
    from gateway_app.acp.read import Rpc
    from tests.conftest import ServerAddress
    from tests.live_server import Person

pytestmark = pytest.mark.any_database

Open = Callable[..., HttpAcpClient]


@pytest.fixture
def acp(demo: ServerAddress) -> Iterator[Open]:
    """Give a function that opens a connection to an agent."""
    with ExitStack() as clients:

        def opened(agent: str, who: Person | None = None) -> HttpAcpClient:
            return clients.enter_context(HttpAcpClient(demo, agent, who)).initialize()

        yield opened


def tokens_of(alice: Person, *amounts: str) -> list[str]:
    user_id = rich(alice).user.pk
    return [
        issuance.issue(key=f"t{n}", user_id=user_id, amount=usd(amount), expires_in=600).token
        for n, amount in enumerate(amounts)
    ]


def test_a_prompt_is_answered_on_the_stream_of_its_session(acp: Open, alice: Person) -> None:
    client = acp("thinker", alice)
    session_id = client.new_session()

    answer = client.prompt(session_id)

    assert answer["result"]["stopReason"] == "end_turn"
    assert answer["result"]["usage"]["totalTokens"] == 32
    assert client.text() == "I thought about it. You asked: Hello there"
    assert client.updates("agent_thought_chunk")
    assert client.prompt(session_id)["result"]["stopReason"] == "end_turn"
    session = Session.objects.get()
    assert (session.transport, session.user) == ("acp", alice.user)
    assert not UnansweredRequest.objects.exists()


def test_a_stream_that_opens_late_has_the_whole_answer(acp: Open, alice: Person) -> None:
    client = acp("thinker", alice)
    session_id = client.new_session(is_read=False)
    request_id = client.send("session/prompt", sessionId=session_id, prompt=HELLO)
    wait_until(Response.objects.filter(finished_at__isnull=False).exists)

    client.read(session_id)

    assert client.answer_to(request_id)["result"]["stopReason"] == "end_turn"
    assert client.text() == "I thought about it. You asked: Hello there"
    assert client.updates("agent_thought_chunk")


def test_a_visitor_has_a_connection_by_its_id(acp: Open) -> None:
    client = acp("echo")
    session_id = client.new_session()

    assert client.prompt(session_id)["result"]["stopReason"] == "end_turn"
    assert client.text() == "Hello there"


def test_a_posted_request_begins_one_turn_however_often_it_comes(acp: Open, alice: Person) -> None:
    client = acp("echo", alice)
    session_id = client.new_session(is_read=False)
    params = {"sessionId": session_id, "prompt": HELLO}
    request_id = client.send("session/prompt", **params)
    wait_until(Response.objects.filter(finished_at__isnull=False).exists)

    client.post({"id": request_id, "method": "session/prompt", "params": params}, session_id)

    client.read(session_id)
    assert client.answer_to(request_id)["result"]["stopReason"] == "end_turn"
    assert Response.objects.count() == 1


def test_a_notification_cancels_a_prompt(acp: Open, alice: Person) -> None:
    client = acp("slow", alice)
    session_id = client.new_session()
    params = {"sessionId": session_id, "prompt": HELLO}
    request_id = client.send("session/prompt", **params)
    wait_until(Response.objects.exists)
    second = client.call("session/prompt", **params)["error"]

    client.post({"method": "session/cancel", "params": {"sessionId": session_id}}, session_id)

    assert second["code"] == -32600
    assert client.answer_to(request_id)["result"]["stopReason"] == "cancelled"


def test_a_process_that_ends_before_it_wrote_the_response_owes_its_answer(
    acp: Open, alice: Person
) -> None:
    client = acp("echo", alice)
    session_id = client.new_session(is_read=False)
    request_id = client.send("session/prompt", sessionId=session_id, prompt=HELLO)
    wait_until(Response.objects.filter(finished_at__isnull=False).exists)
    # Its turn was written, and its row not yet.
    UnansweredRequest.objects.update(response_id="")
    # One that began nothing.
    hour = timedelta(hours=1)
    lost = UnansweredRequest.objects.create(
        connection_id=client.connection,
        session_id=session_id,
        request_id="99",
        created_at=timezone.now() - hour,
    )

    client.read(session_id)

    assert client.answer_to(request_id)["result"]["stopReason"] == "end_turn"
    assert client.text() == "Hello there"
    refused = client.answer_to(99)["error"]
    assert refused["data"]["code"] == "interrupted"
    assert not UnansweredRequest.objects.filter(pk=lost.pk).exists()


@pytest.mark.usefixtures("celery_worker_thread")
@pytest.mark.parametrize("choice", ["allow", "reject"])
def test_a_permission_is_asked_for_on_the_stream_and_posted(
    acp: Open, alice: Person, choice: str
) -> None:
    file = io.BytesIO()
    Image.new("RGB", (8, 6), "red").save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode()
    client = acp("careful", alice)
    client.allows = choice
    session_id = client.new_session()
    picture = {"type": "image", "data": data, "mimeType": "image/png"}

    answer = client.prompt(session_id, prompt=[{"type": "text", "text": "grey"}, picture])

    assert answer["result"]["stopReason"] == "end_turn"
    assert len(client.updates("tool_call")) == 1
    last = client.updates("tool_call_update")[-1]
    assert last["status"] == ("completed" if choice == "allow" else "failed")


def test_an_unpaid_prompt_is_refused_and_a_token_continues_it(acp: Open, alice: Person) -> None:
    priced("growing", output_per_1k="1")
    client = acp("growing", alice)
    session_id = client.new_session()
    first, second = tokens_of(alice, "0.6", "5")
    long = [{"type": "text", "text": " ".join(f"word{n}" for n in range(800))}]

    assert client.prompt(session_id, prompt=long)["error"]["code"] == -32402
    assert not Response.objects.exists()
    grown = client.prompt(session_id, prompt=long, _meta={"payment_token": first})["error"]
    bad = client.prompt(session_id, prompt=long, payment_token="ptok_unknown")["error"]
    paid = client.prompt(session_id, prompt=long, payment_token=second)

    assert (grown["code"], bad["code"]) == (-32402, -32402)
    assert grown["data"]["accepts"]
    assert bad["data"]["payment_error"]
    assert paid["result"]["stopReason"] == "end_turn"
    assert client.text() == long[0]["text"]
    assert Response.objects.count() == 1


def test_a_session_is_listed_loaded_and_closed_over_another_connection(
    acp: Open, alice: Person, bob: Person
) -> None:
    first = acp("echo", alice)
    session_id = first.new_session()
    first.prompt(session_id)

    client, foreign, other = acp("echo", alice), acp("echo", bob), acp("thinker", alice)
    listed = client.call("session/list")["result"]["sessions"]
    loaded = client.call("session/load", sessionId=session_id, cwd="/", mcpServers=[])

    assert [session["sessionId"] for session in listed] == [session_id]
    assert loaded["result"] == {"sessionId": session_id}
    assert client.updates("user_message_chunk")[0]["content"] == HELLO[0]
    assert client.text() == "Hello there"
    for method in ("session/load", "session/resume", "session/prompt", "session/close"):
        for elsewhere in (foreign, other):
            refused = elsewhere.call(method, sessionId=session_id, prompt=HELLO)["error"]
            assert refused["data"]["code"] == "unknown_session"
    assert client.call("session/resume", sessionId=session_id)["result"]
    assert client.call("session/close", sessionId=session_id)["result"] == {}
    assert client.call("session/resume", sessionId=session_id)["error"]["code"] == -32002


def test_a_session_that_is_ended_elsewhere_refuses_its_prompt_and_ends_its_stream(
    acp: Open, alice: Person
) -> None:
    client = acp("slow", alice)
    session_id = client.new_session()
    request_id = client.send("session/prompt", sessionId=session_id, prompt=HELLO)
    wait_until(Response.objects.exists)
    Session.objects.update(status="closed")

    assert client.answer_to(request_id)["error"]["code"] == -32002


def test_a_connection_is_its_callers_and_ends(
    acp: Open, alice: Person, bob: Person, web: httpx.Client
) -> None:
    client = acp("echo", alice)
    session_id = client.new_session(is_read=False)
    connection_headers = {"Acp-Connection-Id": client.connection, "Accept": "text/event-stream"}
    of_session = {**connection_headers, "Acp-Session-Id": session_id}
    call = {"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": {}}

    for who in (bob.headers, {}):
        for headers in (connection_headers, of_session):
            assert web.get("/agents/echo/acp", headers={**headers, **who}).status_code == 404
        assert (
            web.post(
                "/agents/echo/acp", json=call, headers={**connection_headers, **who}
            ).status_code
            == 404
        )
        assert (
            web.delete("/agents/echo/acp", headers={**connection_headers, **who}).status_code == 404
        )
    slow = web.post("/agents/slow/acp", json=call, headers={**connection_headers, **alice.headers})
    assert slow.status_code == 404
    unknown = {**connection_headers, "Acp-Session-Id": "none", **alice.headers}
    assert web.get("/agents/echo/acp", headers=unknown).status_code == 404
    ended = web.delete("/agents/echo/acp", headers={**connection_headers, **alice.headers})
    assert ended.status_code == 202
    client._threads[0].join(15)
    assert not client._threads[0].is_alive()
    after = web.post("/agents/echo/acp", json=call, headers={**connection_headers, **alice.headers})
    assert after.status_code == 404
    client.connection = ""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ({"content": "{}", "headers": {"Content-Type": "text/plain"}}, 415),
        ({"content": "[]", "headers": {"Content-Type": "application/json"}}, 501),
        ({"content": "{", "headers": {"Content-Type": "application/json"}}, 400),
        ({"json": {"jsonrpc": "1.0", "id": 1, "method": "initialize"}}, 400),
        ({"json": {"jsonrpc": "2.0", "id": 1, "method": None, "params": {}}}, 400),
    ],
)
def test_an_invalid_message_is_refused_by_its_status(
    web: httpx.Client, arguments: dict[str, Any], status: int
) -> None:
    answer = web.post("/agents/echo/acp", **arguments)

    assert answer.status_code == status
    assert answer.json()["error"]["code"] in {-32700, -32600}
    assert web.get("/agents/echo/acp").status_code == 400
    assert web.delete("/agents/echo/acp").status_code == 400
    accept = {"Accept": "application/json", "Acp-Connection-Id": "x"}
    assert web.get("/agents/echo/acp", headers=accept).status_code == 406


def test_a_connection_owes_a_bounded_number_of_answers(
    acp: Open, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = acp("echo", alice)
    session_id = client.new_session(is_read=False)
    monkeypatch.setattr(http_connections, "REQUESTS_PER_CONNECTION", 1)
    client.send("session/prompt", sessionId=session_id, prompt=HELLO)

    body = {"jsonrpc": "2.0", "id": 9, "method": "session/list", "params": {}}
    refused = client.web.post(client.url, json=body, headers=client.headers())

    assert refused.status_code == 400
    assert json.loads(refused.content)["error"]["data"]["code"] == "too_many_items"


def test_a_request_whose_answer_does_not_fit_is_answered_with_its_refusal(
    acp: Open, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = acp("echo", alice)
    new_session = methods.new_session

    async def open_meanwhile(port: AcpPort, message: Rpc) -> dict[str, Any]:
        # Meanwhile, other requests of the connection have been answered.
        monkeypatch.setattr(http_connections, "KEPT_CHARS_PER_CONNECTION", -1)
        return await new_session(port, message)

    monkeypatch.setattr(methods, "new_session", open_meanwhile)

    # A refused POST would be sent again, and open another session.
    answer = client.call("session/new", cwd="/", mcpServers=[])

    assert answer["error"]["data"]["code"] == "too_many_items"
    assert Session.objects.count() == 1
    assert not UnansweredRequest.objects.exists()


def test_a_visitor_is_not_advised_to_delete_the_connections_of_others(
    acp: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = acp("echo")
    monkeypatch.setattr(http_connections, "KEPT_CHARS_PER_PRINCIPAL", -1)
    body = {"jsonrpc": "2.0", "id": 9, "method": "session/list", "params": {}}

    refused = client.web.post(client.url, json=body, headers=client.headers())

    assert refused.status_code == 400
    message = refused.json()["error"]["message"]
    assert "visitors from your address" in message
    assert "delete" not in message


def test_a_connection_that_is_not_used_is_deleted(acp: Open, alice: Person) -> None:
    client = acp("echo", alice)
    used = acp("echo", alice)
    session_id = client.new_session(is_read=False)
    client.send("session/prompt", sessionId=session_id, prompt=HELLO)
    ago = timezone.now() - timedelta(hours=retention.CONNECTION_HOURS, seconds=1)
    HttpConnection.objects.filter(pk=client.connection).update(seen_at=ago)

    retention.sweep()

    assert HttpConnection.objects.get().pk == used.connection
    assert not UnansweredRequest.objects.exists()
    client.connection = ""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "narrow",
    [{"chats": True}, {"agents": True}, {"scopes": ("chats:read",)}, {"protocols": ["acp"]}],
    ids=["chats", "agents", "scopes", "protocols"],
)
def test_a_connection_is_not_used_by_a_key_of_other_rights(
    acp: Open, web: httpx.Client, alice: Person, narrow: dict[str, Any]
) -> None:
    client = acp("echo", alice)
    session_id = client.new_session()
    client.prompt(session_id)
    scopes, more = narrow.get("scopes", ()), {}
    if "chats" in narrow:
        more["chats"] = [shared_chat(alice).pk]
    if "agents" in narrow:
        more["agents"] = [Agent.objects.get(name="thinker").pk]
    if "protocols" in narrow:
        more["protocols"] = narrow["protocols"]
    other = key_of(alice, *scopes, **more).headers
    connection_headers = {**other, "Acp-Connection-Id": client.connection}
    load = {
        "jsonrpc": "2.0",
        "id": 9,
        "method": "session/list",
        "params": {"cwd": "/", "mcpServers": []},
    }
    refused = [
        web.get("/agents/echo/acp", headers={**connection_headers, "Accept": "text/event-stream"}),
        web.post("/agents/echo/acp", json=load, headers=connection_headers),
        web.delete("/agents/echo/acp", headers=connection_headers),
    ]
    assert [answer.status_code for answer in refused] == [404] * 3, refused[0].text
    assert HttpConnection.objects.filter(pk=client.connection).exists()
    assert not UnansweredRequest.objects.exists()
    # Another key of the same rights goes on where the first one was.
    again = key_of(alice).headers
    posted = web.post(
        "/agents/echo/acp", json=load, headers={**again, "Acp-Connection-Id": client.connection}
    )
    assert posted.status_code == 202

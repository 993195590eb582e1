"""A prompt in a shared chat gets its own answer, while another member's is being written."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from websockets.sync.client import connect

from sessions_app.models import Response
from sessions_app.turn import start
from sessions_app.turn.assembly import assemble
from tests.client import wait_until
from tests.gateway_app.acp.http_client import HttpAcpClient
from tests.gateway_app.acp.socket_client import HELLO, AcpClient
from tests.gateway_app.openai_responses.requests import respond, text_of
from tests.live_server import shared_chat

if TYPE_CHECKING:
    import httpx

    from chat_app.models import Chat
    from tests.conftest import ServerAddress
    from tests.live_server import Person

pytestmark = pytest.mark.any_database

STARTING_SECONDS = 0.5


@pytest.fixture
def chat(web: httpx.Client, alice: Person, bob: Person, monkeypatch: pytest.MonkeyPatch) -> Chat:
    """Return a chat in which an agent writes an answer for Bob; other turns start slowly."""
    chat = shared_chat(alice, bob, agents=("slow", "echo"))
    body = {"background": True, "conversation": chat.pk}
    assert respond(web, "slow", body, bob).status_code == 200
    wait_until(lambda: Response.objects.exclude(text="").exists())

    async def assemble_slowly(*args: Any, **options: Any) -> Any:
        await asyncio.sleep(STARTING_SECONDS)
        return await assemble(*args, **options)

    monkeypatch.setattr(start, "assemble", assemble_slowly)
    return chat


def test_a_responses_socket_has_its_own_answer(
    demo: ServerAddress, alice: Person, chat: Chat
) -> None:
    url = f"{demo.ws}/agents/echo/responses"
    create = {"type": "response.create", "input": "Hello there", "conversation": chat.pk}
    with connect(url, additional_headers=alice.headers, proxy=None) as socket:
        socket.send(json.dumps(create))
        events = [json.loads(socket.recv(30))]
        while events[-1]["type"] != "response.completed":
            events.append(json.loads(socket.recv(30)))

    assert text_of(events[-1]["response"]) == "Hello there"
    assert events[0]["type"] == "response.created"
    assert {event["response"]["id"] for event in events if "response" in event} == {
        Response.objects.get(agent__name="echo").pk
    }


def test_an_acp_socket_has_its_own_answer(demo: ServerAddress, alice: Person, chat: Chat) -> None:
    headers = {**alice.headers, "X-Chat-Id": chat.pk}
    with connect(f"{demo.ws}/agents/echo/acp", additional_headers=headers, proxy=None) as socket:
        client = AcpClient(socket)
        answer = client.call("session/prompt", sessionId=client.new_session(), prompt=HELLO)

    assert answer["result"]["stopReason"] == "end_turn"
    assert client.text() == "Hello there"


def test_an_acp_stream_has_its_own_answer(demo: ServerAddress, alice: Person, chat: Chat) -> None:
    with HttpAcpClient(demo, "echo", alice) as client:
        client.web.headers["X-Chat-Id"] = chat.pk
        answer = client.initialize().prompt(client.new_session())

    assert answer["result"]["stopReason"] == "end_turn"
    assert client.text() == "Hello there"

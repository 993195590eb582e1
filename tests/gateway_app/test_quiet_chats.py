"""Requests to a chat whose agents are quiet: refused in the words of each protocol."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from websockets.sync.client import connect

from chat_app.models import Message
from sessions_app.models import Response
from tests.gateway_app.acp.socket_client import AcpClient
from tests.live_server import shared_chat

if TYPE_CHECKING:
    import httpx

    from tests.conftest import ServerAddress
    from tests.live_server import Person

pytestmark = pytest.mark.any_database

SAID = [{"role": "user", "content": "hello"}]
TASK = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
RUN = {"threadId": "t", "runId": "r", "messages": [{"id": "m", **SAID[0]}]}
# The path of a protocol, a request, and the status of its refusal.
REQUESTS: dict[str, tuple[str, dict[str, Any], int]] = {
    "completions": ("chat/completions", {"messages": SAID}, 404),
    "completions, streamed": ("chat/completions", {"messages": SAID, "stream": True}, 404),
    "messages": ("v1/messages", {"model": "m", "max_tokens": 9, "messages": SAID}, 404),
    "responses": ("responses", {"input": "hello"}, 404),
    "ag-ui": ("agui", RUN, 404),
    "a2a": ("a2a", {"method": "SendMessage", "params": {"message": TASK}}, 404),
    "acp": ("acp", {"method": "prompt/submit", "params": {"messages": SAID}}, 200),
}


def test_a_request_that_no_agent_answers_is_refused_with_the_reason(
    demo: ServerAddress, web: httpx.Client, alice: Person
) -> None:
    chat = shared_chat(alice)
    chat.agents_quiet = True
    chat.save(update_fields=["agents_quiet"])
    headers = {**alice.headers, "X-Chat-Id": chat.pk}

    for name, (path, body, status) in REQUESTS.items():
        rpc = {"jsonrpc": "2.0", "id": 1} if "method" in body else {}
        refused = web.post(f"/agents/echo/{path}", json={**rpc, **body}, headers=headers)
        assert refused.status_code == status, (name, refused.text)
        assert "the agents of this chat are paused" in refused.json()["error"]["message"], name
        assert "agent_not_found" in refused.text, name
    url = f"{demo.ws}/agents/echo/acp"
    with connect(url, additional_headers=headers, proxy=None) as socket:
        client = AcpClient(socket)
        session_id = client.new_session()
        prompt = [{"type": "text", "text": "hello"}]
        error = client.call("session/prompt", sessionId=session_id, prompt=prompt)["error"]
    assert error["code"] == -32002, json.dumps(error)
    assert not Response.objects.exists()
    # Its members see what was said.
    assert Message.objects.filter(chat=chat).count() == len(REQUESTS) + 1

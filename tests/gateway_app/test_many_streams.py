"""The streams that one client may hold open: of the same answer, and unread ones."""

from __future__ import annotations

import json
import socket
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from sessions_app.models import Response
from tests.client import wait_until
from tests.gateway_app.a2a.calls import send
from tests.sessions_app.model_server import model_server, text_chunks

if TYPE_CHECKING:
    from pytest_django import Settings

    from tests.conftest import ServerAddress
    from tests.live_server import Person

pytestmark = pytest.mark.any_database

# Four megabytes, as long as an answer may be.
LONG = [*[text_chunks("\N{GRINNING FACE}" * 10_000)[0]] * 99, *text_chunks("")[1:]]


def test_streams_of_one_task_count_as_connections(
    demo: ServerAddress, web: httpx.Client, alice: Person, settings: Settings
) -> None:
    settings.UAMP_CONNECTIONS_PER_USER = 3
    task = send(web, "slow", "count", who=alice, configuration={"returnImmediately": True})
    path = f"{demo.http}/agents/slow/a2a/rest/tasks/{task['id']}:subscribe"

    def follow(opened: ExitStack) -> int:
        client = opened.enter_context(httpx.Client(timeout=15, trust_env=False))
        request = client.build_request("GET", path, headers=alice.headers)
        return client.send(request, stream=True).status_code

    with ExitStack() as opened:
        assert [follow(opened) for _ in range(5)] == [200] * 3 + [429] * 2
        refused = web.get(path, headers=alice.headers)
        assert refused.json()["error"]["status"] == "RESOURCE_EXHAUSTED"
    with ExitStack() as opened:
        # Those were closed, and have left room.
        wait_until(lambda: follow(opened) == httpx.codes.OK)
    web.post(path.replace(":subscribe", ":cancel"), headers=alice.headers)


REQUESTS: dict[str, Any] = {
    "chat/completions": {"stream": True, "messages": [{"role": "user", "content": "Tell me all"}]},
    "agui": {
        "threadId": "t",
        "runId": "r",
        "messages": [{"id": "m", "role": "user", "content": "Tell me all"}],
    },
    "tasks": {"message": {"role": "user", "parts": [{"type": "text", "text": "Tell me all"}]}},
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("path", REQUESTS)
def test_a_client_that_reads_nothing_holds_nothing_up(
    demo: ServerAddress, web: httpx.Client, alice: Person, path: str
) -> None:
    body = json.dumps(REQUESTS[path]).encode()
    lines = [f"POST /agents/model/{path} HTTP/1.1", f"Host: {demo.host}:{demo.port}"]
    lines += [f"Authorization: {alice.headers['Authorization']}", f"Content-Length: {len(body)}"]
    head = "\r\n".join([*lines, "", ""]).encode()
    with model_server(LONG) as model, closing(socket.socket()) as client:
        model.agent()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(15)
        client.connect((demo.host, demo.port))
        client.sendall(head + body)
        assert client.recv(12) == b"HTTP/1.1 200"
        wait_until(lambda: not Response.objects.filter(status__in=Response.LIVE).exists())
        assert Response.objects.get().status == "completed"
        assert web.get("/readyz").status_code == httpx.codes.OK

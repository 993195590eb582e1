"""A client that goes in the middle of an HTTP exchange leaves nothing half done or open."""

from __future__ import annotations

import socket
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx
import pytest
from channels.layers import get_channel_layer
from django.db import transaction

from chat_app.models import Chat
from sessions_app.models import Response
from tests.client import new_event, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import ServerAddress


@contextmanager
def locked_chats() -> Iterator[None]:
    """Keep every process from writing to the chats that there are (on SQLite to anything)."""
    with transaction.atomic():
        list(Chat.objects.select_for_update())
        yield


def opened(web: httpx.Client) -> str:
    """Open a session by HTTP and return its id."""
    answer = web.post("/events", json=new_event("session.create", session={}, agent="echo"))
    session_id: str = answer.json()["session_id"]
    return session_id


def joined_groups() -> int:
    """Return the number of layer groups that have members in the server."""
    count: int = get_channel_layer().group_count
    return count


@pytest.mark.parametrize("path", ["/events", "/uamp", "/uamp/stream"])
def test_a_turn_continues_when_its_client_does_not_wait_for_the_answer(
    web: httpx.Client, path: str
) -> None:
    session_id = opened(web)
    headers = {"X-Session-ID": session_id}
    web.post("/events", json=new_event("input.text", text="one two"), headers=headers)
    events = [
        new_event("input.text", session_id=session_id, text="one two"),
        new_event("response.create", session_id=session_id),
    ]
    body = events[-1] if path == "/events" else events
    with locked_chats(), pytest.raises(httpx.ReadTimeout):
        web.post(path, json=body, headers=headers, timeout=0.5)
    wait_until(lambda: [r.status for r in Response.objects.all()] == ["completed"], 5)


def test_streams_that_are_left_at_once_are_closed(web: httpx.Client, demo: ServerAddress) -> None:
    session_id = opened(web)
    wait_until(lambda: joined_groups() == 1)  # that of all processes
    request = (
        f"GET /events/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Session-ID: {session_id}\r\n\r\n"
    ).encode()
    for attempt in range(60):
        with socket.create_connection((demo.host, demo.port)) as connection:
            connection.sendall(request)
            time.sleep(attempt / 4000)
    wait_until(lambda: joined_groups() == 1, 5)

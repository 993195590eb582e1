"""Database connections are for queries: none waits for a client or for another process."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from chat_app import markdown
from chat_app.contents import quota, storage
from sessions_app.access.auth import create_api_key
from tests import factories
from tests.threads import join_threads

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_django import Settings

    from tests.conftest import ServerAddress

# The pool of a process has 16 connections (settings.DATABASES).
CLIENTS = 20
WAIT_SECONDS = 20
pytestmark = [pytest.mark.postgres, pytest.mark.any_database]


def person(name: str) -> tuple[int, str]:
    """Return the id and an API key of a new person."""
    user = factories.user(name)
    return user.pk, create_api_key(user, name="test")


def check_others_are_answered(server: ServerAddress, key: str) -> None:
    """Ask for readiness and for a row, as another person."""
    with httpx.Client(base_url=server.http, trust_env=False, timeout=5) as web:
        assert web.get("/readyz").status_code == httpx.codes.OK
        me = web.get("/api/v1/me", headers={"Authorization": f"Bearer {key}"})
        assert me.json()["username"] == "bea"


def test_slow_readers_hold_no_connection(
    server: ServerAddress, settings: Settings, tmp_path: Path
) -> None:
    settings.MEDIA_ROOT = tmp_path
    (ada, key), (_, other) = person("ada"), person("bea")
    content = storage.store(
        bytes(16 * 1024 * 1024),
        mime_type="application/octet-stream",
        filename="a.bin",
        owner=quota.ContentOwner(user_id=ada),
    )
    request = f"GET /api/content/{content.pk} HTTP/1.1\r\nHost: localhost\r\n"
    request += f"Authorization: Bearer {key}\r\n\r\n"
    with ExitStack() as stack:
        for _ in range(CLIENTS):
            client = stack.enter_context(closing(socket.socket()))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.settimeout(WAIT_SECONDS)
            client.connect((server.host, server.port))
            client.sendall(request.encode())
            # The response has begun, and the client takes no more of it.
            assert client.recv(12) == b"HTTP/1.1 200"
        check_others_are_answered(server, other)


def test_renders_that_wait_hold_no_connection(
    server: ServerAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    (_, key), (_, other) = person("ada"), person("bea")
    waiting, go_on = threading.Semaphore(0), threading.Event()

    def ask(request: bytes, **_: Any) -> bytes:
        waiting.release()
        assert go_on.wait(WAIT_SECONDS)
        return request

    monkeypatch.setattr(markdown._processes, "ask", ask)
    statuses: list[int] = []

    def render(number: int) -> None:
        answer = httpx.post(
            f"{server.http}/api/v1/render",
            json={"text": f"text {number}"},
            headers={"Authorization": f"Bearer {key}"},
            timeout=2 * WAIT_SECONDS,
            trust_env=False,
        )
        statuses.append(answer.status_code)

    threads = [threading.Thread(target=render, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        for _ in threads:
            assert waiting.acquire(timeout=WAIT_SECONDS)
        check_others_are_answered(server, other)
    finally:
        go_on.set()
        join_threads(threads)
    assert statuses == [httpx.codes.OK] * CLIENTS

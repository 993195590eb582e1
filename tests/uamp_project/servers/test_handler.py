"""The handler answers as Django's own does, and starts a thread only for what may block."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import SyncToAsync
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, connections, reset_queries
from django.http import HttpResponse
from django.urls import ResolverMatch

from uamp_project.servers.django_handler import LoopHandler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from uamp_project.edge.transports import Message, Scope

pytestmark = pytest.mark.django_db(transaction=True)

COMPLETIONS = "/v1/chat/completions"
# What differs from one request to the next.
CHANGING = (b"Set-Cookie", b"Content-Length", b"Expires", b"X-Request-ID")
HOST = (b"host", b"127.0.0.1")
COOKIE = (b"cookie", f"{settings.SESSION_COOKIE_NAME}={'a' * 32}; csrftoken={'b' * 32}".encode())


def scope_of(method: str, path: str, *headers: tuple[bytes, bytes]) -> Scope:
    """Return the scope of a request."""
    return {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [HOST, *headers],
        "client": ("127.0.0.1", 1),
    }


async def answer(handler: ASGIHandler, scope: Scope) -> list[Message]:
    """Return the messages sent for one request, whose client stays."""
    messages: list[Message] = []
    incoming: asyncio.Queue[Message] = asyncio.Queue()
    incoming.put_nowait({"type": "http.request", "body": b"{}"})

    async def send(message: Any) -> None:
        messages.append(message)

    await handler(dict(scope), incoming.get, send)
    return messages


@pytest.fixture(autouse=True)
def as_in_a_server() -> None:
    """Leave out what Django's test client and its count of queries connect when they are used."""
    request_started.disconnect(close_old_connections)
    request_started.disconnect(reset_queries)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return the requests that get a thread of their own, as they get it."""
    started: list[object] = []

    class Noted(type(SyncToAsync.context_to_thread_executor)):  # type: ignore[misc]
        def __setitem__(self, context: object, executor: object) -> None:
            started.append(context)
            super().__setitem__(context, executor)

    monkeypatch.setattr(SyncToAsync, "context_to_thread_executor", Noted())
    return started


REQUESTS = [
    scope_of("POST", COMPLETIONS),
    scope_of("POST", COMPLETIONS, (b"host", b"elsewhere.example")),
    scope_of("PUT", COMPLETIONS),
    scope_of("OPTIONS", COMPLETIONS),
    scope_of("POST", COMPLETIONS, COOKIE),
    scope_of("GET", "/healthz"),
    scope_of("HEAD", "/login"),
    scope_of("GET", "/login", COOKIE),
    scope_of("GET", "/"),
    scope_of("POST", "/login"),
    scope_of("POST", "/login", COOKIE),
    scope_of("GET", "/not-a-path"),
    scope_of("GET", "/api/v1/chats"),
]


def comparable_start(start: Message) -> tuple[int, list[tuple[bytes, bytes]]]:
    """Return the status and the headers of a response, without values that change."""
    lines = ((name, b"" if name in CHANGING else value) for name, value in start["headers"])
    return start["status"], sorted(lines)


async def check_equal(scopes: Sequence[Scope]) -> None:
    """Check that both handlers answer alike."""
    stock, ours = ASGIHandler(), LoopHandler()
    for scope in scopes:
        expected, messages = await answer(stock, scope), await answer(ours, scope)
        assert comparable_start(messages[0]) == comparable_start(expected[0]), scope
        assert len(messages) == len(expected)


def test_status_and_headers_are_those_of_django() -> None:
    asyncio.run(check_equal(REQUESTS))


def test_over_https_too(settings: Any) -> None:
    settings.SECURE_SSL_REDIRECT, settings.SECURE_HSTS_SECONDS = True, 60
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    secure = [
        {**scope, "headers": [*scope["headers"], (b"x-forwarded-proto", b"https")]}
        for scope in REQUESTS[:8]
    ]
    asyncio.run(check_equal([*secure, *REQUESTS[:8]]))


@pytest.mark.parametrize(
    ("scope", "expected"), [(REQUESTS[0], 0), (REQUESTS[7], 1), (REQUESTS[9], 1)]
)
def test_a_thread_is_for_what_may_block(scope: Scope, expected: int, threads: list[object]) -> None:
    asyncio.run(answer(LoopHandler(), scope))

    assert len(threads) == expected


@pytest.mark.parametrize("scope", [REQUESTS[0], REQUESTS[7]])
def test_a_request_is_finished_where_its_connections_are(scope: Scope) -> None:
    finished: list[str] = []

    def note(**_: object) -> None:
        finished.append(threading.current_thread().name)

    request_finished.connect(note)
    try:
        asyncio.run(answer(LoopHandler(), scope))
    finally:
        request_finished.disconnect(note)

    on_the_loop = finished == ["MainThread"]
    assert len(finished) == 1
    assert on_the_loop is (scope is REQUESTS[0])


def test_a_view_is_cancelled_when_its_client_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []

    async def view(request: object) -> None:
        del request
        incoming.put_nowait({"type": "http.disconnect"})
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 300)
        finally:
            ended.append("view")

    incoming: asyncio.Queue[Message] = asyncio.Queue()
    incoming.put_nowait({"type": "http.request"})
    messages: list[Any] = []

    async def send(message: Any) -> None:
        messages.append(message)

    async def ask() -> None:
        handler = LoopHandler()
        monkeypatch.setattr(handler, "resolve_request", lambda _: ResolverMatch(view, (), {}))
        await handler(dict(scope_of("GET", COMPLETIONS)), incoming.get, send)

    request_finished.connect(finish := lambda **_: ended.append("request"))
    try:
        asyncio.run(ask())
    finally:
        request_finished.disconnect(finish)

    assert (ended, messages) == (["view", "request"], [])


@pytest.mark.parametrize("end", ["answered", "client left", "cancelled"])
def test_a_thread_leaves_no_connection_open(monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    used: list[Any] = []
    view_began, gone = threading.Event(), threading.Event()

    def view(request: object) -> HttpResponse:
        del request
        used.append(connections["default"])
        used[0].ensure_connection()
        view_began.set()
        if end != "answered":
            gone.wait(30)
        return HttpResponse()

    async def receive() -> Message:
        if not received:
            received.append(None)
            return {"type": "http.request"}
        assert await asyncio.to_thread(view_began.wait, 60)
        asyncio.get_running_loop().call_later(0.2, gone.set)
        if end == "cancelled":
            request[0].cancel()
        if end != "client left":
            await asyncio.wait_for(asyncio.Event().wait(), 300)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        messages.append(message)

    async def ask() -> None:
        handler = LoopHandler()
        monkeypatch.setattr(handler, "resolve_request", lambda _: ResolverMatch(view, (), {}))
        request.append(
            asyncio.ensure_future(handler(dict(scope_of("GET", "/login")), receive, send))
        )
        await asyncio.wait(request, timeout=60)
        assert request[0].cancelled() is (end == "cancelled")

    received: list[None] = []
    messages: list[Any] = []
    request: list[asyncio.Future[None]] = []
    asyncio.run(ask())

    assert [bool(messages), used[0].connection] == [end == "answered", None]

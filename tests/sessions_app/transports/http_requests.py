"""Requests and event streams of the HTTP transports."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from tests.client import (
    EventStream,
    new_event,
    open_stream,
)


def post(
    web: httpx.Client, type_: str, session_id: str = "", path: str = "/events", **fields: Any
) -> httpx.Response:
    """Send one event by HTTP, without credentials."""
    headers = {"X-Session-ID": session_id} if session_id else {}
    return web.post(path, json=new_event(type_, **fields), headers=headers)


def opened(web: httpx.Client, **fields: Any) -> str:
    """Open a session by HTTP and return its id."""
    answer = post(web, "session.create", session={}, **fields)
    assert answer.status_code == 202
    session_id: str = answer.headers["X-Session-ID"]
    return session_id


@contextmanager
def stream_of(web: httpx.Client, session_id: str, **headers: str) -> Iterator[EventStream]:
    """Open the stream of a session."""
    all_headers = {"X-Session-ID": session_id, **headers}
    with open_stream(web, "GET", "/events/stream", headers=all_headers) as stream:
        yield stream

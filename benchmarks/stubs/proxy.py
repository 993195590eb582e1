"""A proxy of bytes: a bare ASGI application that passes on a model's stream as it arrives.

It stores and parses nothing, so its cost is that of one incoming request, one outgoing request and
the bytes in between. BENCH_PROXY selects its HTTP client, `httpx` or `aiohttp`; BENCH_MODEL_URL is
the model's URL.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import aiohttp
import httpx

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    Message = dict[str, Any]

URL = os.environ.get("BENCH_MODEL_URL", "")
CLIENT = os.environ.get("BENCH_PROXY", "httpx")
HEADERS = {"content-type": "application/json"}
_clients: dict[str, Any] = {}


async def _by_httpx(body: bytes) -> AsyncGenerator[bytes, None]:
    client = _clients.setdefault("httpx", None) or httpx.AsyncClient(timeout=60)
    _clients["httpx"] = client
    async with client.stream("POST", URL, content=body, headers=HEADERS) as answer:
        async for data in answer.aiter_raw():
            yield data


async def _by_aiohttp(body: bytes) -> AsyncGenerator[bytes, None]:
    client = _clients.setdefault("aiohttp", None) or aiohttp.ClientSession()
    _clients["aiohttp"] = client
    async with client.post(URL, data=body, headers=HEADERS) as answer:
        async for data in answer.content.iter_any():
            yield data


async def application(
    scope: Message,
    receive: Callable[[], Awaitable[Message]],
    send: Callable[[Message], Awaitable[None]],
) -> None:
    """Forward a request and the stream of its answer."""
    if scope["type"] != "http":
        return
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-type", b"text/event-stream")],
        }
    )
    stream = _by_aiohttp(body) if CLIENT == "aiohttp" else _by_httpx(body)
    async for data in stream:
        await send({"type": "http.response.body", "body": data, "more_body": True})
    await send({"type": "http.response.body", "body": b""})

"""A bare broadcast: an ASGI application that keeps sending one frame to all its sockets.

Every BENCH_EVERY_MS milliseconds, each socket gets a text frame of a delta's size: the minimum cost
of fan-out on this machine. A client opens a session and then receives the frames.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

from benchmarks.stubs.floor import OPENED

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Message = dict[str, Any]
    Send = Callable[[Message], Awaitable[None]]

EVERY_SECONDS = float(os.environ.get("BENCH_EVERY_MS", "30")) / 1000
FRAME = (
    '{"type":"response.delta","event_id":"00000000-0000-4000-8000-000000000000",'
    '"timestamp":1790000000000,"response_id":"resp_0000000000000000000000000000",'
    '"session_id":"sess_0000000000000000000000000000",'
    '"delta":{"type":"text","text":"word0001 "},"offset":100}'
)
_members: set[Send] = set()
_running: set[asyncio.Task[None]] = set()


async def _broadcast() -> None:
    message = {"type": "websocket.send", "text": FRAME}
    while True:
        await asyncio.sleep(EVERY_SECONDS)
        for send in list(_members):
            try:
                await send(message)
            except OSError:  # the client is gone
                _members.discard(send)


async def application(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Send
) -> None:
    """Answer `session.create`; the socket then gets every frame."""
    if scope["type"] != "websocket":
        return
    try:
        while True:
            message = await receive()
            if message["type"] == "websocket.connect":
                await send({"type": "websocket.accept"})
            elif message["type"] == "websocket.disconnect":
                return
            elif '"session.create"' in message["text"]:
                await send({"type": "websocket.send", "text": OPENED})
                _members.add(send)
                if not _running:
                    _running.add(asyncio.ensure_future(_broadcast()))
    finally:
        _members.discard(send)

"""The floor: a bare ASGI application that answers a turn with frames recorded from the server.

It stores, parses and authenticates nothing, so its cost is that of the frames alone.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Message = dict[str, Any]

OPENED = '{"type":"session.created","session":{"id":"sess_floor"}}'
FRAMES = os.environ.get("BENCH_FRAMES", "").splitlines()


async def application(
    scope: Message,
    receive: Callable[[], Awaitable[Message]],
    send: Callable[[Message], Awaitable[None]],
) -> None:
    """Answer `session.create` once and every `response.create` with the recorded frames."""
    if scope["type"] != "websocket":
        return
    while True:
        message = await receive()
        if message["type"] == "websocket.connect":
            await send({"type": "websocket.accept"})
        elif message["type"] == "websocket.disconnect":
            return
        elif '"response.create"' in message["text"]:
            for frame in FRAMES:
                await send({"type": "websocket.send", "text": frame})
        elif '"session.create"' in message["text"]:
            await send({"type": "websocket.send", "text": OPENED})

"""The connection below an ASGI scope: its peer address, and a way to abort it.

ASGI has no message that aborts a connection whose client reads nothing: every `send`, even of a
close frame, waits for the client. uvicorn passes a bound method of its protocol as `send`, and the
protocol holds the transport. `servers.daphne_server` watches Daphne's connections, and
`servers.peer_ports` those of Hypercorn.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias

from django.conf import settings

logger = logging.getLogger(__name__)

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class Transport:
    """A server's transport, or nothing if the server does not expose it."""

    def __init__(self, transport: asyncio.Transport | None) -> None:
        self._transport = transport

    @classmethod
    def of(cls, send: Send) -> Transport:
        """Find the transport behind a server's `send`."""
        transport = getattr(getattr(send, "__self__", None), "transport", None)
        return cls(transport if hasattr(transport, "abort") else None)

    def peer(self) -> str | None:
        """Return the peer's address, '' for a local socket and None if unknown."""
        if self._transport is None:
            return None
        name = self._transport.get_extra_info("peername")
        return str(name[0]) if isinstance(name, tuple) else ""

    def watched(self, send: Send) -> Send:
        """Wrap `send` to drop a client that reads nothing for UAMP_STALL_SECONDS.

        The server then reports the disconnect to the application, and its `send` returns.
        """
        transport = self._transport
        if transport is None:
            return send
        watch = StallWatch(transport, self.drop)

        async def send_watched(message: Message) -> None:
            if transport.get_write_buffer_size():
                watch.begin()
            await send(message)
            watch.sent(_size_of(message))

        return send_watched

    def drop(self) -> None:
        """Abort the connection without sending the buffered bytes."""
        if self._transport is not None:
            logger.info("disconnected idle client %s", self.peer())
            self._transport.abort()


def _size_of(message: Message) -> int:
    """Return the size of what a message sends."""
    if texts := message.get("texts"):
        return sum(map(len, texts))
    return len(message.get("text") or message.get("bytes") or message.get("body") or "")


class StallWatch:
    """Checks that a client reads while its transport has bytes buffered.

    It has read all sent bytes except the buffered ones. The watch continues after the last `send`,
    because `transport.close()` waits for the client too.
    """

    TICKS: Final = 5

    def __init__(self, transport: asyncio.Transport, drop: Callable[[], None]) -> None:
        self._transport = transport
        self._drop = drop
        self._sent = 0
        self._drained_bytes = 0
        self._ticks = 0
        self._timer: asyncio.TimerHandle | None = None

    def sent(self, size: int) -> None:
        """Count bytes that were passed to the transport."""
        self._sent += size
        if self._timer is None and self._transport.get_write_buffer_size():
            self.begin()

    def begin(self) -> None:
        """Watch from now on, until the buffer is empty."""
        if self._timer is None:
            self._drained_bytes = self._sent - self._transport.get_write_buffer_size()
            self._ticks = 0
            self._wait()

    def _wait(self) -> None:
        pause = settings.UAMP_STALL_SECONDS / self.TICKS
        self._timer = asyncio.get_running_loop().call_later(pause, self._look)

    def _look(self) -> None:
        self._timer = None
        waiting = self._transport.get_write_buffer_size()
        if not waiting:
            return
        drained_bytes = self._sent - waiting
        self._ticks = 0 if drained_bytes > self._drained_bytes else self._ticks + 1
        self._drained_bytes = max(drained_bytes, self._drained_bytes)
        if self._ticks >= self.TICKS:
            self._drop()
        else:
            self._wait()

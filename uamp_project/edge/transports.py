"""The connection below an ASGI scope: its peer address, and a way to abort it.

ASGI has no message that aborts a connection whose client reads nothing: every `send`, even of a
close frame, waits for the client. uvicorn passes a bound method of its protocol as `send`, and the
protocol holds the transport. `servers.daphne_server` watches Daphne's connections. Hypercorn has
streams, which share a connection: here, a stream that stalls ends alone, and
`servers.hypercorn_connections` watches the connections.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeAlias

from django.conf import settings

logger = logging.getLogger(__name__)

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

PIECE_BYTES: Final = 256 * 1024
"""A message to a stream has UAMP_STALL_SECONDS for each started piece of this size."""


class Transport:
    """A server's transport; one stream of a connection; or nothing, if the server watches itself.

    All methods are called on the event loop of the server.
    """

    def __init__(self, transport: asyncio.Transport | None, *, is_stream: bool = False) -> None:
        self._transport = transport
        self._is_stream = is_stream
        # For a stream: whether it was dropped, and what waits for its client.
        self._is_dropped = False
        self._waits: set[asyncio.Timeout] = set()

    @classmethod
    def of(cls, send: Send) -> Transport:
        """Find the transport behind a server's `send`."""
        owner = getattr(send, "__self__", None)
        transport = getattr(owner, "transport", None)
        return cls(
            transport if hasattr(transport, "abort") else None,
            is_stream=type(owner).__module__.startswith("hypercorn."),
        )

    def peer(self) -> str | None:
        """Return the peer's address, '' for a local socket and None if unknown."""
        if self._transport is None:
            return None
        name = self._transport.get_extra_info("peername")
        return str(name[0]) if isinstance(name, tuple) else ""

    def received(self, receive: Receive, kind: str) -> Receive:
        """Wrap `receive` to report the disconnect of a stream that was dropped.

        `kind` is the type of its scope. A server reports that of a connection itself.
        """
        if not self._is_stream:
            return receive

        async def receive_until_dropped() -> Message:
            with suppress(TimeoutError):
                async with self._until_dropped():
                    return await receive()
            return {"type": f"{kind}.disconnect"}

        return receive_until_dropped

    def watched(self, send: Send) -> Send:
        """Wrap `send` to drop a client that reads nothing for UAMP_STALL_SECONDS.

        The server then reports the disconnect to the application, and its `send` returns.
        """
        transport = self._transport
        if transport is None:
            return self._limited(send) if self._is_stream else send
        watch = Watch(transport, self.drop)

        async def send_watched(message: Message) -> None:
            if transport.get_write_buffer_size():
                watch.begin()
            await send(message)
            watch.sent(_size_of(message))

        return send_watched

    def drop(self) -> None:
        """Abort the connection without sending the buffered bytes, or end the stream."""
        if self._transport is not None:
            logger.info("disconnected idle client %s", self.peer())
            self._transport.abort()
        elif self._is_stream and not self._is_dropped:
            logger.info("ended the stream of an idle client")
            self._is_dropped = True
            for wait in self._waits:
                wait.reschedule(0)

    def _limited(self, send: Send) -> Send:
        """Wrap the `send` of a stream, whose time depends on the size of the message."""

        async def send_limited(message: Message) -> None:
            pieces = 1 + _size_of(message) // PIECE_BYTES
            limit = settings.UAMP_STALL_SECONDS * pieces
            timer = asyncio.get_running_loop().call_later(limit, self.drop)
            try:
                with suppress(TimeoutError):
                    async with self._until_dropped():
                        await send(message)
            finally:
                timer.cancel()

        return send_limited

    @asynccontextmanager
    async def _until_dropped(self) -> AsyncIterator[None]:
        """End what waits in the block with TimeoutError when the stream is dropped."""
        if self._is_dropped:
            raise TimeoutError
        async with asyncio.timeout(None) as wait:
            self._waits.add(wait)
            try:
                yield
            finally:
                self._waits.discard(wait)


def _size_of(message: Message) -> int:
    """Return the size of what a message sends."""
    if texts := message.get("texts"):
        return sum(map(len, texts))
    return len(message.get("text") or message.get("bytes") or message.get("body") or "")


class Watch:
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

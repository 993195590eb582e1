"""The size of request bodies: refused by their declared length, and while they arrive.

Django keeps a body whole, on disk above 2.5 MB, before a view is called: without a limit here
anyone could fill the disk. `manage.py serve` asks `body_limit` too, since Daphne keeps the body
before any application sees the request.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings

from uamp_project.edge import refusals

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpResponse

    from uamp_project.edge.transports import Message, Receive, Scope, Transport

UPLOAD_PATH: Final = "/api/v1/contents"
# The lines around the file in a multipart body.
MULTIPART_BYTES: Final = 64 * 1024
# How long, and how much, a client may go on sending when its request was refused.
DISCARD_SECONDS: Final = 5.0
DISCARD_BYTES: Final = 64 * 1024 * 1024


def body_limit(path: str) -> int:
    """Return how many bytes the body of a request to a path may have."""
    if path == UPLOAD_PATH:
        return int(settings.UAMP_UPLOAD_BYTES) + MULTIPART_BYTES
    return int(settings.UAMP_BODY_BYTES)


def largest_body() -> int:
    """Return how many bytes the largest body of any path may have."""
    return max(body_limit(UPLOAD_PATH), int(settings.UAMP_BODY_BYTES))


def refuse_body(path: str) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Return headers and body of the answer to a body that is too large for a path."""
    start, content = refusals.messages(refusals.body_too_large(path, body_limit(path)), [])
    return start["headers"], content["body"]


def declared_length(scope: Scope) -> int:
    """Return the Content-Length of a request; 0 where it declares none."""
    for name, value in scope["headers"]:
        if name.lower() == b"content-length" and value.isdigit():
            return int(value)
    return 0


class RequestBody:
    """The body of one request as it arrives."""

    def __init__(self, receive: Receive, transport: Transport, limit: int, sender: str) -> None:
        self.limit = limit
        self.sender = sender
        self.size = 0
        # The part of it that counts against its address.
        self.held = 0
        # Makes the answer to a body that was refused while it arrived.
        self.refusal: Callable[[str], HttpResponse] | None = None
        self._receive = receive
        self._transport = transport
        self._is_whole = False

    async def receive(self) -> Message:
        """Return the next message; a body that is refused looks to the application like a
        disconnect, so that it keeps nothing and answers nothing.
        """  # noqa: D205 one sentence
        message = await self._next()
        if message["type"] != "http.request":
            return message
        size = len(message.get("body", b""))
        self.size += size
        if self.size > self.limit:
            self.refusal = lambda path: refusals.body_too_large(path, self.limit)
        elif not in_flight.add(self, size):
            self.refusal = refusals.too_many_bytes
        if self.refusal is not None:
            return {"type": "http.disconnect"}
        return message

    async def discard(self) -> None:
        """Read on for a moment without keeping anything: until the end, the time or the size."""
        discarded = 0
        try:
            async with asyncio.timeout(DISCARD_SECONDS):
                while not self._is_whole and discarded < DISCARD_BYTES:
                    discarded += len((await self._next()).get("body", b""))
        except TimeoutError:
            return

    async def _next(self) -> Message:
        if self._is_whole:
            return await self._receive()
        timer = asyncio.get_running_loop().call_later(
            settings.UAMP_STALL_SECONDS, self._transport.drop
        )
        try:
            message = await self._receive()
        finally:
            timer.cancel()
        self._is_whole = not message.get("more_body", False)
        return message


class InFlight:
    """The bytes of all bodies that this process holds, by address."""

    def __init__(self) -> None:
        self._bytes: Counter[str] = Counter()

    def add(self, body: RequestBody, size: int) -> bool:
        """Count more bytes of a body; return whether its address may have them."""
        body.held += size
        self._bytes[body.sender] += size
        most: Any = settings.UAMP_BODY_BYTES_PER_ADDRESS
        return self._bytes[body.sender] <= int(most)

    def release(self, body: RequestBody) -> None:
        """Forget a body: its request has ended."""
        self._bytes[body.sender] -= body.held
        if self._bytes[body.sender] <= 0:
            del self._bytes[body.sender]


in_flight: Final = InFlight()

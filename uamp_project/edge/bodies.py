"""Limits on request bodies, by their declared length and while they arrive, and on their sum.

Django stores a body, on disk above 2.5 MB, before it calls a view: without a limit here, any client
could fill the disk. `manage.py serve` uses `body_limit` too, because Daphne stores the body before
any application sees the request.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from django.conf import settings

from sessions_app.access import rates
from uamp_project.edge import refusals
from uamp_project.edge.arrivals import MIN_BYTES, Budget

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpResponse

    from uamp_project.edge.transports import Message, Receive, Scope, Transport

UPLOAD_PATH: Final = "/api/v1/contents"
# Paths whose bodies are stored as they are: nothing reads them.
UNREAD_PATHS: Final = (UPLOAD_PATH, "/api/v1/uploads/")
# To read a body takes time: each part of this many bytes counts as a request more.
PART_BYTES: Final = 16 * 1024
# The multipart lines around the file.
MULTIPART_BYTES: Final = 64 * 1024
# Python refuses to parse very long numbers; this many digits exceed any limit.
DIGITS_MAX: Final = 18
# How long, and how much, a client may continue to send after its request was refused.
DISCARD_SECONDS: Final = 5.0
DISCARD_BYTES: Final = 64 * 1024 * 1024


def body_limit(path: str) -> int:
    """Return the maximum bytes of a request body for a path."""
    if path == UPLOAD_PATH:
        return int(settings.UAMP_UPLOAD_BYTES) + MULTIPART_BYTES
    return int(settings.UAMP_BODY_BYTES)


def largest_body() -> int:
    """Return the maximum bytes of a request body for any path."""
    return max(body_limit(UPLOAD_PATH), int(settings.UAMP_BODY_BYTES))


def refuse_body(path: str) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Return the headers and body of the response to a body over its path's limit."""
    start, content = refusals.messages(refusals.body_too_large(path, body_limit(path)), [])
    return start["headers"], content["body"]


def declared_length(scope: Scope) -> int:
    """Return the Content-Length of a request; 0 if it declares none."""
    for name, value in scope["headers"]:
        if name.lower() == b"content-length" and value.isdigit():
            return int(value[:DIGITS_MAX])
    return 0


class RequestBody:
    """The body of one request as it arrives; used by the tasks of that request only."""

    def __init__(self, receive: Receive, transport: Transport, path: str, sender: str) -> None:
        self.limit = body_limit(path)
        self.sender = sender
        self.size = 0
        # The part that counts against its address.
        self.held = 0
        # Makes the response to a body that was refused while it arrived.
        self.refusal: Callable[[str], HttpResponse] | None = None
        self._is_read = not path.startswith(UNREAD_PATHS)
        self._receive = receive
        self._transport = transport
        self._is_whole = False
        # The time spent waiting since MIN_BYTES arrived, and the bytes received since then.
        self._waited = 0.0
        self._fresh = 0

    def release(self) -> None:
        """Release the bytes when the request has ended."""
        in_flight.release(self.sender, self.held)
        self.held = 0

    async def receive(self) -> Message:
        """Return the next message; a refused body looks like a disconnect.

        The application then stores nothing and answers nothing.
        """
        message = await self._next()
        if message["type"] != "http.request":
            return message
        size = len(message.get("body", b""))
        self.size += size
        if self.size > self.limit:
            self.refusal = lambda path: refusals.body_too_large(path, self.limit)
        else:
            self.held += size
            if not in_flight.reserve(self.sender, size):
                self.refusal = refusals.too_many_bytes
            elif self._is_whole and self._is_read:
                await self._count()
        if self.refusal is not None:
            return {"type": "http.disconnect"}
        return message

    async def _count(self) -> None:
        """Count a whole body by its size, before anything reads it."""
        if parts := self.size // PART_BYTES:
            quota = await rates.limiter().take("requests", self.sender, cost=parts)
            if not quota.allowed:
                self.refusal = lambda path: refusals.too_many_requests(path, quota)

    async def discard(self) -> None:
        """Discard the rest of the body, up to its end, DISCARD_SECONDS or DISCARD_BYTES."""
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
        remaining = max(0.0, settings.UAMP_STALL_SECONDS - self._waited)
        began = time.monotonic()
        try:
            async with asyncio.timeout(remaining) as limit:
                message = await self._receive()
        except TimeoutError:
            if not limit.expired():
                raise
            # Servers whose connections have many streams only learn that the request has ended.
            self._transport.drop()
            message = {"type": "http.disconnect"}
        self._waited += time.monotonic() - began
        self._fresh += len(message.get("body", b""))
        if self._fresh >= MIN_BYTES:
            self._waited, self._fresh = 0.0, 0
        self._is_whole = not message.get("more_body", False)
        return message


# The bytes of bodies and of socket messages that this process holds, by address.
in_flight: Final = Budget(lambda: int(settings.UAMP_BODY_BYTES_PER_ADDRESS))

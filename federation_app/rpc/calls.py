"""The client of a call, the limits of open calls, and refusals, for every gRPC service.

A refusal is a status, with the error as JSON in the trailing metadata `uamp-error-bin`.
"""

from __future__ import annotations

from collections import Counter
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import grpc
import msgspec
from django.conf import settings

from federation_app.envelope.errors import EnvelopeCode, EnvelopeError
from sessions_app.process import registry as processes
from sessions_app.proxies import forwarded_address, is_trusted_proxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ERROR_KEY: Final = "uamp-error-bin"
FORWARDED_KEY: Final = "x-forwarded-for"


class OpenCalls:
    """Counts the open calls of this process by address."""

    def __init__(self) -> None:
        self._by_address: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """The number of open calls, from all addresses."""
        return self._by_address.total()

    @asynccontextmanager
    async def enter(
        self, context: Any, visitors: str, *, per_address: int, total: int | None = None
    ) -> AsyncIterator[None]:
        """Count a call during the block; refuse it with 5.04 beyond a limit.

        `visitors` is the name of an address from `rates.visitors`.
        """
        if self._by_address[visitors] >= per_address:
            await refuse(
                context,
                EnvelopeError(EnvelopeCode.BUSY, "Your address has too many calls open."),
            )
        if total is not None and self.total >= total:
            await refuse(context, EnvelopeError(EnvelopeCode.BUSY, "Too many calls are open."))
        self._by_address[visitors] += 1
        try:
            yield
        finally:
            self._by_address[visitors] -= 1
            if not self._by_address[visitors]:
                del self._by_address[visitors]


streams: Final = OpenCalls()
"""The open calls that last, of all services."""


async def refuse_unready(context: Any) -> None:
    """Refuse a call while the process shuts down, or if the server accepts no envelopes."""
    if processes.current().draining:
        await refuse(context, EnvelopeError(EnvelopeCode.BUSY, "The server is shutting down."))
    if not settings.UAMP_FEDERATION_HOST:
        await refuse(
            context, EnvelopeError(EnvelopeCode.NOT_FOUND, "This server does not accept envelopes.")
        )


async def refuse(context: Any, error: EnvelopeError) -> None:
    """End a call with the status of an error, by an exception of grpcio."""
    metadata = ((ERROR_KEY, msgspec.json.encode(error.payload())),)
    await end(context, grpc.StatusCode[error.meaning.grpc], error.message, metadata)


async def end(
    context: Any,
    status: grpc.StatusCode,
    message: str,
    metadata: tuple[tuple[str, bytes], ...] = (),
) -> None:
    """End a call with a status, by an exception of grpcio.

    The initial metadata goes first, unless it is sent already: proxies such as Caddy may lose a
    status that arrives in the first headers.
    """
    with suppress(grpc.aio.UsageError):
        await context.send_initial_metadata(())
    await context.abort(status, message, metadata)


def client_address(context: Any) -> str:
    """Return a client's IP address; that of a trusted proxy's client is in its metadata."""
    peer = _peer(context.peer())
    if not is_trusted_proxy(peer):
        return peer
    metadata = context.invocation_metadata() or ()
    return forwarded_address(value for key, value in metadata if key == FORWARDED_KEY) or peer


def _peer(text: str) -> str:
    """Return the IP address in `ipv4:127.0.0.1:5000` or `ipv6:%5B::1%5D:5000`."""
    kind, _, rest = unquote(text).partition(":")
    host, _, _port = rest.rpartition(":")
    return host.strip("[]") if kind in {"ipv4", "ipv6"} else ""

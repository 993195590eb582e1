"""Connections of httpcore to addresses that were checked, with one deadline for all they do."""

import logging
import ssl
import time
from collections.abc import Callable, Iterable, Sequence

import httpcore

from agents_app.outbound.rules import Unreachable

logger = logging.getLogger(__name__)


class Deadline:
    """The time by which a request has to be done; a later request on its connection sets it."""

    def __init__(self, seconds: float) -> None:
        self._at = time.monotonic() + seconds

    def set(self, seconds: float) -> None:
        """Move the deadline to this many seconds from now."""
        self._at = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds left, always more than 0; raises Unreachable."""
        seconds = self._at - time.monotonic()
        if seconds <= 0:
            raise Unreachable("it took too long")
        return seconds


class PinnedBackend(httpcore.NetworkBackend):
    """Connects only to the checked addresses, wherever the name points by now.

    `addresses` returns them for each connection; it may raise Unreachable.
    """

    def __init__(self, addresses: Callable[[], Sequence[str]], deadline: Deadline) -> None:
        self._addresses = addresses
        self._deadline = deadline
        self._sockets = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 the deadline applies
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address that accepts, each with a share of the remaining time."""
        addresses = self._addresses()
        waiting = len(addresses)
        for address in addresses:
            try:
                stream = self._sockets.connect_tcp(
                    address, port, self._deadline.left() / waiting, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                logger.info("could not connect to %s at %s: %s", host, address, error)
                waiting -= 1
            else:
                return _TimedStream(stream, self._deadline)
        raise httpcore.ConnectError("no address accepted a connection")


class _TimedStream(httpcore.NetworkStream):
    """A connection whose reads, writes and handshake share one deadline."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002 as above
        return self._stream.read(max_bytes, self._deadline.left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002 as above
        self._stream.write(buffer, self._deadline.left())

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002 as above
    ) -> httpcore.NetworkStream:
        stream = self._stream.start_tls(ssl_context, server_hostname, self._deadline.left())
        return _TimedStream(stream, self._deadline)

    def get_extra_info(self, info: str) -> object:
        return self._stream.get_extra_info(info)

"""Daphne's HTTP connections with backpressure, and deadlines for clients.

`send` waits while the transport's write buffer is full. A client that does not finish a request in
time is disconnected (`arrivals`).
"""

from __future__ import annotations

import logging
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

# Must come first: it installs the asyncio reactor.
from daphne.server import twisted_loop  # isort: skip  # noqa: F401

from daphne.http_protocol import WebRequest
from twisted.internet import reactor as installed_reactor
from twisted.internet.protocol import connectionDone
from twisted.web.http import HTTPChannel

from uamp_project.servers.write_gate import CLOSE_SECONDS, WriteGate

if TYPE_CHECKING:
    from uamp_project.servers.write_gate import WatchingServer

logger = logging.getLogger(__name__)

# How much of a refused body a client may continue to send.
DISCARD_BYTES_MAX: Final = 64 * 1024 * 1024

Message = dict[str, Any]

# Twisted's interface classes describe methods without `self`, which mypy cannot call.
reactor: Any = installed_reactor


class BackpressureRequest(WebRequest):
    """An HTTP request whose response body is written as fast as the peer reads it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Twisted would parse forms on the thread that serves everyone, before their sender is
        # known: 25 MB of small fields took 18 seconds. Django reads them itself.
        super().__init__(*args, **{**kwargs, "parsePOSTFormSubmission": False})
        self.gate = WriteGate()
        self._body_bytes = 0
        self._refused = False
        self._closing: Any = None

    def gotLength(self, length: int | None) -> None:  # noqa: N802 Twisted's name
        """Refuse a body by its declared length."""
        super().gotLength(0 if self._is_too_large(length or 0) else length)

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802 Twisted's name
        """Store a piece of the body, unless the body becomes too large."""
        self._body_bytes += len(data)
        if not self._is_too_large(self._body_bytes):
            super().handleContentChunk(data)
        elif self._body_bytes > self.server.body_bytes_max + DISCARD_BYTES_MAX:
            self.channel.forceAbortClient()

    def process(self) -> Any:
        """Pass the request to the application; a refused one just ends here."""
        if not self._refused:
            return super().process()
        self.channel.loseConnection()
        return None

    def handle_reply(self, message: Message) -> None:
        """Register the gate for the duration of a response, and drop the body after HEAD.

        Daphne writes every piece; on a persistent connection, the bytes of a second piece would be
        read as the next response.
        """
        if message["type"] == "http.response.start" and not self.finished:
            self.registerProducer(self.gate, streaming=True)
        elif message["type"] == "http.response.body" and self.method == b"HEAD":
            message = {**message, "body": b""}
        super().handle_reply(message)

    def setResponseCode(self, code: int, message: bytes | None = None) -> None:  # noqa: N802
        """Set status and reason phrase; Twisted has none for 422, 429 and other newer codes."""
        if message is None:
            with suppress(ValueError):
                message = HTTPStatus(code).phrase.encode("ascii")
        super().setResponseCode(code, message)

    def finish(self) -> None:
        """End the response; Twisted requires that the producer is unregistered by then."""
        if self.producer:
            self.unregisterProducer()
        self.gate.stopProducing()
        super().finish()

    def connectionLost(self, reason: Any) -> None:  # noqa: N802 Twisted's name
        """Release a waiting send."""
        self.gate.stopProducing()
        if self._closing is not None and self._closing.active():
            self._closing.cancel()
        super().connectionLost(reason)

    def give_up(self) -> None:
        """Drop a connection whose peer reads nothing."""
        if self.channel is not None:
            self.channel.forceAbortClient()

    def _is_too_large(self, size: int) -> bool:
        """Answer 413 once for a body above the limit, which Daphne would store before Django runs.

        The connection is closed when the body has arrived, or soon after: a client that is still
        sending can read the response first.
        """
        if size > self.server.body_bytes_max and not self._refused:
            self._refused = True
            channel: Any = self.channel
            path = channel._path.partition(b"?")[0]  # noqa: SLF001 not yet set on the request
            headers, body = self.server.refuse_body(path.decode("latin-1"))
            lines = [b"HTTP/1.1 413 Content Too Large", b"Connection: close"]
            lines += [name + b": " + value for name, value in headers]
            channel.transport.write(b"\r\n".join([*lines, b"", body]))
            self._closing = reactor.callLater(CLOSE_SECONDS, channel.loseConnection)
        return self._refused


class BackpressureChannel(HTTPChannel):
    """A connection with request deadlines, as Twisted's own one restarts with every byte."""

    transport: Any
    factory: Any

    def connectionMade(self) -> None:  # noqa: N802 Twisted's name
        """Start watching what arrives."""
        super().connectionMade()
        self._is_refused = False
        server: WatchingServer = self.factory.server
        self._arrival = server.arrival(None, self._cut)

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 Twisted's name
        """Count the bytes of a request until it is complete."""
        if not self._handlingRequest:
            self._arrival.piece(len(data))
        super().dataReceived(data)

    def allHeadersReceived(self) -> None:  # noqa: N802 Twisted's name
        """Refuse a request that a proxy in front of this server may parse differently."""
        headers = self.requests[-1].requestHeaders
        hosts = headers.getRawHeaders(b"Host", [])
        codings = [coding.lower() for coding in headers.getRawHeaders(b"Transfer-Encoding", [])]
        is_newest = self._version == b"HTTP/1.1"
        self._is_refused = (
            len(hosts) > 1
            or (is_newest and not hosts)
            or codings not in ([], [b"chunked"])
            or (bool(codings) and not is_newest)
        )
        if self._is_refused:
            self._refuse(is_too_large=False)
        else:
            super().allHeadersReceived()

    def allContentReceived(self) -> None:  # noqa: N802 Twisted's name
        """Stop the clock, since the request is complete."""
        if self._is_refused:
            return
        self._arrival.finished()
        self._arrival.taken()
        super().allContentReceived()

    def connectionLost(self, reason: Any = connectionDone) -> None:  # noqa: N802 Twisted's name
        """Stop watching."""
        self._arrival.close()
        super().connectionLost(reason)

    def lineLengthExceeded(self, line: bytes) -> None:  # noqa: N802 Twisted's name
        """Refuse a line that is too long, which Twisted would close without a response."""
        logger.info("%s sent a line of %s bytes", self.transport.getPeer(), len(line))
        self._refuse(is_too_large=True)

    def _respondToBadRequestAndDisconnect(self) -> None:  # noqa: N802 Twisted's name
        """Refuse a malformed request or too many headers; Twisted sends an empty response."""
        self._refuse(
            is_too_large=self._receivedHeaderSize > self.totalHeadersSize
            or self._receivedHeaderCount > self.maxHeaders
        )

    def _refuse(self, *, is_too_large: bool) -> None:
        status, headers, body = self.factory.server.refuse_request(is_too_large=is_too_large)
        line = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"
        lines = [line.encode(), b"Connection: close"]
        lines += [name + b": " + value for name, value in headers]
        self.transport.write(b"\r\n".join([*lines, b"", body]))
        self.loseConnection()

    def _cut(self, reason: str) -> None:
        logger.info("%s %s; disconnected", self.transport.getPeer(), reason)
        self.forceAbortClient()

"""Daphne's connections with backpressure both ways, and deadlines for what they begin.

`send` waits while the transport's write buffer is full, and reading pauses while the application
lags. A client that does not finish a request or a message in time is disconnected (`arrivals`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Protocol

# First: it installs the asyncio reactor.
from daphne.server import twisted_loop  # isort: skip  # noqa: F401

from autobahn.util import encode_truncate
from daphne.http_protocol import WebRequest
from daphne.ws_protocol import WebSocketProtocol
from twisted.internet import reactor as installed_reactor
from twisted.internet.interfaces import IPushProducer
from twisted.internet.protocol import connectionDone
from twisted.web.http import HTTPChannel
from zope.interface.declarations import implementer

from uamp_project.edge.arrivals import TOO_FAST, Frames

if TYPE_CHECKING:
    from collections.abc import Callable

    from uamp_project.edge.arrivals import Arrival

logger = logging.getLogger(__name__)

# What a client may have sent that the application has not read.
UNREAD_BYTES_MAX: Final = 1024 * 1024
UNREAD_MESSAGES_MAX: Final = 256
# How long a peer may take to answer a close frame, and applications to end after their sockets.
CLOSE_SECONDS: Final = 5.0
# What a client may go on sending of a body that was refused.
DISCARD_BYTES_MAX: Final = 64 * 1024 * 1024
CLOSE_SERVICE_RESTART: Final = 1012
# Pings and pongs have higher opcodes, data has lower ones.
OPCODE_CLOSE: Final = 8

Message = dict[str, Any]


class _Server(Protocol):
    """What the connections need of their server."""

    def arrival(self, address: Callable[[], str] | None, cut: Callable[[str], None]) -> Arrival:
        """Return what watches over one connection; without `address` its time only."""


# Its interface classes describe methods without `self`, which mypy cannot call.
reactor: Any = installed_reactor


@implementer(IPushProducer)
class WriteGate:
    """Shut by the transport while more than 64 KiB wait to be written; opened when none does."""

    def __init__(self, opens: Callable[[], None] = lambda: None) -> None:
        self._opened = asyncio.Event()
        self._opened.set()
        self._opens = opens

    @property
    def is_open(self) -> bool:
        """Whether the transport takes more."""
        return self._opened.is_set()

    async def passed(self, *, within: float) -> bool:
        """Wait until the gate is open, for `within` seconds; return whether it is."""
        if self.is_open:
            # No timer for each frame of a client that reads.
            return True
        try:
            async with asyncio.timeout(within):
                await self._opened.wait()
        except TimeoutError:
            return False
        return True

    def pauseProducing(self) -> None:  # noqa: N802 the names of IPushProducer
        """Shut the gate; called by the transport."""
        self._opened.clear()

    def resumeProducing(self) -> None:  # noqa: N802 as above
        """Open the gate, and call `opens`; called by the transport."""
        self._opened.set()
        self._opens()

    def stopProducing(self) -> None:  # noqa: N802 as above
        """Open the gate for good: the connection is gone and takes everything."""
        self._opened.set()


class BackpressureWebSocket(WebSocketProtocol):
    """A socket whose sends wait for the peer, and whose peer waits for the application."""

    transport: Any

    def __init__(self) -> None:
        super().__init__()
        self.gate = WriteGate(self._answer_ping)
        self._frames = Frames()
        self._is_refused = False
        # The latest ping that came while the client took nothing.
        self._unanswered: bytes | None = None
        # What the application was opened with: the client's own address is in it by then.
        self.scope: Message = {}
        self._arrival: Arrival | None = None
        self._unread_bytes = 0
        self._unread_messages = 0

    def processData(self) -> bool:  # noqa: N802 Autobahn's name
        """Read the next frame, and nothing after too many of them."""
        return not self._is_refused and bool(super().processData())

    def onFrameBegin(self) -> None:  # noqa: N802 Autobahn's name
        """Count a frame that is no message: a ping, a pong, a part that others follow."""
        super().onFrameBegin()
        frame, now, may_come = self.current_frame, time.monotonic(), True
        if frame.opcode > OPCODE_CLOSE:
            may_come = self._frames.control(now)
        elif frame.opcode < OPCODE_CLOSE and not frame.fin:
            may_come = self._frames.fragment(frame.length, now)
        if not may_come:
            self._refuse()

    def onPing(self, payload: bytes) -> None:  # noqa: N802 Autobahn's name
        """Answer a ping; while the client takes nothing, only the latest one, later (RFC 6455)."""
        self._unanswered = payload
        if self.gate.is_open:
            self._answer_ping()

    def onMessageFrameBegin(self, length: int) -> None:  # noqa: N802 Autobahn's name
        """Count a frame of a message: there may be any number, also empty ones."""
        super().onMessageFrameBegin(length)
        self.arrival.piece(0)

    def onMessageFrameData(self, payload: bytes) -> None:  # noqa: N802 Autobahn's name
        """Count a piece of a frame."""
        super().onMessageFrameData(payload)
        self.arrival.piece(len(payload))

    @property
    def arrival(self) -> Arrival:
        """What the client has sent that the application has not taken."""
        if self._arrival is None:
            server: _Server = self.factory.server_class
            self._arrival = server.arrival(self._sender, self._cut)
        return self._arrival

    def _sender(self) -> str:
        client = self.scope.get("client") or ("", 0)
        return str(client[0])

    def _answer_ping(self) -> None:
        unanswered, self._unanswered = self._unanswered, None
        if unanswered is not None and self.state == self.STATE_OPEN:
            self.sendPong(unanswered)

    def _refuse(self) -> None:
        """Close the socket and read no more; a client that takes nothing gets no close frame."""
        self._is_refused = True
        if self.state != self.STATE_OPEN or not self.gate.is_open:
            self._cut("sends too many frames")
            return
        logger.info("%r sends too many frames; closed", self)
        self.serverClose(*TOO_FAST)
        self.transport.pauseProducing()

    def _cut(self, reason: str) -> None:
        logger.info("%r %s; disconnected", self, reason)
        self.dropConnection(abort=True)

    def makeConnection(self, transport: Any) -> None:  # noqa: N802 Twisted's name
        """Take over the transport of the HTTP request, whose producer it still had."""
        transport.unregisterProducer()
        transport.registerProducer(self.gate, streaming=True)
        super().makeConnection(transport)

    def onMessage(self, payload: bytes, isBinary: bool) -> None:  # noqa: FBT001, N802, N803 theirs
        """Queue what came in; stop reading while the application has too much of it."""
        super().onMessage(payload, isBinary)
        self.arrival.finished()
        self._unread_bytes += len(payload)
        self._unread_messages += 1
        if self._lags():
            self.transport.pauseProducing()
            self.arrival.paused()

    def application_received(self, message: Message) -> None:
        """Count what the application has taken, and read on when it has caught up."""
        if message["type"] != "websocket.receive":
            return
        lagged = self._lags()
        self.arrival.taken()
        # Text is counted in bytes on the way in; ASCII, the usual case, needs no second encoding.
        text = message.get("text")
        if text is None:
            self._unread_bytes -= len(message["bytes"])
        else:
            self._unread_bytes -= len(text) if text.isascii() else len(text.encode())
        self._unread_messages -= 1
        if lagged and not self._lags() and self.transport.connected and not self._is_refused:
            self.transport.resumeProducing()
            self.arrival.resumed()

    def handle_reply(self, message: Message) -> None:
        """Do as Daphne, but send empty messages and close reasons too (Autobahn 1.1.1, 1.2.1)."""
        if message["type"] == "websocket.close" and self.state != self.STATE_CONNECTING:
            self.serverClose(message.get("code"), message.get("reason") or "")
            return
        if message["type"] == "websocket.send" and self.state != self.STATE_CONNECTING:
            if message.get("bytes") == b"":
                self.sendMessage(b"", isBinary=True)
            elif message.get("text") == "":
                self.sendMessage(b"", isBinary=False)
        super().handle_reply(message)

    def serverClose(self, code: int | None = None, reason: str = "") -> None:  # noqa: N802 theirs
        """Close with any code; Autobahn's own check would refuse 1008 to 1013."""
        code = 1000 if code is None else code
        self.sendCloseFrame(code=code, reasonUtf8=encode_truncate(reason, 123), isReply=False)

    def onClose(self, wasClean: bool, code: int, reason: str) -> None:  # noqa: FBT001, N802, N803
        """Let every waiting send go: Autobahn unregisters the producer before it drops."""
        self.gate.stopProducing()
        self.arrival.close()
        super().onClose(wasClean, code, reason)

    def give_up(self) -> None:
        """Drop a socket whose peer takes nothing: a close frame would wait as well."""
        self.dropConnection(abort=True)

    def leave(self) -> None:
        """Close because the server ends: 1012, or refuse a handshake that is not done."""
        if self.state == self.STATE_CONNECTING:
            self.serverReject()
        else:
            self.serverClose(CLOSE_SERVICE_RESTART)

    def _lags(self) -> bool:
        return self._unread_bytes > UNREAD_BYTES_MAX or self._unread_messages > UNREAD_MESSAGES_MAX


class BackpressureRequest(WebRequest):
    """An HTTP request whose response body is written as fast as the peer reads."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.gate = WriteGate()
        self._body_bytes = 0
        self._refused = False
        self._closing: Any = None

    def gotLength(self, length: int | None) -> None:  # noqa: N802 Twisted's name
        """Refuse a body by its declared length."""
        super().gotLength(0 if self._is_too_large(length or 0) else length)

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802 Twisted's name
        """Keep a piece of the body, unless the pieces become too many."""
        self._body_bytes += len(data)
        if not self._is_too_large(self._body_bytes):
            super().handleContentChunk(data)
        elif self._body_bytes > self.server.body_bytes_max + DISCARD_BYTES_MAX:
            self.channel.forceAbortClient()

    def process(self) -> Any:
        """Hand the request to the application; one that was refused has come to its end."""
        if not self._refused:
            return super().process()
        self.channel.loseConnection()
        return None

    def handle_reply(self, message: Message) -> None:
        """Register the gate for the time of the response, which has no body after HEAD.

        Daphne writes every piece; on a connection that stays open, the bytes of a second piece
        would be read as the next response.
        """
        if message["type"] == "http.response.start" and not self.finished:
            self.registerProducer(self.gate, streaming=True)
        elif message["type"] == "http.response.body" and self.method == b"HEAD":
            message = {**message, "body": b""}
        super().handle_reply(message)

    def setResponseCode(self, code: int, message: bytes | None = None) -> None:  # noqa: N802
        """Set status and reason; Twisted knows no reason for 422, 429 and other newer codes."""
        if message is None:
            with suppress(ValueError):
                message = HTTPStatus(code).phrase.encode("ascii")
        super().setResponseCode(code, message)

    def finish(self) -> None:
        """End the response; Twisted insists that the producer is gone by then."""
        if self.producer:
            self.unregisterProducer()
        self.gate.stopProducing()
        super().finish()

    def connectionLost(self, reason: Any) -> None:  # noqa: N802 Twisted's name
        """Let a waiting send go."""
        self.gate.stopProducing()
        if self._closing is not None and self._closing.active():
            self._closing.cancel()
        super().connectionLost(reason)

    def give_up(self) -> None:
        """Drop a connection whose peer takes nothing."""
        if self.channel is not None:
            self.channel.forceAbortClient()

    def _is_too_large(self, size: int) -> bool:
        """Answer 413 once for a body above the limit: Daphne keeps it whole before Django asks.

        The connection is closed when the body has come, or soon: a client that is still sending
        gets to read the answer first.
        """
        if size > self.server.body_bytes_max and not self._refused:
            self._refused = True
            channel: Any = self.channel
            path = channel._path.partition(b"?")[0]  # noqa: SLF001 not yet the request's own
            headers, body = self.server.refuse_body(path.decode("latin-1"))
            lines = [b"HTTP/1.1 413 Content Too Large", b"Connection: close"]
            lines += [name + b": " + value for name, value in headers]
            channel.transport.write(b"\r\n".join([*lines, b"", body]))
            self._closing = reactor.callLater(CLOSE_SECONDS, channel.loseConnection)
        return self._refused


class BackpressureChannel(HTTPChannel):
    """A connection whose requests come in time: Twisted resets its own deadline with each byte."""

    transport: Any
    factory: Any

    def connectionMade(self) -> None:  # noqa: N802 Twisted's name
        """Begin to watch what comes."""
        super().connectionMade()
        server: _Server = self.factory.server
        self._arrival = server.arrival(None, self._cut)

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 Twisted's name
        """Count what comes of a request until it is whole."""
        if not self._handlingRequest:
            self._arrival.piece(len(data))
        super().dataReceived(data)

    def allContentReceived(self) -> None:  # noqa: N802 Twisted's name
        """Let the request take its time: it is whole."""
        self._arrival.finished()
        self._arrival.taken()
        super().allContentReceived()

    def connectionLost(self, reason: Any = connectionDone) -> None:  # noqa: N802 Twisted's name
        """Wait no more."""
        self._arrival.close()
        super().connectionLost(reason)

    def lineLengthExceeded(self, line: bytes) -> None:  # noqa: N802 Twisted's name
        """Refuse a line that is too long; Twisted closes without an answer."""
        logger.info("%s sent a line of %s bytes", self.transport.getPeer(), len(line))
        self._refuse(is_too_large=True)

    def _respondToBadRequestAndDisconnect(self) -> None:  # noqa: N802 Twisted's name
        """Refuse what is no request, or has too many headers; Twisted sends an empty answer."""
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

"""Daphne's WebSockets with backpressure in both directions, and deadlines for clients.

`send` waits while the transport's write buffer is full, and reading pauses while the application
lags. A client that does not finish a message in time is disconnected (`arrivals`).
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Final

# Must come first: it installs the asyncio reactor.
from daphne.server import twisted_loop  # isort: skip  # noqa: F401

from autobahn.util import encode_truncate
from daphne.ws_protocol import WebSocketProtocol

from uamp_project.edge.arrivals import TOO_FAST, Frames
from uamp_project.servers.write_gate import WriteGate

if TYPE_CHECKING:
    from uamp_project.edge.arrivals import Arrival
    from uamp_project.servers.write_gate import WatchingServer

logger = logging.getLogger(__name__)

# The limits of what a client may have sent that the application has not read.
UNREAD_BYTES_MAX: Final = 1024 * 1024
UNREAD_MESSAGES_MAX: Final = 256
CLOSE_SERVICE_RESTART: Final = 1012
# Pings and pongs have higher opcodes, data has lower ones.
OPCODE_CLOSE: Final = 8

Message = dict[str, Any]


class BackpressureWebSocket(WebSocketProtocol):
    """A socket whose sends wait for the peer, and whose peer waits for the application."""

    transport: Any

    def __init__(self) -> None:
        super().__init__()
        self.gate = WriteGate(self._answer_ping)
        self._frames = Frames()
        self._is_refused = False
        # The latest ping received while the client was reading nothing.
        self._unanswered: bytes | None = None
        # The scope of the application, with the client's own address in it by then.
        self.scope: Message = {}
        self._arrival: Arrival | None = None
        self._unread_bytes = 0
        self._unread_messages = 0

    def processData(self) -> bool:  # noqa: N802 Autobahn's name
        """Process the next frame, or nothing after too many of them."""
        return not self._is_refused and bool(super().processData())

    def onFrameBegin(self) -> None:  # noqa: N802 Autobahn's name
        """Count a frame that completes no message: a ping, a pong or an unfinished fragment."""
        super().onFrameBegin()
        frame, now, may_come = self.current_frame, time.monotonic(), True
        if frame.opcode > OPCODE_CLOSE:
            may_come = self._frames.control(now)
        elif frame.opcode < OPCODE_CLOSE and not frame.fin:
            may_come = self._frames.fragment(frame.length, now)
        if not may_come:
            self._refuse()

    def onPing(self, payload: bytes) -> None:  # noqa: N802 Autobahn's name
        """Answer a ping; while the client reads nothing, only the latest one, later (RFC 6455)."""
        self._unanswered = payload
        if self.gate.is_open:
            self._answer_ping()

    def onMessageFrameBegin(self, length: int) -> None:  # noqa: N802 Autobahn's name
        """Count a frame of a message, since there may be any number of empty ones."""
        super().onMessageFrameBegin(length)
        self.arrival.piece(0)

    def onMessageFrameData(self, payload: bytes) -> None:  # noqa: N802 Autobahn's name
        """Count a piece of a frame."""
        super().onMessageFrameData(payload)
        self.arrival.piece(len(payload))

    @property
    def arrival(self) -> Arrival:
        """The messages that the client has sent and the application has not taken."""
        if self._arrival is None:
            server: WatchingServer = self.factory.server_class
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
        """Close the socket and read no more; a client that reads nothing gets no close frame."""
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
        """Take over the transport of the HTTP request, which still has that request's producer."""
        transport.unregisterProducer()
        transport.registerProducer(self.gate, streaming=True)
        super().makeConnection(transport)

    def onMessage(self, payload: bytes, isBinary: bool) -> None:  # noqa: FBT001, N802, N803 theirs
        """Queue a message; stop reading while too many of them wait for the application."""
        super().onMessage(payload, isBinary)
        self.arrival.finished()
        self._unread_bytes += len(payload)
        self._unread_messages += 1
        if self._lags():
            self.transport.pauseProducing()
            self.arrival.paused()

    def application_received(self, message: Message) -> None:
        """Count a message that the application has taken, and resume reading when it catches up."""
        if message["type"] != "websocket.receive":
            return
        lagged = self._lags()
        self.arrival.taken()
        # Text was counted in bytes on arrival; ASCII, the usual case, needs no second encoding.
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
        """Handle replies as Daphne does, but send empty messages and close reasons too.

        Cases 1.1.1 and 1.2.1 of the Autobahn test suite require this.
        """
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
        """Close with any code; Autobahn's own check would reject 1008 to 1013."""
        code = 1000 if code is None else code
        self.sendCloseFrame(code=code, reasonUtf8=encode_truncate(reason, 123), isReply=False)

    def onClose(self, wasClean: bool, code: int, reason: str) -> None:  # noqa: FBT001, N802, N803
        """Release all waiting sends, because Autobahn unregisters the producer before it drops."""
        self.gate.stopProducing()
        self.arrival.close()
        super().onClose(wasClean, code, reason)

    def give_up(self) -> None:
        """Drop a socket whose peer reads nothing; a close frame would have to wait as well."""
        self.dropConnection(abort=True)

    def leave(self) -> None:
        """Close with 1012 as the server shuts down, or refuse an unfinished handshake."""
        if self.state == self.STATE_CONNECTING:
            self.serverReject()
        else:
            self.serverClose(CLOSE_SERVICE_RESTART)

    def _lags(self) -> bool:
        return self._unread_bytes > UNREAD_BYTES_MAX or self._unread_messages > UNREAD_MESSAGES_MAX

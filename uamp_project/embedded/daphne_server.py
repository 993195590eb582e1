"""Daphne with backpressure both ways and an orderly end.

Daphne takes whatever the application sends into memory, and whatever the client sends into an
unbounded queue. Here `send` waits while the transport's write buffer is full, reading pauses
while the application lags, and a client that takes nothing for `send_stall_seconds` is
disconnected. On SIGTERM or SIGINT the server stops accepting, lets the application drain and
closes the sockets that are left with 1012; Ctrl-C a second later ends the wait.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from functools import partial
from typing import TYPE_CHECKING, Any

# First: it installs the asyncio reactor.
from daphne.server import Server, twisted_loop  # isort: skip

from autobahn.util import encode_truncate
from daphne.http_protocol import HTTPFactory, WebRequest
from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol
from twisted.internet import reactor as installed_reactor
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import serverFromString
from twisted.internet.interfaces import IPushProducer
from twisted.logger import ILogObserver, globalLogBeginner
from zope.interface.declarations import implementer

from uamp_project.orderly_end import HURRY_AFTER_SECONDS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from twisted.internet.interfaces import IAddress

logger = logging.getLogger(__name__)

FRAME_BYTES_MAX = 8 * 1024 * 1024
# What a client may have sent that the application has not read.
UNREAD_BYTES_MAX = 1024 * 1024
UNREAD_MESSAGES_MAX = 256
SEND_STALL_SECONDS = 30.0
PING_SECONDS = 15
# How long a peer may take to answer a close frame, and applications to end after their sockets.
CLOSE_SECONDS = 5.0

# What a client may go on sending of a body that was refused.
DISCARD_BYTES_MAX = 64 * 1024 * 1024

# What a drain whose wait was ended may take to give the answers back.
HURRY_SECONDS = 2.0

CLOSE_SERVICE_RESTART = 1012

Message = dict[str, Any]
Refusal = tuple[list[tuple[bytes, bytes]], bytes]
# Its interface classes describe methods without `self`, which mypy cannot call.
reactor: Any = installed_reactor


@implementer(ILogObserver)
class _Silence:
    """Takes Twisted's log and drops it; what matters goes through `logging`."""

    def __call__(self, event: object) -> None:
        pass


_silence: Any = _Silence()


@implementer(IPushProducer)
class WriteGate:
    """Shut by the transport while more than 64 KiB wait to be written; opened when none does."""

    def __init__(self) -> None:
        self._opened = asyncio.Event()
        self._opened.set()

    async def passed(self, *, within: float) -> bool:
        """Wait until the gate is open, for `within` seconds; return whether it is."""
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
        """Open the gate; called by the transport."""
        self._opened.set()

    def stopProducing(self) -> None:  # noqa: N802 as above
        """Open the gate for good: the connection is gone and takes everything."""
        self._opened.set()


class BackpressureWebSocket(WebSocketProtocol):
    """A socket whose sends wait for the peer, and whose peer waits for the application."""

    transport: Any

    def __init__(self) -> None:
        super().__init__()
        self.gate = WriteGate()
        self._unread_bytes = 0
        self._unread_messages = 0

    def makeConnection(self, transport: Any) -> None:  # noqa: N802 Twisted's name
        """Take over the transport of the HTTP request, whose producer it still had."""
        transport.unregisterProducer()
        transport.registerProducer(self.gate, streaming=True)
        super().makeConnection(transport)

    def onMessage(self, payload: bytes, isBinary: bool) -> None:  # noqa: FBT001, N802, N803 theirs
        """Queue what came in; stop reading while the application has too much of it."""
        super().onMessage(payload, isBinary)
        self._unread_bytes += len(payload)
        self._unread_messages += 1
        if self._lags():
            self.transport.pauseProducing()

    def application_received(self, message: Message) -> None:
        """Count what the application has taken, and read on when it has caught up."""
        if message["type"] != "websocket.receive":
            return
        lagged = self._lags()
        # Text is counted in bytes on the way in; ASCII, the usual case, needs no second encoding.
        text = message.get("text")
        if text is None:
            self._unread_bytes -= len(message["bytes"])
        else:
            self._unread_bytes -= len(text) if text.isascii() else len(text.encode())
        self._unread_messages -= 1
        if lagged and not self._lags() and self.transport.connected:
            self.transport.resumeProducing()

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


class BackpressureWebSocketFactory(WebSocketFactory):
    """Makes sockets with backpressure."""

    protocol = BackpressureWebSocket


class BackpressureHTTPFactory(HTTPFactory):
    """Makes requests with backpressure."""

    def buildProtocol(self, addr: IAddress | None) -> Any:  # noqa: N802 Twisted's name
        """Return an HTTP channel whose requests are ours."""
        channel = super().buildProtocol(addr)
        channel.requestFactory = BackpressureRequest
        return channel


class BackpressureServer(Server):
    """Serves an ASGI application on one address until a signal comes.

    A request body above `body_bytes_max` is answered with 413 before it is stored; `refuse_body`
    makes headers and body of that answer for a path.
    `drain` is awaited after the listeners are closed and before the sockets are, `finish` when no
    application runs any more.
    """

    def __init__(
        self,
        application: Callable[..., Coroutine[Any, Any, None]],
        *,
        host: str,
        port: int,
        drain: Callable[[], Awaitable[None]],
        finish: Callable[[], Awaitable[None]],
        ready: Callable[[int], None],
        body_bytes_max: int,
        refuse_body: Callable[[str], Refusal] = lambda _: ([(b"Content-Length", b"0")], b""),
        send_stall_seconds: float = SEND_STALL_SECONDS,
    ) -> None:
        escaped = host.replace(":", "\\:")
        super().__init__(
            application,
            endpoints=[f"tcp:port={port}:interface={escaped}"],
            signal_handlers=False,
            ping_interval=PING_SECONDS,
            ping_timeout=PING_SECONDS,
            websocket_timeout=-1,
            websocket_max_message_size=FRAME_BYTES_MAX,
            websocket_max_frame_size=FRAME_BYTES_MAX,
            server_name="uamp",
        )
        self.body_bytes_max = body_bytes_max
        self.refuse_body = refuse_body
        self._drain = drain
        self._finish = finish
        self._ready = ready
        self._send_stall_seconds = send_stall_seconds
        self._ports: list[Any] = []
        self._ending = False
        self._may_hurry_at = 0.0
        self._hurry = asyncio.Event()
        self.failure: str | None = None

    def run(self) -> None:
        """Listen and serve; return after the orderly end, or when listening failed."""
        self.connections: dict[Any, dict[str, Any]] = {}
        self.http_factory = BackpressureHTTPFactory(self)
        self.ws_factory = BackpressureWebSocketFactory(self, server=self.server_name)
        self.ws_factory.setProtocolOptions(
            autoPingTimeout=self.ping_timeout,
            allowNullOrigin=True,
            openHandshakeTimeout=self.websocket_handshake_timeout,
            closeHandshakeTimeout=CLOSE_SECONDS,
            maxMessagePayloadSize=self.websocket_max_message_size,
            maxFramePayloadSize=self.websocket_max_frame_size,
            # A frame that is too large is answered with 1009 rather than with a reset.
            failByDrop=False,
        )
        asyncio.set_event_loop(twisted_loop)
        for signum in (signal.SIGTERM, signal.SIGINT):
            twisted_loop.add_signal_handler(signum, self._signalled, signum)
        globalLogBeginner.beginLoggingTo([_silence], redirectStandardIO=False, discardBuffer=True)
        reactor.callLater(1, self.application_checker)
        reactor.callLater(2, self.timeout_checker)
        for description in self.endpoints:
            listener = serverFromString(reactor, description).listen(self.http_factory)
            listener.addCallbacks(self._listening, self.listen_error)
            self.listeners.append(listener)
        reactor.addSystemEventTrigger("before", "shutdown", self.kill_all_applications)
        if not self.abort_start:
            reactor.run(installSignalHandlers=False)

    def listen_error(self, failure: Any) -> None:
        """Remember why, and stop."""
        self.failure = failure.getErrorMessage()
        super().listen_error(failure)

    def create_application(self, protocol: Any, scope: Message) -> asyncio.Queue[Message] | None:
        """Start the application for a request or socket; return its input queue."""
        if protocol not in self.connections:
            return None  # the peer left at once
        queue: asyncio.Queue[Message] = asyncio.Queue()
        receive: Callable[[], Awaitable[Message]] = queue.get
        if isinstance(protocol, BackpressureWebSocket):
            receive = partial(self._receive, protocol, queue)
        scope["asgi"] = {"version": "3.0", "spec_version": "2.3"}
        self.connections[protocol]["application_instance"] = asyncio.ensure_future(
            self.application(scope, receive, partial(self.handle_reply, protocol))
        )
        return queue

    async def handle_reply(self, protocol: Any, message: Message) -> None:
        """Hand a message of the application to the peer, when the peer has room for it."""
        if message["type"] in {"websocket.send", "http.response.body"}:
            passed = await protocol.gate.passed(within=self._send_stall_seconds)
            if not passed:
                logger.info("%r takes nothing; disconnected", protocol)
                protocol.give_up()
                return
        await super().handle_reply(protocol, message)
        if "disconnected" in self.connections.get(protocol, {"disconnected": True}):
            # An application that sends in a loop must get to hear that the peer is gone.
            await asyncio.sleep(0)

    async def _receive(
        self, protocol: BackpressureWebSocket, queue: asyncio.Queue[Message]
    ) -> Message:
        message = await queue.get()
        protocol.application_received(message)
        return message

    def kill_all_applications(self) -> Deferred[None]:
        """End in order; Twisted waits for it before it closes connections."""
        return Deferred.fromFuture(asyncio.ensure_future(self._shut_down()))

    def _listening(self, port: Any) -> None:
        self.listen_success(port)
        self._ports.append(port)
        self._ready(port.getHost().port)

    def _signalled(self, signum: int) -> None:
        """End in order; only a later Ctrl-C ends the wait.

        A signal to a process group comes twice where a parent passes it on, as make does with
        SIGTERM: that is one wish, and no hurry.
        """
        if not self._ending:
            self._ending = True
            self._may_hurry_at = time.monotonic() + HURRY_AFTER_SECONDS
            self.stop()
        elif signum == signal.SIGINT and time.monotonic() >= self._may_hurry_at:
            self._hurry.set()

    async def _shut_down(self) -> None:
        for port in self._ports:
            port.stopListening()
        draining = asyncio.ensure_future(self._drain())
        hurried = asyncio.ensure_future(self._hurry.wait())
        await asyncio.wait({draining, hurried}, return_when=asyncio.FIRST_COMPLETED)
        for waiting in (draining, hurried):
            waiting.cancel()
        await asyncio.wait({draining}, timeout=HURRY_SECONDS)
        running = []
        for protocol, details in list(self.connections.items()):
            if isinstance(protocol, BackpressureWebSocket):
                protocol.leave()
            instance = details.get("application_instance")
            if instance is not None and not instance.done():
                running.append(instance)
        if running:
            patience = 0 if self._hurry.is_set() else CLOSE_SECONDS
            _, late = await asyncio.wait(running, timeout=patience)
            for instance in late:
                instance.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self._finish()

"""Daphne with backpressure in both directions and a graceful shutdown.

Daphne buffers in memory whatever the application sends, and queues without limit whatever the
client sends. Here both wait (`write_gate`), and a client that reads nothing for
`send_stall_seconds` is disconnected, as is one that does not finish what it sends. On SIGTERM or
SIGINT, the server stops accepting connections, lets the application drain and closes the remaining
sockets with 1012; Ctrl-C a second later ends the wait.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from functools import partial
from typing import TYPE_CHECKING, Any

# Must come first: it installs the asyncio reactor.
from daphne.server import Server, twisted_loop  # isort: skip

from daphne.http_protocol import HTTPFactory
from daphne.ws_protocol import WebSocketFactory
from twisted.internet import reactor as installed_reactor
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import serverFromString
from twisted.logger import ILogObserver, globalLogBeginner
from zope.interface.declarations import implementer

from uamp_project.edge.arrivals import Arrival
from uamp_project.servers.daphne_http import BackpressureChannel, BackpressureRequest
from uamp_project.servers.daphne_web_socket import BackpressureWebSocket
from uamp_project.servers.uvicorn_shutdown import HURRY_AFTER_SECONDS
from uamp_project.servers.write_gate import CLOSE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from twisted.internet.interfaces import IAddress

    from uamp_project.edge.arrivals import Budget

logger = logging.getLogger(__name__)

FRAME_BYTES_MAX = 8 * 1024 * 1024
SEND_STALL_SECONDS = 30.0
PING_SECONDS = 15
# How long an aborted drain may take to hand the answers back.
HURRY_SECONDS = 2.0

Message = dict[str, Any]
Refusal = tuple[list[tuple[bytes, bytes]], bytes]


def _refuse_request(*, is_too_large: bool) -> tuple[int, *Refusal]:
    return 431 if is_too_large else 400, [(b"Content-Length", b"0")], b""


# Twisted's interface classes describe methods without `self`, which mypy cannot call.
reactor: Any = installed_reactor


@implementer(ILogObserver)
class _Silence:
    """Discards Twisted's log; relevant events go through `logging`."""

    def __call__(self, event: object) -> None:
        pass


_silence: Any = _Silence()


class BackpressureWebSocketFactory(WebSocketFactory):
    """Creates sockets with backpressure."""

    protocol = BackpressureWebSocket


class BackpressureHTTPFactory(HTTPFactory):
    """Creates requests with backpressure."""

    # Twisted's own channel is wrapped to switch to HTTP/2, which needs TLS.
    protocol: Any = BackpressureChannel

    def buildProtocol(self, addr: IAddress | None) -> Any:  # noqa: N802 Twisted's name
        """Return an HTTP channel that creates our requests."""
        channel = super().buildProtocol(addr)
        channel.requestFactory = BackpressureRequest
        return channel


class BackpressureServer(Server):
    """Serves an ASGI application on one address until a signal arrives.

    A request body above `body_bytes_max` is answered with 413 before it is stored; `refuse_body`
    makes the headers and body of that response for a path, and `refuse_request` the status, headers
    and body of the response to malformed requests and too large headers. `send_stall_seconds` is
    how long a client may read nothing, or send nothing of what it began; messages that it sends
    count against the `budget` of its address, under the name that `counted_as` returns. `drain` is
    awaited after the listeners are closed and before the sockets are, and `finish` when no
    application is running any more.
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
        refuse_request: Callable[..., tuple[int, *Refusal]] = _refuse_request,
        send_stall_seconds: float = SEND_STALL_SECONDS,
        budget: Budget | None = None,
        counted_as: Callable[[str], str] = str,
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
        self.refuse_request = refuse_request
        self._drain = drain
        self._finish = finish
        self._ready = ready
        self._send_stall_seconds = send_stall_seconds
        self._budget = budget
        self._counted_as = counted_as
        self._ports: list[Any] = []
        self._ending = False
        self._may_hurry_at = 0.0
        self._hurry = asyncio.Event()
        self.failure: str | None = None

    def run(self) -> None:
        """Listen and serve; return after a graceful shutdown, or if listening failed."""
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
            # A frame that is too large is answered with 1009 instead of a reset.
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
        """Record the reason, and stop."""
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
            protocol.scope = scope
        scope["asgi"] = {"version": "3.0", "spec_version": "2.3"}
        self.connections[protocol]["application_instance"] = asyncio.ensure_future(
            self.application(scope, receive, partial(self.handle_reply, protocol))
        )
        return queue

    def arrival(self, address: Callable[[], str] | None, cut: Callable[[str], None]) -> Arrival:
        """Return the watcher of a connection; without `address`, it checks deadlines only."""
        return Arrival(
            seconds=self._send_stall_seconds,
            budget=self._budget if address else None,
            sender=lambda: self._counted_as(address() if address else ""),
            cut=cut,
        )

    async def handle_reply(self, protocol: Any, message: Message) -> None:
        """Send a message of the application to the peer once the peer has room."""
        if message["type"] in {"websocket.send", "http.response.body"}:
            passed = await protocol.gate.passed(within=self._send_stall_seconds)
            if not passed:
                logger.info("disconnected %r, which does not read", protocol)
                protocol.give_up()
                return
        await super().handle_reply(protocol, message)
        if "disconnected" in self.connections.get(protocol, {"disconnected": True}):
            # An application that sends in a loop must notice that the peer is gone.
            await asyncio.sleep(0)

    async def _receive(
        self, protocol: BackpressureWebSocket, queue: asyncio.Queue[Message]
    ) -> Message:
        message = await queue.get()
        protocol.application_received(message)
        return message

    def kill_all_applications(self) -> Deferred[None]:
        """Shut down gracefully; Twisted waits for this before it closes connections."""
        return Deferred.fromFuture(asyncio.ensure_future(self._shut_down()))

    def _listening(self, port: Any) -> None:
        self.listen_success(port)
        self._ports.append(port)
        self._ready(port.getHost().port)

    def _signalled(self, signum: int) -> None:
        """Shut down gracefully; only a later Ctrl-C ends the wait.

        A signal to a process group arrives twice if a parent forwards it, as make does with
        SIGTERM, but counts once.
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
            if late:
                ended, stuck = await asyncio.wait(late, timeout=CLOSE_SECONDS)
                await asyncio.gather(*ended, return_exceptions=True)
                if stuck:
                    logger.error("%d connections did not end when they were cancelled", len(stuck))
        await self._finish()

"""WebSockets of Hypercorn with deadlines and byte counts for messages, as on the other servers.

Hypercorn keeps an unfinished message for as long as its client likes. Here, a client that sends too
little of it within UAMP_STALL_SECONDS loses its connection, or its stream of HTTP/2 or HTTP/3, and
messages count against UAMP_BODY_BYTES_PER_ADDRESS until the application takes them
(`edge.arrivals`).
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import hypercorn.protocol.h2
import hypercorn.protocol.h3
import hypercorn.protocol.h11
from django.conf import settings
from hypercorn.protocol.events import Event, Request, StreamClosed
from hypercorn.protocol.h2 import H2Protocol
from hypercorn.protocol.ws_stream import FrameTooLargeError, WSStream
from wsproto.connection import ConnectionState
from wsproto.events import CloseConnection, Message, Ping, Pong
from wsproto.frame_protocol import CloseReason

from sessions_app.access import rates
from uamp_project.edge.arrivals import TOO_FAST, Arrival, Frames
from uamp_project.edge.bodies import in_flight
from uamp_project.servers.peer_ports import hypercorn_connections
from uamp_project.servers.peer_ports.hypercorn_http3 import BoundedHttp3

if TYPE_CHECKING:
    from wsproto.events import Event as SocketEvent

logger = logging.getLogger(__name__)

_TOO_LARGE: Final = (int(CloseReason.MESSAGE_TOO_BIG), "message too large")


def limit() -> None:
    """Limit the WebSockets of this process; later calls do nothing."""
    modules: Any = (hypercorn.protocol.h11, hypercorn.protocol.h2, hypercorn.protocol.h3)
    for module in modules:
        module.WSStream = LimitedSocket


def counted(application: Any) -> Any:
    """Wrap an application: the messages that it takes count no longer."""

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        socket = getattr(send, "__self__", None)
        if not isinstance(socket, LimitedSocket):
            await application(scope, receive, send)
            return

        async def take() -> Any:
            message = await receive()
            if message["type"] == "websocket.receive":
                socket.arrival.taken()
            return message

        await application(scope, take, send)

    return serve


class LimitedSocket(WSStream):
    """A WebSocket whose frames and messages are limited; only tasks of its connection use it."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.arrival = Arrival(
            seconds=settings.UAMP_STALL_SECONDS,
            budget=in_flight,
            sender=self._sender,
            cut=self._cut,
        )
        self._frames = Frames()
        self._frame_bytes = 0
        self._is_refused = False

    async def handle(self, event: Event) -> None:
        """Handle an event of the connection; after a refusal, only its end."""
        if isinstance(event, StreamClosed):
            self.arrival.close()
        elif self._is_refused:
            return
        if isinstance(event, Request):
            # Uncompressed, a message may be a thousand times larger than what was received.
            headers = [line for line in event.headers if line[0] != b"sec-websocket-extensions"]
            event = replace(event, headers=headers)
        await super().handle(event)

    async def _handle_events(self) -> None:
        for event in self.connection.events():
            if not self._may_come(event):
                await self._refuse(*TOO_FAST)
            elif isinstance(event, Message):
                await self._take_piece(event)
            elif isinstance(event, Ping):
                # The task of a QUIC connection runs this: it must not wait for the client's window.
                self.task_group.spawn(self._send_wsproto_event, event.response())
            elif isinstance(event, CloseConnection):
                self.task_group.spawn(self._answer_close, event)
            if self._is_refused or self.closed:
                return

    async def _answer_close(self, event: CloseConnection) -> None:
        if self.connection.state is ConnectionState.REMOTE_CLOSING:
            await self._send_wsproto_event(event.response())
        await self.send(StreamClosed(stream_id=self.stream_id))

    async def _take_piece(self, event: Message[Any]) -> None:
        data = event.data
        size = len(data.encode() if isinstance(data, str) else data)
        self.arrival.piece(size, is_last=event.message_finished)
        if self._is_refused:
            return
        try:
            self.buffer.extend(event)
        except FrameTooLargeError:
            await self._refuse(*_TOO_LARGE)
            return
        if event.message_finished:
            self.arrival.finished()
            message = self.buffer.to_message()
            self.buffer.clear()
            if self.app_put is not None:
                await self.app_put(message)

    def _may_come(self, event: SocketEvent) -> bool:
        if isinstance(event, Ping | Pong):
            return self._frames.control(time.monotonic())
        if not isinstance(event, Message):
            return True
        self._frame_bytes += len(event.data)
        if not event.frame_finished:
            return True
        size, self._frame_bytes = self._frame_bytes, 0
        return event.message_finished or self._frames.fragment(size, time.monotonic())

    def _sender(self) -> str:
        # The edge stored the client's own address there when the socket was opened.
        client = self.scope.get("client") or ("", 0)
        return rates.visitors(str(client[0]))

    async def _refuse(self, code: int, reason: str) -> None:
        """Close the socket; its application then ends, and with it the connection."""
        logger.info("closed a socket of %s: %s", self._sender(), reason)
        self._is_refused = True
        self.arrival.close()
        self.buffer.clear()
        await self._send_wsproto_event(CloseConnection(code=code, reason=reason))
        if self.app_put is not None:
            await self.app_put({"type": "websocket.disconnect", "code": code})

    def _cut(self, reason: str) -> None:
        """End the connection, or the stream if the connection has others."""
        logger.info("%s %s; disconnected", self._sender(), reason)
        self._is_refused = True
        self.buffer.clear()
        protocol: Any = getattr(self.send, "__self__", None)
        if isinstance(protocol, H2Protocol):
            self.task_group.spawn(hypercorn_connections.reset, protocol, self.stream_id)
        elif isinstance(protocol, BoundedHttp3):
            self.task_group.spawn(protocol.reset, self.stream_id)
        else:
            hypercorn_connections.abort(protocol.send.__self__)

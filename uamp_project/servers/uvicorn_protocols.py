"""uvicorn's protocols with deadlines, for its options `--http` and `--ws` (README.md).

uvicorn waits indefinitely for the headers of a request and for the rest of a WebSocket message, and
keeps the part received. Here, a client that stalls for UAMP_STALL_SECONDS is disconnected, and
messages count against UAMP_BODY_BYTES_PER_ADDRESS until the application takes them. A socket is
closed if its client sends more pings, pongs and small fragments than `edge.arrivals` allows.

With the tested version of uvicorn, all data sent in one loop iteration is one write, and text
frames are built here; any other version sends them itself.
"""

from __future__ import annotations

import logging
import re
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import h11
import uvicorn
from django.conf import settings
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.wsproto_impl import WebsocketBuffer, WSProtocol
from wsproto import ConnectionType, WSConnection, events
from wsproto.connection import ConnectionState

import uamp

# uvicorn imports its protocols before the application, so Django is set up here.
import uamp_project.servers.django_handler  # noqa: F401  # isort: skip
from sessions_app.access import rates
from sessions_app.transports.socket import JOINED_TEXTS
from uamp_project.edge.arrivals import TOO_FAST, Arrival, Frames
from uamp_project.edge.bodies import in_flight
from uamp_project.edge.refusals import unread_request
from uamp_project.servers.joined_writes import JoinedWrites, text_frame

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Generator, Mapping, Sequence

    from uvicorn._types import ASGISendEvent, WebSocketEvent
    from uvicorn.protocols.http.h11_impl import RequestResponseCycle
    from wsproto.events import Event

logger = logging.getLogger(__name__)

# The maximum bytes of an incomplete request head.
HEADER_BYTES: Final = 64 * 1024
_BARE_LF: Final = re.compile(rb"(?<!\r)\n")
# The version whose attributes are known to show whether a message may be sent.
TESTED_UVICORN: Final = "0.54.0"


class _TooFastError(Exception):
    """The client sends too many frames."""


class _CountedConnection(WSConnection):
    """A connection that counts frames as they are read, even after it was closed."""

    def __init__(self) -> None:
        super().__init__(ConnectionType.SERVER)
        self._frames = Frames()
        self._size = 0

    def events(self) -> Generator[Event, None, None]:
        """Yield the received events; raises _TooFastError."""
        for event in super().events():
            if not self._may_come(event):
                raise _TooFastError
            yield event

    def _may_come(self, event: Event) -> bool:
        if isinstance(event, events.Ping | events.Pong):
            return self._frames.control(time.monotonic())
        if not isinstance(event, events.Message):
            return True
        self._size += len(event.data)
        if not event.frame_finished:
            return True
        size, self._size = self._size, 0
        return event.message_finished or self._frames.fragment(size, time.monotonic())


JOINS_FRAMES: Final = uvicorn.__version__ == TESTED_UVICORN


def _joined(transport: Any, loop: asyncio.AbstractEventLoop) -> Any:
    """Return a transport that joins writes; that of an upgraded request already does."""
    if not JOINS_FRAMES or isinstance(transport, JoinedWrites):
        return transport
    return JoinedWrites(transport, loop)


class WebSocketProtocol(WSProtocol):
    """A socket with deadlines and size limits for messages."""

    joins_frames = JOINS_FRAMES

    def __init__(self, config: Any, *args: Any, **options: Any) -> None:
        # Uncompressed, a message may be a thousand times larger than what was received and counted.
        config.ws_per_message_deflate = False
        super().__init__(config, *args, **options)
        # A frame that is only slightly too large is answered with `frame_too_large`.
        largest = min(config.ws_max_size, uamp.DEFAULT_LIMITS.frame_bytes + 64 * 1024)
        self.buffer = WebsocketBuffer(largest)
        self.conn = _CountedConnection()
        # The latest ping received while the client was reading nothing.
        self._unanswered: events.Ping | None = None
        self._arrival = Arrival(
            seconds=settings.UAMP_STALL_SECONDS,
            budget=in_flight,
            sender=self._sender,
            cut=self._cut,
        )

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Write to the transport once per loop iteration."""
        super().connection_made(_joined(transport, self.loop))

    def connection_lost(self, exc: Exception | None) -> None:
        """Release everything that was received."""
        self._arrival.close()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Process received data; refuse the socket after too many frames.

        uvicorn stops reading at each message until the application takes it, which costs two system
        calls for most messages. Here, reading stops only when data arrives while earlier messages
        are still waiting.
        """
        is_behind = not self.queue.empty()
        try:
            super().data_received(data)
        except _TooFastError:
            self._refuse()
            return
        if is_behind and not (self.read_paused or self.queue.empty() or self.close_sent):
            self.read_paused = True
            self.transport.pause_reading()
            self._arrival.paused()

    def handle_ping(self, event: events.Ping) -> None:
        """Answer a ping; while the client reads nothing, only the latest one, later (RFC 6455)."""
        if self.writable.is_set():
            super().handle_ping(event)
        else:
            self._unanswered = event

    def resume_writing(self) -> None:
        """Send the pong that was held back."""
        super().resume_writing()
        unanswered, self._unanswered = self._unanswered, None
        if unanswered is not None and not self.close_sent and not self.transport.is_closing():
            super().handle_ping(unanswered)

    def handle_message(self, event: events.TextMessage | events.BytesMessage) -> None:
        """Count a piece of a message."""
        data = event.data
        size = len(data.encode() if isinstance(data, str) else data)
        self._arrival.piece(size, is_last=event.message_finished)
        if self.transport.is_closing():
            return
        was_paused = self.read_paused
        # Keeps uvicorn from pausing, which `data_received` does instead.
        self.read_paused = was_paused or self.joins_frames
        super().handle_message(event)
        if self.joins_frames:
            self.read_paused = was_paused
        if event.message_finished:
            self._arrival.finished()
            if self.read_paused:
                self._arrival.paused()

    async def receive(self) -> WebSocketEvent:
        """Pass the next message to the application."""
        message = await super().receive()
        if message["type"] == "websocket.receive":
            self._arrival.taken()
        if not self.read_paused:
            self._arrival.resumed()
        return message

    def handle_connect(self, event: events.Request) -> None:
        """Announce to the application that it may send several texts in one message."""
        super().handle_connect(event)
        extensions: dict[str, Any] = self.scope["extensions"]
        if self.joins_frames:
            extensions[JOINED_TEXTS] = {}

    async def send(self, message: ASGISendEvent) -> None:
        """Send as uvicorn does, which resumes reading after a close frame was sent."""
        texts = _texts_of(message) if self.joins_frames else ()
        if not texts:
            await super().send(message)
        else:
            if not self.writable.is_set():
                await self.writable.wait()
            if self._may_send():
                self.transport.write(b"".join(map(text_frame, texts)))
            else:
                await super().send({"type": "websocket.send", "text": texts[0]})
        if not self.read_paused:
            self._arrival.resumed()

    def _may_send(self) -> bool:
        """Return whether uvicorn would send a message now, rather than raise."""
        return (
            self.handshake_complete
            and not (self.disconnected or self.close_sent or self.response_started)
            and not self.transport.is_closing()
            and self.conn.state is ConnectionState.OPEN
        )

    def _sender(self) -> str:
        # The edge stored the client's own address there when the socket was opened.
        client = self.scope.get("client") or ("", 0)
        return rates.visitors(str(client[0]))

    def _refuse(self) -> None:
        """Close the socket; a client that reads nothing gets no close frame."""
        code, reason = TOO_FAST
        if self.close_sent or self.transport.is_closing() or not self.writable.is_set():
            self._cut("sends too many frames")
            return
        logger.info("%s sends too many frames; closed", self._sender())
        self.close_sent = True
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        self.transport.write(self.conn.send(events.CloseConnection(code=code, reason=reason)))
        # Not closed at once, because unread data would make the kernel discard the close frame.
        self.transport.pause_reading()
        self.read_paused = False  # so that nothing resumes it
        self.close_timer = self.loop.call_later(self.close_timeout, self.transport.abort)

    def _cut(self, reason: str) -> None:
        logger.info("%s %s; disconnected", self._sender(), reason)
        self.transport.abort()


def _texts_of(message: ASGISendEvent) -> Sequence[str]:
    """Return the texts in a message: one, or several with the extension JOINED_TEXTS."""
    values: Mapping[str, Any] = message
    text = values.get("text")
    return (text,) if isinstance(text, str) else values.get("texts", ())


class _StrictConnection(h11.Connection):
    """Requests that no proxy reads differently; `refused_with` is the last refusal's status."""

    def __init__(self, limit: int) -> None:
        super().__init__(h11.SERVER, limit)
        self.refused_with: int = HTTPStatus.BAD_REQUEST

    def next_event(self) -> Any:
        """Return the next event; raises h11.RemoteProtocolError.

        Given two lengths, a proxy may believe the other one, and read the rest of the body as a
        request. h11 also ends a line at a bare LF, which a proxy may read as part of the line.
        """
        if self.their_state is h11.IDLE:
            head = self.trailing_data[0].partition(b"\r\n\r\n")[0]
            if _BARE_LF.search(head):
                raise h11.RemoteProtocolError("a line that ends with LF alone")
        try:
            event = super().next_event()
        except h11.RemoteProtocolError as error:
            self.refused_with = error.error_status_hint
            raise
        if isinstance(event, h11.Request):
            names = {name for name, _ in event.headers}
            if {b"content-length", b"transfer-encoding"} <= names:
                raise h11.RemoteProtocolError("both Content-Length and Transfer-Encoding")
        return event


class HttpProtocol(H11Protocol):
    """Requests whose headers must arrive within UAMP_STALL_SECONDS.

    For the first request, the time counts from connecting. The same limit applies to the rest of a
    body whose request was already answered.
    """

    _due: asyncio.TimerHandle | None = None

    def __init__(self, config: Any, *args: Any, **options: Any) -> None:
        super().__init__(config, *args, **options)
        limit = config.h11_max_incomplete_event_size
        self.conn = _StrictConnection(HEADER_BYTES if limit is None else limit)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Wait for the first request; write to the transport once per loop iteration."""
        super().connection_made(_joined(transport, self.loop))
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._expect_nothing()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Refuse a malformed request in the format of other refusals."""
        logger.info("%s sent no request: %s", self.client, msg)
        is_too_large = (
            self.conn.refused_with == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE  # type: ignore[attr-defined]  # a _StrictConnection
        )
        status, headers, body = unread_request(is_too_large=is_too_large)
        headers.append((b"connection", b"close"))
        reason = HTTPStatus(status).phrase.encode()
        refused = h11.Response(status_code=status, headers=headers, reason=reason)
        for event in (refused, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Wait for the rest of the headers once a part has arrived."""
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """Wait for the rest of the next request, if it has begun; uvicorn ends an idle one."""
        super().on_response_complete()
        self._look()

    def _look(self) -> None:
        state = self.conn.their_state
        # uvicorn cancels its own deadline for the next request at the first byte of anything.
        has_begun = bool(self.conn.trailing_data[0]) or self.timeout_keep_alive_task is None
        cycle: RequestResponseCycle | None = self.cycle
        is_answered = cycle is not None and cycle.response_complete
        if (state is h11.IDLE and has_begun) or (state is h11.SEND_BODY and is_answered):
            if self._due is None:
                self._expect()
        else:
            self._expect_nothing()

    def _expect(self) -> None:
        self._due = self.loop.call_later(settings.UAMP_STALL_SECONDS, self._cut)

    def _expect_nothing(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _cut(self) -> None:
        self._due = None
        if not self.transport.is_closing():
            logger.info("disconnected %s, which sent no request in time", self.client)
            self.transport.abort()

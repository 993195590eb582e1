"""HTTP/3 of Hypercorn, with limits on what a connection holds; Hypercorn and aioquic have none.

An application waits while its stream, or the connection, holds too many bytes that the client has
not acknowledged. If a client opens no window for UAMP_STALL_SECONDS, its stream is reset, as over
HTTP/2. Hypercorn's own protocol also fails on trailers and on data after an answer, and does not
tell an application that its client has left.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pylsqpack
from aioquic.h3.connection import (
    CONNECTION_SPECIFIC_HEADERS,
    ErrorCode,
    H3Connection,
    ProtocolError,
)
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.events import ConnectionTerminated, StopSendingReceived, StreamReset
from django.conf import settings
from hypercorn.protocol.events import (
    Body,
    Data,
    EndBody,
    EndData,
    Request,
    Response,
    StreamClosed,
)
from hypercorn.protocol.h3 import H3Protocol
from hypercorn.protocol.http_stream import ASGIHTTPState, HTTPStream
from hypercorn.protocol.ws_stream import WSStream

if TYPE_CHECKING:
    from aioquic.h3.events import Headers
    from aioquic.quic.connection import QuicConnection
    from aioquic.quic.events import QuicEvent
    from aioquic.quic.stream import QuicStream

logger = logging.getLogger(__name__)

STREAM_BYTES: Final = 256 * 1024
"""An application waits while its stream holds this much that the client has not acknowledged."""
SENT_BYTES: Final = 1024 * 1024
"""All applications of a connection wait while it holds this much."""
RECEIVED_BYTES: Final = 4 * 1024 * 1024
"""A connection that holds more data behind gaps is closed: one byte can leave a gap of 1 MiB."""
FRAME_BYTES: Final = 16 * 1024
"""A connection with a larger frame of header fields is closed."""
FIELDS_BYTES: Final = 64 * 1024
"""So is one whose fields are larger when decoded, each with 32 bytes more (RFC 9114 §4.2.2)."""
PIECE_BYTES: Final = 256 * 1024
"""A message to a stream has UAMP_STALL_SECONDS for each started piece of this size."""
_WRITE_BYTES: Final = 64 * 1024
_FIELD_BYTES: Final = 32


class BoundedHttp3(H3Protocol):
    """The requests of one QUIC connection; only tasks of its event loop call the methods."""

    def __init__(self, *arguments: Any, quic: QuicConnection, send: Any) -> None:
        # Hypercorn's last two arguments.
        everything: Any = (*arguments, quic, send)
        super().__init__(*everything)
        self._quic = quic
        self._is_over = False
        self._moved = asyncio.Event()

    @property
    def sent_bytes(self) -> int:
        """The bytes of answers that the client has not acknowledged."""
        return sum(_sent(stream) for stream in _streams(self._quic).values())

    @property
    def holds_too_much(self) -> bool:
        """Whether the client has sent more that cannot be passed on than is allowed."""
        fields = [len(stream.buffer) for stream in self.connection._stream.values()]  # noqa: SLF001 no accessor
        gaps = sum(_received(stream) for stream in _streams(self._quic).values())
        return gaps > RECEIVED_BYTES or max(fields, default=0) > FRAME_BYTES

    def moved(self) -> None:
        """Let waiting applications look again, after something was sent or acknowledged."""
        self._moved.set()
        self._moved = asyncio.Event()

    def lose(self) -> None:
        """Report to all applications that the connection has ended."""
        self._is_over = True
        for stream_id in list(self.streams):
            self._leave(stream_id)

    async def ended(self) -> None:
        """Return once no request is left."""
        while self.streams:
            await self._moved.wait()

    async def handle(self, quic_event: QuicEvent) -> None:
        """Pass what the client has sent to the streams."""
        if isinstance(quic_event, ConnectionTerminated):
            self.lose()
            return
        if isinstance(quic_event, (StopSendingReceived, StreamReset)):
            self._end(quic_event.stream_id, ErrorCode.H3_REQUEST_CANCELLED)
        for event in self.connection.handle_event(quic_event):
            if isinstance(event, HeadersReceived):
                await self._begin(event)
            elif isinstance(event, DataReceived):
                await self._pass_on(Body(stream_id=event.stream_id, data=event.data))
            else:
                continue
            if event.stream_ended:
                await self._pass_on(EndBody(stream_id=event.stream_id))

    async def stream_send(self, event: Any) -> None:
        """Send an event of a stream; reset the stream if its client opens no window."""
        if isinstance(event, StreamClosed):
            self._finish(event.stream_id)
            await self.send()
            return
        if self._is_over or event.stream_id not in self.streams or isinstance(event, Request):
            # A request would be a push, which no application here makes.
            return
        size = len(event.data) if isinstance(event, (Body, Data)) else 0
        is_limited = isinstance(event, (Body, Data, EndBody, EndData))
        limit = settings.UAMP_STALL_SECONDS * (1 + size // PIECE_BYTES) if is_limited else None
        try:
            async with asyncio.timeout(limit):
                await self._send(event)
        except TimeoutError:
            logger.info("ended the stream of an idle client")
            await self.reset(event.stream_id)
        except (ProtocolError, RuntimeError, ValueError):
            logger.debug("a client had left its stream", exc_info=True)

    async def reset(self, stream_id: int) -> None:
        """Reset a stream, drop what it has not sent, and report its end to the application."""
        self._end(stream_id, ErrorCode.H3_INTERNAL_ERROR)
        await self.send()

    async def _begin(self, event: HeadersReceived) -> None:
        """Begin a request; trailers are ignored."""
        fields = dict(event.headers)
        method, path = fields.get(b":method"), fields.get(b":path")
        if method is None:
            return
        if self.context.terminated.is_set():
            self._reset(event.stream_id, ErrorCode.H3_REQUEST_REJECTED)
        elif path is None or not (method.isascii() and path.isascii()):
            self._reset(event.stream_id, ErrorCode.H3_MESSAGE_ERROR)
        else:
            try:
                await self._create_stream(event)
            except ValueError:
                # A field of a socket's handshake is not ASCII.
                self._end(event.stream_id, ErrorCode.H3_MESSAGE_ERROR)

    async def _pass_on(self, event: Body | EndBody) -> None:
        """Pass a part of a request to its stream, if that has not ended."""
        stream = self.streams.get(event.stream_id)
        if stream is None:
            return
        try:
            await stream.handle(event)
        except Exception:
            logger.exception("a request over HTTP/3 could not be read")
            self._end(event.stream_id, ErrorCode.H3_INTERNAL_ERROR)

    async def _send(self, event: Any) -> None:
        stream_id = event.stream_id
        if isinstance(event, (Body, Data)):
            for start in range(0, len(event.data), _WRITE_BYTES):
                if not await self._has_room(stream_id):
                    return
                piece = bytes(event.data[start : start + _WRITE_BYTES])
                self.connection.send_data(stream_id, piece, end_stream=False)
                await self.send()
            return
        if isinstance(event, Response):
            # Refusals close connections of HTTP/1.1; a client of HTTP/3 would close its own.
            headers = [line for line in event.headers if line[0] not in CONNECTION_SPECIFIC_HEADERS]
            event = replace(event, headers=headers)
        await super().stream_send(event)
        if isinstance(event, (EndBody, EndData)):
            while stream_id in self.streams and _has_unsent(self._quic, stream_id):
                await self._moved.wait()

    async def _has_room(self, stream_id: int) -> bool:
        """Wait for room for a piece of an answer; return False if its client has left."""
        while stream_id in self.streams:
            stream = _streams(self._quic).get(stream_id)
            waiting = 0 if stream is None else _sent(stream)
            # Other streams may hold all that is allowed, while their clients read nothing.
            if waiting == 0 or (waiting < STREAM_BYTES and self.sent_bytes < SENT_BYTES):
                return True
            await self._moved.wait()
        return False

    def _finish(self, stream_id: int) -> None:
        """End a stream whose application has ended, and what its client has yet to send.

        Without its whole answer, the client would wait for the rest.
        """
        stream = self.streams.pop(stream_id, None)
        self.moved()
        if stream is None:
            return
        if isinstance(stream, WSStream):
            # Its client may have closed it: the application ends, and its bytes count no longer.
            self.task_group.spawn(stream.handle, StreamClosed(stream_id=stream_id))
        if self._is_over:
            return
        if isinstance(stream, HTTPStream) and stream.state is not ASGIHTTPState.CLOSED:
            self._reset(stream_id, ErrorCode.H3_INTERNAL_ERROR)
            return
        if not isinstance(stream, HTTPStream):
            # The application may have left the socket without closing it.
            with suppress(ProtocolError, RuntimeError, ValueError):
                self.connection.send_data(stream_id, b"", end_stream=True)
        _stop_reading(self._quic, stream_id, ErrorCode.H3_NO_ERROR)

    def _end(self, stream_id: int, code: ErrorCode) -> None:
        """Reset a stream with a request, and report its end to the application."""
        if self._leave(stream_id):
            self._reset(stream_id, code)

    def _leave(self, stream_id: int) -> bool:
        """Report the end of a stream to the application; return whether it had not ended."""
        stream = self.streams.pop(stream_id, None)
        self.moved()
        if stream is None:
            return False
        # The application may be the one that waits here, so it cannot take the message yet.
        self.task_group.spawn(stream.handle, StreamClosed(stream_id=stream_id))
        return True

    def _reset(self, stream_id: int, code: ErrorCode) -> None:
        """Reset both directions of a stream, and drop what it has not sent."""
        with suppress(ValueError):
            self._quic.reset_stream(stream_id, code)
        _stop_reading(self._quic, stream_id, code)
        stream = _streams(self._quic).get(stream_id)
        if stream is not None:
            # aioquic keeps it until the client acknowledges the reset.
            stream.sender._buffer.clear()  # noqa: SLF001 it has no other way


class TooManyFieldsError(ProtocolError):
    """A request has too many header fields, or too large ones."""

    error_code = ErrorCode.H3_EXCESSIVE_LOAD


class PlainFields(H3Connection):
    """HTTP/3 with a limit on header fields, and without a dynamic table.

    With that table, 8 KiB of header fields become 32 MiB.
    """

    def _init_connection(self) -> None:
        self._max_table_capacity = self._blocked_streams = 0
        self._decoder = pylsqpack.Decoder(self._max_table_capacity, self._blocked_streams)
        super()._init_connection()

    def _decode_headers(self, stream_id: int, frame_data: bytes | None) -> Headers:
        if frame_data is not None and len(frame_data) > FRAME_BYTES:
            raise TooManyFieldsError
        fields = super()._decode_headers(stream_id, frame_data)
        if sum(len(name) + len(value) + _FIELD_BYTES for name, value in fields) > FIELDS_BYTES:
            raise TooManyFieldsError
        return fields


def _streams(quic: QuicConnection) -> dict[int, QuicStream]:
    return quic._streams  # noqa: SLF001 no accessor


def _sent(stream: QuicStream) -> int:
    """Return the bytes of a stream that the client has not acknowledged."""
    return len(stream.sender._buffer)  # noqa: SLF001 no accessor


def _received(stream: QuicStream) -> int:
    """Return the bytes of a stream that wait for earlier ones."""
    return len(stream.receiver._buffer)  # noqa: SLF001 no accessor


def _has_unsent(quic: QuicConnection, stream_id: int) -> bool:
    """Return whether the client's window, or the network, keeps a part of a stream back."""
    stream = _streams(quic).get(stream_id)
    if stream is None:
        return False
    return stream.sender.highest_offset < stream.sender._buffer_stop  # noqa: SLF001 no accessor


def _stop_reading(quic: QuicConnection, stream_id: int, code: ErrorCode) -> None:
    """Tell the client that the rest of its request is not read."""
    stream = _streams(quic).get(stream_id)
    if stream is not None and not stream.receiver.is_finished:
        quic.stop_stream(stream_id, code)

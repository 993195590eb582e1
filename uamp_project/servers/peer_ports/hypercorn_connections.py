"""Limits on the TCP connections of Hypercorn, and on their streams; it has none of its own.

A client that reads nothing for UAMP_STALL_SECONDS is disconnected, as on the other servers. Over
HTTP/2, if it only opens no window for a stream, that stream is reset. An address has at most
UAMP_CONNECTIONS_PER_ADDRESS connections over TCP and QUIC (`hypercorn_quic`), unless it is a proxy.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from contextlib import suppress
from typing import Any, Final

from django.conf import settings
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.events import Closed, Event, RawData
from hypercorn.protocol.events import Body, Data, EndBody, EndData, StreamClosed
from hypercorn.protocol.h2 import H2Protocol
from hypercorn.protocol.http_stream import HTTPStream
from hypercorn.protocol.ws_stream import WSStream
from priority.priority import MissingStreamError

from sessions_app.access import rates
from sessions_app.proxies import is_trusted_proxy
from uamp_project.edge.transports import StallWatch

logger = logging.getLogger(__name__)

PIECE_BYTES: Final = 256 * 1024
"""A message to a stream has UAMP_STALL_SECONDS for each started piece of this size."""
_GONE_SECONDS: Final = 5.0
"""How long the applications of a connection that is gone may take."""
_limits: Final[dict[TCPServer, asyncio.Timeout]] = {}
_connections: Final[Counter[str]] = Counter()
_watches: Final[dict[TCPServer, StallWatch]] = {}
_run: Final[Any] = TCPServer.run
_send: Final[Any] = TCPServer.protocol_send
_send_h2: Final[Any] = H2Protocol.stream_send


def limit() -> None:
    """Limit the connections of this process; later calls do nothing."""
    server: Any = TCPServer
    server.run, server.protocol_send = _run_counted, _send_watched
    protocol: Any = H2Protocol
    protocol.stream_send = _send_limited


def has_room(address: str) -> bool:
    """Return whether an address may have another connection to the ports of peers."""
    count = _connections[rates.visitors(address)]
    if count < settings.UAMP_CONNECTIONS_PER_ADDRESS or is_trusted_proxy(address):
        return True
    logger.info("refused a connection of %s, which has too many", address)
    return False


def begin(address: str) -> None:
    """Count a connection of an address."""
    _connections[rates.visitors(address)] += 1


def end(address: str) -> None:
    """Stop counting a connection of an address."""
    visitors = rates.visitors(address)
    _connections[visitors] -= 1
    if not _connections[visitors]:
        del _connections[visitors]


async def _run_counted(server: TCPServer) -> None:
    """Serve a connection, or abort it: its address has too many, or the ports close."""
    if getattr(server.config, "is_closing", False):
        server.writer.transport.abort()
        return
    peer = server.writer.get_extra_info("peername")
    address = str(peer[0]) if isinstance(peer, tuple) else ""
    if not has_room(address):
        server.writer.transport.abort()
        return
    begin(address)
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(None) as ending:
                _limits[server] = ending
                await _run(server)
    finally:
        _limits.pop(server, None)
        _watches.pop(server, None)
        end(address)


async def _send_watched(server: TCPServer, event: Event) -> None:
    """Write to a connection, which is aborted if its client reads nothing."""
    if not isinstance(event, RawData):
        await _send(server, event)
        return
    async with server.send_lock:
        watch = _watches.get(server)
        if watch is None:

            def drop() -> None:
                logger.info("disconnected idle client")
                abort(server)

            transport: Any = server.writer.transport
            watch = _watches[server] = StallWatch(transport, drop)
        try:
            server.writer.write(event.data)
            watch.sent(len(event.data))
            await server.writer.drain()
        except (OSError, RuntimeError):
            await server.protocol.handle(Closed())
            _end_soon(server)


def _end_soon(server: TCPServer) -> None:
    """End the task of a connection that is gone.

    While a client sends a request before it has read the last answer, Hypercorn reads nothing, and
    would not see its end.
    """

    def end() -> None:
        ending = _limits.get(server)
        if ending is not None and not ending.expired():
            ending.reschedule(0)

    asyncio.get_running_loop().call_later(_GONE_SECONDS, end)


async def _send_limited(protocol: Any, event: Any) -> None:
    """Send an event of a stream over HTTP/2; reset a stream whose client opens no window.

    So is one whose application has ended before its answer, which the client would wait for.
    """
    size = len(event.data) if isinstance(event, (Body, Data)) else 0
    is_limited = isinstance(event, (Body, Data, EndBody, EndData))
    limit = settings.UAMP_STALL_SECONDS * (1 + size // PIECE_BYTES) if is_limited else None
    if isinstance(event, StreamClosed) and _is_unfinished(protocol, event.stream_id):
        await reset(protocol, event.stream_id)
    try:
        async with asyncio.timeout(limit):
            await _send_h2(protocol, event)
    except TimeoutError:
        logger.info("ended the stream of an idle client")
        await reset(protocol, event.stream_id)
        # The connection may be idle now.
        await _send_h2(protocol, StreamClosed(stream_id=event.stream_id))


def _is_unfinished(protocol: Any, stream_id: int) -> bool:
    """Return whether a stream that ends has not sent its whole answer."""
    buffer = protocol.stream_buffers.get(stream_id)
    is_answer = isinstance(protocol.streams.get(stream_id), HTTPStream)
    return is_answer and buffer is not None and not buffer._complete  # noqa: SLF001 no accessor


def abort(server: TCPServer) -> None:
    """End a connection without sending what it has buffered."""
    server.writer.transport.abort()
    _end_soon(server)


async def reset(protocol: Any, stream_id: int) -> None:
    """Reset a stream of HTTP/2, drop its unsent bytes, and report its end to the application."""
    stream = protocol.streams.pop(stream_id, None)
    if (buffer := protocol.stream_buffers.get(stream_id)) is not None:
        await buffer.close()
    with suppress(ProtocolError, MissingStreamError):
        protocol.connection.reset_stream(stream_id, ErrorCodes.INTERNAL_ERROR)
        await protocol._flush()  # noqa: SLF001 it has no other way to send this
        # The task that sends then forgets the buffer.
        protocol.priority.unblock(stream_id)
        await protocol.has_data.set()
    if stream is not None:
        # The application may be the one that waits here, so it cannot take the message yet.
        protocol.task_group.spawn(stream.handle, StreamClosed(stream_id=stream_id))


def unread(application: Any) -> Any:
    """Wrap an application: what it left unread when it ended is discarded.

    Otherwise the connection waits for ever for room in the queue of a request.
    """

    async def discard(_message: object) -> None:
        """Drop a message, which has no reader any more."""

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        try:
            await application(scope, receive, send)
        finally:
            stream, queue = getattr(send, "__self__", None), getattr(receive, "__self__", None)
            if isinstance(stream, (HTTPStream, WSStream)) and isinstance(queue, asyncio.Queue):
                stream.app_put = discard
                while not queue.empty():
                    queue.get_nowait()

    return serve

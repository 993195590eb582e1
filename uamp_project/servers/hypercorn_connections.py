"""Limits on the TCP connections of Hypercorn, which has none of its own.

A client that reads nothing for UAMP_STALL_SECONDS is disconnected, as on the other servers; the
streams of a connection have their own limits in `edge.transports`. An address has at most
UAMP_CONNECTIONS_PER_ADDRESS connections, unless it is a proxy.
"""

from __future__ import annotations

import logging
from collections import Counter
from contextlib import suppress
from typing import Any, Final

from django.conf import settings
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.events import Closed, Event, RawData
from hypercorn.protocol.events import StreamClosed
from hypercorn.protocol.h2 import H2Protocol
from priority import MissingStreamError

from sessions_app.access import rates
from sessions_app.proxies import is_trusted_proxy
from uamp_project.edge.transports import Watch

logger = logging.getLogger(__name__)

_connections: Final[Counter[str]] = Counter()
_watches: Final[dict[TCPServer, Watch]] = {}
_run: Final[Any] = TCPServer.run
_send: Final[Any] = TCPServer.protocol_send
_send_h2: Final[Any] = H2Protocol.stream_send


def limit() -> None:
    """Limit the connections of this process; later calls do nothing."""
    server: Any = TCPServer
    server.run, server.protocol_send = _run_counted, _send_watched
    protocol: Any = H2Protocol
    protocol.stream_send = _send_whole


async def _run_counted(server: TCPServer) -> None:
    """Serve a connection, or abort it: its address has too many, or the ports close."""
    if getattr(server.config, "is_closing", False):
        server.writer.transport.abort()
        return
    peer = server.writer.get_extra_info("peername")
    address = str(peer[0]) if isinstance(peer, tuple) else ""
    visitors = rates.visitors(address)
    if not is_trusted_proxy(address) and (
        _connections[visitors] >= settings.UAMP_CONNECTIONS_PER_ADDRESS
    ):
        logger.info("refused a connection of %s, which has too many", address)
        server.writer.transport.abort()
        return
    _connections[visitors] += 1
    try:
        await _run(server)
    finally:
        _watches.pop(server, None)
        _connections[visitors] -= 1
        if not _connections[visitors]:
            del _connections[visitors]


async def _send_watched(server: TCPServer, event: Event) -> None:
    """Write to a connection, which is aborted if its client reads nothing."""
    if not isinstance(event, RawData):
        await _send(server, event)
        return
    async with server.send_lock:
        watch = _watches.get(server)
        if watch is None:
            transport = server.writer.transport
            watch = _watches[server] = Watch(transport, transport.abort)
        try:
            server.writer.write(event.data)
            watch.sent(len(event.data))
            await server.writer.drain()
        except (OSError, RuntimeError):
            await server.protocol.handle(Closed())


async def _send_whole(protocol: Any, event: Any) -> None:
    """Send an event of a stream; reset the stream if its application ended before its answer."""
    if isinstance(event, StreamClosed):
        buffer = protocol.stream_buffers.get(event.stream_id)
        if buffer is not None and not buffer._complete:  # noqa: SLF001 it has no accessor
            await buffer.close()
            with suppress(ProtocolError, MissingStreamError):
                protocol.connection.reset_stream(event.stream_id, ErrorCodes.INTERNAL_ERROR)
                await protocol._flush()  # noqa: SLF001 as above
                # The task that sends then forgets the buffer.
                protocol.priority.unblock(event.stream_id)
    await _send_h2(protocol, event)

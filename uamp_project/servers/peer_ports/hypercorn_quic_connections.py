"""One QUIC connection of a port for peers: the task that serves it, and how it counts."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

from aioquic.h3.connection import ErrorCode
from aioquic.quic.events import (
    ConnectionIdIssued,
    ConnectionIdRetired,
    ConnectionTerminated,
    HandshakeCompleted,
    ProtocolNegotiated,
)
from aioquic.quic.packet import QuicErrorCode
from hypercorn.typing import ConnectionState

from sessions_app.access import rates
from uamp_project.servers.peer_ports import hypercorn_connections
from uamp_project.servers.peer_ports.hypercorn_http3 import BoundedHttp3

if TYPE_CHECKING:
    from aioquic.quic.connection import QuicConnection
    from aioquic.quic.events import QuicEvent
    from hypercorn.asyncio.task_group import TaskGroup

    Address = tuple[Any, ...]

logger = logging.getLogger(__name__)

PIECES_MAX: Final = 1024
"""A connection with more pieces behind missing data is closed; 870 packets fill 1 MiB."""
_DATAGRAMS_MAX: Final = 64
"""Datagrams of one connection that wait for its task; QUIC sends again what is dropped."""


class DatagramPort(Protocol):
    """The port of a connection: Hypercorn's server, its tasks, and all connections."""

    server: Any
    requests: TaskGroup
    address: Address | None
    connections: dict[bytes, QuicServerConnection]
    # The unfinished handshakes by address.
    unproven: Counter[str]

    def send(self, data: bytes, address: Address) -> None:
        """Send a datagram."""

    def forget(self, connection: QuicServerConnection) -> None:
        """Forget a connection that has ended."""


class QuicServerConnection:
    """One QUIC connection, whose task handles what it receives and its timers."""

    def __init__(
        self, port: DatagramPort, quic: QuicConnection, address: Address, *, is_proven: bool
    ) -> None:
        self.ids: set[bytes] = set()
        self._port = port
        self._quic = quic
        self._client = (str(address[0]), int(address[1]))
        self._visitors = rates.visitors(self._client[0])
        self._datagrams: deque[tuple[bytes, Address]] = deque()
        self._woken = asyncio.Event()
        self._http: BoundedHttp3 | None = None
        self._is_over = False
        # Counted as a connection of its address, or as an unfinished handshake, or neither.
        self._is_counted, self._is_unproven = is_proven, not is_proven
        if is_proven:
            hypercorn_connections.begin(self._client[0])
        else:
            port.unproven[self._visitors] += 1

    async def ended(self) -> None:
        """Return once no request is left."""
        if self._http is not None:
            await self._http.ended()

    def receive(self, data: bytes, address: Address) -> None:
        """Leave a datagram to the task; drop it if too many wait."""
        if len(self._datagrams) < _DATAGRAMS_MAX:
            self._datagrams.append((data, address))
            self._woken.set()

    def close(self, code: int) -> None:
        """Close the connection."""
        self._quic.close(error_code=code)
        self._flush()

    async def run(self) -> None:
        """Serve the connection until it has ended."""
        try:
            while not self._is_over:
                await self._handle()
        except Exception:
            logger.exception("a QUIC connection was closed after an error")
            with suppress(Exception):
                self.close(QuicErrorCode.INTERNAL_ERROR)
        finally:
            self._forget()

    async def _handle(self) -> None:
        """Wait for datagrams or a timer, and handle them."""
        due, now = self._quic.get_timer(), self._port.server.loop.time
        with suppress(TimeoutError):
            async with asyncio.timeout_at(due):
                await self._woken.wait()
        self._woken.clear()
        while self._datagrams:
            self._quic.receive_datagram(*self._datagrams.popleft(), now=now())
            if self._has_many_pieces() or (self._http is not None and self._http.holds_too_much):
                logger.info("closed a connection of %s, which holds too much", self._client[0])
                self._quic.close(error_code=ErrorCode.H3_EXCESSIVE_LOAD)
            await self._handle_events()
        if due is not None and now() >= due and not self._is_over:
            self._quic.handle_timer(now=now())
            await self._handle_events()
        self._flush()
        if self._http is not None:
            self._http.moved()
        if self._quic.get_timer() is None:
            # Not even the first datagram was readable, so nothing would end it.
            self._is_over = True

    def _has_many_pieces(self) -> bool:
        """Return whether too many pieces wait for earlier data: each costs time at every frame."""
        quic = self._quic
        streams = (*quic._streams.values(), *quic._crypto_streams.values())  # noqa: SLF001 no accessor
        return sum(len(stream.receiver._ranges) for stream in streams) > PIECES_MAX  # noqa: SLF001 no accessor

    async def _handle_events(self) -> None:
        while (event := self._quic.next_event()) is not None:
            await self._handle_event(event)

    async def _handle_event(self, event: QuicEvent) -> None:
        connections = self._port.connections
        if isinstance(event, ConnectionTerminated):
            self._is_over = True
        elif isinstance(event, HandshakeCompleted):
            self._prove()
        elif isinstance(event, ProtocolNegotiated):
            self._http = self._begin()
        elif isinstance(event, ConnectionIdIssued):
            connections[event.connection_id] = self
            self.ids.add(event.connection_id)
        elif isinstance(event, ConnectionIdRetired):
            connections.pop(event.connection_id, None)
            self.ids.discard(event.connection_id)
        if self._http is not None:
            await self._http.handle(event)

    def _begin(self) -> BoundedHttp3:
        port = self._port
        return BoundedHttp3(
            port.server.app,
            port.server.config,
            port.server.context,
            port.requests,
            ConnectionState(port.server.state.copy()),
            self._client,
            port.address,
            quic=self._quic,
            send=self._send,
        )

    def _prove(self) -> None:
        """Count the connection: its client is where its datagrams come from."""
        if self._is_counted:
            return
        self._stop_counting()
        if hypercorn_connections.has_room(self._client[0]):
            hypercorn_connections.begin(self._client[0])
            self._is_counted = True
        else:
            self._quic.close(error_code=QuicErrorCode.CONNECTION_REFUSED)

    def _stop_counting(self) -> None:
        unproven = self._port.unproven
        if self._is_counted:
            hypercorn_connections.end(self._client[0])
        elif self._is_unproven:
            unproven[self._visitors] -= 1
            if not unproven[self._visitors]:
                del unproven[self._visitors]
        self._is_counted = self._is_unproven = False

    async def _send(self) -> None:
        """Send what a stream has written; the task then sees the new timer."""
        self._flush()
        self._woken.set()

    def _flush(self) -> None:
        if self._quic.get_peer_address() is None:
            return
        for data, address in self._quic.datagrams_to_send(now=self._port.server.loop.time()):
            self._port.send(data, address)

    def _forget(self) -> None:
        self._stop_counting()
        self._port.forget(self)
        if self._http is not None:
            self._http.lose()

"""The UDP ports of Hypercorn: QUIC connections, with limits on their number and on what they hold.

Hypercorn handles a port in one task, which an application that reads slowly, or one malformed
request, stopped for every client. Here each has its own (`hypercorn_quic_connections`).

Anyone can send a first datagram in the name of another address. It counts once the client has
answered: a Retry (RFC 9000 §8.1.2), which an address with an unfinished handshake gets, or the
handshake itself.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import hypercorn.protocol.h3
from aioquic._buffer import Buffer
from aioquic.h3.connection import H3_ALPN, ErrorCode
from aioquic.quic.configuration import SMALLEST_MAX_DATAGRAM_SIZE, QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.crypto import CryptoPair
from aioquic.quic.packet import (
    QuicErrorCode,
    QuicFrameType,
    QuicPacketType,
    encode_quic_retry,
    encode_quic_version_negotiation,
    pull_quic_header,
)
from aioquic.quic.packet_builder import QuicPacketBuilder
from aioquic.quic.retry import QuicRetryTokenHandler
from aioquic.tls import load_pem_private_key, load_pem_x509_certificates
from django.conf import settings
from hypercorn.asyncio.task_group import TaskGroup
from hypercorn.asyncio.udp_server import UDPServer
from hypercorn.utils import parse_socket_addr

from federation_app.peers.renewed_certificates import RenewableCertificate
from sessions_app.access import rates
from uamp_project.servers.peer_ports import hypercorn_connections
from uamp_project.servers.peer_ports.hypercorn_http3 import PlainFields
from uamp_project.servers.peer_ports.hypercorn_quic_connections import QuicServerConnection

if TYPE_CHECKING:
    from aioquic.quic.packet import QuicHeader

    from federation_app.peers.renewed_certificates import PemPair

    Address = tuple[Any, ...]

logger = logging.getLogger(__name__)

UNPROVEN_MAX: Final = 100
"""Handshakes of addresses that may be forged; further clients are sent a Retry."""
_ID_BYTES: Final = 8
_CLOSE_BYTES: Final = 64


def limit() -> None:
    """Limit the QUIC connections of this process; later calls do nothing."""
    server: Any = UDPServer
    server.run, server.datagram_received = _run, _datagram_received
    protocol: Any = hypercorn.protocol.h3
    protocol.H3Connection = PlainFields


async def _run(server: Any) -> None:
    """Serve a port until the server ends and its requests have ended."""
    sock = server.transport.get_extra_info("socket")
    try:
        async with TaskGroup(server.loop) as requests:
            address = parse_socket_addr(sock.family, sock.getsockname())
            port = server.protocol = QuicPort(server, requests, address)
            try:
                await server.context.terminated.wait()
                await port.ended()
            finally:
                await port.close()
    finally:
        server.transport.close()


def _datagram_received(server: Any, data: bytes, address: Address) -> None:
    port = getattr(server, "protocol", None)
    if port is not None:
        port.receive(data, address)


class QuicPort:
    """A UDP port and its connections, by the identifiers that their clients send to."""

    def __init__(self, server: Any, requests: TaskGroup, address: Address | None) -> None:
        self.server = server
        self.requests = requests
        self.address = address
        self.connections: dict[bytes, QuicServerConnection] = {}
        self.unproven: Counter[str] = Counter()
        self.configuration = QuicConfiguration(alpn_protocols=H3_ALPN, is_client=False)
        self._certificate = RenewableCertificate(server.config.certfile, server.config.keyfile)
        self._use(self._certificate.pair())
        self._retry = QuicRetryTokenHandler()
        self._tasks: dict[QuicServerConnection, asyncio.Task[None]] = {}

    def receive(self, data: bytes, address: Address) -> None:
        """Pass a datagram to its connection, which it may begin."""
        try:
            header = pull_quic_header(Buffer(data=data), host_cid_length=_ID_BYTES)
        except ValueError:
            return
        is_large = len(data) >= SMALLEST_MAX_DATAGRAM_SIZE
        if header.version is not None and (
            header.version not in self.configuration.supported_versions
        ):
            if is_large and header.packet_type is not QuicPacketType.VERSION_NEGOTIATION:
                self.send(
                    encode_quic_version_negotiation(
                        source_cid=header.destination_cid,
                        destination_cid=header.source_cid,
                        supported_versions=self.configuration.supported_versions,
                    ),
                    address,
                )
            return
        connection = self.connections.get(header.destination_cid)
        if connection is None and is_large and header.packet_type is QuicPacketType.INITIAL:
            connection = self._accept(header, address)
        if connection is not None:
            connection.receive(data, address)

    def send(self, data: bytes, address: Address) -> None:
        """Send a datagram, unless the port is closed."""
        if not self.server.transport.is_closing():
            self.server.transport.sendto(data, address)

    def forget(self, connection: QuicServerConnection) -> None:
        """Forget a connection that has ended."""
        for connection_id in connection.ids:
            self.connections.pop(connection_id, None)
        self._tasks.pop(connection, None)

    async def ended(self) -> None:
        """Return once no request is left."""
        await asyncio.gather(*(connection.ended() for connection in list(self._tasks)))

    async def close(self) -> None:
        """Close all connections."""
        tasks = list(self._tasks.values())
        for connection, task in list(self._tasks.items()):
            connection.close(ErrorCode.H3_NO_ERROR)
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _accept(self, header: QuicHeader, address: Address) -> QuicServerConnection | None:
        """Begin a connection; return None after a Retry or a refusal."""
        now, original_id, retry_id = self.server.loop.time(), header.destination_cid, None
        if header.token:
            try:
                original_id = self._retry.validate_token(
                    address=address,
                    destination_cid=header.destination_cid,
                    token=header.token,
                    now=now,
                )
            except ValueError:
                self._refuse(header, address, QuicErrorCode.INVALID_TOKEN)
                return None
            retry_id = header.destination_cid
        if not self._has_room(str(address[0])):
            self._refuse(header, address, QuicErrorCode.CONNECTION_REFUSED)
            return None
        is_first = not self.unproven[rates.visitors(str(address[0]))]
        if retry_id is None and not (is_first and self.unproven.total() < UNPROVEN_MAX):
            self._send_retry(header, address, now)
            return None
        self._certificate.renewed(self._use)
        quic = QuicConnection(
            configuration=self.configuration,
            original_destination_connection_id=original_id,
            retry_source_connection_id=retry_id,
        )
        connection = QuicServerConnection(self, quic, address, is_proven=retry_id is not None)
        for connection_id in (header.destination_cid, quic.host_cid):
            self.connections[connection_id] = connection
            connection.ids.add(connection_id)
        self._tasks[connection] = self.server.loop.create_task(connection.run())
        return connection

    def _use(self, pair: PemPair) -> None:
        """Use a certificate for the connections that begin from now on."""
        chain, key = load_pem_x509_certificates(pair.chain), load_pem_private_key(pair.key)
        configuration = self.configuration
        configuration.certificate, configuration.certificate_chain = chain[0], chain[1:]
        configuration.private_key = key

    def _has_room(self, address: str) -> bool:
        if self.server.context.terminated.is_set() or self.server.config.is_closing:
            return False
        if len(self._tasks) >= settings.UAMP_QUIC_CONNECTIONS:
            logger.info("refused a connection of %s: this process has too many", address)
            return False
        return hypercorn_connections.has_room(address)

    def _send_retry(self, header: QuicHeader, address: Address, now: float) -> None:
        source = os.urandom(_ID_BYTES)
        token = self._retry.create_token(
            address=address,
            original_destination_connection_id=header.destination_cid,
            retry_source_connection_id=source,
            now=now,
        )
        self.send(
            encode_quic_retry(
                version=header.version or 0,
                source_cid=source,
                destination_cid=header.source_cid,
                original_destination_cid=header.destination_cid,
                retry_token=token,
            ),
            address,
        )

    def _refuse(self, header: QuicHeader, address: Address, code: QuicErrorCode) -> None:
        """Close a connection that was not begun, without storing anything about it."""
        crypto = CryptoPair()
        crypto.setup_initial(
            cid=header.destination_cid, is_client=False, version=header.version or 0
        )
        builder = QuicPacketBuilder(
            host_cid=header.destination_cid,
            is_client=False,
            max_datagram_size=SMALLEST_MAX_DATAGRAM_SIZE,
            peer_cid=header.source_cid,
            version=header.version or 0,
        )
        builder.start_packet(QuicPacketType.INITIAL, crypto)
        frame = builder.start_frame(QuicFrameType.TRANSPORT_CLOSE, capacity=_CLOSE_BYTES)
        for value in (code, QuicFrameType.PADDING, 0):
            frame.push_uint_var(value)
        for datagram in builder.flush()[0]:
            self.send(datagram, address)

"""The gRPC server of a process: its address, its TLS and its limits."""

from __future__ import annotations

import ipaddress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import grpc
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from federation_app.envelope.limits import ENVELOPE_BYTES
from federation_app.peers.renewed_certificates import RenewableCertificate
from federation_app.rpc.agent_pb2_grpc import add_AgentServicer_to_server
from federation_app.rpc.reflection import ReflectionService
from federation_app.rpc.service import EnvelopeService

if TYPE_CHECKING:
    from federation_app.peers.renewed_certificates import PemPair

SENT_BYTES: Final = 2 * ENVELOPE_BYTES
"""Larger than an envelope, because the delta `done` contains the signed answer."""
_FIELDS_BYTES: Final = 1024
_METADATA_BYTES: Final = 16 * 1024
_IDLE_MS: Final = 300_000
_KEEPALIVE_MS: Final = 60_000
_KEEPALIVE_ANSWER_MS: Final = 20_000
_PING_MS: Final = 10_000
"""A client that pings more often is disconnected at its third ping."""


class EnvelopeServer:
    """A gRPC server that runs in its process's event loop; one per process.

    `peers_certificate` are the files of the certificate and the key with which the process serves
    peers. They are used on non-loopback addresses without files of their own.
    """

    peers_certificate: ClassVar[tuple[str, str] | None] = None

    def __init__(self, address: str) -> None:
        streams = settings.UAMP_GRPC_STREAMS
        self._server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", ENVELOPE_BYTES + _FIELDS_BYTES),
                ("grpc.max_send_message_length", SENT_BYTES + _FIELDS_BYTES),
                ("grpc.max_metadata_size", _METADATA_BYTES),
                ("grpc.max_concurrent_streams", streams),
                ("grpc.max_connection_idle_ms", _IDLE_MS),
                ("grpc.keepalive_time_ms", _KEEPALIVE_MS),
                ("grpc.keepalive_timeout_ms", _KEEPALIVE_ANSWER_MS),
                ("grpc.http2.min_recv_ping_interval_without_data_ms", _PING_MS),
                ("grpc.http2.max_ping_strikes", 2),
                # The server's processes share the port.
                ("grpc.so_reuseport", 1),
            ],
            maximum_concurrent_rpcs=settings.UAMP_GRPC_CALLS,
        )
        add_AgentServicer_to_server(EnvelopeService(), self._server)
        ReflectionService().add_to(self._server)
        self.port = self._listen(address)

    async def start(self) -> None:
        """Start to accept calls."""
        await self._server.start()

    async def stop(self, grace_seconds: float) -> None:
        """Accept no more calls, and end the running ones after `grace_seconds`."""
        await self._server.stop(grace_seconds)

    def _listen(self, address: str) -> int:
        """Listen, with TLS unless on a loopback address (envelope §6.1)."""
        certificate, key = settings.UAMP_GRPC_CERTIFICATE, settings.UAMP_GRPC_KEY
        is_loopback = _is_loopback(address)
        if not certificate and not key and not is_loopback and self.peers_certificate is not None:
            certificate, key = self.peers_certificate
        if certificate and key:
            return self._server.add_secure_port(address, _credentials(certificate, key))
        if not is_loopback:
            raise ImproperlyConfigured(
                f"UAMP_GRPC_ADDRESS={address} needs UAMP_GRPC_CERTIFICATE and UAMP_GRPC_KEY:"
                " envelopes are not sent without TLS."
            )
        return self._server.add_insecure_port(address)


def _credentials(certificate: str, key: str) -> grpc.ServerCredentials:
    """Return the TLS settings, which use a new certificate once it is in the files."""
    authorities = settings.UAMP_GRPC_CLIENT_CA
    roots = Path(authorities).read_bytes() if authorities else None
    renewable = RenewableCertificate(certificate, key)

    def configuration(pair: PemPair) -> grpc.ServerCertificateConfiguration:
        return grpc.ssl_server_certificate_configuration([(pair.key, pair.chain)], roots)

    # Its type leaves out that None keeps the current certificate.
    fetch: Any = partial(renewable.renewed, configuration)
    return grpc.dynamic_ssl_server_credentials(
        configuration(renewable.pair()),
        fetch,
        require_client_authentication=roots is not None,
    )


def _is_loopback(address: str) -> bool:
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

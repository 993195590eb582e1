"""Hypercorn with TLS 1.3 only: HTTP/1.1, HTTP/2 and WebSockets over TCP, HTTP/3 over QUIC.

The extra `peers` installs it. `repair` works around a defect, which a test pins to its version.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import ssl
from typing import TYPE_CHECKING, Any, Final

from h2.events import DataReceived
from hypercorn.asyncio import serve
from hypercorn.config import Config
from hypercorn.protocol.h2 import H2Protocol

from federation_app.peers.renewed_certificates import RenewableCertificate
from uamp_project.servers.peer_ports import hypercorn_connections, hypercorn_quic, hypercorn_sockets

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from federation_app.peers.renewed_certificates import PemPair

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_EVENT_BYTES: Final = 8 * 1024 * 1024
"""The largest event of UAMP."""
_GRACE_SECONDS: Final = 10.0
"""How long connections may take to close after the application has drained."""
STOP_SECONDS: Final = 5.0
"""How long `PeerPorts.stop` takes at most, in a process whose application has drained."""
_h2_events: Final[Any] = H2Protocol._handle_events  # noqa: SLF001 the method to repair


class PeerPorts:
    """The ports of peers beside another server in its process: TCP with TLS 1.3, and QUIC.

    The other server starts and ends the application; `failed` is called if the ports end before
    `stop`.
    """

    def __init__(
        self, application: Any, config: StrictConfig, failed: Callable[[BaseException], object]
    ) -> None:
        self._application, self._config, self._failed = application, config, failed
        # Hypercorn then cancels what is left.
        config.graceful_timeout = STOP_SECONDS - 1
        self._listens, self._ends = asyncio.Event(), asyncio.Event()
        self._serving: asyncio.Task[None] | None = None

    @property
    def is_listening(self) -> bool:
        """Whether the ports accept connections."""
        return self._serving is not None and self._listens.is_set() and not self._serving.done()

    async def start(self) -> None:
        """Return once the ports accept connections; raises OSError if they cannot."""
        serving = asyncio.ensure_future(
            serve_until(self._without_lifespan, self._config, self._until_stopped)
        )
        self._serving = serving
        listens = asyncio.ensure_future(self._listens.wait())
        await asyncio.wait({serving, listens}, return_when=asyncio.FIRST_COMPLETED)
        listens.cancel()
        if serving.done():
            serving.result()
        serving.add_done_callback(self._ended)

    def close(self) -> None:
        """Accept no more connections; those that are open continue until `stop`."""
        self._config.is_closing = True

    async def stop(self) -> None:
        """Close the connections, or leave them to the end of the process after STOP_SECONDS."""
        self.close()
        self._ends.set()
        if self._serving is not None:
            await asyncio.wait({self._serving}, timeout=STOP_SECONDS)

    def _ended(self, serving: asyncio.Task[None]) -> None:
        if not self._ends.is_set() and not serving.cancelled():
            self._failed(serving.exception() or RuntimeError("Hypercorn ended"))

    async def _until_stopped(self) -> None:
        # Hypercorn waits for this once it listens.
        self._listens.set()
        await self._ends.wait()

    async def _without_lifespan(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await self._application(scope, receive, send)
            return
        for _ in range(2):
            message = await receive()
            await send({"type": f"{message['type']}.complete"})


class StrictConfig(Config):
    """Settings of Hypercorn with which no port accepts TLS 1.2 (envelope §6.1).

    While `is_closing`, new connections are refused.
    """

    is_closing = False

    def create_ssl_context(self) -> ssl.SSLContext | None:
        """Return TLS settings that use the certificate in the files, also after it is replaced.

        OpenSSL keeps a certificate for each kind of key, so a new one has settings of its own.
        """
        if self.certfile is None or self.keyfile is None:
            return self._strict_context()
        # First, so that files replaced in between count as new.
        renewable = RenewableCertificate(self.certfile, self.keyfile)
        context = self._strict_context()
        if context is None:
            return None
        current: ssl.SSLContext | None = context

        def renew(_pair: PemPair) -> ssl.SSLContext | None:
            return self._strict_context()

        def choose(connection: ssl.SSLObject, _name: str | None, _context: object) -> None:
            nonlocal current
            current = renewable.renewed(renew) or current
            if current is not None:
                connection.context = current

        context.sni_callback = choose
        return context

    def _strict_context(self) -> ssl.SSLContext | None:
        context = super().create_ssl_context()
        if context is not None:
            context.minimum_version = ssl.TLSVersion.TLSv1_3
        return context


def configured(address: str, *, certificate: str, key: str) -> StrictConfig:
    """Return the settings for an address such as `0.0.0.0:443`, of TCP and of UDP alike."""
    config = StrictConfig()
    config.bind = [address]
    config.quic_bind = [address]
    config.certfile, config.keyfile = certificate, key
    config.alpn_protocols = ["h2", "http/1.1"]
    config.websocket_max_message_size = _EVENT_BYTES
    config.graceful_timeout = _GRACE_SECONDS
    config.include_server_header = False
    # Its own handler would bypass the format and the redaction of the server's log.
    config.errorlog = logging.getLogger("hypercorn.error")
    return config


async def serve_until(
    application: Any, config: Config, ending: Callable[[], Awaitable[Any]]
) -> None:
    """Serve an ASGI application until `ending` returns, and then close its connections."""
    repair()
    hypercorn_connections.limit()
    hypercorn_quic.limit()
    hypercorn_sockets.limit()
    application = hypercorn_connections.unread(hypercorn_sockets.counted(application))
    await serve(application, config, shutdown_trigger=ending)


async def signalled(drain: Callable[[], Awaitable[None]]) -> None:
    """Return after the first signal to stop, once the application has drained."""
    stops, loop = asyncio.Event(), asyncio.get_running_loop()
    for signum in SIGNALS:
        loop.add_signal_handler(signum, stops.set)
    await stops.wait()
    await drain()


def repair() -> None:
    """Repair HTTP/2 requests that are answered before they end."""
    protocol: Any = H2Protocol
    protocol._handle_events = _handle_h2_events  # noqa: SLF001 as above


async def _handle_h2_events(protocol: Any, events: list[Any]) -> None:
    """Discard data for a stream that was answered, which otherwise ends the whole connection."""
    for event in events:
        if isinstance(event, DataReceived) and event.stream_id not in protocol.streams:
            size = event.flow_controlled_length
            protocol.connection.acknowledge_received_data(size, event.stream_id)
            continue
        await _h2_events(protocol, [event])
    await _h2_events(protocol, [])

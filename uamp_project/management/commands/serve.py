"""`manage.py serve`: the whole server in one command."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from channels.layers import get_channel_layer
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from agents_app.selectors import models_without_a_price
from uamp_project import demo
from uamp_project.embedded.bridge import HubIsRunningError
from uamp_project.embedded.broker import prepare_folders
from uamp_project.embedded.layer import EmbeddedChannelLayer
from uamp_project.embedded.worker import WorkerSupervisor, queues_with_work
from uamp_project.first_start.token import setup_path
from uamp_project.management.listening import add_arguments, port_of
from uamp_project.management.migrated import require_migrations
from uamp_project.management.serving_peers import (
    PeersEndpoint,
    open_ports,
    peers_address,
    require_hypercorn,
    settings_pair,
)
from uamp_project.management.stored_keys import require_readable_keys
from uamp_project.servers.process_end import end_within

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Awaitable, Callable

    from uamp_project.servers.peer_ports.hypercorn_server import PeerPorts


class Command(BaseCommand):
    """Serves HTTP and WebSocket with Daphne, and supervises a Celery worker for each queue.

    Peers have ports of their own on request, in this process: only the hub of the embedded channel
    layer receives the events of chats.
    """

    help = (
        "Serve everything in one command: HTTP and WebSocket here, long tools and webhooks in"
        " supervised Celery workers. SIGTERM or Ctrl-C lets running answers finish for"
        " UAMP_GRACE_SECONDS;"
        " another Ctrl-C ends that wait."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the address, and whether workers run elsewhere."""
        add_arguments(parser)

    def handle(self, *_: Any, **options: Any) -> None:
        """Serve until SIGTERM or Ctrl-C; another Ctrl-C stops waiting for running answers."""
        port, address = port_of(options), peers_address(options)
        if address:
            require_hypercorn()
        require_migrations()
        require_readable_keys()
        self._notes = self._who_uses_models()
        self._setup = setup_path()
        # This thread would hold its connection without using it.
        connections.close_all()
        prepare_folders()
        peers = PeersEndpoint(address, settings_pair(self.stdout.write)) if address else None
        os.environ["UAMP_LAYER_ROLE"] = "hub"
        try:
            # The layer listens before the workers start, so that no message is lost in between.
            layer = get_channel_layer()
        except HubIsRunningError as error:
            raise CommandError(f"{error}; choose another DATA_DIR") from error
        workers = (
            [] if options["no_worker"] else [WorkerSupervisor(name) for name in queues_with_work()]
        )
        for worker in workers:
            worker.start()
        try:
            self._serve(options["host"], port, peers)
        finally:
            end_within()
            # Each takes up to several seconds to end.
            with ThreadPoolExecutor() as stopping:
                list(stopping.map(WorkerSupervisor.stop, workers))
            if isinstance(layer, EmbeddedChannelLayer):
                layer.close()

    def _serve(self, host: str, port: int, peers: PeersEndpoint | None) -> None:
        # The import installs the process's event loop, which other commands do not want.
        from sessions_app import lifespan  # noqa: PLC0415 as above
        from sessions_app.access import rates  # noqa: PLC0415 as above
        from uamp_project.asgi import application, shutdown, startup  # noqa: PLC0415 as above
        from uamp_project.edge import bodies, refusals  # noqa: PLC0415 as above
        from uamp_project.servers.daphne_server import (  # noqa: PLC0415 as above
            BackpressureServer,
        )

        failures: list[str] = []

        def ready(bound: int) -> None:
            self._starting = asyncio.ensure_future(self._begin(startup, ports, peers))
            self._starting.add_done_callback(started)
            self._greet(host, bound)

        def started(starting: asyncio.Future[None]) -> None:
            if not starting.cancelled() and (error := starting.exception()) is not None:
                fail(f"the server did not start: {error}")

        def fail(reason: str) -> None:
            failures.append(reason)
            server.stop()  # type: ignore[no-untyped-call]  # Daphne has no types

        ports = None if peers is None else open_ports(application, peers, fail)
        server = BackpressureServer(
            application,
            host=host,
            port=port,
            drain=partial(_drain, ports, lifespan.drain),
            finish=partial(_end, ports, shutdown),
            ready=ready,
            body_bytes_max=bodies.largest_body(),
            refuse_body=bodies.refuse_body,
            refuse_request=refusals.unread_request,
            send_stall_seconds=settings.UAMP_STALL_SECONDS,
            budget=bodies.in_flight,
            counted_as=rates.visitors,
        )
        server.run()
        if server.failure:
            raise CommandError(f"cannot listen on {host} port {port}: {server.failure}")
        for reason in failures:
            raise CommandError(reason)

    async def _begin(
        self,
        startup: Callable[[], Awaitable[None]],
        ports: PeerPorts | None,
        peers: PeersEndpoint | None,
    ) -> None:
        """Start the process, and open its ports for peers."""
        await startup()
        if ports is None or peers is None:
            return
        try:
            await ports.start()
        except OSError as error:
            raise CommandError(
                f"cannot listen on {peers.address} for peers: {error.strerror or error}"
            ) from error
        self.stdout.write(f"Peers: https://{peers.address}, TCP and UDP.\n")
        self.stdout.flush()

    def _who_uses_models(self) -> list[str]:
        """Return a line for each public agent whose model the operator pays for."""
        others = "visitors too" if settings.UAMP_ANONYMOUS_MODELS else "not visitors"
        return [
            f"  @{name} answers with the model {model} at your cost, for signed-in people and"
            f" {others} (UAMP_ANONYMOUS_MODELS)\n"
            for name, model in models_without_a_price()
        ]

    def _greet(self, host: str, port: int) -> None:
        display_host = "localhost" if host in {"0.0.0.0", "::"} else host  # noqa: S104 only compared
        self.stdout.write(f"\nUAMP server: http://{display_host}:{port}\n")
        if self._setup is not None:
            # Behind a proxy, pages are only shown under their public address.
            public = settings.UAMP_ISSUER.rstrip("/") if settings.HTTPS else None
            address = public or f"http://{display_host}:{port}"
            self.stdout.write(f"  create the first account: {address}{self._setup}\n")
        for user in demo.read_users():
            password = user["password"] or "(with the password that you chose)"
            self.stdout.write(f"  sign in as {user['username']:6} {password}\n")
        for line in self._notes:
            self.stdout.write(line)
        self.stdout.write("Press Ctrl-C to stop.\n")
        self.stdout.flush()


async def _drain(ports: PeerPorts | None, drain: Callable[[], Awaitable[None]]) -> None:
    """Accept no more connections of peers, and let running answers finish."""
    if ports is not None:
        ports.close()
    await drain()


async def _end(ports: PeerPorts | None, shutdown: Callable[[], Awaitable[None]]) -> None:
    """Close the ports for peers, and end the process."""
    if ports is not None:
        await ports.stop()
    await shutdown()

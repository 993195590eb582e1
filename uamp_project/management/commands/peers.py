"""`manage.py peers`: one web process with TLS 1.3, HTTP/2 and HTTP/3, without a proxy."""

import asyncio
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from uamp_project.management.listening import add_address_arguments, port_of
from uamp_project.management.migrated import require_migrations
from uamp_project.management.serving_peers import certificate_pair, require_hypercorn
from uamp_project.management.stored_keys import require_readable_keys


class Command(BaseCommand):
    """Serves the application with Hypercorn, and gRPC if UAMP_GRPC_ADDRESS names its address."""

    help = (
        "Serve HTTP/1.1, HTTP/2, WebSocket and HTTP/3 with TLS 1.3 in one process, without workers"
        " and without a proxy. HTTP/3 is UDP at the same port. Needs the extra `peers`."
        " If no certificate is given, one is created in DATA_DIR/peers."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take where to listen, and the certificate."""
        add_address_arguments(parser)
        parser.add_argument(
            "--certificate",
            default=settings.UAMP_PEERS_CERTIFICATE,
            help="the certificate chain, as PEM (UAMP_PEERS_CERTIFICATE, else one of its own)",
        )
        parser.add_argument(
            "--key",
            default=settings.UAMP_PEERS_KEY,
            help="its private key, as PEM (UAMP_PEERS_KEY)",
        )

    def handle(self, *_: Any, **options: Any) -> None:
        """Serve until a signal arrives."""
        require_hypercorn()
        pair = certificate_pair(options["certificate"], options["key"], self.stdout.write)
        require_migrations()
        require_readable_keys()
        from federation_app.rpc.server import EnvelopeServer  # noqa: PLC0415 as below
        from sessions_app import lifespan  # noqa: PLC0415 after the checks, as Hypercorn is optional
        from uamp_project.asgi import application  # noqa: PLC0415 as above
        from uamp_project.servers.peer_ports import hypercorn_server  # noqa: PLC0415 as above

        EnvelopeServer.peers_certificate = pair
        config = hypercorn_server.configured(
            f"{options['host']}:{port_of(options)}", certificate=pair.certificate, key=pair.key
        )
        self.stdout.write(f"Listening on https://{config.bind[0]}, TCP and UDP.")
        self.stdout.flush()
        asyncio.run(
            hypercorn_server.serve_until(
                application, config, lambda: hypercorn_server.signalled(lifespan.drain)
            )
        )

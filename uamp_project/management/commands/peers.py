"""`manage.py peers`: one web process with TLS 1.3, HTTP/2 and HTTP/3, without a proxy."""

import asyncio
import importlib.util
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from uamp_project.management.listening import add_address_arguments, port_of
from uamp_project.management.migrated import require_migrations
from uamp_project.management.stored_keys import require_readable_keys


class Command(BaseCommand):
    """Serves the application with Hypercorn, and gRPC if UAMP_GRPC_ADDRESS names its address."""

    help = (
        "Serve HTTP/1.1, HTTP/2, WebSocket and HTTP/3 with TLS 1.3 in one process, without workers"
        ' and without a proxy. HTTP/3 is UDP at the same port. Needs `pip install "hypercorn[h3]"`.'
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take where to listen, and the certificate."""
        add_address_arguments(parser)
        parser.add_argument("--certificate", required=True, help="the certificate chain, as PEM")
        parser.add_argument("--key", required=True, help="its private key, as PEM")

    def handle(self, *_: Any, **options: Any) -> None:
        """Serve until a signal arrives."""
        if (
            importlib.util.find_spec("hypercorn") is None
            or importlib.util.find_spec("aioquic") is None
        ):
            raise CommandError('Run pip install "hypercorn[h3]" first.')
        for name in ("certificate", "key"):
            if not Path(options[name]).is_file():
                raise CommandError(f"There is no file {options[name]}: check --{name}.")
        require_migrations()
        require_readable_keys()
        from sessions_app import lifespan  # noqa: PLC0415 after the checks, as Hypercorn is optional
        from uamp_project.asgi import application  # noqa: PLC0415 as above
        from uamp_project.servers import hypercorn_server  # noqa: PLC0415 as above

        config = hypercorn_server.configured(
            f"{options['host']}:{port_of(options)}",
            certificate=options["certificate"],
            key=options["key"],
        )
        self.stdout.write(f"Listening on https://{config.bind[0]}, TCP and UDP.")
        self.stdout.flush()
        asyncio.run(
            hypercorn_server.serve_until(
                application, config, lambda: hypercorn_server.signalled(lifespan.drain)
            )
        )

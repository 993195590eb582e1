"""`manage.py web`: one web process with uvicorn, of several."""

import os
import sys
from argparse import ArgumentParser
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand

from uamp_project.first_start.token import setup_path
from uamp_project.management.listening import add_address_arguments, port_of, require_free
from uamp_project.management.migrated import require_migrations
from uamp_project.management.stored_keys import require_readable_keys

CONNECTIONS: Final = 5000
_PROTOCOLS: Final = "uamp_project.servers.uvicorn_protocols"


class Command(BaseCommand):
    """Becomes uvicorn, with the protocols of this server."""

    help = (
        "Serve HTTP and WebSocket in one process, without workers. Run as many as you need with the"
        " same DATABASE_URL, REDIS_URL, SECRET_KEY and DATA_DIR, and `worker` alongside them."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take where to listen, and how many connections at most."""
        add_address_arguments(parser)
        parser.add_argument(
            "--connections",
            type=int,
            default=CONNECTIONS,
            help=f"answer with 503 above this many open connections ({CONNECTIONS})",
        )

    def handle(self, *_: Any, **options: Any) -> None:
        """Replace this process by uvicorn."""
        host, port = options["host"], port_of(options)
        require_free(host, port)
        require_migrations()
        require_readable_keys()
        if (setup := setup_path()) is not None:
            address = settings.UAMP_ISSUER.rstrip("/")
            self.stdout.write(f"Create the first account: {address}{setup}")
            self.stdout.flush()
        arguments = [
            *("--host", host, "--port", str(port)),
            *("--limit-concurrency", str(options["connections"])),
            *("--http", f"{_PROTOCOLS}:HttpProtocol", "--ws", f"{_PROTOCOLS}:WebSocketProtocol"),
        ]
        os.execv(  # noqa: S606 our own arguments
            sys.executable,
            [sys.executable, "-m", "uvicorn", "uamp_project.asgi:application", *arguments],
        )

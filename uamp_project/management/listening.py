"""The arguments of serving commands: the address, and whether workers run here."""

import os
import socket
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Mapping
from typing import Any, Final

from django.core.management.base import CommandError

from uamp_project.settings.environment import integer

PORT_LIMIT: Final = 65535


def add_arguments(parser: ArgumentParser) -> None:
    """Add --host, --port, --peers and --no-worker."""
    add_address_arguments(parser)
    parser.add_argument(
        "--peers",
        metavar="[HOST:]PORT",
        help="also serve peers on this address, over TLS 1.3, HTTP/2 and HTTP/3"
        " (UAMP_PEERS_ADDRESS)",
    )
    parser.add_argument("--no-worker", action="store_true", help="start no Celery workers")


def add_address_arguments(parser: ArgumentParser) -> None:
    """Add --host and --port."""
    parser.add_argument(
        "--host",
        default=os.environ.get("HOST", "127.0.0.1"),
        help="address to listen on (default: HOST, or 127.0.0.1)",
    )
    parser.add_argument(
        "--port", type=_port, help="port to listen on, 0 for any free one (default: PORT, or 8000)"
    )


def port_of(options: Mapping[str, Any]) -> int:
    """Return the port from the arguments or PORT."""
    port: int | None = options["port"]
    return integer("PORT", 8000, maximum=PORT_LIMIT) if port is None else port


def require_free(host: str, port: int) -> None:
    """Raise CommandError if another program listens there, before anything is prepared."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        raise CommandError(
            f"cannot listen on {host} port {port}: {error.strerror or error}."
            f" PORT and HOST choose another, for example PORT={_another(port)}"
        ) from error


def _another(port: int) -> int:
    return port + 1 if port < PORT_LIMIT else port - 1


def _port(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text) <= PORT_LIMIT:
        return int(text)
    raise ArgumentTypeError(f"{text!r} is not a port: use a number from 0 to {PORT_LIMIT}")

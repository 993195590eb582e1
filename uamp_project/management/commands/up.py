"""`manage.py up`: bring the database up to date, then serve."""

import fcntl
import os
import socket
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection, connections

from uamp_project import health
from uamp_project.command import program_name
from uamp_project.management.listening import add_arguments, port_of

# Of PostgreSQL's advisory locks: one `up` migrates at a time. The number is arbitrary.
_LOCK = 0x75616D70


class Command(BaseCommand):
    """Migrates, prepares the demo on request, and becomes `serve`."""

    help = (
        "Apply missing migrations, then serve everything in one command, as `serve` does. The first"
        " start in an empty DATA_DIR takes about half a minute."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take what `serve` takes, and whether to prepare the demo."""
        add_arguments(parser)
        parser.add_argument(
            "--demo",
            action="store_true",
            help="prepare people, agents and a chat to try the server with (the command `demo`)",
        )

    def handle(self, *_: Any, **options: Any) -> None:
        """Prepare the database, and replace this process by the server."""
        host, port = options["host"], port_of(options)
        _require_free(host, port)
        with _alone():
            if health.missing_migrations():
                self.stdout.write("Preparing the database ...")
                self.stdout.flush()
                call_command("migrate", verbosity=0)
        if options["demo"]:
            self._prepare_demo()
            # The mails of a demo are files, in DATA_DIR/mails.
            os.environ.setdefault("UAMP_MAIL", "file")
        connections.close_all()
        # The demo made a channel layer that is no hub, and this process would keep it.
        arguments = ["serve", "--host", host, "--port", str(port)]
        arguments += ["--no-worker"] if options["no_worker"] else []
        os.execv(sys.executable, [sys.executable, *_program(), *arguments])  # noqa: S606 ourselves

    def _prepare_demo(self) -> None:
        try:
            call_command("demo", quiet=True, starting=True)
        except CommandError as error:
            # An operator's own accounts have these names: the server starts all the same.
            self.stderr.write(str(error))


def _program() -> tuple[str, ...]:
    """Return how Python runs this program."""
    if program_name() == "uamp-server":
        return ("-m", "uamp_project.command")
    return (sys.argv[0],)


def _require_free(host: str, port: int) -> None:
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
    return port + 1 if port < 65535 else port - 1  # noqa: PLR2004 the last one there is


@contextmanager
def _alone() -> Iterator[None]:
    """Let one process migrate at a time; another one waits, and has nothing left to do."""
    with (Path(settings.DATA_DIR) / "migrate.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if connection.vendor != "postgresql":
            yield
            return
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
        try:
            yield
        finally:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])

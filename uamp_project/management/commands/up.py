"""`manage.py up`: bring the database up to date, then serve."""

import logging
import os
import sys
from argparse import ArgumentParser
from functools import partial
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.core.management.commands import migrate
from django.db import connections

from uamp_project import health
from uamp_project.command import program_name
from uamp_project.management.listening import add_arguments, port_of, require_free
from uamp_project.management.migrated import alone, refuse_newer_database, run_migrations


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
            help="prepare people, agents and a chat for trying out the server (the command `demo`)",
        )

    def handle(self, *_: Any, **options: Any) -> None:
        """Prepare the database, and replace this process by the server."""
        host, port = options["host"], port_of(options)
        require_free(host, port)
        with alone(lambda: self._say("Waiting for another migration to finish ...")):
            refuse_newer_database()
            if health.missing_migrations():
                self._say("Preparing the database, which takes up to half a minute ...")
                # Ours would wait for this process.
                run_migrations(
                    partial(call_command, migrate.Command(), verbosity=0),
                    lambda: self._say("Waiting for tables that are in use ..."),
                )
        if options["demo"]:
            self._say("Preparing the demo ...")
            self._prepare_demo()
            # The emails of a demo are files, in DATA_DIR/mails.
            os.environ.setdefault("UAMP_MAIL", "file")
        connections.close_all()
        self._say("Starting the server ...")
        # The demo created a channel layer that is not a hub, and this process would keep it.
        arguments = ["serve", "--host", host, "--port", str(port)]
        arguments += ["--no-worker"] if options["no_worker"] else []
        arguments += [] if options["peers"] is None else ["--peers", options["peers"]]
        os.execv(sys.executable, [sys.executable, *_program(), *arguments])  # noqa: S606 ourselves

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()

    def _prepare_demo(self) -> None:
        # A line of the log per balance of the demo would hide the steps.
        logging.disable(logging.INFO)
        try:
            call_command("demo", quiet=True, starting=True)
        except CommandError as error:
            # An operator's own accounts have these names: the server starts all the same.
            self.stderr.write(str(error))
        finally:
            logging.disable(logging.NOTSET)


def _program() -> tuple[str, ...]:
    """Return the command with which Python runs this program."""
    if program_name() == "uamp-server":
        return ("-m", "uamp_project.command")
    return (sys.argv[0],)

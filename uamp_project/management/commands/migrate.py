"""`manage.py migrate`: Django's command, for one process at a time and no newer database."""

from functools import partial
from typing import Any

from django.core.management.commands import migrate

from uamp_project.management.migrated import alone, refuse_newer_database, run_migrations


class Command(migrate.Command):
    """Migrates as Django does, after another process that migrates has ended."""

    def execute(self, *arguments: Any, **options: Any) -> str | None:
        """Lock before the checks: they fail on a file that another process is creating."""
        with alone(lambda: self._say("Waiting for another migration to finish ...")):
            return super().execute(*arguments, **options)

    def handle(self, *arguments: Any, **options: Any) -> None:
        """Migrate, or raise CommandError on a database of a newer server."""
        refuse_newer_database()
        run_migrations(
            partial(super().handle, *arguments, **options),
            lambda: self._say("Waiting for tables that are in use ..."),
        )

    def _say(self, text: str) -> None:
        self.stderr.write(text, self.style.NOTICE)

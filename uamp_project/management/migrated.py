"""The check that the database answers and is migrated, before a command uses it."""

from django.conf import settings
from django.core.management.base import CommandError
from django.db import DatabaseError

from uamp_project import health
from uamp_project.command import program_name


def require_migrations() -> None:
    """Raise CommandError if the database does not answer or migrations are missing."""
    try:
        missing = health.missing_migrations()
    except DatabaseError as error:
        raise CommandError(f"the database {_name()} does not answer: {error}") from error
    if missing:
        raise CommandError(
            f"run `{program_name()} migrate` first: the database {_name()} lacks {len(missing)}"
            " migrations. DATA_DIR and DATABASE_URL choose the database"
        )


def _name() -> str:
    """Return the name and address of the database, without the user."""
    chosen = settings.DATABASES["default"]
    host, port = chosen.get("HOST"), chosen.get("PORT")
    if not host:
        return str(chosen["NAME"])
    return f"{chosen['NAME']} at {host}:{port}" if port else f"{chosen['NAME']} at {host}"

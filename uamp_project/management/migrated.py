"""What commands ask before they touch the database: is it there, and are its tables."""

from django.core.management.base import CommandError
from django.db import DatabaseError

from uamp_project import health


def require_migrations() -> None:
    """Raise CommandError where the database does not answer or migrations are missing."""
    try:
        missing = health.missing_migrations()
    except DatabaseError as error:
        raise CommandError(f"the database does not answer: {error}") from error
    if missing:
        raise CommandError(f"run `manage.py migrate` first: {len(missing)} are missing")

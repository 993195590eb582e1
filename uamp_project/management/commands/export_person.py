"""`manage.py export_person USERNAME FILE`: export all data about a person as a ZIP file."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from audit_app.record import AuditAction, record
from sessions_app.data_rights.personal_export import export_person
from uamp_project.management.migrated import require_migrations


class Command(BaseCommand):
    """Writes the file; the audit log records when."""

    help = (
        "Write everything that this server has about a person to a ZIP file: account, profile,"
        " settings, the chats that they are in, every message of theirs, their account in the"
        " ledger, and the files that they stored."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the person and the file."""
        parser.add_argument("username", help="the person")
        parser.add_argument("file", type=Path, help="the file to write; it must not exist")

    def handle(self, *_: Any, **options: Any) -> None:
        """Write the file."""
        require_migrations()
        user = User.objects.filter(username=options["username"]).first()
        if user is None:
            raise CommandError(f"There is no account named {options['username']}.")
        to: Path = options["file"]
        try:
            with to.open("xb") as file:
                to.chmod(0o600)
                members = export_person(user, file)
        except FileExistsError as error:
            raise CommandError(f"{to} exists. Choose another name.") from error
        except OSError as error:
            raise CommandError(str(error)) from error
        record(None, AuditAction.PERSON_EXPORTED, user)
        self.stdout.write(f"{to}: {members} files, {to.stat().st_size:,} bytes.")

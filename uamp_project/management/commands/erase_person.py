"""`manage.py erase_person USERNAME --reason TEXT`: erase a person's data from this server."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from sessions_app.data_rights.erasure import StillRunning, erase_person
from uamp_project.management.migrated import require_migrations


class Command(BaseCommand):
    """Erases a person; the audit log records when and why."""

    help = (
        "Erase a person: close the account, delete the chats that only they were in, take their"
        " messages and their name from all others, and delete their files, keys and sessions. What"
        " others wrote stays, and the ledger with a pseudonym. It cannot be undone."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the person, the reason and the confirmation."""
        parser.add_argument("username", help="the person")
        parser.add_argument("--reason", required=True, help="the reason, for the audit log")
        parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")

    def handle(self, *_: Any, **options: Any) -> None:
        """Erase the person, or resume an interrupted erasure."""
        require_migrations()
        user = User.objects.filter(username=options["username"]).first()
        if user is None:
            raise CommandError(f"There is no account named {options['username']}.")
        if not options["yes"]:
            typed = input(f"Type {user.username} to erase them permanently: ")
            if typed != user.username:
                raise CommandError("Nothing was erased.")
        try:
            erased = erase_person(user, reason=options["reason"])
        except StillRunning as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"Erased. The account is now called {erased.pseudonym}. Deleted:"
            f" {erased.chats_deleted} chats, {erased.messages} messages in other chats,"
            f" {erased.files} files. Backups still have them: after a restore, erase the person"
            " again."
        )

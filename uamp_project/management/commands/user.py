"""`manage.py user`: create an account, or set a new password for one."""

import secrets
import sys
from argparse import ArgumentParser
from typing import Any, Final

from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from audit_app.record import AuditAction, record
from uamp_project.management.migrated import require_migrations

PASSWORD_BYTES: Final = 12


class Command(BaseCommand):
    """Creates an account and prints its password."""

    help = (
        "Create an account and print its password, which the person changes on /account. With"
        " --new-password, set a new password for an existing account and revoke its API keys."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the name, the rights and where the password comes from."""
        parser.add_argument("username")
        parser.add_argument("--email", default="", help="address for their notifications")
        parser.add_argument(
            "--admin", action="store_true", help="may do everything, including at /admin/"
        )
        parser.add_argument(
            "--password-stdin",
            action="store_true",
            help="read the password from standard input; without it one is generated and printed",
        )
        parser.add_argument(
            "--new-password", action="store_true", help="change the password of the account"
        )

    def handle(self, *_: Any, **options: Any) -> None:
        """Store the account."""
        require_migrations()
        is_given = options["password_stdin"]
        password = sys.stdin.readline().rstrip("\n") if is_given else ""
        password = password or secrets.token_urlsafe(PASSWORD_BYTES)
        try:
            with transaction.atomic():
                user = self._user(options)
                validate_password(password, user)
                user.set_password(password)
                user.full_clean()
                user.save()
                self._record(user, is_new=not options["new_password"])
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        if is_given:
            self.stdout.write(f"{user.username} can sign in")
        else:
            self.stdout.write(f"{user.username} can sign in with the password {password}")

    def _user(self, options: dict[str, Any]) -> User:
        name = User.normalize_username(options["username"])
        user = User.objects.select_for_update(no_key=True).filter(username=name).first()
        if options["new_password"]:
            if user is None:
                raise CommandError(f"There is no account named {name}.")
            return user
        if user is not None:
            raise CommandError(
                f"{name} already has an account. Use --new-password to change its password."
            )
        is_admin = options["admin"]
        return User(username=name, email=options["email"], is_staff=is_admin, is_superuser=is_admin)

    def _record(self, user: User, *, is_new: bool) -> None:
        if is_new:
            record(None, AuditAction.PERSON_MADE, user, detail="on the command line")
        else:
            record(None, AuditAction.ROW_CHANGED, user, detail="password, on the command line")

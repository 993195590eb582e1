"""`manage.py audit_ledger`: audit the whole ledger now and print the result."""

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection

from payments_app import services


class Command(BaseCommand):
    """Audits as the server does every hour: a mismatch freezes payouts."""

    help = "Read the whole ledger and check that it adds up; a mismatch freezes payouts."

    def handle(self, *_: Any, **__: Any) -> None:
        """Audit; exit with status 1 on a mismatch."""
        try:
            report = services.audit()
        except DatabaseError as error:
            name = connection.settings_dict["NAME"]
            program = Path(sys.argv[0]).name
            raise CommandError(
                f"the ledger of the database {name} cannot be read; run `{program} migrate` first:"
                f" {error}"
            ) from error
        for mismatch in report.mismatches:
            self.stdout.write(f"{mismatch.check}: {mismatch.subject} by {mismatch.off_by}")
        if report.mismatches:
            raise CommandError("The ledger does not add up. Payouts are frozen.")
        self.stdout.write("The ledger adds up.")

"""`manage.py rotate_signing_keys`: sign with new keys from now on (docs/signatures.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from audit_app.record import AuditAction, record
from signing_app import owner_keys

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(BaseCommand):
    """Rotates the keys of all owners, or of some; the old ones stay published."""

    help = "Create new keys for signatures; the old ones stay published, without private halves."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the owners: `agent:<id>`, `receipts`, `log`, `tree`, `shares` or `cards`."""
        parser.add_argument(
            "owner",
            nargs="*",
            help="agent:<id>, receipts, log, tree, shares or cards; all without one",
        )

    def handle(self, *_: Any, **options: Any) -> None:
        """Rotate, and print the new key ids."""
        signing = owner_keys.owners()
        wanted = options["owner"] or signing
        if unknown := sorted(set(wanted) - set(signing)):
            raise CommandError(f"No key signs for {', '.join(unknown)}.")
        for owner in wanted:
            made = owner_keys.rotate(owner)
            record(
                None,
                AuditAction.KEY_ROTATED,
                ("signing_app.publishedkey", made.kid),
                detail=f"{owner}: {made.algorithm}",
            )
            self.stdout.write(f"{owner} signs with {made.kid} ({made.algorithm}).")

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

    help = "Create new signing keys; the public halves of the old ones stay published."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the owners: those of docs/signatures.md."""
        parser.add_argument(
            "owner",
            nargs="*",
            help="agent:<id>, receipts, log, tree, shares, cards, federation or capabilities"
            " (default: all)",
        )
        parser.add_argument(
            "--unreadable",
            action="store_true",
            help="only keys that this SECRET_KEY cannot decrypt",
        )

    def handle(self, *_: Any, **options: Any) -> None:
        """Rotate, and print the new key ids."""
        unreadable = owner_keys.owners_of_unreadable()
        signing = [*owner_keys.owners(), *unreadable]
        owners = options["owner"] or (unreadable if options["unreadable"] else signing)
        if options["unreadable"]:
            owners = [owner for owner in owners if owner in unreadable]
        if unknown := sorted(set(owners) - set(signing)):
            raise CommandError(f"There are no signing keys for {', '.join(unknown)}.")
        for owner in dict.fromkeys(owners):
            announced = owner_keys.signs_from(owner)
            if announced is not None and not owner_keys.unreadable_keys(owner):
                self.stdout.write(
                    f"{owner} already has a new key. It signs from {announced:%Y-%m-%d %H:%M %Z}."
                )
                continue
            try:
                made = owner_keys.rotate(owner)
            except owner_keys.TooManyRotations:
                raise CommandError(
                    f"{owner} was rotated too often; wait until its oldest key has expired."
                ) from None
            record(
                None,
                AuditAction.KEY_ROTATED,
                ("signing_app.publishedkey", made.kid),
                detail=f"{owner}: {made.algorithm}",
            )
            start = owner_keys.signs_from(owner)
            since = "" if start is None else f" from {start:%Y-%m-%d %H:%M %Z}"
            self.stdout.write(f"{owner} signs with {made.kid} ({made.algorithm}){since}.")

"""`manage.py capability_token DID`: issue a capability token to a peer (docs/envelopes.md)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from audit_app.record import AuditAction, record
from federation_app.envelope.errors import EnvelopeError
from federation_app.envelope.members.reading import Intent
from federation_app.exchange.admission import GUEST_INTENTS, INTENTS
from federation_app.models import Peer
from federation_app.terms import capabilities
from uamp_project.management.migrated import require_migrations

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(BaseCommand):
    """Issues a token, and records it in the audit."""

    help = (
        "Issue a capability token for the envelopes of a peer, and print it. It is not stored;"
        " revoke it in the admin (docs/envelopes.md)."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the peer, and the scope and the lifetime of the token."""
        parser.add_argument("did", help="the name of the peer, such as did:web:chat.example")
        parser.add_argument(
            "--intent",
            action="append",
            choices=[intent.value for intent in (*INTENTS, *GUEST_INTENTS)],
            help="an intent that it covers (default: ask); may be repeated",
        )
        parser.add_argument(
            "--agent",
            action="append",
            default=[],
            help="an agent that it covers (default: all); may be repeated",
        )
        parser.add_argument(
            "--hours",
            type=int,
            default=capabilities.DEFAULT_HOURS,
            help=f"how long it is valid, at most {capabilities.MAX_HOURS}",
        )
        parser.add_argument("--reason", default="", help="the reason, for the audit log")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *_: Any, **options: Any) -> None:
        """Issue and print the token."""
        require_migrations()
        peer = Peer.objects.filter(did=options["did"], revoked_at__isnull=True).first()
        if peer is None:
            raise CommandError(f"There is no peer {options['did']}.")
        intents = {Intent(intent) for intent in options["intent"] or [Intent.ASK]}
        try:
            with transaction.atomic():
                row, token = capabilities.issue(
                    peer, intents=intents, agents=options["agent"], hours=options["hours"]
                )
                record(
                    None,
                    AuditAction.KEY_MADE,
                    peer,
                    reason=options["reason"],
                    detail=f"capability token {row.summary}, at the command line",
                )
        except EnvelopeError as error:
            raise CommandError(error.message) from error
        if options["json"]:
            printed = {"id": row.pk, "cap_token": token, "expires_at": row.expires_at.isoformat()}
            self.stdout.write(json.dumps(printed))
            return
        self.stdout.write(token)

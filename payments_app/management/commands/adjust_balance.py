"""`manage.py adjust_balance ada 25 --reason TEXT`: a correction at the command line.

In the admin, operators may not decide about their own money; a sole operator does so here.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from audit_app.record import AuditAction, record
from payments_app import services
from payments_app.models import Account
from payments_app.money import ASSETS, DEFAULT_ASSET, InvalidAmount, Money

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(BaseCommand):
    """Changes the balance of a person; the ledger and the audit record the reason."""

    help = "Adjust a person's balance by an amount; a negative one is deducted."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the person, the amount, and the reason."""
        parser.add_argument("username", help="the person")
        parser.add_argument("amount", help="such as 25, or -0.50")
        parser.add_argument("--currency", choices=sorted(ASSETS), default=DEFAULT_ASSET)
        parser.add_argument(
            "--reason", required=True, help="the reason, for the ledger and the audit log"
        )

    def handle(self, *_: Any, **options: Any) -> None:
        """Change the balance, and print the new one."""
        user = User.objects.filter(username=options["username"]).first()
        if user is None:
            raise CommandError(f"There is no account named {options['username']}.")
        try:
            amount = Money.parse(options["amount"], options["currency"], signed=True)
            self._change(user, amount, options["reason"])
        except (services.LedgerError, InvalidAmount, ValueError) as error:
            raise CommandError(str(error)) from error
        account = services.account_of_user(user.pk, amount.asset)
        row = Account.objects.get(pk=account.id)
        available = Money(row.posted - row.held, amount.asset)
        self.stdout.write(f"{user.username} has {available} {amount.asset}.")

    @transaction.atomic
    def _change(self, user: User, amount: Money, reason: str) -> None:
        account = services.account_of_user(user.pk, amount.asset)
        done = services.adjust(
            key=f"command:{uuid.uuid4().hex}",
            account=account.id,
            amount=amount,
            by=None,
            reason=reason,
        )
        subject = ("payments_app.account", str(account.id))
        detail = f"{done.amount} {amount.asset} by {done.transfer_id}, at the command line"
        record(None, AuditAction.BALANCE_ADJUSTED, subject, reason=reason, detail=detail)

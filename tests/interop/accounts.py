"""Accounts with money, for clients. A process of the product makes them: it imports no tests."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass

from django.contrib.auth.models import User

from payments_app import services as ledger
from payments_app.money import Money
from payments_app.tokens import issuance
from sessions_app.access.auth import create_api_key

MAKE = "from tests.interop import accounts; accounts.print_accounts({count})"
"""What `manage.py shell -c` runs."""


@dataclass(frozen=True, kw_only=True)
class Account:
    """The API key of a person with ten dollars, and a payment token of a dollar of theirs."""

    key: str
    token: str


def make_account(username: str) -> Account:
    """Make a person with money and a key."""
    user = User.objects.create_user(username)
    ledger.top_up(
        key=f"seed:{username}",
        account=ledger.account_of_user(user.pk).id,
        amount=Money.parse("10", "USD"),
        provider="tests",
        external_id=f"seed:{username}",
    )
    amount = Money.parse("1", "USD")
    issued = issuance.issue(key=username, user_id=user.pk, amount=amount, expires_in=6000)
    return Account(key=create_api_key(user, name="interop"), token=issued.token)


def print_accounts(count: int) -> None:
    """Make accounts and print them as JSON."""
    accounts = [asdict(make_account(f"client{number}")) for number in range(count)]
    sys.stdout.write(json.dumps(accounts))

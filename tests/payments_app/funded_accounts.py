"""Accounts with money in them, for the tests of the ledger."""

from __future__ import annotations

import uuid
from typing import Any

from payments_app import selectors, services
from payments_app.ledger.accounts import fee_prefix
from payments_app.models import Account
from payments_app.money import Money
from payments_app.services import (
    About,
    AccountRef,
    Authorization,
    Capture,
    CaptureOutcome,
    HoldOutcome,
    Split,
)


def usd(text: str) -> Money:
    """Return dollars."""
    return Money.parse(text, signed=True)


def new_key() -> str:
    """Return an unused key."""
    return uuid.uuid4().hex


def funded_account(name: str, amount: str = "0") -> AccountRef:
    """Return a new account of a person without a row, with an amount from outside in it."""
    account = services.ensure_account(code=f"user:{name}:USD", kind="user")
    if usd(amount):
        services.top_up(
            key=f"fund:{name}",
            account=account.id,
            amount=usd(amount),
            provider="test",
            external_id=name,
        )
    return account


def available(account: AccountRef | int) -> str:
    """Return the available balance of an account, as a decimal string."""
    return str(selectors.balance(account if isinstance(account, int) else account.id).available)


def held(account: AccountRef) -> str:
    """Return the held sum of an account, as a decimal string."""
    return str(selectors.balance(account.id).held)


def authorize(**fields: Any) -> HoldOutcome:
    """Reserve by the fields of an Authorization."""
    return services.authorize(Authorization(**fields))


def capture_response(**fields: Any) -> CaptureOutcome:
    """Capture from all holds of a response, as the end of an answer does."""
    about = {
        name: fields.pop(name) for name in ("chat_id", "agent_id", "protocol") if name in fields
    }
    (done,) = services.capture_many([Capture(about=About(**about), **fields)])
    if isinstance(done, Exception):
        raise done
    return done


def void_response(*, key: str, response_id: str) -> CaptureOutcome:
    """Give back what is left of all holds of a response."""
    return capture_response(key=key, response_id=response_id, kind="void", release=True)


def fees_balance(asset: str = "USD") -> Money:
    """Return the sum of the platform's fee accounts."""
    accounts = Account.objects.filter(code__startswith=fee_prefix(asset))
    return Money(sum(accounts.values_list("posted", flat=True)), asset)


def hold(account: AccountRef, amount: str, *, key: str = "", response_id: str = "") -> str:
    """Reserve an amount; return the hold's id."""
    return authorize(
        key=key or new_key(), account_id=account.id, amount=usd(amount), response_id=response_id
    ).hold_id


def to(account: AccountRef, amount: str) -> Split:
    """Return an account's part of a capture."""
    return Split(account.id, usd(amount))


def fees(amount: str) -> Split:
    """Return the platform's part of a capture."""
    return Split(None, usd(amount))

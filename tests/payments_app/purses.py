"""Accounts with money in them, for the tests of the ledger."""

from __future__ import annotations

import uuid

from payments_app import selectors, services
from payments_app.money import Money
from payments_app.services import AccountRef, Split


def usd(text: str) -> Money:
    """Return dollars."""
    return Money.parse(text, signed=True)


def new_key() -> str:
    """Return a key that nobody used."""
    return uuid.uuid4().hex


def purse(name: str, amount: str = "0") -> AccountRef:
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
    """Return what an account has available, as a decimal string."""
    return str(selectors.balance(account if isinstance(account, int) else account.id).available)


def held(account: AccountRef) -> str:
    """Return what is held of an account, as a decimal string."""
    return str(selectors.balance(account.id).held)


def hold(account: AccountRef, amount: str, *, key: str = "", response_id: str = "") -> str:
    """Reserve an amount; return the hold's id."""
    return services.authorize(
        key=key or new_key(), account_id=account.id, amount=usd(amount), response_id=response_id
    ).hold_id


def to(account: AccountRef, amount: str) -> Split:
    """Return what an account gets of a capture."""
    return Split(account.id, usd(amount))


def fees(amount: str) -> Split:
    """Return what the platform gets of a capture."""
    return Split(None, usd(amount))

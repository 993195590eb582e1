"""Balances of accounts: locking, checking and changing them.

Accounts are locked in the order of their ids, after receipts and holds, so that operations cannot
deadlock. An account is checked only once it is locked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from payments_app.ledger.outcomes import (
    BalanceOutOfRange,
    InsufficientFunds,
    UnknownAccount,
)
from payments_app.ledger.sql import row_lock, rows, run
from payments_app.money import LARGEST, MAX_DIGITS, InvalidAmount, Money

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping


@dataclass(frozen=True, slots=True)
class LockedAccount:
    """An account while this transaction holds the lock of its row."""

    id: int
    code: str
    asset: str
    posted: int
    held: int
    overdraft: bool


def positive(amount: Money) -> Money:
    """Return the amount; raise InvalidAmount unless it is positive."""
    if amount.amount <= 0:
        raise InvalidAmount("The amount must be positive.")
    return amount


def lock_accounts(
    ids: Collection[int], codes: Collection[str] = ()
) -> tuple[dict[int, LockedAccount], dict[str, int]]:
    """Lock accounts in the order of their ids; return them by id, and the ids by code.

    Raises UnknownAccount for a missing id. A code without an account is left out.
    """
    accounts, by_code = lock_existing(ids, codes)
    if missing := set(ids) - set(accounts):
        raise UnknownAccount(f"There is no account {min(missing)}.")
    return accounts, by_code


def lock_existing(
    ids: Collection[int], codes: Collection[str] = ()
) -> tuple[dict[int, LockedAccount], dict[str, int]]:
    """Lock the accounts that exist; see lock_accounts."""
    sorted_ids = sorted(ids)
    named = sorted(codes)
    where = f"id IN ({', '.join(['%s'] * len(sorted_ids)) or 'NULL'})"
    if named:
        where += f" OR code IN ({', '.join(['%s'] * len(named))})"
    accounts = {
        row[0]: LockedAccount(row[0], row[1], row[2], row[3], row[4], bool(row[5]))
        for row in rows(
            "SELECT id, code, asset, posted, held, overdraft FROM payments_app_account"  # noqa: S608 placeholders only
            f" WHERE {where} ORDER BY id{row_lock()}",
            [*sorted_ids, *named],
        )
    }
    return accounts, {account.code: account.id for account in accounts.values()}


def _leaves_range(before: int, leg: int) -> bool:
    # Without a leg nothing changes: the hold of an account whose balance is wrong can still end.
    return leg != 0 and not -LARGEST <= before + leg <= LARGEST


_listeners: Final[list[Callable[[Collection[str]], None]]] = []


def changes_to(notify: Callable[[Collection[str]], None]) -> None:
    """Register a function to be called with the codes of accounts whose balance changes.

    It is called in the transaction that changes them, and must not send anything before the commit.
    """
    _listeners.append(notify)


def change(legs: Mapping[int, tuple[int, int]], accounts: Mapping[int, LockedAccount]) -> None:
    """Change locked accounts by (posted, held) each.

    Raises InsufficientFunds for an overdraft, BalanceOutOfRange for a balance of over 18 digits.
    """
    for account_id, (posted, held) in legs.items():
        account = accounts[account_id]
        if _leaves_range(account.posted, posted) or _leaves_range(account.held, held):
            raise BalanceOutOfRange(
                f"The balance of {account.code} would have more than {MAX_DIGITS} digits."
            )
        before = account.posted - account.held
        if posted - held < 0 and before + posted - held < 0 and not account.overdraft:
            raise InsufficientFunds(
                Money(before, account.asset), Money(held - posted, account.asset)
            )
    values = ", ".join(["(%s, %s, %s)"] * len(legs))
    changed = run(
        "UPDATE payments_app_account SET posted = posted + leg.column2, held = held + leg.column3"  # noqa: S608 placeholders only
        f" FROM (VALUES {values}) AS leg WHERE payments_app_account.id = leg.column1",
        [number for key, leg in legs.items() for number in (key, *leg)],
    )
    if changed != len(legs):
        raise UnknownAccount("An account disappeared while its money was moved.")
    moved = [accounts[account_id].code for account_id, leg in legs.items() if any(leg)]
    for notify in _listeners:
        notify(moved)

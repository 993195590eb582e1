"""Checks as a single statement, which sees a single moment, so load causes no mismatch.

A check is a query of (subject, off_by) that returns nothing for a sound ledger. The same statement
also returns the last entry of each account that it saw, and the sum of the entries up to there,
from which the next audit continues.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.db import connection

from payments_app.ledger import sql
from payments_app.ledger.outcomes import Mismatch
from payments_app.money import LARGEST

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SHOWN: Final = 50
"""How many mismatches of each audit are read: the first ones show what is wrong."""

_VERIFIED: Final = "verified"
_LAST_KEY: Final = "last key"


@dataclass(frozen=True, slots=True)
class Verified:
    """A checked account: its entries up to `entry_id` add up to `posted`."""

    account_id: int
    entry_id: int
    posted: int


@dataclass(frozen=True, slots=True)
class Findings:
    """The result of one statement; `verified` counts only if there is no mismatch."""

    mismatches: Sequence[Mismatch]
    verified: Sequence[Verified]
    last_key: int


def outside(amount: str) -> str:
    """Return the condition that a column is not a ledger amount; SQLite stores any value."""
    is_other = "" if connection.vendor == "postgresql" else f"typeof({amount}) <> 'integer' OR "
    return f"({is_other}{amount} NOT BETWEEN -{LARGEST} AND {LARGEST})"


def statement(checks: Mapping[str, str], verified: str, first: str = "") -> str:
    """Return the statement of some checks; `verified` is (account_id, sum, entry_id) of accounts.

    `first` is a WITH clause that both may refer to.
    """
    union = " UNION ALL ".join(
        f"SELECT '{name}' AS what, CAST(subject AS text) AS subject,"  # noqa: S608 constants
        f" CAST(off_by AS numeric) AS number, 0 AS place FROM ({query}) AS found"
        for name, query in checks.items()
    )
    return (
        f"{first} SELECT * FROM (SELECT * FROM ({union}) AS every LIMIT {SHOWN}) AS mismatches"  # noqa: S608 constants
        f" UNION ALL SELECT '{_VERIFIED}', CAST(account_id AS text), CAST(amount AS numeric),"
        f" entry_id FROM ({verified}) AS verified"
        f" UNION ALL SELECT '{_LAST_KEY}', '', 0, coalesce(MAX(id), 0)"
        " FROM payments_app_idempotency"
    )


def read(query: str, params: Sequence[int] = ()) -> Findings:
    """Run a statement of checks."""
    mismatches = []
    verified = []
    last_key = 0
    for what, subject, number, place in sql.rows(query, params):
        if what == _VERIFIED:
            verified.append(Verified(int(subject), place, int(number)))
        elif what == _LAST_KEY:
            last_key = place
        else:
            mismatches.append(Mismatch(check=what, subject=subject, off_by=int(number)))
    return Findings(mismatches, verified, last_key)

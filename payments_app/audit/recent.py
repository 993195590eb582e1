"""The audit of every balance, and of the rows since the last clean audit.

An account's entries get their ids under its row lock, so those newer than the last checked one are
exactly the unaudited ones. Earlier entries enter through the stored sum; checking that they have
not changed is left to the whole audit.

Each row is looked up through an index, whatever the planner estimates: the work grows with the
accounts and the new rows, not with the ledger.
"""

from __future__ import annotations

from typing import Final

from django.db import connection

from payments_app.audit.sentences import outside, statement
from payments_app.audit.whole import balances_of_assets, balances_outside, checks
from payments_app.ledger.sums import total

KEYS_BEHIND: Final = 10_000
"""How many keys are checked again, as their transactions may have ended after later ones."""

_POSTED: Final = """
    SELECT account.code AS subject, CAST(account.posted AS numeric)
            - coalesce(verified.posted, 0) - coalesce(sums.amount, 0) AS off_by
    FROM payments_app_account account
    LEFT JOIN payments_app_verifiedaccount verified ON verified.account_id = account.id
    LEFT JOIN sums ON sums.account_id = account.id
    WHERE account.posted <> coalesce(verified.posted, 0) + coalesce(sums.amount, 0)
"""
_ANSWERED: Final = """
    SELECT scope || ':' || key AS subject, 1 AS off_by
    FROM payments_app_idempotency WHERE id > %s AND outcome IS NULL
"""
_CREDITED: Final = """
    SELECT provider || ':' || external_id AS subject, amount - moved_amount AS off_by FROM (
        SELECT receipt.provider, receipt.external_id, receipt.amount,
            moved.amount AS moved_amount,
            (SELECT COUNT(*) FROM payments_app_receipt
                WHERE transfer_id = moved.id AND state = 'confirmed') AS confirmed
        FROM moved {receipts}
    ) AS receipts
    WHERE amount <> moved_amount OR confirmed > 1
"""


def recent_statement() -> str:
    """Return the statement; its one parameter is the id after which keys are new."""
    of_holds = _each("payments_app_hold", "hold", "hold.id = named.id")
    of_paid = _each("payments_app_transfer", "paid", "paid.id = named.id")
    holds = (
        "SELECT id, amount, captured FROM payments_app_hold WHERE state = 'active'"  # noqa: S608 constants
        " UNION SELECT hold.id, hold.amount, hold.captured"
        f" FROM (SELECT DISTINCT hold_id AS id FROM moved) AS named {of_holds}"
    )
    paid = (
        "SELECT paid.id, paid.amount"  # noqa: S608 constants
        f" FROM (SELECT DISTINCT reverses_id AS id FROM moved) AS named {of_paid}"
    )
    receipts = _each("payments_app_receipt", "receipt", "receipt.transfer_id = moved.id")
    all_checks = checks()
    recent = dict(
        zip(
            all_checks,
            (
                _outside(),
                balances_of_assets(),
                _POSTED,
                _held(),
                _entries(),
                all_checks["no account is overdrawn"],
                _captured(holds),
                _refunded(paid),
                _ANSWERED,
                _CREDITED.format(receipts=receipts),
            ),
            strict=True,
        )
    )
    verified = """
        SELECT sums.account_id, coalesce(verified.posted, 0) + sums.amount AS amount, sums.entry_id
        FROM sums
        LEFT JOIN payments_app_verifiedaccount verified ON verified.account_id = sums.account_id
    """
    return statement(recent, verified, _with_new_rows())


def _outside() -> str:
    return f"""
        {balances_outside()}
        UNION ALL SELECT 'entry ' || id, amount FROM fresh WHERE {outside("amount")}
        UNION ALL SELECT id, amount FROM moved WHERE {outside("amount")}
        UNION ALL SELECT id, amount FROM payments_app_hold
            WHERE state = 'active' AND ({outside("amount")} OR {outside("captured")})
    """  # noqa: S608 constants


def _held() -> str:
    return f"""
        SELECT account.code AS subject, account.held - coalesce(reserved.amount, 0) AS off_by
        FROM payments_app_account account
        LEFT JOIN (
            SELECT account_id, {total("amount - captured")} AS amount FROM payments_app_hold
            WHERE state = 'active' GROUP BY account_id
        ) reserved ON reserved.account_id = account.id
        WHERE account.held <> coalesce(reserved.amount, 0)
    """  # noqa: S608 constants


def _entries() -> str:
    return f"""
        SELECT id AS subject, total AS off_by FROM (
            SELECT moved.id, moved.amount,
                (SELECT coalesce({total("amount")}, 0) FROM payments_app_entry
                    WHERE transfer_id = moved.id) AS total,
                (SELECT COUNT(*) FROM payments_app_entry WHERE transfer_id = moved.id) AS sides,
                (SELECT coalesce({total("amount")}, 0) FROM payments_app_entry
                    WHERE transfer_id = moved.id AND amount > 0) AS gets
            FROM moved
        ) AS transfers
        WHERE total <> 0 OR sides < 2 OR gets <> amount
    """  # noqa: S608 constants


def _captured(holds: str) -> str:
    return f"""
        SELECT id AS subject, captured - total AS off_by FROM (
            SELECT hold.id, hold.amount, hold.captured,
                (SELECT coalesce({total("amount")}, 0) FROM payments_app_transfer
                    WHERE hold_id = hold.id AND reverses_id IS NULL) AS total
            FROM ({holds}) hold
        ) AS holds
        WHERE captured <> total OR captured > amount
    """  # noqa: S608 constants


def _refunded(paid: str) -> str:
    return f"""
        SELECT id AS subject, back - amount AS off_by FROM (
            SELECT paid.id, paid.amount,
                (SELECT coalesce({total("amount")}, 0) FROM payments_app_transfer
                    WHERE reverses_id = paid.id) AS back
            FROM ({paid}) paid
        ) AS refunds
        WHERE back > amount
    """  # noqa: S608 constants


def _with_new_rows() -> str:
    """Return the WITH clause: new entries, their sums by account, and their transfers."""
    newer = "entry.account_id = seen.account_id AND entry.id > seen.entry_id"
    entries = _each("payments_app_entry", "entry", newer)
    transfers = _each("payments_app_transfer", "transfer", "transfer.id = named.id")
    return f"""
        WITH seen AS MATERIALIZED (
            SELECT account.id AS account_id, coalesce(verified.entry_id, 0) AS entry_id
            FROM payments_app_account account
            LEFT JOIN payments_app_verifiedaccount verified ON verified.account_id = account.id
        ), fresh AS MATERIALIZED (
            SELECT entry.id, entry.account_id, entry.amount, entry.transfer_id FROM seen {entries}
        ), sums AS MATERIALIZED (
            SELECT account_id, {total("amount")} AS amount, MAX(id) AS entry_id
            FROM fresh GROUP BY account_id
        ), moved AS MATERIALIZED (
            SELECT transfer.id, transfer.amount, transfer.hold_id, transfer.reverses_id
            FROM (SELECT DISTINCT transfer_id AS id FROM fresh) AS named {transfers}
        )
    """  # noqa: S608 constants


def _each(table: str, name: str, condition: str) -> str:
    """Return a join that looks rows up one by one through an index."""
    if connection.vendor == "postgresql":
        return (
            f"CROSS JOIN LATERAL (SELECT {name}.* FROM {table} {name}"  # noqa: S608 constants
            f" WHERE {condition} OFFSET 0) AS {name}"
        )
    # SQLite keeps the order of a CROSS JOIN.
    return f"CROSS JOIN {table} {name} ON {condition}"

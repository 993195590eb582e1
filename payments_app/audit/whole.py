"""The audit of the whole ledger: ten checks of all its rows."""

from __future__ import annotations

from typing import Final

from payments_app.audit.sentences import outside, statement
from payments_app.ledger.sums import total

RANGE: Final = "every amount is within the range of the ledger"


def checks() -> dict[str, str]:
    """Return the checks by name."""
    return {
        RANGE: amounts_outside(),
        "balances of an asset add up to zero": balances_of_assets(),
        "posted is the sum of the entries": f"""
            SELECT account.code AS subject,
                account.posted - coalesce({total("entry.amount")}, 0) AS off_by
            FROM payments_app_account account
            LEFT JOIN payments_app_entry entry ON entry.account_id = account.id
            GROUP BY account.id, account.code, account.posted
            HAVING account.posted <> coalesce({total("entry.amount")}, 0)
        """,  # noqa: S608 constants
        "held is what active holds have left": f"""
            SELECT account.code AS subject,
                account.held - coalesce({total("hold.amount - hold.captured")}, 0) AS off_by
            FROM payments_app_account account
            LEFT JOIN payments_app_hold hold
                ON hold.account_id = account.id AND hold.state = 'active'
            GROUP BY account.id, account.code, account.held
            HAVING account.held <> coalesce({total("hold.amount - hold.captured")}, 0)
        """,  # noqa: S608 constants
        "the entries of a transfer add up to zero": f"""
            SELECT transfer.id AS subject, coalesce({total("entry.amount")}, 0) AS off_by
            FROM payments_app_transfer transfer
            LEFT JOIN payments_app_entry entry ON entry.transfer_id = transfer.id
            GROUP BY transfer.id, transfer.amount
            HAVING coalesce({total("entry.amount")}, 0) <> 0 OR COUNT(entry.id) < 2
                OR {total("CASE WHEN entry.amount > 0 THEN entry.amount ELSE 0 END")}
                    <> transfer.amount
        """,  # noqa: S608 constants
        "no account is overdrawn": """
            SELECT code AS subject, CAST(posted AS numeric) - held AS off_by
            FROM payments_app_account WHERE (posted < held AND NOT overdraft) OR held < 0
        """,
        "a hold captured what its transfers say, and at most its amount": f"""
            SELECT hold.id AS subject,
                hold.captured - coalesce({total("transfer.amount")}, 0) AS off_by
            FROM payments_app_hold hold
            LEFT JOIN payments_app_transfer transfer
                ON transfer.hold_id = hold.id AND transfer.reverses_id IS NULL
            GROUP BY hold.id, hold.captured, hold.amount
            HAVING hold.captured <> coalesce({total("transfer.amount")}, 0)
                OR hold.captured > hold.amount
        """,  # noqa: S608 constants
        "no transfer is refunded by more than it moved": f"""
            SELECT paid.id AS subject, {total("back.amount")} - paid.amount AS off_by
            FROM payments_app_transfer paid
            JOIN payments_app_transfer back ON back.reverses_id = paid.id
            GROUP BY paid.id, paid.amount HAVING {total("back.amount")} > paid.amount
        """,  # noqa: S608 constants
        "every key has an answer": """
            SELECT scope || ':' || key AS subject, 1 AS off_by
            FROM payments_app_idempotency WHERE outcome IS NULL
        """,
        "a confirmed receipt was credited with its amount, once": """
            SELECT receipt.provider || ':' || receipt.external_id AS subject,
                receipt.amount - coalesce(MAX(transfer.amount), 0) AS off_by
            FROM payments_app_receipt receipt
            LEFT JOIN payments_app_receipt other
                ON other.transfer_id = receipt.transfer_id AND other.id <> receipt.id
            LEFT JOIN payments_app_transfer transfer ON transfer.id = receipt.transfer_id
            WHERE receipt.state = 'confirmed'
            GROUP BY receipt.id, receipt.provider, receipt.external_id, receipt.amount
            HAVING receipt.amount <> coalesce(MAX(transfer.amount), 0) OR COUNT(other.id) > 0
        """,
    }


def balances_of_assets() -> str:
    """Return the check of all balances."""
    return f"""
        SELECT asset AS subject, {total("posted")} AS off_by FROM payments_app_account
        GROUP BY asset HAVING {total("posted")} <> 0
    """  # noqa: S608 constants


def amounts_outside() -> str:
    """Return the check that every row has an amount that the ledger can add up."""
    return f"""
        {balances_outside()}
        UNION ALL SELECT 'entry ' || id, amount FROM payments_app_entry WHERE {outside("amount")}
        UNION ALL SELECT id, amount FROM payments_app_transfer WHERE {outside("amount")}
        UNION ALL SELECT id, CASE WHEN {outside("amount")} THEN amount ELSE captured END
            FROM payments_app_hold WHERE {outside("amount")} OR {outside("captured")}
        UNION ALL SELECT provider || ':' || external_id, amount
            FROM payments_app_receipt WHERE {outside("amount")}
    """  # noqa: S608 constants


def balances_outside() -> str:
    """Return the same check of balances only."""
    return f"""
        SELECT code AS subject, CASE WHEN {outside("posted")} THEN posted ELSE held END AS off_by
        FROM payments_app_account WHERE {outside("posted")} OR {outside("held")}
    """  # noqa: S608 constants


def whole_statement() -> str:
    """Return the statement that checks all rows, ignoring verified points."""
    verified = f"""
        SELECT entries.account_id, entries.amount, entries.entry_id
        FROM (
            SELECT account_id, {total("amount")} AS amount, MAX(id) AS entry_id
            FROM payments_app_entry GROUP BY account_id
        ) entries
        LEFT JOIN payments_app_verifiedaccount verified ON verified.account_id = entries.account_id
        WHERE verified.account_id IS NULL OR verified.posted <> entries.amount
            OR verified.entry_id <> entries.entry_id
    """  # noqa: S608 constants
    return statement(checks(), verified)


def range_statement() -> str:
    """Return the statement that only looks for amounts that cannot be added up."""
    nothing = "SELECT account_id, posted AS amount, entry_id FROM payments_app_verifiedaccount"
    return statement({RANGE: amounts_outside()}, f"{nothing} WHERE 1 = 0")

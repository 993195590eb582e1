"""The audit of the whole ledger: nine checks of all its rows."""

from __future__ import annotations

from typing import Final

from payments_app.audit.sentences import statement

CHECKS: Final = {
    "balances of an asset add up to zero": """
        SELECT asset AS subject, SUM(posted) AS off_by FROM payments_app_account
        GROUP BY asset HAVING SUM(posted) <> 0
    """,
    "posted is the sum of the entries": """
        SELECT account.code AS subject, account.posted - coalesce(SUM(entry.amount), 0) AS off_by
        FROM payments_app_account account
        LEFT JOIN payments_app_entry entry ON entry.account_id = account.id
        GROUP BY account.id, account.code, account.posted
        HAVING account.posted <> coalesce(SUM(entry.amount), 0)
    """,
    "held is what active holds have left": """
        SELECT account.code AS subject,
            account.held - coalesce(SUM(hold.amount - hold.captured), 0) AS off_by
        FROM payments_app_account account
        LEFT JOIN payments_app_hold hold
            ON hold.account_id = account.id AND hold.state = 'active'
        GROUP BY account.id, account.code, account.held
        HAVING account.held <> coalesce(SUM(hold.amount - hold.captured), 0)
    """,
    "the entries of a transfer add up to zero": """
        SELECT transfer.id AS subject, coalesce(SUM(entry.amount), 0) AS off_by
        FROM payments_app_transfer transfer
        LEFT JOIN payments_app_entry entry ON entry.transfer_id = transfer.id
        GROUP BY transfer.id, transfer.amount
        HAVING coalesce(SUM(entry.amount), 0) <> 0 OR COUNT(entry.id) < 2
            OR SUM(CASE WHEN entry.amount > 0 THEN entry.amount ELSE 0 END) <> transfer.amount
    """,
    "no account is overdrawn": """
        SELECT code AS subject, posted - held AS off_by FROM payments_app_account
        WHERE (posted < held AND NOT overdraft) OR held < 0
    """,
    "a hold captured what its transfers say, and at most its amount": """
        SELECT hold.id AS subject, hold.captured - coalesce(SUM(transfer.amount), 0) AS off_by
        FROM payments_app_hold hold
        LEFT JOIN payments_app_transfer transfer
            ON transfer.hold_id = hold.id AND transfer.reverses_id IS NULL
        GROUP BY hold.id, hold.captured, hold.amount
        HAVING hold.captured <> coalesce(SUM(transfer.amount), 0) OR hold.captured > hold.amount
    """,
    "no transfer is refunded by more than it moved": """
        SELECT paid.id AS subject, SUM(back.amount) - paid.amount AS off_by
        FROM payments_app_transfer paid
        JOIN payments_app_transfer back ON back.reverses_id = paid.id
        GROUP BY paid.id, paid.amount HAVING SUM(back.amount) > paid.amount
    """,
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

_VERIFIED: Final = """
    SELECT entries.account_id, entries.amount, entries.entry_id
    FROM (
        SELECT account_id, SUM(amount) AS amount, MAX(id) AS entry_id
        FROM payments_app_entry GROUP BY account_id
    ) entries
    LEFT JOIN payments_app_verifiedaccount verified ON verified.account_id = entries.account_id
    WHERE verified.account_id IS NULL OR verified.posted <> entries.amount
        OR verified.entry_id <> entries.entry_id
"""


def whole_statement() -> str:
    """Return the statement that checks all rows, ignoring verified points."""
    return statement(CHECKS, _VERIFIED)

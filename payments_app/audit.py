"""The audit: nine sentences that are true of a whole ledger, asked in one statement (notes §5).

The law: one statement sees one moment, so an audit under load finds no mismatch that is not there.
A mismatch freezes payouts until an operator has looked (`freezing`), and is logged as an error.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Final

from django.db import connection, transaction

from payments_app import posting
from payments_app.freezing import freeze
from payments_app.outcomes import AuditReport, Mismatch

if TYPE_CHECKING:
    from datetime import datetime

logger = logging.getLogger(__name__)

SHOWN: Final = 50
"""Mismatches that are read of each audit: the first says what is wrong, not the thousandth."""

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
    "nobody is overdrawn": """
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

_STATEMENT: Final = " UNION ALL ".join(
    f"SELECT '{name}', CAST(subject AS text), CAST(off_by AS numeric) FROM ({query}) AS found"  # noqa: S608 constants
    for name, query in CHECKS.items()
)


def audit() -> AuditReport:
    """Check the whole ledger, write down what was found, and freeze payouts on a mismatch."""
    with transaction.atomic():
        if connection.vendor == "postgresql":
            # The ledger grows, and a slow audit is better than none.
            posting.run("SET LOCAL statement_timeout = '120s'")
        found = [
            Mismatch(check=check, subject=subject, off_by=int(off_by))
            for check, subject, off_by in posting.rows(f"{_STATEMENT} LIMIT {SHOWN}")
        ]
        report = AuditReport(checked_at=_note(found), mismatches=found)
        newly = bool(found) and freeze(f"{found[0].check}: {found[0].subject}")
    if newly:
        logger.error("the ledger does not add up, payouts are frozen")
    for mismatch in found[:5]:
        logger.error(
            "ledger mismatch: %s: %s by %d", mismatch.check, mismatch.subject, mismatch.off_by
        )
    return report


def audit_if_due(seconds: float = 60.0) -> AuditReport | None:
    """Audit when the last audit is longer ago than this; None when another process just did."""
    with transaction.atomic():
        posting.run(
            "INSERT INTO payments_app_ledgerstate (id, reason, report) VALUES (1, '', '[]')"
            " ON CONFLICT (id) DO NOTHING"
        )
        mine = posting.run(
            f"UPDATE payments_app_ledgerstate SET checked_at = {posting.now_sql()} WHERE id = 1"  # noqa: S608 constants
            f" AND (checked_at IS NULL OR checked_at < {posting.later_sql()})",
            [-seconds],
        )
    return audit() if mine else None


def _note(found: list[Mismatch]) -> datetime:
    """Write down when the audit was and what it found."""
    checked_at = posting.rows(
        "INSERT INTO payments_app_ledgerstate (id, checked_at, reason, report)"  # noqa: S608 constants
        f" VALUES (1, {posting.now_sql()}, '', %s) ON CONFLICT (id) DO UPDATE"
        " SET checked_at = excluded.checked_at, report = excluded.report RETURNING checked_at",
        [json.dumps([[one.check, one.subject, one.off_by] for one in found])],
    )
    return posting.moment(checked_at[0][0])

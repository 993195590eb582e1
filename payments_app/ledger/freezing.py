"""The freeze: after an audit that found a mismatch, the ledger refuses payouts.

Holds are still captured and released, and incoming payments credited, so that running answers
continue. Refunds, adjustments and transfers to the outside wait for an operator.
"""

from __future__ import annotations

from payments_app.ledger import sql
from payments_app.ledger.outcomes import LedgerFrozen


def refuse_when_frozen() -> None:
    """Raise LedgerFrozen if payouts are frozen."""
    rows = sql.rows(
        "SELECT reason FROM payments_app_ledgerstate WHERE id = 1 AND frozen_at IS NOT NULL"
    )
    if rows:
        raise LedgerFrozen(f"Payouts are frozen: {rows[0][0]}")


def freeze(reason: str) -> bool:
    """Stop payouts; return whether they were open before. The first reason is kept."""
    now = sql.now_sql()
    return bool(
        sql.run(
            "INSERT INTO payments_app_ledgerstate (id, frozen_at, reason, report)"  # noqa: S608 constants
            f" VALUES (1, {now}, %s, '[]') ON CONFLICT (id) DO UPDATE"
            " SET frozen_at = excluded.frozen_at, reason = excluded.reason"
            " WHERE payments_app_ledgerstate.frozen_at IS NULL",
            [reason[:500]],
        )
    )


def unfreeze() -> bool:
    """Allow payouts again, as an operator decided; return whether they were frozen.

    The next audit reads the whole ledger: any remaining error freezes them again within a minute.
    """
    return bool(
        sql.run(
            "UPDATE payments_app_ledgerstate SET frozen_at = NULL, reason = '',"
            " whole_due_at = NULL WHERE id = 1 AND frozen_at IS NOT NULL"
        )
    )

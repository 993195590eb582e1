"""Expiry of holds: what they reserved but did not capture becomes available again."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from django.db import connection, transaction

from payments_app.ledger import balances, sql

BATCH: Final = 100


def expire_holds(limit: int = BATCH) -> int:
    """Expire up to `limit` overdue active holds and release the rest; return how many.

    A hold that another transaction is capturing is skipped. One captured in full is settled.
    """
    lock = " FOR NO KEY UPDATE SKIP LOCKED" if connection.vendor == "postgresql" else ""
    due = (
        "FROM payments_app_hold WHERE state = 'active'"
        f" AND expires_at <= {sql.now_sql()} ORDER BY expires_at LIMIT %s"
    )
    # Asked outside a transaction first: on SQLite a transaction would wait for the writer.
    if not sql.rows(f"SELECT 1 {due}", [1]):
        return 0
    with transaction.atomic():
        holds = sql.rows(f"SELECT id, account_id, amount - captured {due}{lock}", [limit])
        if not holds:
            return 0
        marks = ", ".join(["%s"] * len(holds))
        sql.run(
            "UPDATE payments_app_hold SET state ="  # noqa: S608 placeholders only
            " CASE WHEN captured = amount THEN 'settled' ELSE 'expired' END,"
            f" ended_at = {sql.now_sql()}"
            f" WHERE id IN ({marks})",
            [hold_id for hold_id, _, _ in holds],
        )
        back: dict[int, tuple[int, int]] = defaultdict(lambda: (0, 0))
        for _, account_id, uncaptured in holds:
            back[account_id] = (0, back[account_id][1] - uncaptured)
        accounts, _ = balances.lock_accounts(back.keys())
        balances.change(back, accounts)
    return len(holds)

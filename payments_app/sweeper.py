"""Ends holds and tokens whose time is over, and audits: what a server does beside its requests.

The server's keeper calls `sweep()` every few seconds, in every process: it is cheap when there is
nothing to do, skips what another process works on, and audits once a minute in one of them.
"""

from __future__ import annotations

from collections import defaultdict

from django.db import connection, transaction

from payments_app.audit import audit_if_due
from payments_app.ledger import sql
from payments_app.tokens import endings

BATCH = 100


def sweep() -> int:
    """Expire what is due, audit when a minute has gone; return how many holds were ended."""
    ended = expire_holds()
    # After the holds: what they gave back to an ended token goes on from there.
    endings.sweep()
    if audit_if_due() is not None:
        endings.sweep(thorough=True)
    return ended


def expire_holds(limit: int = BATCH) -> int:
    """End up to `limit` active holds past their time, give back what they have left; count them.

    A hold that is being captured at this moment is skipped. One that gave everything is settled.
    """
    lock = " FOR NO KEY UPDATE SKIP LOCKED" if connection.vendor == "postgresql" else ""
    due = (
        "FROM payments_app_hold WHERE state = 'active'"
        f" AND expires_at <= {sql.now_sql()} ORDER BY expires_at LIMIT %s"
    )
    # Asked without a transaction first: on SQLite one would wait for the writer.
    if not sql.rows(f"SELECT 1 {due}", [1]):
        return 0
    with transaction.atomic():
        holds = sql.rows(f"SELECT id, account_id, amount - captured {due}{lock}", [limit])
        if not holds:
            return 0
        marks = ", ".join(["%s"] * len(holds))
        sql.run(
            "UPDATE payments_app_hold SET state ="  # noqa: S608 marks only
            " CASE WHEN captured = amount THEN 'settled' ELSE 'expired' END"
            f" WHERE id IN ({marks})",
            [hold_id for hold_id, _, _ in holds],
        )
        back: dict[int, tuple[int, int]] = defaultdict(lambda: (0, 0))
        for _, account_id, left in holds:
            back[account_id] = (0, back[account_id][1] - left)
        accounts, _ = sql.lock_accounts(back.keys())
        sql.move(back, accounts)
    return len(holds)

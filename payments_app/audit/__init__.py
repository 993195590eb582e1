"""The audit: every minute of new rows and all balances, every hour of the whole ledger.

A statement sees a single moment, so an audit under load reports no false mismatch, and no writer
waits for it. A clean audit records how far each account was checked, where the next one continues.
Balances changed by hand are found within a minute, changes to rows checked earlier within
WHOLE_SECONDS. A mismatch freezes payouts until an operator has looked (`freezing`), and is logged
as an error. So does an audit that the database cannot run: what it would have found is unknown.
"""

from __future__ import annotations

import json
import logging
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from django.db import Error, connection, transaction

from payments_app.audit.recent import KEYS_BEHIND, recent_statement
from payments_app.audit.sentences import Findings, read
from payments_app.audit.whole import range_statement, whole_statement
from payments_app.ledger import sql
from payments_app.ledger.freezing import freeze
from payments_app.ledger.outcomes import AuditReport, Mismatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime


logger = logging.getLogger(__name__)

RECENT_SECONDS: Final = 60.0
WHOLE_SECONDS: Final = 3600.0
AGAIN_SECONDS: Final = 900.0
"""How long until another process restarts an audit of the whole ledger that was cut short."""
TIMEOUT_SECONDS: Final = 1800
ROWS: Final = 500
FAILED: Final = "the audit runs to its end"
REASON_CHARS: Final = 200


def audit() -> AuditReport:
    """Check the whole ledger, record the findings, and freeze payouts on a mismatch."""
    return _noted(_findings(whole_statement()), whole=True)


def audit_recent() -> AuditReport:
    """Check all balances and the rows since the last clean audit; otherwise like `audit`."""
    rows = sql.rows("SELECT verified_key FROM payments_app_ledgerstate WHERE id = 1")
    last_key = rows[0][0] if rows else 0
    return _noted(_findings(recent_statement(), [last_key - KEYS_BEHIND]), whole=False)


def audit_if_due(seconds: float = RECENT_SECONDS) -> AuditReport | None:
    """Audit if the last audit is older than this; return None if another process just did.

    The whole ledger is read when that is due, or was never done.
    """
    now = sql.now_sql()
    with transaction.atomic():
        sql.run(
            "INSERT INTO payments_app_ledgerstate (id, reason, report) VALUES (1, '', '[]')"
            " ON CONFLICT (id) DO NOTHING"
        )
        mine = sql.run(
            f"UPDATE payments_app_ledgerstate SET checked_at = {now} WHERE id = 1"  # noqa: S608 constants
            f" AND (checked_at IS NULL OR checked_at < {sql.later_sql()})",
            [-seconds],
        )
        whole = mine and sql.run(
            f"UPDATE payments_app_ledgerstate SET whole_due_at = {sql.later_sql()}"  # noqa: S608 constants
            f" WHERE id = 1 AND (whole_due_at IS NULL OR whole_due_at <= {now})",
            [AGAIN_SECONDS],
        )
    if not mine:
        return None
    return audit() if whole else audit_recent()


def _findings(query: str, params: Sequence[int] = ()) -> Findings:
    """Run an audit; if that fails, find the failure, and any amounts that may have caused it."""
    try:
        with _patiently():
            return read(query, params)
    except (Error, ArithmeticError, ValueError) as error:
        reason = " ".join(str(error).split())[:REASON_CHARS]
    causes: Sequence[Mismatch] = ()
    with suppress(Error, ArithmeticError, ValueError), _patiently():
        causes = read(range_statement()).mismatches
    failure = Mismatch(check=FAILED, subject=reason, off_by=1)
    return Findings([*causes, failure], verified=(), last_key=0)


@contextmanager
def _patiently() -> Iterator[None]:
    """Let a statement take long. On SQLite, a transaction would block every writer."""
    if connection.vendor != "postgresql":
        yield
        return
    with transaction.atomic():
        # The ledger grows, and a slow audit is better than none.
        sql.run(f"SET LOCAL statement_timeout = '{TIMEOUT_SECONDS}s'")
        # Compiling the statement takes two seconds, running it mostly less.
        sql.run("SET LOCAL jit = off")
        yield


# --- Findings ---


def _noted(findings: Findings, *, whole: bool) -> AuditReport:
    """Record the findings of an audit and, if clean, where the next one continues."""
    mismatches = findings.mismatches
    with transaction.atomic():
        checked_at = _note(mismatches, whole=whole)
        newly = bool(mismatches) and freeze(f"{mismatches[0].check}: {mismatches[0].subject}")
        if not mismatches:
            _go_on_from(findings)
    if newly:
        logger.error("the ledger does not add up, payouts are frozen")
    for mismatch in mismatches[:5]:
        logger.error(
            "ledger mismatch: %s: %s by %d", mismatch.check, mismatch.subject, mismatch.off_by
        )
    return AuditReport(checked_at=checked_at, mismatches=mismatches)


def _note(mismatches: Sequence[Mismatch], *, whole: bool) -> datetime:
    """Record the time and findings of the audit; a whole one overrides recent findings."""
    report = json.dumps(
        [[mismatch.check, mismatch.subject, mismatch.off_by] for mismatch in mismatches]
    )
    now = sql.now_sql()
    names, values = "checked_at, report", f"{now}, %s"
    params: list[Any] = [report]
    if whole:
        names = "checked_at, report, whole_at, whole_report, whole_due_at"
        values = f"{now}, '[]', {now}, %s, {sql.later_sql()}"
        params = [report, WHOLE_SECONDS]
    changes = ", ".join(f"{name} = excluded.{name}" for name in names.split(", "))
    checked_at = sql.rows(
        f"INSERT INTO payments_app_ledgerstate (id, reason, {names}) VALUES (1, '', {values})"  # noqa: S608 constants
        f" ON CONFLICT (id) DO UPDATE SET {changes} RETURNING checked_at",
        params,
    )
    return sql.moment(checked_at[0][0])


def _go_on_from(findings: Findings) -> None:
    """Record the verified point. An older point recorded late is just as valid."""
    sql.run(
        "UPDATE payments_app_ledgerstate SET verified_key = %s WHERE id = 1", [findings.last_key]
    )
    for start in range(0, len(findings.verified), ROWS):
        part = findings.verified[start : start + ROWS]
        sql.run(
            "INSERT INTO payments_app_verifiedaccount (account_id, entry_id, posted) VALUES "  # noqa: S608 placeholders only
            + ", ".join(["(%s, %s, %s)"] * len(part))
            + " ON CONFLICT (account_id) DO UPDATE SET entry_id = excluded.entry_id,"
            " posted = excluded.posted",
            [value for point in part for value in (point.account_id, point.entry_id, point.posted)],
        )

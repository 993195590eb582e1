"""The periodic job of the ledger: expires holds, empties ended tokens, audits.

Every process calls `expire_and_audit()` every few seconds. It is cheap when nothing is due, skips
rows that another process has locked, and audits once a minute in one process.
"""

from __future__ import annotations

from payments_app.audit import audit_if_due
from payments_app.ledger.expiry import expire_holds
from payments_app.tokens import endings


def expire_and_audit() -> int:
    """Expire holds and tokens, audit once a minute; return how many holds expired."""
    ended = expire_holds()
    # After the holds, because money they release may belong to an ended token.
    endings.return_available()
    if audit_if_due() is not None:
        endings.return_available(thorough=True)
    return ended

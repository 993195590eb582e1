"""The ledger's interface: what other apps may do with money.

Every operation is one transaction and joins the caller's. Each takes a `key`: the same key with
the same request gives the first answer again, marked `replayed`, and with another request raises
IdempotencyConflict. A caller that lost an answer asks again with the same key. A key that a client
chose is given a `scope` of its own (its user), so that no client uses up another one's keys.
Inside a transaction of the caller, rows that others wait for (chats) are locked before; after a
refusal that transaction can go on.

Every process calls `expire_and_audit` every few seconds.
"""

from payments_app.audit import audit
from payments_app.expiry_job import expire_and_audit
from payments_app.ledger.accounts import account_of_agent, account_of_user, ensure_account
from payments_app.ledger.captures import Refusal, capture, capture_many, void
from payments_app.ledger.entries import new_transfer_id
from payments_app.ledger.freezing import unfreeze
from payments_app.ledger.holds import renew
from payments_app.ledger.outcomes import (
    About,
    AboutFields,
    AccountRef,
    AuditReport,
    Authorization,
    CaptureOutcome,
    ForFields,
    HoldNotActive,
    HoldOutcome,
    IdempotencyConflict,
    InsufficientFunds,
    LedgerError,
    LedgerFrozen,
    LimitReached,
    NotRefundable,
    OverCapture,
    OwnMoney,
    ReceiptConflict,
    SameAccount,
    Split,
    SplitMismatch,
    TransferOutcome,
    UnknownAccount,
    UnknownHold,
    UnknownTransfer,
)
from payments_app.ledger.plans import Capture
from payments_app.ledger.transfers import adjust, record_receipt, refund, top_up, transfer
from payments_app.spending.authorizations import authorize, authorize_many

__all__ = [
    "About",
    "AboutFields",
    "AccountRef",
    "AuditReport",
    "Authorization",
    "Capture",
    "CaptureOutcome",
    "ForFields",
    "HoldNotActive",
    "HoldOutcome",
    "IdempotencyConflict",
    "InsufficientFunds",
    "LedgerError",
    "LedgerFrozen",
    "LimitReached",
    "NotRefundable",
    "OverCapture",
    "OwnMoney",
    "ReceiptConflict",
    "Refusal",
    "SameAccount",
    "Split",
    "SplitMismatch",
    "TransferOutcome",
    "UnknownAccount",
    "UnknownHold",
    "UnknownTransfer",
    "account_of_agent",
    "account_of_user",
    "adjust",
    "audit",
    "authorize",
    "authorize_many",
    "capture",
    "capture_many",
    "ensure_account",
    "expire_and_audit",
    "new_transfer_id",
    "record_receipt",
    "refund",
    "renew",
    "top_up",
    "transfer",
    "unfreeze",
    "void",
]

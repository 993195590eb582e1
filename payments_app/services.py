"""The ledger's interface: what other apps may do with money.

Every operation is one transaction and joins the caller's. Each takes a `key`: repeating a request
with its key returns the first answer, marked `replayed`; a different request with the same key
raises IdempotencyConflict. A caller that lost an answer retries with the same key. Keys chosen by a
client get their own `scope` (its user), so that clients cannot use up each other's keys.

Inside a transaction of the caller, rows that others wait for (chats) must be locked first; after a
refusal that transaction can continue.

Every process calls `expire_and_audit` every few seconds.
"""

from payments_app.audit import audit
from payments_app.expiry_job import expire_and_audit
from payments_app.ledger.accounts import account_of_agent, account_of_user, ensure_account
from payments_app.ledger.answer_refunds import refund_answer
from payments_app.ledger.captures import Refusal, capture, capture_many, void
from payments_app.ledger.entries import new_transfer_id
from payments_app.ledger.freezing import unfreeze
from payments_app.ledger.holds import renew
from payments_app.ledger.outcomes import (
    About,
    AboutFields,
    AccountRef,
    AnswerRefund,
    AnswerRuns,
    AuditReport,
    Authorization,
    BalanceOutOfRange,
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
from payments_app.ledger.pool_returns import return_pool
from payments_app.ledger.transfers import (
    adjust,
    exceeds_solo_limit,
    record_receipt,
    refund,
    top_up,
    transfer,
)
from payments_app.spending.authorizations import authorize, authorize_many

__all__ = [
    "About",
    "AboutFields",
    "AccountRef",
    "AnswerRefund",
    "AnswerRuns",
    "AuditReport",
    "Authorization",
    "BalanceOutOfRange",
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
    "exceeds_solo_limit",
    "expire_and_audit",
    "new_transfer_id",
    "record_receipt",
    "refund",
    "refund_answer",
    "renew",
    "return_pool",
    "top_up",
    "transfer",
    "unfreeze",
    "void",
]

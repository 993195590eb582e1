"""The ledger's answers, and its reasons to refuse.

An answer is stored with its idempotency key and returned again to the same request; a refusal is
not, so the same key may be retried once things have changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime  # noqa: TC003 msgspec reads the types when it decodes
from typing import TYPE_CHECKING, TypedDict

from payments_app.money import Money  # noqa: TC001 as above

if TYPE_CHECKING:
    from collections.abc import Sequence


class LedgerError(Exception):
    """The operation was refused and nothing was written."""


class InsufficientFunds(LedgerError):
    """The account has less than requested; `available` is how much it has."""

    def __init__(self, available: Money, requested: Money) -> None:
        super().__init__(f"available: {available}, wanted: {requested} {requested.asset}")
        self.available = available
        self.requested = requested


class BalanceOutOfRange(LedgerError):
    """A balance would have more than 18 digits."""


class IdempotencyConflict(LedgerError):
    """The key was used for a different request."""


class UnknownAccount(LedgerError):
    """There is no such account."""


class UnknownHold(LedgerError):
    """There is no such hold."""


class UnknownTransfer(LedgerError):
    """There is no such transfer."""


class HoldNotActive(LedgerError):
    """The hold has ended; `state` is settled, released or expired."""

    def __init__(self, state: str) -> None:
        super().__init__(f"The hold is {state}.")
        self.state = state


class OverCapture(LedgerError):
    """The capture exceeds the hold; `left` is how much is still held."""

    def __init__(self, left: Money) -> None:
        super().__init__(f"left: {left}")
        self.left = left


class SplitMismatch(LedgerError):
    """The splits do not add up to the amount, or one is not positive."""


class SameAccount(LedgerError):
    """Money would move from an account to itself."""


class NotRefundable(LedgerError):
    """The transfer is itself a refund, or less than the amount is left of it."""


class ReceiptConflict(LedgerError):
    """The provider's id is already known with a different amount or account."""


class LimitReached(LedgerError):
    """A limit would be exceeded; `left` is what it still allows, `resets_at` when it resets."""

    def __init__(self, period: str, left: Money, resets_at: datetime | None) -> None:
        again = f", again from {resets_at:%Y-%m-%d %H:%M} UTC" if resets_at else ""
        super().__init__(f"The limit per {period} is reached. left: {left} {left.asset}{again}.")
        self.period = period
        self.left = left
        self.resets_at = resets_at


class OwnMoney(LedgerError):
    """Operators may not decide about their own money."""


class AnswerRuns(LedgerError):
    """The work that the hold pays for has not ended."""


class NeedsSecond(LedgerError):
    """The operator has adjusted as much as one may alone; a second one has to approve."""


class LedgerFrozen(LedgerError):
    """The last audit found a mismatch: payouts stop until an operator has looked."""


@dataclass(frozen=True, slots=True)
class Split:
    """A part of a captured amount and its payee; None means the platform's fee account."""

    account_id: int | None
    amount: Money


class ForFields(TypedDict, total=False):
    """The purpose of a movement, as keyword arguments; usage and cost are grouped by these."""

    memo: str
    chat_id: str
    agent_id: str
    protocol: str
    by: int | None


class AboutFields(ForFields, total=False):
    """The same, if the response is not given in another way."""

    response_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The purpose of a transfer, as stored in its row; `by` is a person's id."""

    memo: str = ""
    response_id: str = ""
    chat_id: str = ""
    agent_id: str = ""
    protocol: str = ""
    by: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRef:
    """A reference to an account."""

    id: int
    code: str
    kind: str
    asset: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldOutcome:
    """A hold that was made; `available` is what its account had left at the time."""

    hold_id: str
    account_id: int
    amount: Money
    available: Money
    expires_at: datetime
    replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureOutcome:
    """The outcome of a capture or release: one transfer for each hold that paid something.

    `captured` went to the splits, `released` back to the account, `left` is still held. `available`
    is what the account of the newest hold had left at the time.
    """

    transfer_ids: tuple[str, ...]
    captured: Money
    released: Money
    left: Money
    available: Money
    replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferOutcome:
    """A transfer that was posted."""

    transfer_id: str
    amount: Money
    replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRefund:
    """A refund of an answer: its own transfer, and the response and chat that were charged."""

    transfer_id: str
    response_id: str
    chat_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorization:
    """One hold of `authorize_many`. `expires_in` is in seconds.

    `agent_id` is the agent to be paid, for limits on a single agent. `limits_of` is the person
    whose spending limits must allow it, whichever account pays; `credential` is the one used for
    the request, whose budget must allow it too. `asker_id` is the person who asked, if known: the
    hold keeps it for the payer's usage.
    """

    key: str
    account_id: int
    amount: Money
    purpose: str = ""
    response_id: str = ""
    agent_id: str = ""
    chat_id: str = ""
    expires_in: float = 900.0
    scope: str = ""
    limits_of: int | None = None
    credential: str = ""
    asker_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """An audit sentence that does not hold: for what, and by how much."""

    check: str
    subject: str
    off_by: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """The findings of an audit; an empty list means a clean ledger."""

    checked_at: datetime
    mismatches: Sequence[Mismatch]

    @property
    def clean(self) -> bool:
        """Whether every invariant held."""
        return not self.mismatches

"""The life cycles of tool calls, payment requests, webhook deliveries and queued turns, as tables.

The protocol does not define these states, unlike those of `uamp.state`. `transitions` moves the
rows.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

CAUSE_CHARS: Final = 100
"""The longest stored kind of a tool call's failure."""
REPORTED: Final = "reported an error"
"""The cause of a call whose tool, client or agent answered with an error of its own."""


class ToolCallState(StrEnum):
    """The states of a tool call.

    `asking`: waiting for a person's approval. `waiting`: waiting for the client or another agent.
    `queued` and `running`: waiting for a worker or executed by one.
    """

    ASKING = "asking"
    WAITING = "waiting"
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


class ToolCallTrigger(StrEnum):
    """The triggers of a call; `lose` ends a call whose outcome is unknown."""

    ALLOW = "allow"
    CLAIM = "claim"
    REQUEUE = "requeue"
    FINISH = "finish"
    FAIL = "fail"
    CANCEL = "cancel"
    LOSE = "lose"


class PaymentState(StrEnum):
    """The states of a payment request; `withdrawn` if its response ended first."""

    WAITING = "waiting"
    PAID = "paid"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


class PaymentTrigger(StrEnum):
    """The triggers of a payment request."""

    PAY = "pay"
    EXPIRE = "expire"
    WITHDRAW = "withdraw"


class DeliveryState(StrEnum):
    """The states of a delivery; a queued one may have failed attempts behind it."""

    QUEUED = "queued"
    SENT = "sent"
    FAILED = "failed"


class DeliveryTrigger(StrEnum):
    """The triggers of a delivery; `fail` also covers a disabled webhook."""

    SEND = "send"
    FAIL = "fail"


class QueuedTurnState(StrEnum):
    """The states of a queued message; `failed` if it was refused."""

    QUEUED = "queued"
    STARTING = "starting"
    FAILED = "failed"


class QueuedTurnTrigger(StrEnum):
    """The triggers of a queued message; `release` retries later, `ask` is its sender's request."""

    CLAIM = "claim"
    RELEASE = "release"
    FAIL = "fail"
    ASK = "ask"


TOOL_CALL_TRANSITIONS: dict[ToolCallState, dict[ToolCallTrigger, ToolCallState]] = {
    ToolCallState.ASKING: {
        ToolCallTrigger.ALLOW: ToolCallState.QUEUED,
        ToolCallTrigger.FAIL: ToolCallState.FAILED,
        ToolCallTrigger.CANCEL: ToolCallState.CANCELLED,
    },
    ToolCallState.WAITING: {
        ToolCallTrigger.FINISH: ToolCallState.DONE,
        ToolCallTrigger.FAIL: ToolCallState.FAILED,
        ToolCallTrigger.CANCEL: ToolCallState.CANCELLED,
    },
    ToolCallState.QUEUED: {
        ToolCallTrigger.CLAIM: ToolCallState.RUNNING,
        ToolCallTrigger.REQUEUE: ToolCallState.QUEUED,
        ToolCallTrigger.FAIL: ToolCallState.FAILED,
        ToolCallTrigger.CANCEL: ToolCallState.CANCELLED,
    },
    ToolCallState.RUNNING: {
        ToolCallTrigger.CLAIM: ToolCallState.RUNNING,
        ToolCallTrigger.REQUEUE: ToolCallState.QUEUED,
        ToolCallTrigger.FINISH: ToolCallState.DONE,
        ToolCallTrigger.FAIL: ToolCallState.FAILED,
        ToolCallTrigger.CANCEL: ToolCallState.CANCELLED,
        ToolCallTrigger.LOSE: ToolCallState.UNKNOWN,
    },
    ToolCallState.DONE: {},
    ToolCallState.FAILED: {},
    ToolCallState.CANCELLED: {},
    ToolCallState.UNKNOWN: {},
}

PAYMENT_TRANSITIONS: dict[PaymentState, dict[PaymentTrigger, PaymentState]] = {
    PaymentState.WAITING: {
        PaymentTrigger.PAY: PaymentState.PAID,
        PaymentTrigger.EXPIRE: PaymentState.EXPIRED,
        PaymentTrigger.WITHDRAW: PaymentState.WITHDRAWN,
    },
    PaymentState.PAID: {},
    PaymentState.EXPIRED: {},
    PaymentState.WITHDRAWN: {},
}

DELIVERY_TRANSITIONS: dict[DeliveryState, dict[DeliveryTrigger, DeliveryState]] = {
    DeliveryState.QUEUED: {
        DeliveryTrigger.SEND: DeliveryState.SENT,
        DeliveryTrigger.FAIL: DeliveryState.FAILED,
    },
    DeliveryState.SENT: {},
    DeliveryState.FAILED: {},
}

QUEUED_TURN_TRANSITIONS: dict[QueuedTurnState, dict[QueuedTurnTrigger, QueuedTurnState]] = {
    QueuedTurnState.QUEUED: {
        QueuedTurnTrigger.CLAIM: QueuedTurnState.STARTING,
        QueuedTurnTrigger.FAIL: QueuedTurnState.FAILED,
        QueuedTurnTrigger.ASK: QueuedTurnState.QUEUED,
    },
    # CLAIM again: the process that was sending it may have died.
    QueuedTurnState.STARTING: {
        QueuedTurnTrigger.CLAIM: QueuedTurnState.STARTING,
        QueuedTurnTrigger.RELEASE: QueuedTurnState.QUEUED,
        QueuedTurnTrigger.FAIL: QueuedTurnState.FAILED,
    },
    QueuedTurnState.FAILED: {QueuedTurnTrigger.ASK: QueuedTurnState.QUEUED},
}

"""The inputs and outcomes of a turn's two writes: its start and its finish.

The caller generates ids and times; the write returns `seq`. `orm` and `sql` write lists of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from chat_app.log.entries import NewEvent, NewMessage
from payments_app.money import Money
from sessions_app.billing.continued_answers import ContinuedAnswer
from sessions_app.billing.payers import AnswerPayment
from sessions_app.billing.reservations import AnswerCharge, Reservation
from sessions_app.records import CallAnswer, ParentCall


class NewResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A response started by a turn, with its log event."""

    id: str
    agent_id: str
    request: dict[str, Any]
    event: NewEvent


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """A turn to start: at most one message and any number of responses."""

    session_id: str
    chat_id: str
    user_id: int | None
    event_id: str
    sha256: str
    message: NewMessage | None
    message_event: NewEvent | None
    responses: Sequence[NewResponse]
    content_ids: Sequence[str] = ()
    pending_input_ids: Sequence[int] = ()
    # Reservations for the responses of priced agents.
    reservations: Sequence[Reservation] = ()
    # The answer, already paid, that its only response continues.
    continued: ContinuedAnswer | None = None
    process: str
    lease_until: datetime
    at: datetime
    # The question of a regenerated answer; such a turn has no message.
    question_id: str | None = None

    @property
    def is_in_thread(self) -> bool:
        """Whether its message belongs to a thread."""
        return self.message is not None and self.message.thread is not None

    @property
    def has_mentions(self) -> bool:
        """Whether its message mentions people."""
        return self.message is not None and bool(self.message.mentions)

    @property
    def answered_id(self) -> str | None:
        """The message that the responses answer."""
        return self.message.id if self.message else self.question_id


class StartCommitted(msgspec.Struct, frozen=True):
    """The turn is committed; its events are numbered from `first_seq`.

    `payments` maps its responses to the known facts of their payments.
    """

    first_seq: int
    payments: Mapping[str, AnswerPayment] = msgspec.field(default_factory=dict)


class StartRepeated(msgspec.Struct, frozen=True):
    """The event was handled before and started these responses."""

    response_ids: list[str]


class StartRefused(msgspec.Struct, frozen=True):
    """Nothing was written; `code` is a UAMP error code."""

    code: str


class Finish(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a response: its terminal event and, if it has output, its message."""

    chat_id: str
    response_id: str
    fence: int
    status: str
    event: NewEvent
    message: NewMessage | None
    message_event: NewEvent | None
    text: str
    output: list[dict[str, Any]]
    usage: dict[str, Any] | None
    error: dict[str, Any] | None = None
    error_cause: str | None = None
    inferences: list[dict[str, Any]] | None = None
    content_ids: Sequence[str] = ()
    has_tool_calls: bool = False
    parent: ParentCall | None = None
    answer: CallAnswer | None = None
    charge: AnswerCharge | None = None
    at: datetime

    @property
    def is_in_thread(self) -> bool:
        """Whether its message belongs to a thread."""
        return self.message is not None and self.message.thread is not None

    @property
    def has_mentions(self) -> bool:
        """Whether its message mentions people."""
        return self.message is not None and bool(self.message.mentions)

    @property
    def is_version(self) -> bool:
        """Whether its message replaces another one."""
        return self.message is not None and self.message.version_of is not None


class Finished(msgspec.Struct, frozen=True):
    """The end is committed; its events are numbered from `first_seq`.

    `available` is the payer's remaining balance, if something was charged.
    """

    first_seq: int
    available: Money | None = None


class Fenced(msgspec.Struct, frozen=True):
    """Another process took the response over, or the end is not allowed; nothing was written."""


StartOutcome = StartCommitted | StartRepeated | StartRefused
FinishOutcome = Finished | Fenced


@dataclass(frozen=True, slots=True)
class Failed:
    """The write of this turn raised; the rest of its batch is unaffected."""

    error: Exception = field(repr=False)

"""The values of the two writes of a turn: when it starts, and when it finishes.

The caller makes ids and times; the write returns `seq`. `orm` and `sql` write lists of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from chat_app.log.entries import NewEvent, NewMessage
from payments_app.money import Money
from sessions_app.billing.payers import AnswerPayment
from sessions_app.billing.reservations import AnswerCharge, Reservation
from sessions_app.records import CallAnswer, ParentCall


class NewResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A response that a turn starts, with its event of the log."""

    id: str
    agent_id: str
    request: dict[str, Any]
    event: NewEvent


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """One turn to be started: at most one message and any number of responses."""

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
    # What has to be reserved for responses of agents that have a price.
    reservations: Sequence[Reservation] = ()
    process: str
    lease_until: datetime
    at: datetime
    # The question of an answer that is made again; such a turn has no message of its own.
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
        """The message that its responses answer."""
        return self.message.id if self.message else self.question_id


class StartCommitted(msgspec.Struct, frozen=True):
    """The turn is committed; its events have `first_seq` and the numbers after it.

    `payments` are what is known of the payments of its responses, by response.
    """

    first_seq: int
    payments: Mapping[str, AnswerPayment] = msgspec.field(default_factory=dict)


class StartRepeated(msgspec.Struct, frozen=True):
    """The event had its effect before: these are the responses that it started then."""

    response_ids: list[str]


class StartRefused(msgspec.Struct, frozen=True):
    """Nothing was written; `code` is a UAMP error code."""

    code: str


class Finish(msgspec.Struct, frozen=True, kw_only=True):
    """The end of one response: its terminal event and, where it said something, its message."""

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
        """Whether its message takes the place of another one."""
        return self.message is not None and self.message.version_of is not None


class Finished(msgspec.Struct, frozen=True):
    """The end is committed; its events have `first_seq` and the number after it.

    `available` is what the payer has left, where something was charged.
    """

    first_seq: int
    available: Money | None = None


class Fenced(msgspec.Struct, frozen=True):
    """Another process took the response over, or it may not end so: nothing was written."""


StartOutcome = StartCommitted | StartRepeated | StartRefused
FinishOutcome = Finished | Fenced


@dataclass(frozen=True, slots=True)
class Failed:
    """The write of this turn raised; the others of its batch are not touched."""

    error: Exception = field(repr=False)

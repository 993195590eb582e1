"""The context of a response, and the interface of its listeners in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

import msgspec

import uamp
from agents_app.runtime.agent_run import RunRequest
from agents_app.selectors import AgentSpec
from sessions_app.billing.payers import AnswerPayment
from sessions_app.records import ParentCall
from uamp import ResponseState
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Iterable

    from chat_app.log.history import HistoryMessage


class Listener(Protocol):
    """Receives the frames of responses in this process; called on the event loop, in order."""

    def text(self, response_id: str, offset: int, text: str, frame: tuple[str, str]) -> None:
        """Take text at `offset` in code points, and the parts of its frame (uamp.TextDeltas)."""

    def frame(self, response_id: str, frame: str) -> None:
        """Take another event that is not stored."""

    def event(self, seq: int, event_type: str, response_id: str, frame: str) -> None:
        """Take a durable event; `seq` is its place in the chat's log."""

    def ended(self, response_id: str) -> None:
        """Take note that nothing follows: it ended, or another process runs the response."""


class AnsweredMessage(msgspec.Struct, frozen=True, kw_only=True):
    """The message that a response answers, as it was when the response began."""

    id: str
    role: uamp.Role
    content: str
    content_items: tuple[uamp.ContentItem, ...] = ()

    @classmethod
    def among(cls, messages: Iterable[HistoryMessage], message_id: str | None) -> Self | None:
        """Return the message of an id; None where it is not there."""
        found = next((one for one in messages if one.message_id == message_id), None)
        if found is None or message_id is None:
            return None
        return cls(
            id=message_id,
            role=found.role,
            content=found.content,
            content_items=found.content_items,
        )


class RunContext(msgspec.Struct, frozen=True, kw_only=True):
    """The context of a run. It does not change while the run lives."""

    response_id: str
    chat_id: str
    session_id: str | None
    spec: AgentSpec
    request: RunRequest
    fence: int
    # Whether its frames go to the chat's group from the beginning.
    fan_out: bool
    # The state of its row when this process took it.
    state: ResponseState = ResponseState.IN_PROGRESS
    origin: str = ""
    # The call of another agent that this response answers.
    parent: ParentCall | None = None
    # The asker, the transport, and how the answer is paid where it has a price.
    user_id: int | None = None
    # The name under which limits count the asker (Principal.counted_as).
    counted_as: str = ""
    # The credential that asked, as `Principal.credential`; "" for a sign-in and for a visitor.
    credential: str = ""
    protocol: str = "uamp"
    payment: AnswerPayment | None = None
    # Why the token that its session presented does not pay.
    payment_refused: ev.PaymentError | None = None
    # What its signature says that it answers; None where that is no message of the chat.
    asked: AnsweredMessage | None = None
    # The first version of the answer whose place this one takes.
    replaces: str | None = None
    # The message to whose thread it belongs.
    thread: str | None = None
    # What was used before this process took the response over.
    usage_before: uamp.UsageStats | None = None

    @property
    def was_taken_over(self) -> bool:
        """Whether another process ran it before, and may have begun tools, work and questions."""
        return self.fence > 1

    @property
    def asked_in(self) -> str:
        """The chat in which the work was asked for at first: see ParentCall."""
        return self.chat_id if self.parent is None else self.parent.asked_in

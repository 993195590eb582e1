"""What a run is about, and who hears it in this process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from uamp import ResponseState

if TYPE_CHECKING:
    import uamp
    from agents_app.runtime.agent_run import RunRequest
    from agents_app.selectors import AgentSpec
    from sessions_app.billing.payers import Payment
    from sessions_app.records import ParentCall
    from uamp import events as ev


class Listener(Protocol):
    """Somebody in this process who hears a response."""

    def text(self, response_id: str, offset: int, text: str, frame: str) -> None:
        """Take text, and its delta as a frame; `offset` is in code points."""

    def frame(self, response_id: str, frame: str) -> None:
        """Take another event that is not kept."""

    def event(self, seq: int, event_type: str, response_id: str, frame: str) -> None:
        """Take a durable event."""

    def ended(self, response_id: str) -> None:
        """Hear no more of a response: it ended, or another process goes on with it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunContext:
    """What a run is about."""

    response_id: str
    chat_id: str
    session_id: str | None
    spec: AgentSpec
    request: RunRequest
    fence: int
    fan_out: bool
    # The state of its row when this process took it.
    state: ResponseState = ResponseState.IN_PROGRESS
    origin: str = ""
    # The call of another agent that this response answers.
    parent: ParentCall | None = None
    # Who asked, over which transport, and how the answer is paid where it has a price.
    user_id: int | None = None
    # The name under which limits count who asked (Principal.counted_as).
    counted_as: str = ""
    protocol: str = "uamp"
    payment: Payment | None = None
    # Why the token that its session presented does not pay.
    payment_refused: ev.PaymentError | None = None
    # What was used before this process took the response over.
    usage_before: uamp.UsageStats | None = None

    @property
    def was_taken_over(self) -> bool:
        """Whether another process had it before, and may have begun tools, work and questions."""
        return self.fence > 1

    @property
    def asked_in(self) -> str:
        """The chat in which the work was asked for at first: see ParentCall."""
        return self.chat_id if self.parent is None else self.parent.asked_in

"""The context of a response, and the interface of its local listeners."""

from __future__ import annotations

from typing import Protocol

import msgspec

import uamp
from agents_app.inferences import Inference
from agents_app.runtime.agent_run import RunRequest
from agents_app.selectors import AgentSpec
from sessions_app.billing.payers import AnswerPayment, Purchase
from sessions_app.records import ParentCall
from uamp import ResponseState
from uamp import events as ev


class Listener(Protocol):
    """Receives the frames of responses in this process, in order, on the event loop."""

    def text(self, response_id: str, offset: int, text: str, frame: tuple[str, str]) -> None:
        """Receive text at `offset` in code points, and the parts of its frame (TextDeltas)."""

    def frame(self, response_id: str, frame: str) -> None:
        """Receive any other event that is not stored."""

    def event(self, seq: int, event_type: str, response_id: str, frame: str) -> None:
        """Receive a durable event; `seq` is its position in the chat's log."""

    def ended(self, response_id: str) -> None:
        """Learn that nothing follows: the response has ended, or another process took it over."""


class RunContext(msgspec.Struct, frozen=True, kw_only=True):
    """The context of a run, constant for the run's lifetime."""

    response_id: str
    chat_id: str
    session_id: str | None
    spec: AgentSpec
    request: RunRequest
    fence: int
    # Whether frames go to the chat's group from the start.
    fan_out: bool
    # Whether another process had it first, but handed it over before its agent had begun.
    is_unstarted: bool = False
    # The process that lost it, which must not be offered it again; "" if none did.
    avoids: str = ""
    # The state of the row when this process took it.
    state: ResponseState = ResponseState.IN_PROGRESS
    origin: str = ""
    # The call of another agent that this response answers.
    parent: ParentCall | None = None
    # The asker, the transport and, if the answer has a price, its payment.
    user_id: int | None = None
    # The name that limits count the asker under (Principal.counted_as).
    counted_as: str = ""
    # The asker's credential, as in `Principal.credential`; "" for sign-ins and visitors.
    credential: str = ""
    # Who passed the asker's token on (Principal.actors).
    actors: tuple[tuple[str, int], ...] = ()
    protocol: str = "uamp"
    payment: AnswerPayment | None = None
    # Why the token presented by the session was refused.
    payment_refused: ev.PaymentError | None = None
    # The message of the chat that it answers, and its hash when the response began (`question`).
    question_id: str | None = None
    question_hash: str = ""
    # The first version of the answer that this one replaces.
    replaces: str | None = None
    # The root message of the answer's thread.
    thread: str | None = None
    # Usage from before this process took the response over.
    usage_before: uamp.UsageStats | None = None
    # Its inferences from before.
    inferences_before: tuple[Inference, ...] = ()

    @property
    def has_moved(self) -> bool:
        """Whether another process had it before."""
        return self.fence > 1

    @property
    def was_taken_over(self) -> bool:
        """Whether another process ran it before, and may have started tools, delegated or asked."""
        return self.has_moved and not self.is_unstarted

    @property
    def asked_in(self) -> str:
        """The chat of the original request; see ParentCall."""
        return self.chat_id if self.parent is None else self.parent.asked_in

    @property
    def current_payment(self) -> AnswerPayment:
        """Who pays. If the price was set after the answer started, its asker decides."""
        if self.payment is not None:
            return self.payment
        purchase = Purchase(
            chat_id=self.asked_in,
            agent_id=self.spec.id,
            agent=self.spec.name,
            asset=self.spec.pricing.currency,
            asker_id=self.user_id,
            credential=self.credential,
        )
        return AnswerPayment(source=None, payer_id=self.user_id, purchase=purchase)

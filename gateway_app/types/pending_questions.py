"""A response's pending questions to its client, a person or a payer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from uamp import events as ev

if TYPE_CHECKING:
    from uamp.events import Event

_CALL: Final = "call"
_PAYMENT: Final = "payment"


class PendingQuestions(dict[tuple[str, str], "Event"]):
    """The pending questions of a response, oldest first, kept up to date by `note`.

    They include those of the work that it delegated. The keys are a kind with the id of the call,
    or of the response that has to be paid.
    """

    def __init__(self) -> None:
        super().__init__()
        # The demands for which a payment was sent.
        self._submitted: dict[tuple[str, str], Event] = {}

    def note(self, event: Event) -> bool:
        """Process a server event; return whether it ends the response."""
        if isinstance(event, ev.ResponseDelta):
            # The fast path: most events are deltas.
            return False
        match event:
            case ev.ToolCall() | ev.ToolApprovalRequired():
                self[_CALL, event.call_id] = event
            case ev.ToolCallDone() | ev.ToolApprovalDone():
                self.pop((_CALL, event.call_id), None)
            case ev.PaymentRequired():
                self[_payment_of(event)] = event
            case ev.PaymentAccepted():
                self.pop(_payment_of(event), None)
                self._submitted.pop(_payment_of(event), None)
            case ev.PaymentError() if (key := _payment_of(event)) in self._submitted:
                # The payment was rejected, so the response still waits for one.
                self[key] = self._submitted.pop(key)
            case ev.PaymentError(can_retry=False):
                # The work has ended, and nothing is due.
                self.pop(_payment_of(event), None)
            case ev.ResponseDone() | ev.ResponseError() | ev.ResponseCancelled():
                self.clear()
                return True
        return False

    def note_answer(self, event: Event) -> None:
        """Process a client event, and drop the question that it answers."""
        if isinstance(event, ev.ToolResult | ev.ToolApprove):
            self.pop((_CALL, event.call_id), None)
        elif isinstance(event, ev.PaymentSubmit):
            key = _payment_of(event)
            if (demand := self.pop(key, None)) is not None:
                self._submitted[key] = demand
        elif isinstance(event, ev.ResponseCancel):
            self.pop(_payment_of(event), None)


def _payment_of(
    event: ev.PaymentRequired
    | ev.PaymentAccepted
    | ev.PaymentError
    | ev.PaymentSubmit
    | ev.ResponseCancel,
) -> tuple[str, str]:
    return _PAYMENT, event.response_id or ""

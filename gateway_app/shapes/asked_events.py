"""A response's pending questions to its client, a person or a payer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from uamp import events as ev

if TYPE_CHECKING:
    from uamp.events import Event

# The key of the demand for payment; call ids key the other questions.
_PAYMENT: Final = ""


class AskedEvents(dict[str, "Event"]):
    """The pending questions of a response, oldest first, kept up to date by `note`."""

    # The demand that the last payment was sent for.
    _submitted: Event | None = None

    def note(self, event: Event) -> bool:
        """Process a server event; return whether it ends the response."""
        if isinstance(event, ev.ResponseDelta):
            # The fast path: most events are deltas.
            return False
        match event:
            case ev.ToolCall() | ev.ToolApprovalRequired():
                self[event.call_id] = event
            case ev.ToolCallDone() | ev.ToolApprovalDone():
                self.pop(event.call_id, None)
            case ev.PaymentRequired():
                self[_PAYMENT] = event
            case ev.PaymentAccepted():
                self.pop(_PAYMENT, None)
            case ev.PaymentError() if self._submitted is not None:
                # The payment was rejected, so the response still waits for one.
                self[_PAYMENT] = self._submitted
            case ev.ResponseDone() | ev.ResponseError() | ev.ResponseCancelled():
                self.clear()
                return True
        return False

    def note_answer(self, event: Event) -> None:
        """Process a client event, and drop the question that it answers."""
        if isinstance(event, ev.ToolResult | ev.ToolApprove):
            self.pop(event.call_id, None)
        elif isinstance(event, ev.PaymentSubmit):
            self._submitted = self.pop(_PAYMENT, None)

"""Open questions of a response to its client, a person or a payer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from uamp import events as ev

if TYPE_CHECKING:
    from uamp.events import Event

# The key of a payment among what is asked for; calls have their own ids.
_PAYMENT: Final = ""


class AskedEvents(dict[str, "Event"]):
    """The events that ask for something, the oldest first; `note` follows the response."""

    # The demand that a payment was sent for.
    _submitted: Event | None = None

    def note(self, event: Event) -> bool:
        """Take an event of the server; return whether it is the end of the response."""
        if isinstance(event, ev.ResponseDelta):
            # Most events are.
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
                # The payment was not taken: the response goes on waiting.
                self[_PAYMENT] = self._submitted
            case ev.ResponseDone() | ev.ResponseError() | ev.ResponseCancelled():
                self.clear()
                return True
        return False

    def note_answer(self, event: Event) -> None:
        """Take an event of the client: what was asked for has its answer then."""
        if isinstance(event, ev.ToolResult | ev.ToolApprove):
            self.pop(event.call_id, None)
        elif isinstance(event, ev.PaymentSubmit):
            self._submitted = self.pop(_PAYMENT, None)

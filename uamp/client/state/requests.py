"""The server's requests during an answer: tool calls, payments, approvals.

The server repeats its requests after a lost connection. Finished work is then sent again under the
same ids, and work in progress is not started a second time.
"""

from collections import deque

from uamp.client.errors import ClientError
from uamp.events import (
    Payment,
    PaymentRequired,
    PaymentSubmit,
    ToolApprovalRequired,
    ToolApprove,
    ToolCall,
    ToolResult,
)

ClientRequest = ToolCall | PaymentRequired | ToolApprovalRequired
"""A request of the server: run a tool, pay, or have a person approve a call."""

_PaymentKey = tuple[str | None, float | None, str]


class AnswerRequests:
    """The requests of the running answers by id, until the answers have ended."""

    def __init__(self) -> None:
        self._new: deque[ClientRequest] = deque()
        self._results: dict[str, ToolResult | None] = {}
        self._calls_of: dict[str, list[str]] = {}
        self._payments: dict[_PaymentKey, PaymentSubmit | None] = {}
        self._declined: dict[str, ClientError] = {}
        self._decisions: dict[tuple[str, str], ToolApprove | None] = {}

    def take(self) -> list[ClientRequest]:
        """Return the requests that the client has not started."""
        requests = list(self._new)
        self._new.clear()
        return requests

    def sent(self, event_id: str) -> bool:
        """Return whether a response to a request was sent under this id."""
        return any(
            response is not None and response.event_id == event_id
            for response in (*self._decisions.values(), *self._payments.values())
        )

    def call(self, event: ToolCall) -> tuple[bool, ToolResult | None]:
        """Register a call; return whether it is new, and the result to send again."""
        if event.call_id in self._results:
            return False, self._results[event.call_id]
        self._results[event.call_id] = None
        self._calls_of.setdefault(str(event.response_id), []).append(event.call_id)
        self._new.append(event)
        return True, None

    def finish(self, event: ToolResult) -> bool:
        """Store the result of a call; return False if its answer has ended."""
        if event.call_id not in self._results:
            return False
        self._results[event.call_id] = event
        return True

    def payment(self, event: PaymentRequired) -> None:
        """Register a payment that is due, unless it was requested or declined before."""
        key = _payment_key(event)
        if key not in self._payments and event.response_id not in self._declined:
            self._payments[key] = None
            self._new.append(event)

    def paid(self, required: PaymentRequired, event: PaymentSubmit) -> bool:
        """Store a payment until its answer has ended; return False if it has ended."""
        key = _payment_key(required)
        if key not in self._payments:
            return False
        self._payments[key] = event
        return True

    def declined(self, response_id: str, error: ClientError) -> None:
        """Record why an answer is not paid."""
        self._declined[response_id] = error

    def approval(self, event: ToolApprovalRequired) -> ToolApprove | None:
        """Register a tool call that needs a person's approval; return the decision to resend."""
        key = (event.response_id, event.call_id)
        if key not in self._decisions:
            self._decisions[key] = None
            self._new.append(event)
        return self._decisions[key]

    def decided(self, event: ToolApprove) -> bool:
        """Store a decision until its answer has ended; return False if it has ended."""
        key = (str(event.response_id), event.call_id)
        if key not in self._decisions:
            return False
        self._decisions[key] = event
        return True

    @property
    def payments(self) -> list[PaymentSubmit]:
        """The payments to send again on a new connection."""
        return [payment for payment in self._payments.values() if payment is not None]

    def end(self, response_id: str) -> ClientError | None:
        """Forget an answer that has ended; return the reason if it was not paid."""
        for call_id in self._calls_of.pop(response_id, ()):
            self._results.pop(call_id, None)
        self._payments = {
            key: payment for key, payment in self._payments.items() if key[0] != response_id
        }
        self._decisions = {
            key: decision for key, decision in self._decisions.items() if key[0] != response_id
        }
        return self._declined.pop(response_id, None)


def payment_of(required: PaymentRequired, payment: Payment) -> PaymentSubmit:
    """Return the event that makes a payment."""
    return PaymentSubmit(response_id=required.response_id, payment=payment)


def _payment_key(required: PaymentRequired) -> _PaymentKey:
    requirements = required.requirements
    return required.response_id, requirements.expires_at, requirements.amount

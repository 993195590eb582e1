"""UAMP sessions, responses, tool calls and API keys as rows.

Other rooms use selectors and services, not these classes.
"""

from sessions_app.models.access import ApiKey, Ticket
from sessions_app.models.responses import PaymentRequest, Response, ToolCall, new_response_id
from sessions_app.models.sessions import InboundEvent, PendingInput, Session, new_session_id

__all__ = [
    "ApiKey",
    "InboundEvent",
    "PaymentRequest",
    "PendingInput",
    "Response",
    "Session",
    "Ticket",
    "ToolCall",
    "new_response_id",
    "new_session_id",
]

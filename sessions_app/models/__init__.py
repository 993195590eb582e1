"""UAMP sessions, responses, tool calls, webhooks and API keys as rows.

Other apps use selectors and services, not these classes.
"""

from sessions_app.models.access import (
    KEY_CREDENTIAL,
    ApiKey,
    ExternalIdentity,
    Ticket,
    TicketKind,
    all_scopes,
)
from sessions_app.models.beats import ProcessBeat, ProcessKind
from sessions_app.models.follow_ups import FollowUp
from sessions_app.models.hours import AnswerHour, ChargeHour, CountedHour
from sessions_app.models.http_connections import (
    HttpConnection,
    UnansweredRequest,
    new_connection_id,
)
from sessions_app.models.queue import QueuedTurn
from sessions_app.models.responses import (
    PaymentRequest,
    Response,
    ToolCall,
    ToolCallKind,
    new_response_id,
)
from sessions_app.models.sessions import (
    InboundEvent,
    PendingInput,
    Session,
    SessionTransport,
    new_session_id,
)
from sessions_app.models.webhooks import Webhook, WebhookDelivery

__all__ = [
    "KEY_CREDENTIAL",
    "AnswerHour",
    "ApiKey",
    "ChargeHour",
    "CountedHour",
    "ExternalIdentity",
    "FollowUp",
    "HttpConnection",
    "InboundEvent",
    "PaymentRequest",
    "PendingInput",
    "ProcessBeat",
    "ProcessKind",
    "QueuedTurn",
    "Response",
    "Session",
    "SessionTransport",
    "Ticket",
    "TicketKind",
    "ToolCall",
    "ToolCallKind",
    "UnansweredRequest",
    "Webhook",
    "WebhookDelivery",
    "all_scopes",
    "new_connection_id",
    "new_response_id",
    "new_session_id",
]

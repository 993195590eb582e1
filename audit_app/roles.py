"""The roles of operators: the groups of a new installation, and the rights of each.

`sessions_app/migrations/0002_roles.py` creates them from a list of its own, since migrations import
no code; a test compares the groups with this list. An update never changes an existing group, since
operators may have changed it (docs/admin.md).

`view_x` of a model shows its facts. The words of messages, answers and tools are shown to those who
may also view contents (`chat_app.view_content`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_CHATS: Final = (
    "chat_app.view_chat",
    "chat_app.view_chatorigin",
    "chat_app.view_chatevent",
    "chat_app.view_contentuse",
    "chat_app.view_message",
    "chat_app.view_messagerevision",
    "chat_app.view_messagedeletion",
    "chat_app.view_messagethread",
    "chat_app.view_messagemention",
    "chat_app.view_reaction",
    "chat_app.view_pin",
    "chat_app.view_threadfollower",
    "chat_app.view_participant",
    "chat_app.view_agentmention",
    "chat_app.view_readreceipt",
    "chat_app.view_profile",
    "chat_app.view_presence",
    "chat_app.view_voicecall",
    "chat_app.view_voicecallmember",
    "chat_app.view_sharelink",
    "chat_app.view_invitelink",
    "chat_app.view_linkcard",
)
_TURNS: Final = (
    "sessions_app.view_session",
    "sessions_app.view_response",
    "sessions_app.view_toolcall",
    "sessions_app.view_followup",
    "sessions_app.view_queuedturn",
    "sessions_app.view_webhook",
    "sessions_app.view_webhookdelivery",
)
_INTERNALS: Final = (
    "sessions_app.view_pendinginput",
    "sessions_app.view_inboundevent",
    "sessions_app.view_ticket",
    "sessions_app.view_httpconnection",
    "sessions_app.view_unansweredrequest",
)
_LEDGER: Final = (
    "payments_app.view_account",
    "payments_app.view_transfer",
    "payments_app.view_entry",
    "payments_app.view_hold",
    "payments_app.view_receipt",
    "payments_app.view_ledgerstate",
    "payments_app.view_topuprequest",
    "payments_app.view_paymenttoken",
    "payments_app.view_spendinglimit",
    "payments_app.view_approval",
    "payments_app.view_idempotency",
)
_PEOPLE: Final = ("auth.view_user", "agents_app.view_agent")
_RUNNING: Final = (
    "sessions_app.end_session",
    "sessions_app.cancel_response",
    "sessions_app.requeue_tool",
)
_LINKS: Final = ("chat_app.change_sharelink", "chat_app.change_invitelink")
_SIGN_IN: Final = ("axes.view_accessattempt", "axes.view_accesslog", "axes.view_accessfailurelog")

ROLES: Final[Mapping[str, tuple[str, ...]]] = {
    "Support": (*_CHATS, *_TURNS, *_PEOPLE, *_RUNNING, *_LINKS),
    "Finance": (
        "chat_app.view_chat",
        "chat_app.view_participant",
        "sessions_app.view_response",
        "sessions_app.view_paymentrequest",
        *_PEOPLE,
        *_LEDGER,
        "payments_app.refund_transfer",
        "payments_app.void_hold",
        "payments_app.adjust_account",
        "payments_app.grant_topup",
        "payments_app.unfreeze_ledger",
    ),
    "Operator": (
        *_CHATS,
        *_TURNS,
        "sessions_app.view_paymentrequest",
        *_INTERNALS,
        *_PEOPLE,
        *_RUNNING,
        *_LINKS,
        *_SIGN_IN,
        "axes.delete_accessattempt",
        "payments_app.view_ledgerstate",
        "sessions_app.view_apikey",
        "sessions_app.add_apikey",
        "sessions_app.revoke_key",
        "sessions_app.rotate_key",
        "agents_app.add_agent",
        "agents_app.change_agent",
        "agents_app.delete_agent",
        "agents_app.try_agent",
        "agents_app.view_toolsource",
        "agents_app.add_toolsource",
        "agents_app.change_toolsource",
        "agents_app.delete_toolsource",
        "audit_app.view_auditrecord",
    ),
    "Auditor": (
        *_CHATS,
        "chat_app.view_content",
        "chat_app.view_transcript",
        "chat_app.view_sharedstate",
        "chat_app.export_content",
        *_TURNS,
        "sessions_app.view_paymentrequest",
        *_INTERNALS,
        "sessions_app.view_apikey",
        *_PEOPLE,
        "auth.view_group",
        *_LEDGER,
        "agents_app.view_toolsource",
        *_SIGN_IN,
        "audit_app.view_auditrecord",
    ),
    "Developer": (
        "chat_app.view_chat",
        "chat_app.view_participant",
        "chat_app.view_message",
        "chat_app.view_chatevent",
        *_TURNS,
        *_INTERNALS,
        "agents_app.view_agent",
        "agents_app.add_agent",
        "agents_app.change_agent",
        "agents_app.try_agent",
        "agents_app.view_toolsource",
    ),
}

"""The one way to write to the audit."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from audit_app.models import AuditRecord

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
    from django.db.models import Model

DETAIL_CHARS = 500
"""The most characters stored of a detail or a reason."""


class AuditAction(StrEnum):
    """The actions that are recorded; a new one needs a member here, not a migration."""

    TRANSCRIPT_READ = "transcript.read"
    CONTENT_READ = "content.read"
    CONTENT_SEARCHED = "content.searched"
    CONTENT_EXPORTED = "content.exported"
    STATEMENT_EXPORTED = "statement.exported"
    CHARGES_EXPORTED = "charges.exported"
    AUDIT_EXPORTED = "audit.exported"
    SESSION_ENDED = "session.ended"
    RESPONSE_CANCELLED = "response.cancelled"
    TOOL_REQUEUED = "tool.requeued"
    TOOL_CANCELLED = "tool.cancelled"
    TRANSFER_REFUNDED = "transfer.refunded"
    ANSWER_REFUNDED = "answer.refunded"
    HOLD_VOIDED = "hold.voided"
    BALANCE_ADJUSTED = "balance.adjusted"
    TOP_UP_DECIDED = "top_up.decided"
    LEDGER_UNFROZEN = "ledger.unfrozen"
    KEY_MADE = "key.made"
    KEY_REVOKED = "key.revoked"
    KEY_ROTATED = "key.rotated"
    WEBHOOK_MADE = "webhook.made"
    WEBHOOK_CHANGED = "webhook.changed"
    WEBHOOK_DELETED = "webhook.deleted"
    WEBHOOK_ROTATED = "webhook.rotated"
    TOKEN_DELEGATED = "token.delegated"  # noqa: S105 the name of an action
    SECOND_FACTOR_ADDED = "second_factor.added"
    SECOND_FACTOR_REMOVED = "second_factor.removed"
    RECOVERY_CODE_USED = "recovery_code.used"
    EMAIL_CONFIRMED = "email.confirmed"
    EMAIL_REMOVED = "email.removed"
    PASSWORD_RESET = "password.reset"  # noqa: S105 the name of an action
    CHAT_DELETED = "chat.deleted"
    PERSON_MADE = "person.made"
    GROUPS_CHANGED = "groups.changed"
    PERSON_ERASED = "person.erased"
    MESSAGES_ERASED = "messages.erased"
    PERSON_EXPORTED = "person.exported"
    AGENT_PROBED = "agent.probed"
    AGENT_DISABLED = "agent.disabled"
    AGENT_ENABLED = "agent.enabled"
    DAEMON_DISCONNECTED = "daemon.disconnected"
    TOOLS_REFRESHED = "tools.refreshed"
    LINK_REVOKED = "link.revoked"
    PROFILE_CLEARED = "profile.cleared"
    ROW_ADDED = "row.added"
    ROW_CHANGED = "row.changed"
    ROW_DELETED = "row.deleted"


def record(
    actor: AbstractBaseUser | AnonymousUser | None,
    action: AuditAction,
    subject: Model | tuple[str, str] | None,
    *,
    reason: str = "",
    address: str = "",
    detail: str = "",
) -> None:
    """Write one row of the audit, in the caller's transaction.

    `subject` is the row acted on, or its (kind, key) if it has no model here; `address` is the
    client's IP address, or empty. Long texts are cut at DETAIL_CHARS.
    """
    kind, object_id = "", ""
    if isinstance(subject, tuple):
        kind, object_id = subject
    elif subject is not None:
        kind, object_id = subject._meta.label_lower, str(subject.pk)  # noqa: SLF001 documented API
    AuditRecord.objects.create(
        actor_id=actor.pk if actor is not None else None,
        action=action,
        kind=kind,
        object_id=object_id[:80],
        detail=detail[:DETAIL_CHARS],
        reason=reason[:DETAIL_CHARS],
        address=address[:45],
    )

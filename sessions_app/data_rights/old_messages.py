"""Erasure of messages older than UAMP_MESSAGE_DAYS, a batch at a time. Synchronous.

Copies of a message elsewhere on the server are erased with it: the conversation sent with an
answer, the answer's output, and the texts of its tool calls. The ledger, the figures and the log
entries remain.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from audit_app.record import AuditAction, record
from chat_app.conversation import old_messages
from sessions_app.models import FollowUp, Response, ToolCall

if TYPE_CHECKING:
    from collections.abc import Collection


def erase_old(limit: int) -> int:
    """Process one batch of old entries across all logs; return how many there were.

    Each chat is a transaction with one audit record. Several processes may run this concurrently.
    """
    days = settings.UAMP_MESSAGE_DAYS
    if not days:
        return 0
    entries = old_messages.next_entries(timezone.now() - timedelta(days=days), limit=limit)
    for chat_id, places in old_messages.by_chat(entries):
        with transaction.atomic():
            erased = old_messages.erase_entries(chat_id, places)
            _erase_answers(erased.response_ids)
            if erased.messages:
                record(
                    None,
                    AuditAction.MESSAGES_ERASED,
                    ("chat_app.chat", chat_id),
                    reason=f"older than {days} days (UAMP_MESSAGE_DAYS)",
                    detail=f"{erased.messages} messages, until {places[-1]} of the log",
                )
    if entries:
        old_messages.passed(entries)
    return len(entries)


def _erase_answers(response_ids: Collection[str]) -> None:
    ended = Response.objects.filter(pk__in=response_ids, finished_at__isnull=False)
    ended.update(request={}, text="", output=[])
    ToolCall.objects.filter(response__in=ended).update(
        arguments="{}", result="", content_items=[], progress=None
    )
    FollowUp.objects.filter(response__in=ended).delete()

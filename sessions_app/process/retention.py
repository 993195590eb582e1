"""Deletes rows that have no use any more, a batch at a time (docs/settings.md, "How long").

Client events whose repetition is recognised no longer, inputs that no `response.create` took,
private chats of visitors that no client can open again, tickets and sessions of browsers that
have expired. People's chats, answers and everything of the ledger are kept.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.contrib.sessions.models import Session as BrowserSession
from django.db.models import Exists, OuterRef
from django.utils import timezone

from chat_app.log import retention as chats
from sessions_app.models import InboundEvent, PendingInput, Response, Session, Ticket

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet

BATCH: Final = 1000
CHATS: Final = 50
REPEAT_DAYS_MIN: Final = 2
"""An answer may wait for a person for a day (UAMP_APPROVAL_SECONDS); its event is kept longer."""


def sweep(*, limit: int = BATCH) -> int:
    """Delete one batch of each kind; return how many rows of these kinds were deleted.

    The oldest are read first, by the key in the order of which they were written, so that a batch
    costs the same however many rows there are. Several processes may do it at once.
    """
    now = timezone.now()
    forgotten = now - timedelta(days=max(settings.UAMP_REPEAT_DAYS, REPEAT_DAYS_MIN))
    deleted = _delete_oldest(InboundEvent.objects.all(), forgotten, limit)
    deleted += _delete_oldest(PendingInput.objects.all(), forgotten, limit)
    expired = BrowserSession.objects.filter(expire_date__lt=now).order_by("expire_date")
    deleted += _delete(
        BrowserSession.objects.all(), list(expired.values_list("pk", flat=True)[:limit])
    )
    tickets = Ticket.objects.filter(expires_at__lt=now).order_by("expires_at")
    deleted += _delete(Ticket.objects.all(), list(tickets.values_list("pk", flat=True)[:limit]))
    if settings.UAMP_VISITOR_DAYS:
        deleted += _delete_visits(now - timedelta(days=settings.UAMP_VISITOR_DAYS))
    return deleted


def _delete_oldest(
    rows: QuerySet[InboundEvent] | QuerySet[PendingInput], before: datetime, limit: int
) -> int:
    oldest = rows.order_by("pk").values_list("pk", "created_at")[:limit]
    return _delete(rows, [pk for pk, created_at in oldest if created_at < before])


def _delete(rows: QuerySet[Any], pks: list[Any]) -> int:
    return rows.filter(pk__in=pks).delete()[0] if pks else 0


def _delete_visits(before: datetime) -> int:
    """Delete visitors' private chats whose sessions are closed: only their ids led there."""
    sessions = Session.objects.filter(chat=OuterRef("pk"))
    in_use = Exists(sessions.filter(status__in=Session.OPEN)) | Exists(
        sessions.filter(user__isnull=False)
    )
    running = Exists(Response.objects.filter(chat=OuterRef("pk"), finished_at__isnull=True))
    found = chats.visits(before).exclude(in_use).exclude(running)
    return chats.delete_chats(list(found.values_list("pk", flat=True)[:CHATS]))

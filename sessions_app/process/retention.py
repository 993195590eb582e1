"""Deletion of expired rows, a batch at a time (docs/settings.md, "How long").

Deleted are client events too old to be recognised as repeats, inputs never used by a
`response.create`, old webhook deliveries, incomplete uploads, visitors' private chats that no
client can open again, private chats of ephemeral sessions, expired tickets and browser sessions,
and unused HTTP connections. People's other chats are kept. So is everything in the ledger and what
it was charged for: the row of a paid response, without its text.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from django.conf import settings
from django.contrib.sessions.models import Session as BrowserSession
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from chat_app import repeats
from chat_app.contents import uploads
from chat_app.conversation import deletion, taken_files
from chat_app.link_cards import cards as link_cards
from chat_app.log import retention as chats
from chat_app.push import deliveries as pushes
from payments_app import selectors as ledger
from sessions_app.access.principal import PrincipalKind
from sessions_app.models import (
    FollowUp,
    HttpConnection,
    InboundEvent,
    PendingInput,
    Response,
    Session,
    Ticket,
    ToolCall,
    Webhook,
    WebhookDelivery,
)
from uamp import SessionState

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from django.db.models import QuerySet

    _Aged: TypeAlias = QuerySet[InboundEvent] | QuerySet[PendingInput] | QuerySet[WebhookDelivery]

BATCH: Final = 1000
CHATS: Final = 50
CONNECTION_HOURS: Final = 24
"""An HTTP connection without requests for this long is deleted."""
REPEAT_DAYS_MIN: Final = 2
"""An answer may wait a day for a person (UAMP_APPROVAL_SECONDS), so keep its event longer."""


_others: Final[list[Callable[[int], int]]] = []
_left_files: Final = taken_files.LeftFiles()


def also_delete(delete_old: Callable[[int], int]) -> None:
    """Let `sweep` also delete old rows of a higher-level app.

    The function receives the batch size and returns the number of deleted rows.
    """
    if delete_old not in _others:
        _others.append(delete_old)


def sweep(*, limit: int = BATCH) -> int:
    """Delete one batch of each kind; return the number of deleted rows.

    Rows are read oldest first, by the key that follows the order of writing, so that a batch costs
    the same however many rows there are. Several processes may run it concurrently.
    """
    now = timezone.now()
    forgotten = now - timedelta(days=max(settings.UAMP_REPEAT_DAYS, REPEAT_DAYS_MIN))
    deleted = _delete_oldest(InboundEvent.objects.all(), forgotten, limit)
    deleted += _delete_oldest(PendingInput.objects.all(), forgotten, limit)
    deleted += _delete_oldest(WebhookDelivery.objects.all(), forgotten, -(-limit // 4))
    deleted += repeats.forget(forgotten, limit=limit)
    deleted += uploads.forget_expired(limit=-(-limit // 4))
    deleted += link_cards.forget_old(now, limit=limit)
    deleted += pushes.forget_old(now, limit=limit)
    deleted += deletion.delete_left_copies(-(-limit // 10))
    deleted += _left_files.withdraw(limit)
    deleted += sum(delete_old(limit) for delete_old in _others)
    expired = BrowserSession.objects.filter(expire_date__lt=now).order_by("expire_date")
    deleted += _delete(
        BrowserSession.objects.all(), list(expired.values_list("pk", flat=True)[:limit])
    )
    tickets = Ticket.objects.filter(expires_at__lt=now).order_by("expires_at")
    deleted += _delete(Ticket.objects.all(), list(tickets.values_list("pk", flat=True)[:limit]))
    unused = HttpConnection.objects.filter(
        seen_at__lt=now - timedelta(hours=CONNECTION_HOURS)
    ).order_by("seen_at")
    deleted += _delete(
        HttpConnection.objects.all(), list(unused.values_list("pk", flat=True)[:limit])
    )
    if settings.UAMP_EPHEMERAL_HOURS:
        deleted += _delete_ephemeral(now - timedelta(hours=settings.UAMP_EPHEMERAL_HOURS))
    if settings.UAMP_VISITOR_DAYS:
        deleted += _delete_visits(now - timedelta(days=settings.UAMP_VISITOR_DAYS))
    return deleted


def _delete_oldest(rows: _Aged, before: datetime, limit: int) -> int:
    oldest = rows.order_by("pk").values_list("pk", "created_at")[:limit]
    return _delete(rows, [pk for pk, created_at in oldest if created_at < before])


def _delete(rows: QuerySet[Any], pks: list[Any]) -> int:
    return rows.filter(pk__in=pks).delete()[0] if pks else 0


def _delete_visits(before: datetime) -> int:
    """Delete visitors' private chats whose sessions are closed, which makes them unreachable."""
    sessions = Session.objects.filter(chat=OuterRef("pk"))
    in_use = Exists(sessions.filter(status__in=Session.OPEN)) | Exists(
        sessions.exclude(principal__startswith=PrincipalKind.VISITOR.prefix)
    )
    running = Exists(Response.objects.filter(chat=OuterRef("pk"), finished_at__isnull=True))
    rows = chats.visits(before).exclude(in_use).exclude(running)
    return delete_private(rows)


def _delete_ephemeral(before: datetime) -> int:
    """Delete the private chats of ephemeral sessions that have not been used since `before`.

    Delegated work is deleted after the answer that it was for. Chats with a permanent session or a
    pool are kept.
    """
    sessions = Session.objects.filter(chat=OuterRef("pk"))
    in_use = sessions.filter(
        Q(ephemeral=False)
        | Q(status=SessionState.ACTIVE)
        | Q(seen_at__gte=before)
        | Q(parent_call__isnull=False)
    )
    running = Response.objects.filter(chat=OuterRef("pk"), finished_at__isnull=True)
    old = Session.objects.filter(ephemeral=True, seen_at__lt=before).values("chat_id")
    rows = chats.unshared(before).filter(pk__in=old).exclude(Exists(in_use) | Exists(running))
    return delete_private(rows)


def delete_private(rows: QuerySet[Any], *, keeps_pools: bool = True) -> int:
    """Delete a batch of chats with their sessions and answers; return how many.

    If something was paid in a chat, its row and those of the paid answers stay, with their usage
    but without text, since the ledger refers to them. The row of a chat with a pool stays too; with
    `keeps_pools`, so does all else of it.
    """
    with transaction.atomic():
        locked = list(rows.select_for_update(of=("self",)).values_list("pk", flat=True)[:CHATS])
        # From here on, writes by other processes before the lock are visible.
        chosen = set(rows.filter(pk__in=locked).values_list("pk", flat=True))
        pools = ledger.with_pool(chosen)
        if keeps_pools:
            chosen -= pools
        answers = dict(Response.objects.filter(chat_id__in=chosen).values_list("pk", "chat_id"))
        paid = ledger.with_money(answers)
        charged = {answers[pk] for pk in paid} | (pools & chosen)
        Response.objects.filter(chat_id__in=charged).exclude(pk__in=paid).delete()
        ToolCall.objects.filter(response_id__in=paid).delete()
        FollowUp.objects.filter(response_id__in=paid).delete()
        Webhook.objects.filter(response_id__in=paid).delete()
        Webhook.objects.filter(chat_id__in=charged).delete()
        Response.objects.filter(pk__in=paid).update(text="", output=[], request={})
        Session.objects.filter(chat_id__in=charged).delete()
        deletion.finish_copies(chosen)
        taken_files.finish_taken(chosen)
        chats.empty_chats(charged)
        return len(charged) + chats.delete_chats(sorted(chosen - charged))

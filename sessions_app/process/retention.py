"""Deletes expired rows, a batch at a time (docs/settings.md, "How long").

Client events whose repetition is recognised no longer, inputs that no `response.create` took,
what was sent to webhooks, files of which not all parts arrived,
private chats of visitors that no client can open again, private chats of ephemeral sessions,
tickets and sessions of browsers that have expired, connections over HTTP that are not used. Other
chats of people are kept. So is everything of the ledger, with what it was charged for: the row of a
paid response, without its words.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from django.conf import settings
from django.contrib.sessions.models import Session as BrowserSession
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from chat_app.contents import uploads
from chat_app.conversation import deletion
from chat_app.link_cards import cards as link_cards
from chat_app.log import retention as chats
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
"""A connection over several HTTP requests that gets none for so long is deleted."""
REPEAT_DAYS_MIN: Final = 2
"""An answer may wait for a person for a day (UAMP_APPROVAL_SECONDS); its event is kept longer."""


_others: Final[list[Callable[[int], int]]] = []


def also_delete(delete_old: Callable[[int], int]) -> None:
    """Let `sweep` delete old rows of an app that stands above this one.

    The function is given the size of a batch and returns how many rows it deleted.
    """
    if delete_old not in _others:
        _others.append(delete_old)


def sweep(*, limit: int = BATCH) -> int:
    """Delete one batch of each kind; return how many rows of these kinds were deleted.

    The oldest are read first, by the key in the order of which they were written, so that a batch
    costs the same however many rows there are. Several processes may do it at once.
    """
    now = timezone.now()
    forgotten = now - timedelta(days=max(settings.UAMP_REPEAT_DAYS, REPEAT_DAYS_MIN))
    deleted = _delete_oldest(InboundEvent.objects.all(), forgotten, limit)
    deleted += _delete_oldest(PendingInput.objects.all(), forgotten, limit)
    deleted += _delete_oldest(WebhookDelivery.objects.all(), forgotten, -(-limit // 4))
    deleted += uploads.forget_expired(limit=-(-limit // 4))
    deleted += link_cards.forget_old(now, limit=limit)
    deleted += deletion.delete_left_copies(-(-limit // 10))
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
    """Delete visitors' private chats whose sessions are closed: only their ids led there."""
    sessions = Session.objects.filter(chat=OuterRef("pk"))
    in_use = Exists(sessions.filter(status__in=Session.OPEN)) | Exists(
        sessions.exclude(principal__startswith=PrincipalKind.VISITOR.prefix)
    )
    running = Exists(Response.objects.filter(chat=OuterRef("pk"), finished_at__isnull=True))
    found = chats.visits(before).exclude(in_use).exclude(running)
    return delete_private(found)


def _delete_ephemeral(before: datetime) -> int:
    """Delete the private chats of ephemeral sessions; work for an answer goes after the answer.

    A chat in which a session was opened by its id, or that has a pool, is none of these.
    """
    sessions = Session.objects.filter(chat=OuterRef("pk"))
    kept = sessions.filter(
        Q(ephemeral=False)
        | Q(status=SessionState.ACTIVE)
        | Q(seen_at__gte=before)
        | Q(parent_call__isnull=False)
    )
    running = Response.objects.filter(chat=OuterRef("pk"), finished_at__isnull=True)
    old = Session.objects.filter(ephemeral=True, seen_at__lt=before).values("chat_id")
    found = chats.unshared(before).filter(pk__in=old).exclude(Exists(kept) | Exists(running))
    return delete_private(found)


def delete_private(found: QuerySet[Any]) -> int:
    """Delete a batch of chats with their sessions and answers; return how many.

    Of a chat in which something was paid, its row and the rows of the paid answers stay, with what
    was used and without a word: the ledger names them.
    """
    with transaction.atomic():
        locked = list(found.select_for_update(of=("self",)).values_list("pk", flat=True)[:CHATS])
        # What another process wrote before the lock is seen from here on.
        chosen = set(found.filter(pk__in=locked).values_list("pk", flat=True))
        chosen -= ledger.with_pool(chosen)
        answers = dict(Response.objects.filter(chat_id__in=chosen).values_list("pk", "chat_id"))
        paid = ledger.with_money(answers)
        charged = {answers[pk] for pk in paid}
        Response.objects.filter(chat_id__in=charged).exclude(pk__in=paid).delete()
        ToolCall.objects.filter(response_id__in=paid).delete()
        FollowUp.objects.filter(response_id__in=paid).delete()
        Webhook.objects.filter(response_id__in=paid).delete()
        Webhook.objects.filter(chat_id__in=charged).delete()
        Response.objects.filter(pk__in=paid).update(text="", output=[], request={})
        Session.objects.filter(chat_id__in=charged).delete()
        chats.empty_chats(charged)
        return len(charged) + chats.delete_chats(sorted(chosen - charged))

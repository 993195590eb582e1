"""Detection and queueing of new chat log entries for webhooks.

The log is the queue, and a webhook's `queued_seq` is the position read so far. One of the processes
advances it, in the transaction that writes the deliveries. Webhooks are checked while `look_at` is
set: `wake` sets it if a chat was written to recently, `wake_all` catches any that were missed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import F, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from chat_app.log.history import chat_heads
from chat_app.log.log_pages import places_after
from chat_app.members.chat_lists import changed_since
from sessions_app import database
from sessions_app.access import rates
from sessions_app.models import Webhook, WebhookDelivery
from sessions_app.webhooks.deliveries import disable, refusal
from sessions_app.webhooks.payment_events import log_types, with_payments
from sessions_app.webhooks.response_changes import BATCH_SIZE, MAX_PER_PERSON, postpone_all

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from django.db.models import QuerySet
    from django.db.models.functions import Now

LOOKS_BACK_SECONDS: Final = 30
"""How far back to look for chats that were written to, allowing for slow writes."""
WOKEN_AT_ONCE: Final = 1000
ENTRIES: Final = 20
"""The most log entries queued for a webhook at a time."""
UNSENT: Final = 50
"""With this many unsent deliveries, further entries of a webhook wait in the log."""
PAUSE_SECONDS: Final = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class DueEntries:
    """The next deliveries of a webhook as (seq, type), up to log position `until`."""

    webhook: int
    counted_as: str
    queued_seq: int
    until: int
    is_all: bool
    entries: Sequence[tuple[int, str]]


async def queue_entries() -> None:
    """Queue the deliveries that are due for webhooks of chats."""
    refused: set[str] = set()
    for due in await database.run(find_entries):
        if due.counted_as in refused:
            continue
        for seq, _ in due.entries:
            quota = await rates.limiter().take("webhooks", due.counted_as)
            if not quota.allowed:
                refused.add(due.counted_as)
                # An entry and its payment are queued together.
                count = sum(earlier < seq for earlier, _ in due.entries)
                await database.run(queue, due, until=seq - 1, count=count)
                await database.run(postpone_all, due.counted_as, quota.retry_after)
                break
        else:
            await database.run(queue, due, until=due.until, count=len(due.entries))


def due(now: datetime | Now) -> QuerySet[Webhook]:
    """Return the webhooks whose chat may have new entries."""
    return Webhook.objects.filter(chat__isnull=False, look_at__lte=now)


def find_entries() -> list[DueEntries]:
    """Return entries to queue, for at most BATCH_SIZE webhooks and MAX_PER_PERSON per person."""
    wake()
    now = timezone.now()
    if not due(now).exists():
        return []
    place = Window(RowNumber(), partition_by="counted_as", order_by="look_at")
    first = (
        due(now)
        .annotate(place=place)
        .filter(place__lte=MAX_PER_PERSON)
        .order_by("place", "look_at")
    )
    chosen = Webhook.objects.filter(pk__in=list(first.values_list("pk", flat=True)[:BATCH_SIZE]))
    rows = list(chosen.select_related("user").order_by("look_at"))
    heads = chat_heads(row.chat_id for row in rows if row.chat_id is not None)
    entries = []
    for row in rows:
        if (reason := refusal(row)) is not None:
            disable(row.pk, reason)
        elif _unsent(row) >= UNSENT:
            later = now + timedelta(seconds=PAUSE_SECONDS)
            Webhook.objects.filter(pk=row.pk, look_at__isnull=False).update(look_at=later)
        else:
            entries.append(_due_entries(row, heads.get(row.chat_id or "", 0)))
    return entries


def _unsent(row: Webhook) -> int:
    return WebhookDelivery.objects.filter(webhook=row, finished_at__isnull=True).count()


def _due_entries(row: Webhook, head: int) -> DueEntries:
    places, until = places_after(
        row.chat_id or "", row.queued_seq, head=head, types=log_types(row.types), limit=ENTRIES
    )
    return DueEntries(
        webhook=row.pk,
        counted_as=row.counted_as,
        queued_seq=row.queued_seq,
        until=until,
        is_all=until == head,
        entries=with_payments(places, row.types),
    )


@transaction.atomic
def queue(due: DueEntries, *, until: int, count: int) -> bool:
    """Queue the first `count` entries, up to `until`; return whether this call queued them."""
    is_all = due.is_all and until == due.until
    moved = Webhook.objects.filter(
        pk=due.webhook, queued_seq=due.queued_seq, look_at__isnull=False
    ).update(queued_seq=until, sent=F("sent") + count, look_at=None if is_all else timezone.now())
    if not moved:
        return False
    last = Webhook.objects.values_list("sent", flat=True).get(pk=due.webhook)
    WebhookDelivery.objects.bulk_create(
        WebhookDelivery(webhook_id=due.webhook, number=number, state=event_type, seq=seq)
        for number, (seq, event_type) in enumerate(due.entries[:count], last - count + 1)
    )
    return True


def wake() -> int:
    """Make webhooks due whose chats were recently written to; return how many."""
    return _wake(asleep(timezone.now()))


def asleep(now: datetime | Now) -> QuerySet[Webhook]:
    """Return the webhooks to wake: those whose chats were recently written to."""
    since: Any = now - timedelta(seconds=LOOKS_BACK_SECONDS)
    return _behind(Webhook.objects.filter(chat__in=changed_since(since)))


def wake_all() -> int:
    """Make all webhooks due that are behind, whenever their chats were written to."""
    return _wake(_behind(Webhook.objects.all()))


def _behind(webhooks: QuerySet[Webhook]) -> QuerySet[Webhook]:
    return webhooks.filter(
        chat__isnull=False,
        disabled_at__isnull=True,
        look_at__isnull=True,
        chat__last_seq__gt=F("queued_seq"),
    )


def _wake(behind: QuerySet[Webhook]) -> int:
    ids = list(behind.values_list("pk", flat=True)[:WOKEN_AT_ONCE])
    if not ids:
        return 0
    idle = Webhook.objects.filter(pk__in=ids, look_at__isnull=True, disabled_at__isnull=True)
    return idle.update(look_at=timezone.now())

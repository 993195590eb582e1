"""Detection and queueing of response states that webhooks have not been sent yet.

Rows are compared, so that a state is seen after its commit, whichever process wrote it. States that
come and go between two rounds are not sent. Several processes may do this concurrently: one of them
moves `seen`, in the transaction that queues the delivery.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import F, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from sessions_app import database
from sessions_app.access import rates
from sessions_app.access.principal import Principal
from sessions_app.models import Webhook, WebhookDelivery
from sessions_app.webhooks import formats
from sessions_app.webhooks.deliveries import DEACTIVATED, TASK_UNAVAILABLE, disable, is_unwelcome
from sessions_app.webhooks.formats import ChangedResponse
from sessions_app.webhooks.states import ENDED, with_state

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet
    from django.db.models.functions import Now

logger = logging.getLogger(__name__)

BODY_BYTES: Final = 1024 * 1024
BATCH_SIZE: Final = 50
# The most of them for one person or one address's visitors, so that the webhooks of a person with
# thousands do not hold up others.
MAX_PER_PERSON: Final = 10
# The minimum delay before rechecking webhooks beyond UAMP_WEBHOOKS_PER_MINUTE.
PAUSE_SECONDS: Final = 10
# The delay before rechecking a webhook whose body could not be built. One that keeps failing is
# deleted with its response.
RETRY_SECONDS: Final = 30


@dataclass(frozen=True, kw_only=True, slots=True)
class DueState:
    """A webhook whose response has changed state since the last delivery."""

    webhook: int
    read_at: datetime
    seen: str
    state: str
    format: str
    counted_as: str
    response: ChangedResponse


async def queue_changes() -> None:
    """Queue the states that are due, at most BATCH_SIZE."""
    refused: set[str] = set()
    for change in await database.run(find_changes):
        if change.counted_as in refused:
            continue
        quota = await rates.limiter().take("webhooks", change.counted_as)
        if not quota.allowed:
            refused.add(change.counted_as)
            await database.run(postpone_all, change.counted_as, quota.retry_after)
            continue
        webhook_format = formats.find(change.format)
        if webhook_format is None:
            await database.run(postpone, change, RETRY_SECONDS)
            continue
        try:
            body = await webhook_format.render(change.response)
        except Exception:
            # One response that cannot be rendered must not hold up the others.
            logger.exception("the state of %s was not rendered", change.response.response_id)
            await database.run(postpone, change, RETRY_SECONDS)
            continue
        if body is None:
            await database.run(disable, change.webhook, TASK_UNAVAILABLE)
        else:
            await database.run(queue, change, body.decode())


def due(now: datetime | Now) -> QuerySet[Webhook]:
    """Return the webhooks whose response may have changed state."""
    return Webhook.objects.filter(response__isnull=False, look_at__lte=now)


def find_changes() -> list[DueState]:
    """Return webhooks whose response has changed state since the last delivery.

    At most BATCH_SIZE in total, and MAX_PER_PERSON per person.
    """
    now = timezone.now()
    if not due(now).exists():
        return []
    place = Window(RowNumber(), partition_by="counted_as", order_by="look_at")
    first = _changed(due(now)).annotate(place=place)
    candidates = (
        first.filter(place__lte=MAX_PER_PERSON)
        .order_by("place", "look_at")
        .values_list("pk", flat=True)
    )
    chosen = _changed(Webhook.objects.filter(pk__in=list(candidates[:BATCH_SIZE])))
    rows = list(chosen.select_related("response__agent", "user").order_by("look_at"))
    for row in rows:
        if is_unwelcome(row):
            disable(row.pk, DEACTIVATED)
    return [
        DueState(
            webhook=row.pk,
            read_at=now,
            seen=row.seen,
            state=row.state,
            format=row.format,
            counted_as=row.counted_as,
            response=ChangedResponse(
                response_id=row.response_id,
                agent=row.response.agent.name,
                principal=Principal(key=row.principal, user_id=row.user_id),
                origin=row.origin,
                max_bytes=BODY_BYTES,
            ),
        )
        for row in rows
        if not is_unwelcome(row)
    ]


def _changed(webhooks: QuerySet[Webhook]) -> QuerySet[Any]:
    return with_state(webhooks).exclude(state=F("seen"))


@transaction.atomic
def queue(change: DueState, body: str) -> bool:
    """Queue a state; return whether this call queued it."""
    now = timezone.now()
    moved = Webhook.objects.filter(
        pk=change.webhook, seen=change.seen, look_at__isnull=False
    ).update(
        seen=change.state,
        sent=F("sent") + 1,
        look_at=None if change.state in ENDED else now,
    )
    if not moved:
        return False
    number = Webhook.objects.values_list("sent", flat=True).get(pk=change.webhook)
    WebhookDelivery.objects.create(
        webhook_id=change.webhook,
        number=number,
        state=change.state,
        body=body,
        # Changes made while the body was being rendered are later than this.
        created_at=change.read_at,
    )
    return True


def postpone(change: DueState, seconds: float) -> None:
    """Recheck a webhook later, when its state may have changed again."""
    later = timezone.now() + timedelta(seconds=seconds)
    Webhook.objects.filter(pk=change.webhook, look_at__isnull=False).update(look_at=later)


def postpone_all(counted_as: str, seconds: float) -> None:
    """Postpone a person's or address's due webhooks by `seconds`, at least PAUSE_SECONDS."""
    now = timezone.now()
    due = Webhook.objects.filter(counted_as=counted_as, look_at__lte=now)
    due.update(look_at=now + timedelta(seconds=max(seconds, PAUSE_SECONDS)))

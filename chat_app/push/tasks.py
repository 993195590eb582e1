"""Workers that send notifications: the row is the queue, the message only notifies a worker."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from celery import shared_task
from django.utils import timezone

from chat_app.push import deliveries
from chat_app.push.news import notified, queue_news

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from django.db.models import QuerySet
    from django.db.models.functions import Now

logger = logging.getLogger(__name__)


def due(now: datetime | Now) -> list[QuerySet[Any]]:
    """Return the rows that give `send_news` work."""
    return [notified(now), deliveries.unnotified(now)]


def send_news() -> None:
    """Queue new messages, and notify workers of due deliveries."""
    now = timezone.now()
    queue_news(now)
    _notify(deliveries.take_due(now))


def _notify(pks: Iterable[int]) -> None:
    for pk in pks:
        try:
            send_push.apply_async(kwargs={"pk": pk}, retry=False, expires=deliveries.NOTIFY_SECONDS)
        except Exception:
            # The rows stay due, so workers are notified of them again.
            logger.warning("the message of push delivery %s was not sent", pk, exc_info=True)
            return


@shared_task
def send_push(*, pk: int, **kwargs: Any) -> None:
    """Make one delivery attempt, unless it is not due or another worker has it."""
    if kwargs:
        logger.info("ignored arguments from a newer caller: %s", ", ".join(kwargs))
    claimed = deliveries.claim(pk)
    if claimed is None:
        return
    following = deliveries.finish(claimed, deliveries.attempt(claimed))
    if following is not None:
        _notify([following])

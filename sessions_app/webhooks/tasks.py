"""Sending webhooks with Celery: the row is the queue, the message only notifies a worker."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from celery import shared_task

from sessions_app import database
from sessions_app.webhooks import chat_changes, deliveries, response_changes
from sessions_app.webhooks.chat_changes import queue_entries, wake_all
from sessions_app.webhooks.response_changes import queue_changes
from telemetry import metrics

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from django.db.models import QuerySet
    from django.db.models.functions import Now

logger = logging.getLogger(__name__)


def due(now: datetime | Now) -> list[QuerySet[Any]]:
    """Return the rows that give `send_changes` work."""
    return [
        response_changes.due(now),
        chat_changes.due(now),
        chat_changes.asleep(now),
        deliveries.unnotified(now),
    ]


async def send_changes() -> None:
    """Queue new states and events, and notify workers of due deliveries."""
    await queue_changes()
    await queue_entries()
    await database.run(_notify_due)


async def look_at_chats() -> None:
    """Find webhooks of chats that `send_changes` missed, such as during an outage."""
    await database.run(wake_all)


def _notify_due() -> None:
    _notify(deliveries.take_due())


def _notify(pks: Iterable[int]) -> None:
    for pk in pks:
        try:
            # Messages expire so that they do not pile up; workers are notified again of what is
            # still due.
            send_webhook.apply_async(
                kwargs={"pk": pk}, retry=False, expires=deliveries.NOTIFY_SECONDS
            )
        except Exception:
            # The rows stay due, so workers are notified of them again.
            logger.warning("the message of webhook delivery %s was not sent", pk, exc_info=True)
            return


@shared_task
def send_webhook(*, pk: int, **kwargs: Any) -> None:
    """Make one delivery attempt, unless it is not due or another worker has it."""
    if kwargs:
        logger.info("ignored arguments from a newer caller: %s", ", ".join(kwargs))
    claimed = database.scoped(deliveries.claim, pk)
    if claimed is None:
        logger.info("webhook delivery %s was not claimed: it is not due", pk)
        return
    outcome = deliveries.attempt(claimed)
    unsent = "unanswered" if outcome.status is None else "refused"
    metrics.WEBHOOK_ATTEMPTS.labels("sent" if outcome.is_sent else unsent).inc()
    following = database.scoped(deliveries.finish, claimed, outcome)
    if following is not None:
        _notify([following])

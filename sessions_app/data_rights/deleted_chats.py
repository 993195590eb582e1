"""Deletion of the rows of chats that an owner deleted (`members.participants.delete_chat`).

No reader finds such a chat any more. Its rows stay until its cancelled answers have ended and are
paid for. Synchronous.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from chat_app.conversation import erasure
from chat_app.log import retention as chats
from payments_app import services as ledger
from sessions_app.models import QueuedTurn, Response
from sessions_app.process.retention import delete_private

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from django.db.models import QuerySet

logger = logging.getLogger(__name__)

CHATS: Final = 50
"""The most chats of one batch; each is a transaction."""
DELETED_CHAT_RETENTION: Final = timedelta(days=30)
"""How long the rows of a deleted chat are kept for other servers that do not know it yet."""


def _no_chats() -> Collection[str] | QuerySet[Any, str]:
    return ()


_followed: Callable[[], Collection[str] | QuerySet[Any, str]] = _no_chats


def followed_by(find: Callable[[], Collection[str] | QuerySet[Any, str]]) -> None:
    """Set the function that finds the chats whose logs other servers still have to receive."""
    global _followed  # noqa: PLW0603 one for the process
    _followed = find


def delete_rows(limit: int) -> int:
    """Delete one batch of deleted chats; return how many.

    One that another server follows stays until that server knows that its people left, for at most
    DELETED_CHAT_RETENTION. What is left in a pool is returned first. If money was paid in a chat,
    its row stays without anything that was said, because the ledger refers to it. Several processes
    may run this concurrently.
    """
    running = Response.objects.filter(chat=OuterRef("pk"), finished_at__isnull=True)
    followed = Q(pk__in=_followed(), deleted_at__gt=timezone.now() - DELETED_CHAT_RETENTION)
    over = chats.deleted().exclude(Exists(running)).exclude(followed)
    return sum(_delete(pk) for pk in over.values_list("pk", flat=True)[: min(limit, CHATS)])


def _delete(chat_id: str) -> int:
    rows = chats.deleted().filter(pk=chat_id)
    try:
        with transaction.atomic():
            if not rows.select_for_update(of=("self",), skip_locked=True).exists():
                return 0
            ledger.return_pool(chat_id)
            QueuedTurn.objects.filter(chat_id=chat_id).delete()
            deleted = delete_private(rows, keeps_pools=False)
            erasure.empty_what_is_left([chat_id])
            return deleted
    except ledger.LedgerFrozen:
        logger.warning("The deleted chat %s keeps its pool while the ledger is frozen.", chat_id)
        return 0

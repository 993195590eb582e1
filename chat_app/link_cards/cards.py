"""Cards for the pages that messages link to. Synchronous.

A row is keyed by the digest of its address: the address itself, which may hold a secret, is not
stored. Failures are recorded too, so that a page is not fetched again at once.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.db import transaction
from django.utils import timezone

from chat_app.link_cards.addresses import addresses_of
from chat_app.models import LinkCard, LinkCardState

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from chat_app.link_cards.heads import PageHead
    from chat_app.models import Message

logger = logging.getLogger(__name__)

CARD_LIFETIME: Final = timedelta(days=7)
"""A page is read again after this time."""
FORGOTTEN: Final = timedelta(days=30)
FETCH_RETRY: Final = timedelta(minutes=1)
"""A page that no worker has read by then is requested again."""


@dataclass(frozen=True, slots=True)
class Card:
    """A summary of a page, and the link of the message that leads there."""

    url: str
    title: str
    description: str
    site: str


@dataclass(frozen=True, slots=True)
class Cards:
    """The cards of a message; `pending` says that a worker is reading more of its pages."""

    cards: list[Card]
    pending: bool


def cards_of(message: Message, ask: Callable[[str], None]) -> Cards:
    """Return the cards of a person's message; `ask` has a worker read a page.

    Messages of agents have none: a misled agent could leak what it knows to a server through the
    address that it writes.
    """
    if message.role != "user" or message.sender_user_id is None or message.deleted_at is not None:
        return Cards([], pending=False)
    urls = {digest(url): url for url in addresses_of(message.content)}
    if not urls:
        return Cards([], pending=False)
    now = timezone.now()
    rows = {row.pk: row for row in LinkCard.objects.filter(pk__in=urls)}
    cards, pending = [], False
    for key, url in urls.items():
        row = rows.get(key)
        if row is None or _is_due(row, now):
            _ask(key, url, now, ask)
            pending = True
        elif row.state == LinkCardState.ASKED:
            pending = True
        if row is not None and row.state == LinkCardState.READ:
            cards.append(Card(url, row.title, row.description, row.site))
    return Cards(cards, pending=pending)


def keep(url: str, head: PageHead | None) -> None:
    """Store the head of a page; None if there was nothing to read."""
    fields = {} if head is None else {
        "title": head.title, "description": head.description, "site": head.site,
    }  # fmt: skip
    LinkCard.objects.filter(pk=digest(url)).update(
        state=LinkCardState.NONE if head is None else LinkCardState.READ, **fields
    )


def forget_old(now: datetime, *, limit: int) -> int:
    """Delete a batch of cards last requested long ago; return how many."""
    old = LinkCard.objects.filter(created_at__lt=now - FORGOTTEN).order_by("created_at")
    keys = list(old.values_list("pk", flat=True)[:limit])
    return LinkCard.objects.filter(pk__in=keys).delete()[0] if keys else 0


def digest(url: str) -> str:
    """Return the key of a page's row."""
    return hashlib.sha256(url.encode()).hexdigest()


def _is_due(row: LinkCard, now: datetime) -> bool:
    age = now - row.created_at
    return age > (FETCH_RETRY if row.state == LinkCardState.ASKED else CARD_LIFETIME)


def _ask(key: str, url: str, now: datetime, ask: Callable[[str], None]) -> None:
    """Have a single worker read a page, even if several people view the message at once."""
    with transaction.atomic():
        _, is_new = LinkCard.objects.get_or_create(
            pk=key, defaults={"state": LinkCardState.ASKED, "created_at": now}
        )
        if not is_new:
            again = LinkCard.objects.select_for_update(no_key=True).get(pk=key)
            if not _is_due(again, now):
                return
            again.created_at = now
            if again.state == LinkCardState.NONE:
                again.state = LinkCardState.ASKED
            again.save(update_fields=["created_at", "state"])
        transaction.on_commit(lambda: ask(url))

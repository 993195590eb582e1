"""The threads that a person follows in all of their chats. Synchronous."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from django.db.models import Exists, OuterRef, Q

from chat_app.members.chat_lists import chats_of
from chat_app.members.receipts import REPLIES_MAX, new_replies
from chat_app.models import ThreadFollower
from chat_app.row_counts import CountOf

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from chat_app.models import Message


class ThreadPlace(NamedTuple):
    """The sort key of a thread in the list: unread threads first, then by latest reply."""

    has_news: bool
    last_at: datetime
    root_id: str

    def __str__(self) -> str:
        return f"{int(self.has_news)}|{self.last_at.isoformat()}|{self.root_id}"

    @classmethod
    def read(cls, text: str) -> ThreadPlace:
        """Parse a place from a string; raises ValueError."""
        has_news, at, root_id = text.split("|")
        return cls(has_news == "1", datetime.fromisoformat(at), root_id)


def followed_threads(
    user_id: int, *, after: ThreadPlace | None, limit: int
) -> list[ThreadFollower]:
    """Return at most `limit` threads that a person follows in their chats, after a place.

    Each row has `has_news`, and its `thread` with `root` and `chat`. Threads without replies are
    left out. The cost grows with the number of followed threads, not of chats.
    """
    rows = (
        ThreadFollower.objects.filter(
            user_id=user_id, thread__replies__gt=0, thread__chat__in=chats_of(user_id)
        )
        .annotate(has_news=Exists(_news(user_id)))
        .select_related("thread__root", "thread__chat")
    )
    if after is not None:
        older = Q(thread__last_at__lt=after.last_at)
        older |= Q(thread__last_at=after.last_at, thread__lt=after.root_id)
        behind = Q(has_news=after.has_news) & older
        rows = rows.filter(behind | Q(has_news=False) if after.has_news else behind)
    return list(rows.order_by("-has_news", "-thread__last_at", "-thread")[:limit])


def place_of(row: ThreadFollower) -> ThreadPlace:
    """Return the place of a row of `followed_threads`."""
    return ThreadPlace(row.has_news, row.thread.last_at, row.thread_id)  # type: ignore[attr-defined]


def unread_of(rows: list[ThreadFollower]) -> dict[str, int]:
    """Return the number of new replies in each thread for its follower, up to REPLIES_MAX.

    The rows are those of one person; threads without new replies are left out.
    """
    with_news = [row for row in rows if row.has_news]  # type: ignore[attr-defined]
    if not with_news:
        return {}
    counted = ThreadFollower.objects.filter(pk__in=[row.pk for row in with_news]).annotate(
        unread=CountOf(_news(with_news[0].user_id).values("pk")[:REPLIES_MAX])
    )
    return dict(counted.values_list("thread_id", "unread"))


def _news(user_id: int) -> QuerySet[Message]:
    return new_replies(user_id, OuterRef("read_seq")).filter(thread=OuterRef("thread"))

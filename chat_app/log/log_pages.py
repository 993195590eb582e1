"""Pages of a chat's log with times, and the chat's members, for inspection.

Access is not checked here. Bodies of deleted messages are left out, as everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from chat_app.log.deletions import without_deleted
from chat_app.models import Chat, ChatEvent, Participant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from django.db.models import QuerySet


WINDOW: Final = 5000
"""How many places of a log one read scans for entries of given types."""


ENDS: Final = ChatEvent.TERMINAL
"""The types of the entries that end responses."""


class LogPlace(NamedTuple):
    """The place and type of a log entry, and its response, if any."""

    seq: int
    type: str
    response_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedEntry:
    """One entry of a log; `payload` is the event as members may read it."""

    seq: int
    type: str
    response_id: str
    payload: dict[str, Any]
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatFacts:
    """A chat and the names of its current and former members by `user:<id>` or `agent:<id>`."""

    id: str
    title: str
    last_seq: int
    members: Mapping[str, str]


def chat_facts(chat_id: str, *, max_members: int = 200) -> ChatFacts | None:
    """Return a chat with at most `max_members` of its members; None if it does not exist."""
    chat = Chat.objects.filter(pk=chat_id).first()
    if chat is None:
        return None
    rows = Participant.objects.filter(chat_id=chat_id).select_related("user", "agent")
    members = {}
    for row in rows.order_by("pk")[:max_members]:
        if row.user is not None:
            members[f"user:{row.user_id}"] = row.user.get_username()
        elif row.agent is not None:
            members[f"agent:{row.agent_id}"] = row.agent.name
    return ChatFacts(id=chat.pk, title=chat.title, last_seq=chat.last_seq, members=members)


def entries_before(
    chat_id: str, before: int, *, limit: int, response_ids: Sequence[str] | None = None
) -> list[DatedEntry]:
    """Return the last entries before a `seq`, in order, optionally of some responses only."""
    rows = ChatEvent.objects.filter(chat_id=chat_id, seq__lt=before)
    if response_ids is not None:
        rows = rows.filter(response_id__in=response_ids)
    return _dated(rows.order_by("-seq")[:limit])[::-1]


def entries_between(
    chat_id: str, first: int, last: int, *, response_ids: Sequence[str]
) -> list[DatedEntry]:
    """Return the entries of some responses between two `seq`, both included, in order."""
    rows = ChatEvent.objects.filter(chat_id=chat_id, seq__gte=first, seq__lte=last)
    return _dated(rows.filter(response_id__in=response_ids).order_by("seq"))


def entry_at(chat_id: str, seq: int) -> DatedEntry | None:
    """Return the entry at a place of a log; None if there is none."""
    return next(iter(_dated(ChatEvent.objects.filter(chat_id=chat_id, seq=seq))), None)


def end_place(chat_id: str, response_id: str) -> int | None:
    """Return the `seq` of the entry that ended a response; None if the log has none."""
    rows = ChatEvent.objects.filter(chat_id=chat_id, response_id=response_id, type__in=ENDS)
    return rows.order_by("-seq").values_list("seq", flat=True).first()


def places_after(
    chat_id: str, after: int, *, head: int, types: Sequence[str], limit: int
) -> tuple[list[LogPlace], int]:
    """Return the places of the next entries of these types, and how far was scanned.

    No types means all. At most `limit` entries are returned and WINDOW places scanned, up to
    `head`.
    """
    last = min(head, after + WINDOW)
    rows = ChatEvent.objects.filter(chat_id=chat_id, seq__gt=after, seq__lte=last)
    if types:
        rows = rows.filter(type__in=types)
    places = rows.order_by("seq").values_list("seq", "type", "response_id")[:limit]
    page = [LogPlace(*place) for place in places]
    return page, page[-1].seq if len(page) == limit else max(last, after)


def _dated(rows: QuerySet[ChatEvent]) -> list[DatedEntry]:
    entries = list(rows.values_list("seq", "type", "response_id", "payload", "created_at"))
    payloads = without_deleted([row[1:4] for row in entries])
    return [
        DatedEntry(seq=row[0], type=row[1], response_id=row[2], payload=payload, at=row[4])
        for row, payload in zip(entries, payloads, strict=True)
    ]

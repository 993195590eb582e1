"""Reading the rows of a timeline page in a bounded number of queries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from chat_app.log.history import chat_heads, ends_of_responses
from chat_app.log.log_pages import (
    chat_facts,
    entries_before,
    entries_between,
    entry_at,
)
from payments_app.reporting import movements
from sessions_app.admin.timeline.item import TRACKS, Item
from sessions_app.admin.timeline.items import items_of
from sessions_app.admin.timeline.logged import Sources
from sessions_app.models import PaymentRequest, Response, ToolCall
from sessions_app.selectors import delegated_responses

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from chat_app.log.log_pages import DatedEntry

PAGE: Final = 100
"""Log entries per page."""
CHUNKS: Final = 10
"""With a filter, up to this many times PAGE entries are searched."""
SPAN: Final = 2_000
"""How many entries of a chat are searched for those of one response."""
ROWS: Final = 500
"""The most tool calls, and the most payment requests, shown on a page."""


@dataclass(frozen=True, kw_only=True)
class Sight:
    """The rights of a person: tracks by key, ledger rows, and texts of messages."""

    tracks: frozenset[str]
    ledger: bool = False
    texts: bool = False


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """A person's selection: tracks, a member or "", and the `seq` before which the page ends."""

    tracks: frozenset[str]
    who: str
    before: int

    @property
    def is_filter(self) -> bool:
        """Whether items are filtered out."""
        return bool(self.who) or self.tracks != frozenset(TRACKS)


@dataclass(frozen=True, kw_only=True)
class TimelinePage:
    """A page: its items, the `seq` before which older ones exist, and whether answers are running.

    `looked_at` is the number of log entries that a filter was applied to.
    """

    chat_id: str
    title: str
    members: Mapping[str, str]
    items: Sequence[Item]
    older: int | None
    is_newest: bool
    is_running: bool
    looked_at: int


def chat_page(chat_id: str, chosen: Chosen, sight: Sight) -> TimelinePage | None:
    """Return a page of a chat's timeline; None if the chat does not exist."""
    chat = chat_facts(chat_id)
    if chat is None:
        return None
    before, items, looked_at = chosen.before, list[Item](), 0
    first: int | None = None
    for _ in range(CHUNKS if chosen.is_filter else 1):
        entries = entries_before(chat_id, before, limit=PAGE)
        if not entries:
            first = None
            break
        begun = [entry.response_id for entry in entries if entry.type == "response.created"]
        rows = _sources(chat_id, entries, begun, sight, members=chat.members)
        items = [*_items(rows, chosen, sight), *items]
        looked_at += len(entries)
        before = first = entries[0].seq
        if len(items) >= PAGE:
            break
    return TimelinePage(
        chat_id=chat_id,
        title=chat.title or chat.id,
        members=chat.members,
        items=items,
        older=first if first is not None and first > 1 else None,
        is_newest=chosen.before > chat.last_seq,
        is_running=Response.objects.filter(chat_id=chat_id, finished_at__isnull=True).exists(),
        looked_at=looked_at,
    )


def response_page(response: Response, chosen: Chosen, sight: Sight) -> TimelinePage:
    """Return the timeline of a response: its question, log, delegated work and money."""
    chat = chat_facts(response.chat_id)
    head = chat_heads([response.chat_id]).get(response.chat_id, 0)
    end = ends_of_responses(response.chat_id, [response.pk])
    # An answer's message is the log entry after its end.
    last = end[0].seq + 1 if end else head
    question_seq = None if response.message is None else response.message.seq
    first = max(question_seq or 0, last - SPAN)
    entries = entries_between(response.chat_id, first, last, response_ids=[response.pk])
    question = None if question_seq is None else entry_at(response.chat_id, question_seq)
    if question is not None and question.seq not in {entry.seq for entry in entries}:
        entries = [question, *entries]
    delegated = delegated_responses([response.pk]).get(response.pk, [])
    ids = [response.pk, *(row.pk for row in delegated)]
    members = {} if chat is None else chat.members
    rows = _sources(response.chat_id, entries, ids, sight, members=members)
    return TimelinePage(
        chat_id=response.chat_id,
        title=response.agent.name,
        members=members,
        items=_items(replace(rows, delegated=delegated), chosen, sight),
        older=None,
        is_newest=True,
        is_running=response.finished_at is None,
        looked_at=len(entries),
    )


def _sources(
    chat_id: str,
    entries: Sequence[DatedEntry],
    row_ids: Collection[str],
    sight: Sight,
    *,
    members: Mapping[str, str],
) -> Sources:
    """Return entries with their responses, and the rows belonging to responses in `row_ids`."""
    named = {entry.response_id for entry in entries} | set(row_ids)
    responses = Response.objects.filter(pk__in=named - {""}).select_related("agent")
    calls = ToolCall.objects.filter(response_id__in=row_ids)
    calls = calls.select_related("response", "decided_by")
    requests = PaymentRequest.objects.filter(response_id__in=row_ids).select_related("payer")
    by_pk = {row.pk: row for row in responses.defer("text", "output", "request")}
    return Sources(
        chat_id=chat_id,
        entries=entries,
        members=members,
        responses=by_pk,
        run=[by_pk[pk] for pk in row_ids if pk in by_pk],
        calls=list(calls.order_by("pk")[:ROWS]) if "tools" in sight.tracks else (),
        requests=list(requests.order_by("pk")[:ROWS]) if "money" in sight.tracks else (),
        holds=movements.holds_of(row_ids) if sight.ledger else (),
        transfers=movements.transfers_of(row_ids) if sight.ledger else (),
    )


def _items(rows: Sources, chosen: Chosen, sight: Sight) -> list[Item]:
    """Return the selected items that a person may see, without texts that they may not read."""
    tracks = chosen.tracks & sight.tracks
    return [
        item if sight.texts else replace(item, text="")
        for item in items_of(rows)
        if item.track in tracks and chosen.who in {"", item.who}
    ]

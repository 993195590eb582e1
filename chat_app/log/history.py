"""Reads of a chat's log: its entries in order, and its messages as agents see them.

Access is not checked here: the caller has established that the reader is a member.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
from django.db.models import BooleanField, Q, TextField
from django.db.models.expressions import RawSQL
from django.db.models.functions import Cast, Substr

import uamp
from agents_app.conversation.history import RememberedMessage
from chat_app.log.deletions import without_deleted
from chat_app.models import Chat, ChatEvent, ChatKind, Message
from uamp import ChatMessage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models import QuerySet

LOG_TYPES: Final = (
    "message.created", "message.edited", "message.deleted", "message.read", "message.pinned",
    "message.unpinned", "reaction.added", "reaction.removed", "response.created", "response.done",
    "response.error", "response.cancelled", "participant.joined", "participant.left",
    "participant.updated", "chat.updated", "chat.forked", "link.created", "link.revoked",
    "agent.stopped", "call.updated", "call.ended", "state.updated",
)  # fmt: skip
"""The event types in a chat's log."""


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """One entry of a chat's log; `payload` is the event without `seq` and `session_id`."""

    seq: int
    type: str
    response_id: str
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class LoggedMessage:
    """A message with the event that announced it; `is_shared` says if its chat is a group's."""

    chat_id: str
    is_shared: bool
    response_id: str
    event: LoggedEvent


QUOTE_CHARS: Final = 500
"""How many characters of a message are quoted to agents when another one replies to it."""
VIEWS: Final = 4
"""How many agents' views of a message are cached with it."""


class HistoryMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message as agents see it; `views` caches the results of `view_for`."""

    role: uamp.Role
    content: str
    content_items: tuple[uamp.ContentItem, ...]
    name: str
    agent_id: str | None
    quote: str = ""
    # Empty for messages that a client sent along.
    message_id: str = ""
    views: dict[tuple[str, bool], RememberedMessage] = msgspec.field(default_factory=dict)

    def view_for(self, agent_id: str, *, shared: bool) -> uamp.Message:
        """Return the message from one agent's view: only its own words are the assistant's.

        In a shared chat `name` distinguishes the other members.
        """
        key = (agent_id, shared)
        if (view := self.views.get(key)) is not None:
            return view
        role = self.role
        if role == "assistant" and self.agent_id != agent_id:
            role = "user"
        content, items = self.content, self.content_items
        if self.quote:
            content = f"{self.quote}\n\n{content}"
            items = (uamp.TextContent(text=self.quote), *items) if items else items
        view = RememberedMessage(
            role=role,
            content=content,
            content_items=items or None,
            name=self.name if shared and self.name else None,
        )
        if len(self.views) == VIEWS:
            self.views.clear()
        self.views[key] = view
        return view


def chat_heads(chat_ids: Iterable[str]) -> dict[str, int]:
    """Return the last `seq` of each chat."""
    return dict(Chat.objects.filter(pk__in=list(chat_ids)).values_list("id", "last_seq"))


def events_after(chat_id: str, after: int, *, limit: int = 256) -> list[LoggedEvent]:
    """Return the next entries of a log, in order."""
    rows = (
        ChatEvent.objects.filter(chat_id=chat_id, seq__gt=after)
        .order_by("seq")
        .values_list("seq", "type", "response_id", "payload")[:limit]
    )
    return _logged(rows)


def _logged(rows: Iterable[tuple[int, str, str, dict[str, Any]]]) -> list[LoggedEvent]:
    """Return entries as members may read them."""
    entries = list(rows)
    payloads = without_deleted([row[1:] for row in entries])
    return [
        LoggedEvent(*row[:3], payload=payload)
        for row, payload in zip(entries, payloads, strict=True)
    ]


# SQLite uses the partial index of these rows only if the statement spells out their types.
IS_END: Final = RawSQL(  # noqa: S611 constants
    "type IN ({})".format(", ".join(f"'{name}'" for name in ChatEvent.TERMINAL)),
    (),
    output_field=BooleanField(),
)
"""The condition of entries that end responses."""


def ends(chat_id: str, response_ids: Iterable[str]) -> QuerySet[ChatEvent]:
    """Return the terminal events of responses that have ended, as a query."""
    # SQLite has no statistics and would read the whole chat for more than ten responses. A cast
    # column has no index.
    rows = ChatEvent.objects.alias(of_chat=Cast("chat_id", TextField()))
    return rows.filter(IS_END, of_chat=chat_id, response_id__in=list(response_ids))


def ends_of_responses(chat_id: str, response_ids: Iterable[str]) -> list[LoggedEvent]:
    """Return the terminal events of responses that have ended."""
    rows = ends(chat_id, response_ids).order_by("seq")
    return _logged(rows.values_list("seq", "type", "response_id", "payload"))


def message_entry(message_id: str) -> LoggedMessage | None:
    """Return a message by its id in its current state, with its log entry."""
    row = Message.objects.select_related("chat").filter(pk=message_id).first()
    if row is None:
        return None
    entry = ChatEvent.objects.filter(chat_id=row.chat_id, seq=row.seq).values_list(
        "seq", "type", "response_id", "payload"
    )
    is_shared = row.chat.kind == ChatKind.GROUP
    return LoggedMessage(row.chat_id, is_shared, row.response_id, _as_now(row, *_logged(entry)))


def _as_now(row: Message, entry: LoggedEvent) -> LoggedEvent:
    """Return the entry of a message with its current text."""
    if row.edited_at is None or row.deleted_at is not None:
        return entry
    message = {
        **entry.payload["message"],
        "content": row.content,
        "revision": row.revision,
        "edited_at": int(row.edited_at.timestamp() * 1000),
    }
    if row.content_items:
        message["content_items"] = row.content_items
    return replace(entry, payload={**entry.payload, "message": message})


def last_seq_of(chat_id: str) -> int:
    """Return the place of the last entry in a chat's log."""
    return Chat.objects.values_list("last_seq", flat=True).get(pk=chat_id)


def history(chat_id: str, *, limit: int, before: int | None = None) -> list[HistoryMessage]:
    """Return the latest messages of a chat in their current state, oldest first.

    Deleted messages and those that appear only in threads are left out.
    """
    rows = _current(chat_id).filter(thread_only__isnull=True)
    return _shown_history(chat_id, rows, limit=limit, before=before)


def thread_history(
    chat_id: str, root_id: str, *, limit: int, before: int | None = None
) -> list[HistoryMessage]:
    """Return the current root of a thread and its latest replies, oldest first."""
    versions = Q(pk=root_id) | Q(version_of=root_id)
    root = _shown_history(chat_id, _current(chat_id).filter(versions), limit=1)
    replies = _current(chat_id).filter(thread=root_id)
    return [*root, *_shown_history(chat_id, replies, limit=limit, before=before)]


def _shown_history(
    chat_id: str, rows: QuerySet[Message], *, limit: int, before: int | None = None
) -> list[HistoryMessage]:
    if before is not None:
        rows = rows.filter(seq__lt=before)
    newest = rows.order_by("-seq").values_list(
        "pk", "role", "content", "content_items", "name", "sender_agent_id", "reply_to"
    )[:limit]
    messages = list(newest)
    quotes = quotes_of(chat_id, [row[-1] for row in messages])
    return [
        HistoryMessage(
            role=cast("uamp.Role", role),
            content=content,
            content_items=msgspec.convert(items, tuple[uamp.ContentItem, ...]),
            name=name,
            agent_id=agent_id,
            quote=quotes.get(reply_to or "", ""),
            message_id=message_id,
        )
        for message_id, role, content, items, name, agent_id, reply_to in reversed(messages)
    ]


def _current(chat_id: str) -> QuerySet[Message]:
    """Return the messages of a chat that were neither deleted nor replaced by another version."""
    return Message.objects.filter(
        chat_id=chat_id, deleted_at__isnull=True, replaced_by__isnull=True
    )


def quotes_of(chat_id: str, message_ids: Iterable[str | None]) -> dict[str, str]:
    """Return messages as they are quoted to agents with replies; deleted ones are left out.

    A quote is the author and the first QUOTE_CHARS characters, as Markdown.
    """
    ids = {message_id for message_id in message_ids if message_id}
    if not ids:
        return {}
    rows = Message.objects.filter(pk__in=ids, chat_id=chat_id, deleted_at__isnull=True)
    start = Substr("content", 1, QUOTE_CHARS + 1)
    return {
        message_id: _quote(name or role, text)
        for message_id, name, role, text in rows.values_list("pk", "name", "role", start)
    }


def _quote(name: str, text: str) -> str:
    cut = f"{text[:QUOTE_CHARS]}…" if len(text) > QUOTE_CHARS else text
    return "\n".join(f"> {line}" for line in f"{name}: {cut}".splitlines())


def last_messages(chat_id: str, *, limit: int) -> list[ChatMessage]:
    """Return the latest current messages of a chat, oldest first, without deleted ones."""
    rows = _current(chat_id).order_by("-seq")[:limit]
    return [_chat_message(row) for row in reversed(rows)]


def messages_from(
    chat_id: str, message_id: str = "", *, is_descending: bool, limit: int
) -> list[ChatMessage]:
    """Return current messages from one of them on, or from an end of the log; none if it is gone.

    Those that appear only in threads are left out.
    """
    rows = _current(chat_id).filter(thread_only__isnull=True)
    if message_id:
        seq = rows.filter(pk=message_id).values("seq")
        rows = rows.filter(**{"seq__lte" if is_descending else "seq__gte": seq})
    ordered = rows.order_by("-seq" if is_descending else "seq")
    return [_chat_message(row) for row in ordered[:limit]]


def message_of_response(chat_id: str, response_id: str) -> str:
    """Return the id of the current message that a response wrote in a chat; '' if none did."""
    rows = _current(chat_id).filter(response_id=response_id, sender_agent__isnull=False)
    return rows.values_list("pk", flat=True).first() or ""


def _chat_message(row: Message) -> ChatMessage:
    return ChatMessage(
        id=row.pk,
        role=row.role,
        content=row.content,
        content_items=msgspec.convert(row.content_items, tuple[uamp.ContentItem, ...]) or None,
        name=row.name or None,
        sender_kind=row.sender_kind,
        created_at=int(row.created_at.timestamp() * 1000),
        response_id=row.response_id or None,
        status=None if row.status == "completed" else row.status,
        reply_to=row.reply_to,
        version_of=row.version_of,
        thread=row.thread,
        also_in_chat=row.thread is not None and not row.thread_only,
    )


def history_until(
    chat_id: str, *, message_id: str | None, limit: int, thread: str | None = None
) -> list[HistoryMessage]:
    """Return the messages up to one of them, or the latest ones.

    They are those of the chat, or of a `thread` if given its root.
    """
    seq = None
    if message_id is not None:
        seq = Message.objects.filter(pk=message_id).values_list("seq", flat=True).first()
    before = None if seq is None else seq + 1
    if thread is not None:
        return thread_history(chat_id, thread, limit=limit, before=before)
    return history(chat_id, limit=limit, before=before)

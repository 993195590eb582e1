"""The latest messages of chats, cached between turns as the history for agents.

They are cached in converted form for models, so a turn converts only what is new.

An entry is used only if the turn just committed took the very next `seq`; writes by other processes
invalidate it. Without the cache, reading history would be the largest cost of a turn after its
writes.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.conf import settings

import uamp
from chat_app.log import history as chat_history
from chat_app.log.history import HistoryMessage
from sessions_app import database

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chat_app.log.entries import NewMessage

CHATS_REMEMBERED: Final = 2048
CHARS_REMEMBERED: Final = 16 * 1024 * 1024
MESSAGE_CHARS: Final = 1024
"""The estimated memory of a message besides its text, including its model form, in characters."""


@dataclass(slots=True)
class _Entry:
    last_seq: int
    messages: deque[HistoryMessage]
    chars: int = 0


class History:
    """The latest messages of the chats that this process serves.

    Bounded by chats and characters: the chat with the oldest last message is dropped first, and
    read again on its next turn. A history that exceeds the limit on its own is never cached. Called
    by turns and the ends of responses, on the event loop.
    """

    def __init__(self, *, chars: int = CHARS_REMEMBERED) -> None:
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._limit = chars
        self.chars = 0

    async def before(self, chat_id: str, seq: int) -> list[HistoryMessage]:
        """Return the messages before a log position, oldest first."""
        entry = self._entries.get(chat_id)
        if entry is not None and entry.last_seq == seq - 1:
            return list(entry.messages)
        rows = [] if seq == 1 else await self._read(chat_id, seq)
        self._forget(chat_id)
        self._keep(chat_id, seq - 1, rows)
        return rows

    def seq_of(self, chat_id: str) -> int | None:
        """Return the log position up to which a chat's messages are cached, or None."""
        entry = self._entries.get(chat_id)
        return None if entry is None else entry.last_seq

    def remember(self, chat_id: str, seq: int, rows: Sequence[HistoryMessage]) -> None:
        """Cache the messages up to a log position, unless later ones are cached."""
        last_seq = self.seq_of(chat_id)
        if last_seq is None or last_seq < seq:
            self._forget(chat_id)
            self._keep(chat_id, seq, rows)

    def _keep(self, chat_id: str, seq: int, rows: Sequence[HistoryMessage]) -> None:
        entry = _Entry(seq, deque(rows, maxlen=settings.UAMP_HISTORY_MESSAGES))
        self._entries[chat_id] = entry
        self._grow(entry, sum(map(_chars, rows)))

    async def about(self, chat_id: str, last_seq: int | None = None) -> list[HistoryMessage]:
        """Return approximately the history that an agent will see, cached or read.

        What follows in the log until the turn is written may still change it. `last_seq` is the
        last position of the log if the caller has just read it.
        """
        entry = self._entries.get(chat_id)
        # Edits, and what other processes write, are in the log only.
        if entry is not None and entry.last_seq == (
            await database.run(chat_history.last_seq_of, chat_id) if last_seq is None else last_seq
        ):
            return list(entry.messages)
        return await database.run(
            chat_history.history, chat_id, limit=settings.UAMP_HISTORY_MESSAGES
        )

    async def _read(self, chat_id: str, seq: int) -> list[HistoryMessage]:
        return await database.run(
            chat_history.history, chat_id, limit=settings.UAMP_HISTORY_MESSAGES, before=seq
        )

    def append(self, chat_id: str, first_seq: int, count: int, message: NewMessage | None) -> None:
        """Follow a write by this process: `count` events from `first_seq`, with any message."""
        entry = self._entries.get(chat_id)
        is_version = message is not None and message.version_of is not None
        if entry is None or entry.last_seq != first_seq - 1 or is_version:
            # A new version replaces an answer that may be in the cache.
            self._forget(chat_id)
            return
        entry.last_seq = first_seq + count - 1
        if message is not None and not message.is_in_thread_only:
            messages, new = entry.messages, self.of(message)
            chars = _chars(new)
            if len(messages) == messages.maxlen:
                # The oldest message is dropped, or the new one if none are kept.
                chars -= _chars(messages[0] if messages else new)
            messages.append(new)
            self._entries.move_to_end(chat_id)
            self._grow(entry, chars)

    def _grow(self, entry: _Entry, chars: int) -> None:
        """Count additional characters of a chat, and drop chats until all limits are met."""
        entry.chars += chars
        self.chars += chars
        while self._entries and (len(self._entries) > CHATS_REMEMBERED or self.chars > self._limit):
            self._forget(next(iter(self._entries)))

    def _forget(self, chat_id: str) -> None:
        entry = self._entries.pop(chat_id, None)
        if entry is not None:
            self.chars -= entry.chars

    @staticmethod
    def of(message: NewMessage) -> HistoryMessage:
        """Return a newly written message as a history message."""
        return HistoryMessage(
            role=message.role,
            content=message.content,
            content_items=message.content_items,
            name=message.name,
            agent_id=message.sender_agent_id,
            quote=message.quote,
            message_id=message.id,
        )


def _chars(message: HistoryMessage) -> int:
    """Return the approximate size of a message in characters; non-text items count little."""
    return (
        MESSAGE_CHARS
        + len(message.content)
        + len(message.quote)
        + sum(
            len(item.text) if isinstance(item, uamp.TextContent) else 256
            for item in message.content_items
        )
    )

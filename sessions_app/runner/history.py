"""What an agent is shown of a chat, remembered between turns (notes/turn-cost.md §1.2).

Reading history each turn is the largest cost after the writes. An entry is only used when the turn
that was just committed took the very next `seq`: whoever else wrote makes it fall away.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.conf import settings

from chat_app import selectors as chats
from chat_app.selectors import HistoryMessage
from sessions_app import database

if TYPE_CHECKING:
    from chat_app.services import NewMessage

CHATS_REMEMBERED: Final = 2048


@dataclass(slots=True)
class _Entry:
    last_seq: int
    messages: deque[HistoryMessage]


class History:
    """The last messages of the chats that this process serves."""

    def __init__(self) -> None:
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    async def before(self, chat_id: str, seq: int) -> list[HistoryMessage]:
        """Return the messages that come before a place in the log, oldest first."""
        entry = self._entries.get(chat_id)
        if entry is not None and entry.last_seq == seq - 1:
            return list(entry.messages)
        rows = [] if seq == 1 else await self._read(chat_id, seq)
        self._entries[chat_id] = _Entry(seq - 1, deque(rows, maxlen=settings.UAMP_HISTORY_MESSAGES))
        self._entries.move_to_end(chat_id)
        if len(self._entries) > CHATS_REMEMBERED:
            self._entries.popitem(last=False)
        return rows

    async def about(self, chat_id: str) -> list[HistoryMessage]:
        """Return about what an agent will be shown: what is remembered, or else what is there."""
        entry = self._entries.get(chat_id)
        if entry is not None:
            return list(entry.messages)
        return await database.run(chats.history, chat_id, limit=settings.UAMP_HISTORY_MESSAGES)

    async def _read(self, chat_id: str, seq: int) -> list[HistoryMessage]:
        return await database.run(
            chats.history, chat_id, limit=settings.UAMP_HISTORY_MESSAGES, before=seq
        )

    def append(self, chat_id: str, first_seq: int, count: int, message: NewMessage | None) -> None:
        """Follow a write of this process: `count` events from `first_seq`, with one message."""
        entry = self._entries.get(chat_id)
        if entry is None or entry.last_seq != first_seq - 1:
            self._entries.pop(chat_id, None)
            return
        entry.last_seq = first_seq + count - 1
        if message is not None:
            entry.messages.append(self.of(message))

    @staticmethod
    def of(message: NewMessage) -> HistoryMessage:
        """Return a message that was just written as history has it."""
        return HistoryMessage(
            role=message.role,
            content=message.content,
            content_items=message.content_items,
            name=message.name,
            agent_id=message.sender_agent_id,
        )

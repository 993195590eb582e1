"""Watching the chats of a connection's person: short summaries of what happens in them.

The groups of the chats are joined once, and their messages need no queries. `compare` finds
messages that the layer lost: a chat whose log is ahead of what was received must be reloaded.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings

from chat_app.log import fanout
from sessions_app.connection.activity import changed
from sessions_app.connection.outgoing_queue import Outgoing
from sessions_app.frames import frame
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sessions_app.connection.layer_groups import LayerGroups
    from sessions_app.connection.outgoing_queue import OutgoingQueue

# The number of groups joined concurrently: a hanging layer costs half a second per batch.
JOINED_AT_ONCE: Final = 100


class ChatWatch:
    """A connection's watch over its person's chats.

    The task that handles the client's events calls `begin`, a periodic task calls `compare`, and
    the reader of the layer's groups calls `take`; all run on the process's loop. Nothing is sent
    while `may_act` returns False.
    """

    def __init__(
        self,
        user_id: int,
        *,
        groups: LayerGroups,
        outgoing: OutgoingQueue,
        may_act: Callable[[], bool],
    ) -> None:
        self.user_id = user_id
        self._member = groups.watcher(self.take)
        self._outgoing = outgoing
        self._may_act = may_act
        # The watched chats, with the last received position of each log.
        self._watched: dict[str, int] = {}
        # Chats left since the last comparison, whose query may have run before they were left.
        self._left_chats: set[str] = set()
        self._more = False
        self._is_over = False

    async def begin(self, latest: Sequence[tuple[str, int]]) -> ev.ChatsWatched:
        """Watch chats, given as (id, last log position); return the reply to the client."""
        await self._join([fanout.person_group(self.user_id)])
        self._set(latest)
        await self._join(fanout.chat_group(chat_id) for chat_id in self._watched)
        return self._announcement()

    async def compare(self, latest: Sequence[tuple[str, int]]) -> None:
        """Have the client reload the chats that differ from what was received."""
        if not self._may_act():
            return
        before = dict(self._watched)
        behind = [
            (chat_id, seq)
            for chat_id, seq in latest[: settings.UAMP_WATCHED_CHATS]
            if chat_id not in self._left_chats and seq > before.get(chat_id, -1)
        ]
        self._set(latest)
        gone = [chat_id for chat_id in before if chat_id not in self._watched]
        await self._leave(gone)
        # Rejoin groups that may have been lost; joining twice does no harm.
        groups = [fanout.chat_group(chat_id) for chat_id, _seq in behind]
        await self._join([fanout.person_group(self.user_id), *groups])
        for chat_id, seq in [*behind, *((chat_id, before[chat_id]) for chat_id in gone)]:
            self._send(changed(chat_id, seq))

    async def stop(self) -> None:
        """Stop receiving."""
        self._is_over = True
        self._watched.clear()
        await self._member.leave_all()

    def announce(self) -> None:
        """Send an event that makes the client reload its list of chats. Queue work."""
        self._emit(frame(self._announcement()))

    def take(self, message: dict[str, Any]) -> None:
        """Accept a message of a watched chat's or the person's group (chat_app.log.fanout)."""
        if not self._may_act():
            return
        if message["type"] == "person.event":
            self._take_own(message)
        elif message["chat"] in self._watched:
            if message["type"] == "chat.event":
                self._take_entry(message)
            elif message["type"] == "chat.signal" and message.get("watched"):
                self._take_signal(message)

    def _take_entry(self, message: dict[str, Any]) -> None:
        chat_id, activity = message["chat"], message["activity"]
        self._watched[chat_id] = max(self._watched[chat_id], message["seq"])
        text = None if activity is None else activity.frame_for(self.user_id)
        if activity is None or text is None:
            return
        self._send(text)
        if activity.left == str(self.user_id):
            self._forget(chat_id)

    def _take_signal(self, message: dict[str, Any]) -> None:
        is_to = message["to"] in {None, self.user_id} and message["session"] is None
        if is_to and message["user"] != self.user_id:
            self._send(message["frame"])

    def _take_own(self, message: dict[str, Any]) -> None:
        if message["removed"]:
            self._forget(message["removed"])
        if message["added"]:
            self._left_chats.discard(message["added"])
            self._watched.setdefault(message["added"], 0)
            # Join before the client loads the chat, so that nothing in between is missed.
            self._outgoing.put(partial(self._add, message["added"], message["frame"]))
        else:
            self._send(message["frame"])

    async def _add(self, chat_id: str, text: str) -> None:
        if chat_id in self._watched:
            await self._join([fanout.chat_group(chat_id)])
            self._emit(text)

    def _forget(self, chat_id: str) -> None:
        """Stop receiving messages of a chat immediately."""
        self._left_chats.add(chat_id)
        if self._watched.pop(chat_id, None) is not None:
            self._outgoing.put(partial(self._leave, [chat_id]))

    def _set(self, latest: Sequence[tuple[str, int]]) -> None:
        limit = settings.UAMP_WATCHED_CHATS
        self._more = len(latest) > limit
        before, self._watched = self._watched, {}
        for chat_id, seq in latest[:limit]:
            if chat_id not in self._left_chats:
                self._watched[chat_id] = max(seq, before.get(chat_id, 0))
        self._left_chats.clear()

    async def _join(self, groups: Iterable[str]) -> None:
        waiting = list(groups)
        while waiting and not self._is_over:
            now, waiting = waiting[:JOINED_AT_ONCE], waiting[JOINED_AT_ONCE:]
            # Whatever a layer raises, `compare` finds what was not delivered and joins again.
            await asyncio.gather(*map(self._member.join, now), return_exceptions=True)

    async def _leave(self, chat_ids: Sequence[str]) -> None:
        for chat_id in chat_ids:
            if chat_id not in self._watched:
                await self._member.leave(fanout.chat_group(chat_id))

    def _announcement(self) -> ev.ChatsWatched:
        return ev.ChatsWatched(chats=len(self._watched), more=self._more)

    def _send(self, text: str) -> None:
        if self._outgoing.is_idle:
            self._emit(text)
            self._outgoing.wake()
        else:
            self._outgoing.put(partial(self._emit, text))

    def _emit(self, text: str) -> None:
        self._outgoing.emit(Outgoing(text, ""))

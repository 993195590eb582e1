"""The chats of a connection's person, of which it receives in short what happens.

The groups of these chats are joined once, and what a group delivers needs no query. What the layer
loses is found by `compare`: a chat whose log is further than what was taken is to be read again.
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

# So many groups are joined at once: a layer that hangs costs half a second for each such number.
JOINED_AT_ONCE: Final = 100


class ChatWatch:
    """One connection's watch over the chats that its person is in.

    The task that takes the client's events calls `begin`, a periodic task `compare`, and the reader
    of the layer's groups `take`; all run on the process's loop. `may_act` says whether the person
    may act now: without it nothing is sent.
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
        # The watched chats, and the last place of each log that was taken.
        self._taken: dict[str, int] = {}
        # Those that the person left since the last comparison, which may have read them before.
        self._left: set[str] = set()
        self._more = False
        self._is_over = False

    async def begin(self, latest: Sequence[tuple[str, int]]) -> ev.ChatsWatched:
        """Watch these chats, as id and last place of the log; return what the client receives."""
        await self._join([fanout.person_group(self.user_id)])
        self._set(latest)
        await self._join(fanout.chat_group(chat_id) for chat_id in self._taken)
        return self._announcement()

    async def compare(self, latest: Sequence[tuple[str, int]]) -> None:
        """Send what differs from what was taken: the client reads these chats again."""
        before = dict(self._taken)
        behind = [
            (chat_id, seq)
            for chat_id, seq in latest[: settings.UAMP_WATCHED_CHATS]
            if chat_id not in self._left and seq > before.get(chat_id, -1)
        ]
        self._set(latest)
        gone = [chat_id for chat_id in before if chat_id not in self._taken]
        await self._leave(gone)
        # A group that was lost is joined again; joining it once more does nothing.
        groups = [fanout.chat_group(chat_id) for chat_id, _seq in behind]
        await self._join([fanout.person_group(self.user_id), *groups])
        for chat_id, seq in [*behind, *((chat_id, before[chat_id]) for chat_id in gone)]:
            self._send(changed(chat_id, seq))

    async def stop(self) -> None:
        """Take nothing more."""
        self._is_over = True
        self._taken.clear()
        await self._member.leave_all()

    def announce(self) -> None:
        """Send that the list of chats is to be read again: work for the queue."""
        self._emit(frame(self._announcement()))

    def take(self, message: dict[str, Any]) -> None:
        """Take a message of the group of a watched chat, or of the person (chat_app.log.fanout)."""
        if not self._may_act():
            return
        if message["type"] == "person.event":
            self._take_own(message)
        elif message["chat"] in self._taken:
            if message["type"] == "chat.event":
                self._take_entry(message)
            elif message["type"] == "chat.signal" and message.get("watched"):
                self._take_signal(message)

    def _take_entry(self, message: dict[str, Any]) -> None:
        chat_id, activity = message["chat"], message["activity"]
        self._taken[chat_id] = max(self._taken[chat_id], message["seq"])
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
            self._left.discard(message["added"])
            self._taken.setdefault(message["added"], 0)
            # Joined before the client reads the chat: nothing is missed between.
            self._outgoing.put(partial(self._add, message["added"], message["frame"]))
        else:
            self._send(message["frame"])

    async def _add(self, chat_id: str, text: str) -> None:
        if chat_id in self._taken:
            await self._join([fanout.chat_group(chat_id)])
            self._emit(text)

    def _forget(self, chat_id: str) -> None:
        """Take nothing more of a chat, from this moment on."""
        self._left.add(chat_id)
        if self._taken.pop(chat_id, None) is not None:
            self._outgoing.put(partial(self._leave, [chat_id]))

    def _set(self, latest: Sequence[tuple[str, int]]) -> None:
        most = settings.UAMP_WATCHED_CHATS
        self._more = len(latest) > most
        before, self._taken = self._taken, {}
        for chat_id, seq in latest[:most]:
            if chat_id not in self._left:
                self._taken[chat_id] = max(seq, before.get(chat_id, 0))
        self._left.clear()

    async def _join(self, groups: Iterable[str]) -> None:
        waiting = list(groups)
        while waiting and not self._is_over:
            now, waiting = waiting[:JOINED_AT_ONCE], waiting[JOINED_AT_ONCE:]
            # Whatever a layer raises: `compare` finds what was not delivered, and joins again.
            await asyncio.gather(*map(self._member.join, now), return_exceptions=True)

    async def _leave(self, chat_ids: Sequence[str]) -> None:
        for chat_id in chat_ids:
            if chat_id not in self._taken:
                await self._member.leave(fanout.chat_group(chat_id))

    def _announcement(self) -> ev.ChatsWatched:
        return ev.ChatsWatched(chats=len(self._taken), more=self._more)

    def _send(self, text: str) -> None:
        if self._outgoing.is_idle:
            self._emit(text)
            self._outgoing.wake()
        else:
            self._outgoing.put(partial(self._emit, text))

    def _emit(self, text: str) -> None:
        self._outgoing.emit(Outgoing(text, ""))

"""The channel layer groups that this process has joined on behalf of its connections.

A message for a chat with a hundred members here is decoded once, and its delta is encoded once.
Each connection that follows the chat then receives it, in the layer's order.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from channels.layers import get_channel_layer

import uamp
from chat_app.ids import new_event_id
from chat_app.log import fanout
from sessions_app.connection.activity import activity_of
from sessions_app.frames import now_ms

if TYPE_CHECKING:
    from collections.abc import Callable

    Take: TypeAlias = Callable[[dict[str, Any]], None]
    Spawn: TypeAlias = Callable[..., asyncio.Task[Any]]

logger = logging.getLogger(__name__)

LISTEN_AGAIN_SECONDS: Final = 2.0
# Let other tasks run after delivering to this many members.
MEMBERS_AT_ONCE: Final = 256
# Text of running answers, which is not delivered to watchers.
TEXTS: Final = frozenset({"chat.delta", "chat.text"})


class GroupMember:
    """A connection's membership in groups, used only by the connection's tasks.

    A member that `watches` does not receive answer text, and receives log entries with an
    `activity`.
    """

    def __init__(self, groups: LayerGroups, take: Take, *, watches: bool) -> None:
        self.take = take
        self.watches = watches
        self._groups = groups
        self._joined: set[str] = set()

    async def join(self, group: str) -> None:
        """Join a group and receive its messages; joining again renews a lost membership.

        Raises TimeoutError or the layer's error; messages that still arrive are delivered.
        """
        self._joined.add(group)
        await self._groups.join(group, self)

    async def leave(self, group: str) -> None:
        """Leave a group."""
        self._joined.discard(group)
        await self._groups.leave(group, self)

    async def leave_all(self) -> None:
        """Leave all groups."""
        while self._joined:
            await self._groups.leave(self._joined.pop(), self)


class _Group:
    """A group's members, and whether the process's channel is in it; private to LayerGroups."""

    def __init__(self) -> None:
        self.members: dict[GroupMember, None] = {}
        self.watchers: dict[GroupMember, None] = {}
        self.is_joined = False
        # Held during a layer request, so that a join waits for a leave to finish.
        self.changing = asyncio.Lock()

    def is_empty(self) -> bool:
        return not (self.members or self.watchers)

    def with_kind_of(self, member: GroupMember) -> dict[GroupMember, None]:
        return self.watchers if member.watches else self.members


class LayerGroups:
    """The process's only layer channel, with the members of each group.

    All methods run on the process's loop. Any task may join and leave. `_listen` runs as one task,
    which the first member starts with `spawn`; only this task delivers messages to members.
    """

    def __init__(self, spawn: Spawn) -> None:
        self._spawn = spawn
        self._channel: str | None = None
        self._opening = asyncio.Lock()
        self._groups: dict[str, _Group] = {}

    def member(self, take: Take) -> GroupMember:
        """Return a member that passes every message of its groups to `take`."""
        return GroupMember(self, take, watches=False)

    def watcher(self, take: Take) -> GroupMember:
        """Return a member for summaries of what happens in chats; see GroupMember."""
        return GroupMember(self, take, watches=True)

    async def join(self, name: str, member: GroupMember) -> None:
        """See GroupMember.join; the process joins only once."""
        group = self._groups.setdefault(name, _Group())
        members = group.with_kind_of(member)
        is_renewal = member in members
        members[member] = None
        async with asyncio.timeout(fanout.SEND_TIMEOUT_SECONDS), group.changing:
            if is_renewal or not group.is_joined:
                await get_channel_layer().group_add(name, await self._opened_channel())
                group.is_joined = True

    async def leave(self, name: str, member: GroupMember) -> None:
        """See GroupMember.leave; the process leaves after the last member."""
        group = self._groups.get(name)
        if group is None:
            return
        group.with_kind_of(member).pop(member, None)
        if not group.is_empty():
            return
        async with group.changing:
            if group.is_joined and group.is_empty():
                group.is_joined = False
                await self._discard(name)
            if group.is_empty() and self._groups.get(name) is group:
                del self._groups[name]

    async def _discard(self, name: str) -> None:
        try:
            async with asyncio.timeout(fanout.SEND_TIMEOUT_SECONDS):
                await get_channel_layer().group_discard(name, await self._opened_channel())
        except Exception:
            # Whatever a layer raises: messages that still arrive have no recipients.
            logger.warning("the group %s was not left", name, exc_info=True)

    async def _opened_channel(self) -> str:
        async with self._opening:
            if self._channel is None:
                self._channel = await get_channel_layer().new_channel()
                self._spawn(self._listen(self._channel), name="groups")
            return self._channel

    async def _listen(self, channel: str) -> None:
        while True:
            try:
                await self._deliver(await get_channel_layer().receive(channel))
            except Exception:
                # The layer is down or a message is malformed; the log is read every two seconds.
                logger.exception("the groups of the channel layer cannot be read")
                await asyncio.sleep(LISTEN_AGAIN_SECONDS)

    async def _deliver(self, message: dict[str, Any]) -> None:
        group = self._groups.get(_group_of(message))
        if group is None:
            return
        takers = list(group.members)
        if message["type"] not in TEXTS and group.watchers:
            takers += list(group.watchers)
            if message["type"] == "chat.event":
                message["activity"] = activity_of(message)
        if message["type"] == "chat.delta" and takers:
            deltas = uamp.TextDeltas(message["response"], event_id=new_event_id())
            message["frame"] = deltas.frame(
                message["text"], offset=message["offset"], timestamp=now_ms()
            )
        for number, member in enumerate(takers, 1):
            try:
                member.take(message)
            except Exception:
                logger.exception("a connection did not take a message of %s", _group_of(message))
            if number % MEMBERS_AT_ONCE == 0:
                await asyncio.sleep(0)


def _group_of(message: dict[str, Any]) -> str:
    """Return the group that a message was sent to (chat_app.fanout)."""
    if "person" in message:
        return fanout.person_group(message["person"])
    if "chat" in message:
        return fanout.chat_group(message["chat"])
    return fanout.session_group(message["row"])

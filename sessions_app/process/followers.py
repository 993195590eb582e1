"""The connections of this process that follow chats, and their periodic checks."""

from __future__ import annotations

import logging
import time
import weakref
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.utils import timezone

from chat_app.log import history as chat_history
from chat_app.members import chat_lists, presence
from sessions_app import database, selectors, session_states
from sessions_app.access import auth
from sessions_app.access.principal import PrincipalKind
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterator

    from sessions_app.access.principal import Principal
    from sessions_app.connected.agent_socket import RegisteredAgent
    from sessions_app.connection.chat_watch import ChatWatch
    from sessions_app.connection.client_connection import ClientConnection

logger = logging.getLogger(__name__)


def counted_as(connection: ClientConnection) -> str:
    """Return the name under which a connection counts: a daemon's is its owner's.

    A daemon may show its token only when it registers its agents, after it has connected.
    """
    link = connection.agent_socket
    owners = {owner.counted_as for owner in link.principals()} if link is not None else set()
    return min(owners, default=connection.principal.counted_as)


def _limit_of(principal: Principal) -> int:
    if principal.is_visitor:
        return int(settings.UAMP_CONNECTIONS_PER_ADDRESS)
    return int(settings.UAMP_CONNECTIONS_PER_USER)


class Followers:
    """The sockets and streams that follow chats, and the sessions that they hold.

    Transports add and discard their connections; each async method is called by one periodic task.
    Garbage-collected connections drop out on their own.
    """

    def __init__(self) -> None:
        self._connections: weakref.WeakSet[ClientConnection] = weakref.WeakSet()

    def __iter__(self) -> Iterator[ClientConnection]:
        return iter(list(self._connections))

    def __len__(self) -> int:
        return len(self._connections)

    def add(self, connection: ClientConnection) -> None:
        """Start checking a connection."""
        self._connections.add(connection)

    def discard(self, connection: ClientConnection) -> None:
        """Stop checking a connection."""
        self._connections.discard(connection)

    def has_room_for(self, principal: Principal) -> bool:
        """Return whether a principal may open another connection in this process."""
        return self._count(principal) < _limit_of(principal)

    def admit(self, connection: ClientConnection) -> None:
        """Start checking a connection; raises RemoteProtocolError rate_limited without room.

        It may be checked already, since it has attached a session.
        """
        others = self._count(connection.principal, but=connection)
        if others >= _limit_of(connection.principal):
            raise RemoteProtocolError(
                ErrorCode.RATE_LIMITED, "You have too many open connections. Close one first."
            )
        self.add(connection)

    def _count(self, principal: Principal, *, but: ClientConnection | None = None) -> int:
        name = principal.counted_as
        return sum(counted_as(other) == name for other in self if other is not but)

    def disconnect(self, daemons: Collection[RegisteredAgent]) -> None:
        """End daemons that operators disconnected, all of them before any answer continues."""
        links = {daemon.link for daemon in daemons}
        for connection in self if links else ():
            link = connection.agent_socket
            if link in links:
                connection.disconnect_agents([daemon for daemon in daemons if daemon.link is link])

    async def poll_logs(self) -> None:
        """Find followers that are behind their chat's log because the layer lost a message."""
        cursors: dict[str, int] = {}
        for follower in self:
            for chat_id, cursor in follower.cursors().items():
                cursors[chat_id] = min(cursor, cursors.get(chat_id, cursor))
        if not cursors:
            return
        heads = await database.run(chat_history.chat_heads, list(cursors))
        behind = {chat_id for chat_id, cursor in cursors.items() if heads.get(chat_id, 0) > cursor}
        for follower in self:
            for chat_id in behind.intersection(follower.cursors()):
                follower.read_again(chat_id)

    async def check_watches(self) -> None:
        """Compare watched chats with the chats that their people are in now.

        Finds whatever the layer lost: messages, added chats, and removed members.
        """
        watched: dict[int, list[ChatWatch]] = {}
        for follower in self:
            if follower.watch is not None:
                watched.setdefault(follower.watch.user_id, []).append(follower.watch)
        for user_id, watches in watched.items():
            latest = await database.run(
                chat_lists.latest_chats, user_id, limit=settings.UAMP_WATCHED_CHATS
            )
            for watch in watches:
                await watch.compare(latest)

    async def check_principals(self, stop_answers: Callable[[], Awaitable[None]]) -> None:
        """Disconnect principals that may no longer act, and close ended sessions.

        `stop_answers` ends their answers. It runs between reading and disconnecting, so that
        connections receive the end of their answers first, whenever the right was lost.
        """
        followers, now = list(self), time.time()
        principals = {p for follower in followers for p in follower.principals()}
        unwelcome: list[Principal] = []
        if any(principal.kind is PrincipalKind.PERSON for principal in principals):
            unwelcome = await database.run(auth.unwelcome, principals)
        try:
            await stop_answers()
        finally:
            for follower in followers:
                follower.watch_tokens(now)
                for principal in unwelcome:
                    follower.dismiss(principal)
        held = [session_id for follower in followers for session_id in follower.session_ids]
        if held:
            for session_id in await database.run(selectors.ended_sessions, held):
                for follower in followers:
                    follower.end_session(session_id)

    async def touch_sessions(self) -> None:
        """Keep the sessions held here active."""
        held = [
            session_id
            for follower in self
            if follower.held_by
            for session_id in follower.session_ids
        ]
        await database.run(session_states.touch_sessions, held, now=timezone.now())

    async def release_sessions(self, session_ids: Collection[str], *, held_by: str) -> None:
        """Make a connection's sessions idle; `touch_sessions` makes up for a lost write."""
        if not session_ids:
            return
        try:
            await database.run(session_states.release_sessions, session_ids, held_by=held_by)
        except (DatabaseError, InterfaceError):
            logger.warning("sessions were not released; touch_sessions will", exc_info=True)

    async def renew_presence(self) -> None:
        """Renew the presence rows of people's open sockets; all others expire."""
        held = [f.presence_id for f in self if f.presence_id is not None]
        await database.run(presence.renew_presence, held, now=timezone.now())

"""Online presence: a row per open socket, and events for a person's first and last socket.

Only members of shared chats receive them, except in very large chats: presence for everyone is what
overloads big servers.
"""

from __future__ import annotations

import logging
import uuid
from typing import TYPE_CHECKING

from django.db import DatabaseError, InterfaceError
from django.utils import timezone

from chat_app.log import fanout
from chat_app.members import chat_lists
from chat_app.members import presence as presence_rows
from sessions_app import database
from sessions_app.frames import frame, now_ms
from uamp import events as ev

if TYPE_CHECKING:
    from sessions_app.access.principal import Principal

logger = logging.getLogger(__name__)


async def arrive(principal: Principal, *, process: str) -> str | None:
    """Record a person's socket and return its presence id; None for visitors."""
    if principal.user_id is None:
        return None
    presence_id = uuid.uuid4().hex
    came = await database.run(
        presence_rows.open_presence,
        presence_id=presence_id,
        user_id=principal.user_id,
        process=process,
        now=timezone.now(),
    )
    if came:
        await _publish(principal, online=True)
    return presence_id


async def try_to_arrive(principal: Principal, *, process: str) -> str | None:
    """Like `arrive`, but do nothing while the database is down."""
    try:
        return await arrive(principal, process=process)
    except (DatabaseError, InterfaceError):
        logger.warning("the presence of %s was not published", principal.key, exc_info=True)
        return None


async def leave(principal: Principal, presence_id: str) -> None:
    """Delete a socket's presence."""
    if principal.user_id is None:
        return
    went = await database.run(
        presence_rows.close_presence,
        presence_id=presence_id,
        user_id=principal.user_id,
        now=timezone.now(),
    )
    if went:
        await _publish(principal, online=False)


async def _publish(principal: Principal, *, online: bool) -> None:
    if principal.user_id is None:
        return
    event_type = ev.PresenceOnline if online else ev.PresenceOffline
    for chat_id in await database.run(chat_lists.chats_with_presence, principal.user_id):
        event = event_type(
            user_id=str(principal.user_id),
            username=principal.username,
            kind="user",
            chat_id=chat_id,
            last_seen_at=None if online else now_ms(),
        )
        await fanout.send(
            fanout.chat_group(chat_id),
            fanout.signal_message(
                chat_id=chat_id,
                frame=frame(event),
                user_id=principal.user_id,
                is_watched=True,
            ),
        )

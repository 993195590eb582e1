"""`chats.watch`: send a connection summaries of what happens in all chats of its person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings

from chat_app.calls.reading import ringing_calls
from chat_app.members.chat_lists import latest_chats
from sessions_app import database
from sessions_app.access.protocol_rights import check_reads_all
from sessions_app.connection.rate_limit import check_rate
from sessions_app.frames import frame
from sessions_app.process import registry
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from sessions_app.connection.client_connection import ClientConnection
    from uamp import events as ev


async def watch_chats(connection: ClientConnection, event: ev.ChatsWatch) -> None:
    """Watch the chats of a connection's person, and the calls ringing for them.

    Raises RemoteProtocolError for visitors, for client secrets, and in a single request.
    """
    principal = connection.principal
    if not connection.held_by:
        raise RemoteProtocolError(
            ErrorCode.INVALID_EVENT,
            "A single request cannot watch chats. Open a WebSocket, or GET /api/v1/chats "
            "with Accept: text/event-stream.",
        )
    if principal.user_id is None or connection.defaults.bound is not None:
        raise RemoteProtocolError(
            ErrorCode.UNAUTHORIZED, "Only a signed-in person can watch chats."
        )
    if principal.is_expired:
        raise RemoteProtocolError(ErrorCode.TOKEN_EXPIRED, "This connection's token has expired.")
    check_reads_all(principal)
    await check_rate(connection, principal, "sessions")
    registry.current().followers.add(connection)
    watch = connection.watch_chats(principal.user_id)
    limit = settings.UAMP_WATCHED_CHATS
    latest = await database.run(latest_chats, principal.user_id, limit=limit)
    connection.reply(await watch.begin(latest), in_reply_to=event.event_id)
    # A second read finds changes from before the groups were joined, such as removed members.
    await watch.compare(await database.run(latest_chats, principal.user_id, limit=limit))
    for call in await database.run(ringing_calls, principal.user_id):
        connection.send_frame(frame(call), "")

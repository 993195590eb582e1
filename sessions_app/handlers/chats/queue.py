"""`queue.remove` and `queue.start`: control of messages queued while agents answer (additions).

The result is the new state of the queue, `queue.updated`, sent to all members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessions_app import database
from sessions_app.connection.rate_limit import check_rate
from sessions_app.queue import rows
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from sessions_app.connection.client_connection import ClientConnection


async def take_queue_event(
    connection: ClientConnection, event: ev.QueueRemove | ev.QueueStart
) -> None:
    """Remove a queued message, or have it sent now."""
    session = connection.attached_to(event).session
    if event.chat_id is not None and event.chat_id != session.chat_id:
        raise RemoteProtocolError(ErrorCode.CHAT_NOT_FOUND, "This session belongs to another chat.")
    await check_rate(connection, session.principal, "writes", session.wire_id)
    act = rows.remove if isinstance(event, ev.QueueRemove) else rows.start_now
    try:
        await database.run(act, session.chat_id, event.item_id, session.principal)
    except rows.NoSuchQueuedTurn:
        raise RemoteProtocolError(
            ErrorCode.MESSAGE_NOT_FOUND, "There is no such queued message; it may have been sent."
        ) from None
    except rows.MoreRights:
        raise RemoteProtocolError(ErrorCode.FORBIDDEN, rows.MORE_RIGHTS) from None
    except rows.NotTheirs:
        raise RemoteProtocolError(
            ErrorCode.FORBIDDEN,
            "Only the author of a queued message may send it. The author or an owner may remove"
            " it.",
        ) from None

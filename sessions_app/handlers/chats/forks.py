"""`chat.fork`: a new chat with the session's history up to a message (an addition).

The sender receives `chat.forked`; members of the source chat receive nothing.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from django.contrib.auth.models import User

from agents_app.rest.rights import MissingRight
from chat_app.conversation.errors import MessageNotFound
from chat_app.forks.copies import ForkTooLarge
from chat_app.forks.forking import fork_chat
from sessions_app import database
from sessions_app.access.protocol_rights import forbidden
from sessions_app.connection.rate_limit import check_rate, count_text
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from sessions_app.connection.client_connection import ClientConnection
    from sessions_app.records import OpenSession
    from uamp import events as ev


async def take_fork(connection: ClientConnection, event: ev.ChatFork) -> None:
    """Fork the session's chat for the sender, or find the fork that this event made before."""
    session = connection.attached_to(event).session
    if event.chat_id is not None and event.chat_id != session.chat_id:
        raise RemoteProtocolError(ErrorCode.CHAT_NOT_FOUND, "This session belongs to another chat.")
    await check_rate(connection, session.principal, "forks", session.wire_id)
    try:
        forked = await database.run(partial(_fork, session, event))
    except MissingRight as missing:
        raise forbidden(missing) from None
    except MessageNotFound:
        raise RemoteProtocolError(
            ErrorCode.MESSAGE_NOT_FOUND, "There is no such message in this chat."
        ) from None
    except ForkTooLarge as error:
        raise RemoteProtocolError(ErrorCode.QUOTA_EXCEEDED, str(error)) from None
    connection.reply(forked, session_id=session.wire_id, in_reply_to=event.event_id)


def _fork(session: OpenSession, event: ev.ChatFork) -> ev.ChatForked:
    user_id = session.principal.user_id
    person = None if user_id is None else User.objects.filter(pk=user_id).first()
    if person is None:
        raise MessageNotFound
    return fork_chat(
        chat_id=session.chat_id,
        message_id=event.message_id,
        forked_by=person,
        title=event.title,
        key=_key(session, event),
        admit=partial(count_text, session.principal.counted_as),
        rights=session.principal.rights,
    )


def _key(session: OpenSession, event: ev.ChatFork) -> str | None:
    """Return a key that identifies repeats of the same event."""
    if event.key is not None:
        return f"key {event.key}"
    return None if event.event_id is None else f"event {session.id} {event.event_id}"

"""Events between the members of a chat other than messages: typing, reading, state (§7).

A session can only send to its own chat, and only members of the chat receive it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec
from django.db import transaction

from chat_app.log import fanout, shared_state
from chat_app.log.entries import lock_chats
from chat_app.log.homes import BelongsElsewhere, check_is_home
from chat_app.members import membership, receipts
from sessions_app import database, services
from sessions_app.connection.rate_limit import check_rate, check_text
from sessions_app.frames import frame
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev
from uamp.shared_state import StateChange
from uamp.storable_text import storable_json

if TYPE_CHECKING:
    import uamp
    from sessions_app.access.principal import Principal
    from sessions_app.connection.attached_session import AttachedSession
    from sessions_app.connection.client_connection import ClientConnection
    from sessions_app.records import OpenSession


def _chat_of(attached: AttachedSession, chat_id: str | None) -> str:
    """Return the session's chat, the only one that it may send to."""
    if chat_id is not None and chat_id != attached.session.chat_id:
        raise RemoteProtocolError(ErrorCode.CHAT_NOT_FOUND, "This session belongs to another chat.")
    return attached.session.chat_id


async def take_typing(connection: ClientConnection, event: ev.InputTyping) -> None:
    """Relay that a member is typing, at most every `typing_interval_seconds`; stores nothing.

    The end is relayed once, at any time.
    """
    attached = connection.attached_to(event)
    chat_id = _chat_of(attached, event.chat_id)
    now = time.monotonic()
    if event.is_typing:
        if now - attached.typed_at < connection.limits.typing_interval_seconds:
            return
        attached.typed_at = now
    elif attached.is_typing is False:
        return
    attached.is_typing = event.is_typing
    principal = attached.session.principal
    await _signal(
        principal,
        chat_id,
        ev.PresenceTyping(
            user_id=str(principal.user_id),
            username=principal.username,
            is_typing=event.is_typing,
            chat_id=chat_id,
        ),
    )


async def _signal(principal: Principal, chat_id: str, event: uamp.Event) -> None:
    await fanout.send(
        fanout.chat_group(chat_id),
        fanout.signal_message(
            chat_id=chat_id,
            frame=frame(event),
            user_id=principal.user_id,
        ),
    )


async def mark_read(connection: ClientConnection, event: ev.MessageRead) -> None:
    """Move the reader's marker; the chat receives `message.read` (UAMP §7.1)."""
    attached = connection.attached_to(event)
    user_id = attached.session.principal.user_id
    chat_id = _chat_of(attached, event.chat_id)
    try:
        await database.run(
            receipts.mark_read,
            chat_id=chat_id,
            user_id=user_id,
            message_id=event.message_id,
        )
    except membership.NotAMember:
        raise RemoteProtocolError(
            ErrorCode.CHAT_NOT_FOUND, "There is no such message in this chat."
        ) from None


async def update_state(connection: ClientConnection, event: ev.StateUpdate) -> None:
    """Change the shared state of the session's chat; its sessions receive `state.updated`.

    A change that leaves the state as it is gets a reply with its version and an empty patch.
    """
    attached = connection.attached_to(event)
    session = attached.session
    await check_rate(connection, session.principal, "writes", session.wire_id)
    size = len(msgspec.json.encode(event))
    await check_text(connection, session.principal, size, session.wire_id)
    before, after = await database.run(_changed_state, session, event)
    if after == before:
        same = ev.StateUpdated(chat_id=session.chat_id, version=before, patch=())
        connection.reply(same, session_id=session.wire_id, in_reply_to=event.event_id)


def _changed_state(session: OpenSession, event: ev.StateUpdate) -> tuple[int, int]:
    """Change the state of a chat; return the versions before and after. Synchronous."""
    change = StateChange(
        state=storable_json(event.state), patch=storable_json(event.patch), version=event.version
    )
    with transaction.atomic():
        chat = lock_chats([session.chat_id]).get(session.chat_id)
        if session.is_shared and not services.is_member(session):
            raise RemoteProtocolError(
                ErrorCode.CHAT_NOT_FOUND, "There is no such chat, or you are not in it."
            )
        try:
            check_is_home(chat)
        except BelongsElsewhere as error:
            raise RemoteProtocolError(ErrorCode.FORBIDDEN, str(error)) from None
        before = shared_state.read_state(session.chat_id)
        user_id = session.principal.user_id
        after = shared_state.write_state(session.chat_id, change, user_id=user_id)
    return before.version, after.version

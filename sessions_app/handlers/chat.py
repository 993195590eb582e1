"""What members of a chat send each other besides messages: typing, reading, calls, state (§7).

A session sends to its own chat only, and only co-members receive it.
"""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Final

import msgspec
from django.core.cache import cache
from django.db import transaction

from agents_app.tools.registry import storable_json
from chat_app.log import fanout, shared_state
from chat_app.log.entries import lock_chats
from chat_app.members import membership, receipts
from sessions_app import database, services
from sessions_app.connection.rate_limit import check_rate, check_text
from sessions_app.frames import frame
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev
from uamp.shared_state import StateChange

if TYPE_CHECKING:
    import uamp
    from sessions_app.access.principal import Principal
    from sessions_app.connection.attached_session import AttachedSession
    from sessions_app.connection.client_connection import ClientConnection
    from sessions_app.records import OpenSession

# So long a call is known to clients that name none.
CALL_SECONDS: Final = 12 * 3600


def _chat_of(attached: AttachedSession, chat_id: str | None) -> str:
    """Return the session's chat; a session sends to no other one."""
    if chat_id is not None and chat_id != attached.session.chat_id:
        raise RemoteProtocolError(ErrorCode.CHAT_NOT_FOUND, "This session is not in that chat.")
    return attached.session.chat_id


async def take_typing(connection: ClientConnection, event: ev.InputTyping) -> None:
    """Send on that a member types, at most once in `typing_interval_seconds`; no row is written."""
    attached = connection.attached_to(event)
    chat_id = _chat_of(attached, event.chat_id)
    now = time.monotonic()
    if event.is_typing and now - attached.typed_at < connection.limits.typing_interval_seconds:
        return
    attached.typed_at = now if event.is_typing else 0.0
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


async def _signal(
    principal: Principal, chat_id: str, event: uamp.Event, *, to_user_id: int | None = None
) -> None:
    await fanout.send(
        fanout.chat_group(chat_id),
        fanout.signal_message(
            chat_id=chat_id,
            frame=frame(event),
            user_id=principal.user_id,
            to_user_id=to_user_id,
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


async def relay_voice(
    connection: ClientConnection,
    event: ev.VoiceInvite | ev.VoiceAccept | ev.VoiceDecline | ev.VoiceEnd,
) -> None:
    """Pass a call event to the chat, or to the one member it names (UAMP §7.3).

    The client that begins a call without a `call_id` receives the one that the server gave it, in
    its own `voice.invite`. No agent takes calls: in a chat of a client and its agent the answer is
    `voice.decline`.
    """
    attached = connection.attached_to(event)
    principal = attached.session.principal
    await check_rate(connection, principal, "call events", attached.session.wire_id)
    chat_id = _chat_of(attached, event.chat_id)
    if isinstance(event, ev.VoiceInvite) and not attached.session.is_shared:
        declined = ev.VoiceDecline(call_id=event.call_id, chat_id=chat_id, reason="unsupported")
        connection.reply(declined, session_id=attached.session.wire_id, in_reply_to=event.event_id)
        return
    members = await database.run(membership.member_ids, chat_id)
    to_user_id = None
    if event.to is not None:
        to_user_id = next((m for m in members if str(m) == event.to), None)
    if principal.user_id not in members or (event.to is not None and to_user_id is None):
        raise RemoteProtocolError(
            ErrorCode.CHAT_NOT_FOUND, "Calls go to members of the session's chat."
        )
    call_id = await database.run(_call_of, event, chat_id)
    relayed = msgspec.structs.replace(
        event,
        call_id=call_id,
        event_id=None,
        timestamp=None,
        session_id=None,
        from_=str(principal.user_id),
        chat_id=chat_id,
    )
    await _signal(principal, chat_id, relayed, to_user_id=to_user_id)
    if isinstance(event, ev.VoiceInvite) and event.call_id is None:
        connection.reply(relayed, session_id=attached.session.wire_id, in_reply_to=event.event_id)


async def update_state(connection: ClientConnection, event: ev.StateUpdate) -> None:
    """Change the state that the session's chat shares; its sessions receive `state.updated`.

    A change to what the state is already is answered with its version and an empty patch.
    """
    attached = connection.attached_to(event)
    session = attached.session
    size = len(msgspec.json.encode(event))
    await check_text(connection, session.principal, size, session.wire_id)
    before, after = await database.run(_changed_state, session, event)
    if after == before:
        same = ev.StateUpdated(chat_id=session.chat_id, version=before, patch=())
        connection.reply(same, session_id=session.wire_id, in_reply_to=event.event_id)


def _changed_state(session: OpenSession, event: ev.StateUpdate) -> tuple[int, int]:
    """Change the state of a chat; return its versions before and after. Synchronous."""
    change = StateChange(
        state=storable_json(event.state), patch=storable_json(event.patch), version=event.version
    )
    with transaction.atomic():
        lock_chats([session.chat_id])
        if session.is_shared and not services.is_member(session):
            raise RemoteProtocolError(
                ErrorCode.CHAT_NOT_FOUND, "There is no such chat, or you are not in it."
            )
        before = shared_state.read_state(session.chat_id)
        user_id = session.principal.user_id
        after = shared_state.write_state(session.chat_id, change, user_id=user_id)
    return before.version, after.version


def _call_of(
    event: ev.VoiceInvite | ev.VoiceAccept | ev.VoiceDecline | ev.VoiceEnd, chat_id: str
) -> str:
    """Return the call that an event is about: the one it names, a new one, or the chat's last one.

    The cache is common to all processes. Synchronous.
    """
    key = f"call:{chat_id}"
    call_id = event.call_id
    if call_id is None:
        call_id = f"call_{uuid.uuid4().hex}" if isinstance(event, ev.VoiceInvite) else None
        call_id = call_id or cache.get(key)
    if call_id is None:
        raise RemoteProtocolError(
            ErrorCode.INVALID_EVENT, "No call is under way in this chat. Name one in call_id."
        )
    if not isinstance(event, ev.VoiceEnd | ev.VoiceDecline):
        cache.set(key, call_id, CALL_SECONDS)
    return str(call_id)

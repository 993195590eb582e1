"""What the members of a chat tell each other besides messages: typing, reading, calls (UAMP §7).

A session speaks in its own chat only, and only co-members hear it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import msgspec

from chat_app import fanout
from chat_app import selectors as chats
from chat_app import services as chat_services
from sessions_app import database
from sessions_app.frames import frame
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    import uamp
    from sessions_app.attached import Attached
    from sessions_app.auth import Principal
    from sessions_app.peer import Peer

TYPING_SECONDS: Final = 3.0


def _chat_of(attached: Attached, chat_id: str | None) -> str:
    """Return the session's chat; a session speaks in no other one."""
    if chat_id is not None and chat_id != attached.session.chat_id:
        raise RemoteProtocolError(ErrorCode.CHAT_NOT_FOUND, "This session is not in that chat.")
    return attached.session.chat_id


async def take_typing(peer: Peer, event: ev.InputTyping) -> None:
    """Tell the others that somebody types; kept by nobody, at most every TYPING_SECONDS."""
    attached = peer.attached_to(event)
    chat_id = _chat_of(attached, event.chat_id)
    now = time.monotonic()
    if event.is_typing and now - attached.typed_at < TYPING_SECONDS:
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


async def mark_read(peer: Peer, event: ev.MessageRead) -> None:
    """Move the reader's marker and tell the chat (UAMP §7.1)."""
    attached = peer.attached_to(event)
    user_id = attached.session.principal.user_id
    chat_id = _chat_of(attached, event.chat_id)
    try:
        await database.run(
            chat_services.mark_read,
            chat_id=chat_id,
            user_id=user_id,
            message_id=event.message_id,
        )
    except chat_services.NotAMember:
        raise RemoteProtocolError(
            ErrorCode.CHAT_NOT_FOUND, "There is no such message in this chat."
        ) from None


async def relay_voice(
    peer: Peer, event: ev.VoiceInvite | ev.VoiceAccept | ev.VoiceDecline | ev.VoiceEnd
) -> None:
    """Pass a call event to the chat, or to the one member it names (UAMP §7.3, DESIGN D14)."""
    attached = peer.attached_to(event)
    principal = attached.session.principal
    chat_id = _chat_of(attached, event.chat_id)
    members = await database.run(chats.member_ids, chat_id)
    to_user_id = None
    if event.to is not None:
        to_user_id = next((m for m in members if str(m) == event.to), None)
    if principal.user_id not in members or (event.to is not None and to_user_id is None):
        raise RemoteProtocolError(
            ErrorCode.CHAT_NOT_FOUND, "Calls go to members of the session's chat."
        )
    relayed = msgspec.structs.replace(
        event,
        event_id=None,
        timestamp=None,
        session_id=None,
        from_=str(principal.user_id),
        chat_id=chat_id,
    )
    await _signal(principal, chat_id, relayed, to_user_id=to_user_id)

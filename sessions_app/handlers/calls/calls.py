"""Calls between the people of a chat (UAMP §7.3): invite, accept, decline, end, signals.

A call is a row (`chat_app.calls`), which is sent to its members after each change. The
specification's events are relayed as well. Events with a session description go to one person only.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from chat_app.calls import operations, reading
from chat_app.calls.call_change import Act, NotInCall
from chat_app.log import fanout
from sessions_app import database
from sessions_app.connection.rate_limit import check_rate
from sessions_app.frames import frame
from sessions_app.handlers.calls.call_refusals import REFUSALS, chat_of, refusal
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Callable

    from chat_app.calls.call_change import Acted
    from sessions_app.connection.attached_session import AttachedSession
    from sessions_app.connection.client_connection import ClientConnection

    CallEvent = ev.VoiceInvite | ev.VoiceAccept | ev.VoiceDecline | ev.VoiceEnd


async def take_call_event(connection: ClientConnection, event: CallEvent) -> None:
    """Change the call of the session's chat and relay the event to its members.

    A client that starts a call without a `call_id` receives the server's in its own `voice.invite`.
    The answer is `voice.decline` in a client's private chat with an agent, and where there is
    neither another person nor an agent that takes calls.
    """
    attached = connection.attached_to(event)
    session = attached.session
    await check_rate(connection, session.principal, "call events", session.wire_id)
    chat_id = chat_of(attached, event.chat_id)
    user_id = session.principal.user_id
    if not session.is_shared or user_id is None:
        if isinstance(event, ev.VoiceInvite):
            _decline(connection, attached, event, "unsupported")
            return
        raise RemoteProtocolError(ErrorCode.CALL_NOT_FOUND, "No call is in progress here.")
    if isinstance(event, ev.VoiceInvite):
        await check_rate(connection, session.principal, "calls", session.wire_id)
    try:
        acted = await database.run(_act_of(event, chat_id, user_id, session.id))
    except operations.NoOther:
        _decline(connection, attached, event, "alone")
        return
    except REFUSALS as error:
        raise refusal(error) from None
    await _relay(connection, attached, event, acted)


async def take_signal(connection: ClientConnection, event: ev.CallSignal) -> None:
    """Send a description or candidate to the session of one participant."""
    attached = connection.attached_to(event)
    session = attached.session
    await check_rate(connection, session.principal, "call signals", session.wire_id)
    chat_id = chat_of(attached, event.chat_id)
    try:
        _user_id, to_session = await database.run(
            partial(
                reading.session_of_participant,
                chat_id=chat_id,
                call_id=event.call_id,
                session_id=session.id,
                to_user_id=event.to,
            )
        )
    except NotInCall as error:
        raise refusal(error) from None
    sent = _relayed(event, chat_id, session.principal.user_id)
    await _send(chat_id, sent, to_session_id=to_session)


def _act_of(event: CallEvent, chat_id: str, user_id: int, session_id: str) -> Callable[[], Acted]:
    act = Act(
        chat_id=chat_id,
        user_id=user_id,
        session_id=session_id,
        call_id=event.call_id,
        to=event.to,
        is_for_one=event.sdp is not None,
    )
    if isinstance(event, ev.VoiceInvite):
        return partial(operations.begin_call, act, event.media or ())
    if isinstance(event, ev.VoiceAccept):
        return partial(operations.join_call, act)
    return partial(operations.leave_call, act, declines=isinstance(event, ev.VoiceDecline))


async def _relay(
    connection: ClientConnection, attached: AttachedSession, event: CallEvent, acted: Acted
) -> None:
    """Relay a call event to the chat or the member that it names; an offer to one session."""
    session = attached.session
    chat_id, user_id = session.chat_id, session.principal.user_id
    sent = msgspec.structs.replace(_relayed(event, chat_id, user_id), call_id=acted.call_id)
    if acted.former_session:
        moved = ev.VoiceEnd(
            call_id=acted.call_id, chat_id=chat_id, from_=str(user_id), reason="elsewhere"
        )
        await _send(chat_id, moved, to_session_id=acted.former_session)
    to_user_id = acted.only(event.to)
    if to_user_id is not None and (event.sdp is not None or event.to is not None):
        to_session = acted.others[to_user_id] if event.sdp is not None else ""
        await _send(chat_id, sent, to_user_id=to_user_id, to_session_id=to_session or None)
    else:
        await _send(chat_id, sent, user_id=user_id)
    if isinstance(event, ev.VoiceInvite) and event.call_id is None:
        connection.reply(sent, session_id=session.wire_id, in_reply_to=event.event_id)


def _relayed(
    event: CallEvent | ev.CallSignal, chat_id: str, user_id: int | None
) -> CallEvent | ev.CallSignal:
    return msgspec.structs.replace(
        event,
        event_id=None,
        timestamp=None,
        session_id=None,
        from_=str(user_id),
        chat_id=chat_id,
    )


async def _send(
    chat_id: str,
    event: CallEvent | ev.CallSignal,
    *,
    user_id: int | None = None,
    to_user_id: int | None = None,
    to_session_id: str | None = None,
) -> None:
    message = fanout.signal_message(
        chat_id=chat_id,
        frame=frame(event),
        user_id=user_id,
        to_user_id=to_user_id,
        to_session_id=to_session_id,
    )
    await fanout.send(fanout.chat_group(chat_id), message)


def _decline(
    connection: ClientConnection, attached: AttachedSession, event: CallEvent, reason: str
) -> None:
    session = attached.session
    declined = ev.VoiceDecline(call_id=event.call_id, chat_id=session.chat_id, reason=reason)
    connection.reply(declined, session_id=session.wire_id, in_reply_to=event.event_id)

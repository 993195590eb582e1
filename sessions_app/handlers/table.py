"""Dispatch of client events: decode, call one handler, reply. `HANDLERS` is the table.

Handlers never wait for agents: responses run on their own and send through the connection.
"""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from django.db import DatabaseError, InterfaceError

import uamp
from agents_app.rest.problems import is_out_of_space
from sessions_app.handlers.calls.call_agents import take_agent_event, take_agent_state
from sessions_app.handlers.calls.calls import take_call_event, take_signal
from sessions_app.handlers.capabilities import query_capabilities, take_client_capabilities
from sessions_app.handlers.chats.chat import mark_read, take_typing, update_state
from sessions_app.handlers.chats.forks import take_fork
from sessions_app.handlers.chats.members import (
    take_addition,
    take_chat_update,
    take_participant_update,
    take_removal,
)
from sessions_app.handlers.chats.messages import (
    take_deletion,
    take_edit,
    take_pin,
    take_reaction,
)
from sessions_app.handlers.chats.queue import take_queue_event
from sessions_app.handlers.chats.watching import watch_chats
from sessions_app.handlers.registrations import take_answer, take_registration_event
from sessions_app.handlers.scopes import check_event
from sessions_app.handlers.sessions import create_session, end_session, update_session
from sessions_app.handlers.turns.input import (
    cancel_response,
    create_response,
    take_input,
)
from sessions_app.handlers.turns.payments import take_payment
from sessions_app.handlers.turns.repeats import repeat_response
from sessions_app.handlers.turns.tools import take_approval, take_tool_result
from telemetry import log_fields
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev
from uamp.errors.http_status import close_code

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sessions_app.connection.client_connection import ClientConnection

logger = logging.getLogger(__name__)

Handler: TypeAlias = "Callable[[ClientConnection, Any], Awaitable[None]]"

# Events that a session still accepts after its token has expired.
_WITHOUT_TOKEN: Final = (ev.SessionUpdate, ev.SessionEnd, ev.SessionCreate, ev.Ping)


async def receive(connection: ClientConnection, raw: str | bytes) -> None:
    """Handle the events in a client's frame; every failure gets a reply.

    A closing connection handles nothing, since its client may no longer act.
    """
    if connection.closed_with is not None:
        return
    connection.note_frame()
    try:
        events = (
            connection.protocol.receive(raw, now=time.monotonic())
            if connection.transport == "websocket"
            else connection.protocol.receive_body(raw, now=time.monotonic())
        )
    except RemoteProtocolError as error:
        refuse(connection, error)
        return
    for event in events:
        if _is_of_turn(connection, event, len(raw)):
            continue
        inner = event.event if isinstance(event, uamp.Repeated) else event
        connection.asks_itself = connection.asks_itself or isinstance(inner, ev.ResponseCreate)
        await handle(connection, event)


def _is_of_turn(connection: ClientConnection, event: uamp.Event, size: int) -> bool:
    """Pass an event of a connected agent to its run; return whether it was one."""
    try:
        return take_answer(connection, event, size)
    except RemoteProtocolError as error:
        _name(error, event)
        refuse(connection, error)
        return True


async def handle(connection: ClientConnection, event: uamp.Event) -> None:
    """Call the handler of one event."""
    is_repeated = isinstance(event, uamp.Repeated)
    if isinstance(event, uamp.Repeated):
        if not isinstance(event.event, ev.ResponseCreate):
            for reply in event.replies:
                connection.send_frame(reply, event.event.session_id or "")
            return
        event = event.event
    log_fields.begin(session_id=event.session_id or next(iter(connection.sessions), ""))
    if isinstance(event, uamp.UnknownEvent):
        # UAMP §14.3: logged, never an error.
        logger.info("ignored an event of the unknown type %.100r", event.type_name)
        return
    try:
        if await take_registration_event(connection, event):
            return
        _check_token(connection, event)
        check_event(connection, event)
        handler: Handler = repeat_response if is_repeated else _handler_of(event)
        await handler(connection, event)
    except RemoteProtocolError as error:
        _name(error, event)
        refuse(connection, error)
    except (DatabaseError, InterfaceError):
        logger.exception("the database did not store %s", uamp.type_of(event))
        refuse(
            connection, _internal(event, ErrorCode.UNAVAILABLE, "The server cannot store this now.")
        )
    except Exception as error:
        if is_out_of_space(error):
            logger.exception("there is no space for %s", uamp.type_of(event))
            refuse(
                connection,
                _internal(event, ErrorCode.UNAVAILABLE, "The server cannot store this now."),
            )
            return
        # The socket stays open, and the client receives the error.
        logger.exception("%s failed", uamp.type_of(event))
        refuse(connection, _internal(event, ErrorCode.INTERNAL_ERROR, "Internal server error."))


def _handler_of(event: uamp.Event) -> Handler:
    """Return the handler of an event; raises RemoteProtocolError for agent events.

    A socket that registers an agent may send those, but not in a session of a chat.
    """
    handler = HANDLERS.get(type(event))
    if handler is None:
        raise RemoteProtocolError(
            ErrorCode.INVALID_EVENT, "A session of a chat does not accept this event."
        )
    return handler


def _internal(event: uamp.Event, code: ErrorCode, message: str) -> RemoteProtocolError:
    error = RemoteProtocolError(
        code, message, details={"retry_after": 5} if code == ErrorCode.UNAVAILABLE else None
    )
    _name(error, event)
    return error


def _name(error: RemoteProtocolError, event: uamp.Event) -> None:
    error.event_type = uamp.type_of(event)
    error.event_id = error.event_id or event.event_id
    error.session_id = error.session_id or event.session_id


def refuse(connection: ClientConnection, error: RemoteProtocolError) -> None:
    """Reply with an error, and end the connection if the frame itself cannot be trusted."""
    if connection.on_error is not None:
        connection.on_error(error)
    connection.reply(error.to_event(), session_id=error.session_id, in_reply_to=error.event_id)
    if error.fatal:
        connection.close(error.close_code or 1008)
    elif error.event_type == "session.create":
        connection.close_if_silent(close_code(error.code))


def _check_token(connection: ClientConnection, event: uamp.Event) -> None:
    attached = connection.sessions.get(event.session_id or "")
    if attached is None or isinstance(event, _WITHOUT_TOKEN):
        return
    if attached.session.principal.is_expired:
        raise RemoteProtocolError(
            ErrorCode.TOKEN_EXPIRED, "This session's token has expired. Send a new one."
        )


async def answer_ping(connection: ClientConnection, event: ev.Ping) -> None:
    """Answer a keepalive (UAMP §5.17), even before a session exists."""
    connection.reply(
        ev.Pong(reply_to=event.event_id), session_id=event.session_id, in_reply_to=event.event_id
    )


HANDLERS: Final[dict[type[uamp.Event], Handler]] = {
    ev.SessionCreate: create_session,
    ev.SessionUpdate: update_session,
    ev.SessionEnd: end_session,
    ev.CapabilitiesQuery: query_capabilities,
    ev.ClientCapabilities: take_client_capabilities,
    ev.InputText: partial(take_input, handle=handle),
    ev.InputAudio: partial(take_input, handle=handle),
    ev.InputImage: partial(take_input, handle=handle),
    ev.InputVideo: partial(take_input, handle=handle),
    ev.InputFile: partial(take_input, handle=handle),
    ev.InputTyping: take_typing,
    ev.ResponseCreate: create_response,
    ev.ResponseCancel: cancel_response,
    ev.QueueRemove: take_queue_event,
    ev.QueueStart: take_queue_event,
    ev.ToolResult: take_tool_result,
    ev.ToolApprove: take_approval,
    ev.PaymentSubmit: take_payment,
    ev.VoiceInvite: take_call_event,
    ev.VoiceAccept: take_call_event,
    ev.VoiceDecline: take_call_event,
    ev.VoiceEnd: take_call_event,
    ev.CallSignal: take_signal,
    ev.CallAgentAdd: take_agent_event,
    ev.CallAgentRemove: take_agent_event,
    ev.CallAgentState: take_agent_state,
    ev.MessageRead: mark_read,
    ev.MessageEdit: take_edit,
    ev.MessageDelete: take_deletion,
    ev.MessagePin: take_pin,
    ev.MessageUnpin: take_pin,
    ev.ReactionAdd: take_reaction,
    ev.ReactionRemove: take_reaction,
    ev.ChatUpdate: take_chat_update,
    ev.ChatFork: take_fork,
    ev.ParticipantAdd: take_addition,
    ev.ParticipantRemove: take_removal,
    ev.ParticipantUpdate: take_participant_update,
    ev.StateUpdate: update_state,
    ev.ChatsWatch: watch_chats,
    ev.Ping: answer_ping,
}

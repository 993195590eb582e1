"""What each client event does: decode, one service, answer. `HANDLERS` is the table.

A handler never waits for an agent: responses run by themselves and send through the connection.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from django.conf import settings
from django.db import DatabaseError, InterfaceError

import uamp
from agents_app.rest.problems import is_out_of_space
from chat_app.log import fanout
from chat_app.log import history as chat_history
from sessions_app import database, selectors, services
from sessions_app.access.pending_inputs import may_pass, size_of
from sessions_app.billing import payers, requests
from sessions_app.connection.http_status import close_code
from sessions_app.connection.rate_limit import check_rate, check_text
from sessions_app.frames import new_event_id
from sessions_app.handlers.chat import mark_read, relay_voice, take_typing
from sessions_app.handlers.sessions import (
    create_session,
    end_session,
    query_capabilities,
    take_payment_token,
    update_session,
)
from sessions_app.process import registry
from sessions_app.process.signals import send_decision
from sessions_app.tools import calls
from sessions_app.tools.tasks import ring
from sessions_app.turn.request import TurnRequest
from sessions_app.turn.start import start_response
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from sessions_app.connection.attached_session import AttachedSession
    from sessions_app.connection.client_connection import ClientConnection

logger = logging.getLogger(__name__)

Handler: TypeAlias = "Callable[[ClientConnection, Any], Awaitable[None]]"

# What a session may still do when its token has expired.
_WITHOUT_TOKEN: Final = (ev.SessionUpdate, ev.SessionEnd, ev.SessionCreate, ev.Ping)


async def receive(connection: ClientConnection, raw: str | bytes) -> None:
    """Take one frame of a client and do what it says; every failure has its answer.

    A connection that is being closed takes nothing: its client may not act any more.
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
        asked = event.event if isinstance(event, uamp.Repeated) else event
        connection.asks_itself = connection.asks_itself or isinstance(asked, ev.ResponseCreate)
        await handle(connection, event)


async def handle(connection: ClientConnection, event: uamp.Event) -> None:
    """Do what one event says."""
    is_repeated = isinstance(event, uamp.Repeated)
    if isinstance(event, uamp.Repeated):
        if not isinstance(event.event, ev.ResponseCreate):
            for reply in event.replies:
                connection.send_frame(reply, event.event.session_id or "")
            return
        event = event.event
    if isinstance(event, uamp.UnknownEvent):
        # UAMP §14.3: logged, never an error.
        logger.info("ignored an event of the unknown type %.100r", event.type_name)
        return
    try:
        _check_token(connection, event)
        handler: Handler = repeat_response if is_repeated else HANDLERS[type(event)]
        await handler(connection, event)
    except RemoteProtocolError as error:
        _name(error, event)
        refuse(connection, error)
    except (DatabaseError, InterfaceError):
        logger.exception("the database did not take %s", uamp.type_of(event))
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
        # The socket lives on, and its client is told.
        logger.exception("%s failed", uamp.type_of(event))
        refuse(connection, _internal(event, ErrorCode.INTERNAL_ERROR, "The server has a defect."))


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
    """Answer an error, and end the connection where the frame itself cannot be trusted."""
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
            ErrorCode.TOKEN_EXPIRED, "The token of this session has expired. Send a new one."
        )


# --- Turns ---


async def take_input(connection: ClientConnection, event: ev.InputEvent) -> None:
    """Keep an input until its response.create (UAMP §8.5.1)."""
    attached = connection.attached_to(event)
    if connection.transport == "sse":
        # Two HTTP requests may meet two processes: between them the input is a row.
        principal = attached.session.principal
        if principal.is_anonymous:
            # `keep_input` bounds the rows that wait of one person, but has no name for visitors.
            await check_text(connection, principal, size_of(event), attached.session.wire_id)
        event_id = event.event_id or new_event_id()
        await database.run(
            services.keep_input,
            attached.session.id,
            event_id,
            uamp.to_dict(event),
            size=size_of(event),
            most=connection.limits.pending_inputs,
        )
        return
    attached.inputs.add(event, attached.session.principal.counted_as)
    attached.auto_started = ()
    is_text = isinstance(event, ev.InputText)
    if attached.auto_respond is not None:
        # More comes: the turn is not complete.
        attached.auto_respond.cancel()
        attached.auto_respond = None
    if is_text and len(connection.sessions) > 1 and not connection.asks_itself:
        _respond_later(connection, attached)


def _respond_later(connection: ClientConnection, attached: AttachedSession) -> None:
    """UAMP §10.4 prints an answer to an input.text that no response.create follows."""
    if not settings.UAMP_AUTO_RESPOND_MS:
        return

    def respond() -> None:
        attached.auto_respond = None
        create = ev.ResponseCreate(event_id=new_event_id(), session_id=attached.session.wire_id)
        registry.current().spawn(_auto_respond(connection, attached, create), name="auto_respond")

    attached.auto_respond = asyncio.get_running_loop().call_later(
        settings.UAMP_AUTO_RESPOND_MS / 1000, respond
    )


async def _auto_respond(
    connection: ClientConnection, attached: AttachedSession, create: ev.ResponseCreate
) -> None:
    if connection.asks_itself or await database.run(payers.may_cost, attached.session):
        # A payer pays only for answers that they asked for.
        return
    if attached.inputs and attached.session.wire_id in connection.sessions:
        await handle(connection, create)
        attached.auto_started = tuple(attached.subscription.runs)


async def create_response(connection: ClientConnection, event: ev.ResponseCreate) -> None:
    """Start a turn from the inputs so far (UAMP §5.12)."""
    attached = connection.attached_to(event)
    if attached.auto_respond is not None:
        attached.auto_respond.cancel()
        attached.auto_respond = None
    if not attached.inputs and attached.auto_started:
        # The turn that this asks for began by itself a moment ago.
        _tell_created(connection, event, attached.auto_started)
        attached.auto_started = ()
        return
    inputs = attached.inputs.take()
    try:
        # A turn counts as one answer also where it starts none; `_admit` counts the others.
        await check_rate(
            connection, attached.session.principal, "responses", attached.session.wire_id
        )
        await _start(connection, event, attached, inputs)
    except Exception:
        # All of it can be sent again, under the same ids: if the turn was written after all, its
        # client is told what it led to.
        for given in inputs:
            connection.protocol.forget(given)
        raise


async def repeat_response(connection: ClientConnection, event: ev.ResponseCreate) -> None:
    """Answer a response.create that came before; inputs that wait are the next one's."""
    attached = connection.attached_to(event)
    response_ids = await database.run(
        selectors.responses_started_by, attached.session.id, event.event_id or ""
    )
    await _tell_again(connection, event, attached, response_ids)


async def _start(
    connection: ClientConnection,
    event: ev.ResponseCreate,
    attached: AttachedSession,
    inputs: Sequence[ev.InputEvent],
) -> None:
    if connection.transport != "sse":
        await _start_with(connection, event, attached, inputs)
        return
    kept = await database.run(services.kept_inputs, attached.session.id)
    attached.pending_input_ids = [pk for pk, _ in kept]
    try:
        inputs = [uamp.decode(msgspec.json.encode(payload)) for _, payload in kept]  # type: ignore[misc]  # only inputs are kept
        await _start_with(connection, event, attached, inputs)
    except Exception as error:
        if kept and not may_pass(error):
            # Kept, they would have every later turn of the session refused as well.
            await database.run(services.discard_inputs, attached.pending_input_ids)
        raise


async def _start_with(
    connection: ClientConnection,
    event: ev.ResponseCreate,
    attached: AttachedSession,
    inputs: Sequence[ev.InputEvent],
) -> None:
    request = TurnRequest(
        session=attached.session,
        event_id=event.event_id or new_event_id(),
        sha256=_digest(event),
        inputs=inputs,
        create=event,
        pending_input_ids=attached.pending_input_ids,
        origin=connection.origin,
        pay=connection.pay,
        admit=partial(_admit, connection, attached),
    )
    for given in inputs:
        if isinstance(given, ev.InputText) and given.payment_token:
            await take_payment_token(attached.session, given.payment_token)
    listener = None if connection.transport == "sse" else attached.subscription
    started = await start_response(request, listener)
    connection.has_begun = connection.has_begun or bool(started.response_ids)
    if started.repeated:
        await _tell_again(connection, event, attached, started.response_ids)
    elif listener is not None:
        for run in started.runs:
            listener.follow(run)


async def _admit(
    connection: ClientConnection, attached: AttachedSession, answers: int, size: int
) -> None:
    """Count the answers of a turn but the first, all of them or none, and the bytes of its text."""
    session = attached.session
    if answers > 1:
        await check_rate(
            connection, session.principal, "responses", session.wire_id, cost=answers - 1
        )
    await check_text(connection, session.principal, size, session.wire_id)


def _digest(event: ev.ResponseCreate) -> str:
    said = msgspec.structs.replace(event, timestamp=None, session_id=None)
    return hashlib.sha256(msgspec.json.encode(said)).hexdigest()


def _tell_created(
    connection: ClientConnection, event: uamp.Event, response_ids: tuple[str, ...]
) -> None:
    for response_id in response_ids:
        connection.reply(ev.ResponseCreated(response_id=response_id), session_id=event.session_id)


async def _tell_again(
    connection: ClientConnection,
    event: ev.ResponseCreate,
    attached: AttachedSession,
    response_ids: Any,
) -> None:
    """Answer a repeated response.create with what it led to: the responses, and their ends."""
    _tell_created(connection, event, tuple(response_ids))
    entries = await database.run(
        chat_history.ends_of_responses, attached.session.chat_id, list(response_ids)
    )
    for entry in entries:
        text = fanout.frame_of(entry.payload, entry.seq)
        wire_id = attached.session.wire_id
        connection.send_frame(uamp.stamp_session(text, wire_id), wire_id)


async def cancel_response(connection: ClientConnection, event: ev.ResponseCancel) -> None:
    """Cancel a response of the session, or one of the chat that it is in (UAMP §5.13)."""
    attached = connection.attached_to(event)
    if event.response_id is not None:
        targets = [event.response_id]
        allowed = await database.run(selectors.may_cancel, event.response_id, attached.session)
    else:
        targets = await database.run(selectors.response_ids_of, attached.session.id, live_only=True)
        allowed = bool(targets)
    if not allowed:
        raise RemoteProtocolError(ErrorCode.NOTHING_TO_CANCEL, "No such response is running.")
    for response_id in targets:
        await registry.current().signals.cancel(response_id)


async def take_tool_result(connection: ClientConnection, event: ev.ToolResult) -> None:
    """Take the client's answer to a tool.call (UAMP §5.14)."""
    attached = connection.attached_to(event)
    session = attached.session
    await check_text(connection, session.principal, len(event.result or ""), session.wire_id)
    response_id, pk = await database.run(calls.record_tool_result, attached.session, event)
    await registry.current().signals.call_ended(response_id, pk)


async def take_approval(connection: ClientConnection, event: ev.ToolApprove) -> None:
    """Take a person's word on a tool call, tell the chat, and let the call go on or end."""
    attached = connection.attached_to(event)
    session = attached.session
    row = await database.run(calls.decide_call, session, event)
    if row is None:
        return
    done = ev.ToolApprovalDone(
        call_id=row.call_id,
        response_id=row.response_id,
        approved=event.approved,
        user_id=None if row.decided_by_id is None else str(row.decided_by_id),
        username=session.principal.username or None,
    )
    await send_decision(session.chat_id, done)
    if event.approved:
        await database.run(ring, row.pk)
        await registry.current().signals.call_decided(row.response_id, row.pk)
    else:
        await registry.current().signals.call_ended(row.response_id, row.pk)


# --- The connection ---


async def take_client_capabilities(
    connection: ClientConnection, event: ev.ClientCapabilities
) -> None:
    """Keep what the client can do (UAMP §5.5)."""
    attached = connection.attached_to(event)
    await database.run(
        services.update_session, attached.session.id, client_capabilities=event.capabilities
    )
    attached.session.client_capabilities = event.capabilities


async def take_payment(connection: ClientConnection, event: ev.PaymentSubmit) -> None:
    """Take a payment that a response waits for (UAMP §5.15); what is not due is refused."""
    attached = connection.attached_to(event)
    session = attached.session
    # Each payment reads tokens and locks accounts, also one that is refused.
    await check_rate(connection, session.principal, "payments", session.wire_id)
    try:
        row, _ = await database.run(requests.submit, session, event)
    except LookupError:
        raise RemoteProtocolError(
            ErrorCode.PAYMENT_NOT_DUE, "No payment is due in this session; nothing was charged."
        ) from None
    except requests.PaymentRefused as refused:
        connection.reply(refused.event, session_id=session.wire_id, in_reply_to=event.event_id)
        return
    if row.token_id and row.response.session_id == session.id:
        # The next answers of the session are paid with it too, as with session.update.
        session.payment_token_id = row.token_id
        await database.run(services.keep_payment_token, session.id, row.token_id)
    await registry.current().signals.payment_decided(row.response_id, row.pk)


async def answer_ping(connection: ClientConnection, event: ev.Ping) -> None:
    """Answer a keepalive (UAMP §5.17), also before a session."""
    connection.reply(
        ev.Pong(reply_to=event.event_id), session_id=event.session_id, in_reply_to=event.event_id
    )


HANDLERS: Final[dict[type[uamp.Event], Handler]] = {
    ev.SessionCreate: create_session,
    ev.SessionUpdate: update_session,
    ev.SessionEnd: end_session,
    ev.CapabilitiesQuery: query_capabilities,
    ev.ClientCapabilities: take_client_capabilities,
    ev.InputText: take_input,
    ev.InputAudio: take_input,
    ev.InputImage: take_input,
    ev.InputVideo: take_input,
    ev.InputFile: take_input,
    ev.InputTyping: take_typing,
    ev.ResponseCreate: create_response,
    ev.ResponseCancel: cancel_response,
    ev.ToolResult: take_tool_result,
    ev.ToolApprove: take_approval,
    ev.PaymentSubmit: take_payment,
    ev.VoiceInvite: relay_voice,
    ev.VoiceAccept: relay_voice,
    ev.VoiceDecline: relay_voice,
    ev.VoiceEnd: relay_voice,
    ev.MessageRead: mark_read,
    ev.Ping: answer_ping,
}

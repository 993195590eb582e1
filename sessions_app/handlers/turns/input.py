"""Inputs, and starting and cancelling turns (UAMP §5.6 to §5.13).

Handlers never wait for agents: responses run on their own and send through the connection.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from django.conf import settings

import uamp
from chat_app.ids import new_event_id
from sessions_app import database, selectors
from sessions_app.access.principal import PrincipalKind
from sessions_app.billing import payers
from sessions_app.connection.rate_limit import check_rate, check_text
from sessions_app.handlers.turns.payments import (
    PresentedToken,
    resolved_token,
    take_payment_token,
    use_token,
)
from sessions_app.handlers.turns.repeats import reply_again, reply_created
from sessions_app.handlers.turns.turns import admit, digest
from sessions_app.inputs.pending import may_pass, size_of
from sessions_app.inputs.rows import (
    PRESENTED,
    discard_inputs,
    pending_inputs,
    store_input,
)
from sessions_app.process import registry
from sessions_app.queue.reading import queue_of
from sessions_app.turn.call_speech import agent_spoken_to
from sessions_app.turn.request import TurnRequest
from sessions_app.turn.start import start_response
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from chat_app.members.membership import AgentMember
    from sessions_app.connection.attached_session import AttachedSession
    from sessions_app.connection.client_connection import ClientConnection

    Handle: TypeAlias = Callable[[ClientConnection, ev.ResponseCreate], Awaitable[None]]


async def take_input(connection: ClientConnection, event: ev.InputEvent, *, handle: Handle) -> None:
    """Keep an input until its response.create (UAMP §8.5.1).

    If none follows, one may be generated here; `handle` processes it as if sent by the client.
    """
    attached = connection.attached_to(event)
    if connection.transport == "sse":
        # Two HTTP requests may reach two processes, so the input is stored as a row.
        principal = attached.session.principal
        if principal.kind is not PrincipalKind.PERSON:
            # `store_input` limits a person's pending rows, but cannot identify anyone else.
            await check_text(connection, principal, size_of(event), attached.session.wire_id)
        event_id = event.event_id or new_event_id()
        await database.run(
            store_input,
            attached.session.id,
            event_id,
            await _stored(event),
            size=size_of(event),
            limit=connection.limits.pending_inputs,
        )
        return
    is_first = not attached.inputs
    attached.inputs.add(event, attached.session.principal.counted_as)
    attached.auto_started = ()
    if is_first:
        # Sending ends the typing indicator; further typing is a new one.
        attached.typed_at, attached.is_typing = 0.0, None
    is_text = isinstance(event, ev.InputText)
    if attached.auto_respond is not None:
        # More input follows, so the turn is not complete.
        attached.auto_respond.cancel()
        attached.auto_respond = None
    if is_text and len(connection.sessions) > 1 and not connection.asks_itself:
        _respond_later(connection, attached, handle)


async def _stored(event: ev.InputEvent) -> dict[str, Any]:
    """Return an input as stored in its row: with what its payment token is, not its secret."""
    if not isinstance(event, ev.InputText) or not event.payment_token:
        return uamp.to_dict(event)
    token = await resolved_token(event.payment_token)
    without = msgspec.structs.replace(event, payment_token=None)
    return {**uamp.to_dict(without), PRESENTED: msgspec.to_builtins(token)}


def _respond_later(connection: ClientConnection, attached: AttachedSession, handle: Handle) -> None:
    """Schedule a response to an input.text without response.create, as shown in UAMP §10.4."""
    if not settings.UAMP_AUTO_RESPOND_MS:
        return

    def respond() -> None:
        attached.auto_respond = None
        responding = _auto_respond(connection, attached, handle)
        registry.current().spawn(responding, name="auto_respond")

    attached.auto_respond = asyncio.get_running_loop().call_later(
        settings.UAMP_AUTO_RESPOND_MS / 1000, respond
    )


async def _auto_respond(
    connection: ClientConnection, attached: AttachedSession, handle: Handle
) -> None:
    if connection.asks_itself or await database.run(payers.may_cost, attached.session):
        # Payers only pay for answers that they asked for.
        return
    if attached.inputs and attached.session.wire_id in connection.sessions:
        create = ev.ResponseCreate(event_id=new_event_id(), session_id=attached.session.wire_id)
        await handle(connection, create)
        attached.auto_started = tuple(attached.subscription.runs)


async def create_response(connection: ClientConnection, event: ev.ResponseCreate) -> None:
    """Start a turn from the inputs so far (UAMP §5.12)."""
    attached = connection.attached_to(event)
    if attached.auto_respond is not None:
        attached.auto_respond.cancel()
        attached.auto_respond = None
    if not attached.inputs and attached.auto_started and event.replaces is None:
        # The requested turn has just started automatically.
        reply_created(connection, event, attached.auto_started)
        attached.auto_started = ()
        return
    inputs = attached.inputs.take()
    try:
        if event.call is not None:
            await check_rate(
                connection, attached.session.principal, "call speeches", attached.session.wire_id
            )
        await _start(connection, event, attached, inputs)
    except Exception:
        # The client may send everything again under the same ids. If the turn was written after
        # all, it receives the original outcome.
        for input_event in inputs:
            connection.protocol.forget(input_event)
        raise


async def _start(
    connection: ClientConnection,
    event: ev.ResponseCreate,
    attached: AttachedSession,
    inputs: Sequence[ev.InputEvent],
) -> None:
    if connection.transport != "sse":
        await _start_with(connection, event, attached, inputs)
        return
    rows = await database.run(pending_inputs, attached.session.id)
    attached.pending_input_ids = [pk for pk, _ in rows]
    try:
        inputs = [uamp.decode(msgspec.json.encode(payload)) for _, payload in rows]  # type: ignore[misc] # only inputs are stored
        for _, payload in rows:
            if (token := payload.get(PRESENTED)) is not None:
                await use_token(attached.session, msgspec.convert(token, PresentedToken))
        await _start_with(connection, event, attached, inputs)
    except Exception as error:
        if rows and not may_pass(error):
            # If kept, they would make every later turn of the session fail.
            await database.run(discard_inputs, attached.pending_input_ids)
        raise


async def _start_with(
    connection: ClientConnection,
    event: ev.ResponseCreate,
    attached: AttachedSession,
    inputs: Sequence[ev.InputEvent],
) -> None:
    targets: tuple[AgentMember, ...] = ()
    if event.call is not None:
        targets = (await agent_spoken_to(attached.session, event, inputs),)
    request = TurnRequest(
        session=attached.session,
        event_id=event.event_id or new_event_id(),
        sha256=connection.request_sha256 or digest(event),
        inputs=inputs,
        create=event,
        pending_input_ids=attached.pending_input_ids,
        origin=connection.origin,
        pay=connection.pay,
        admit=partial(admit, connection, attached),
        asked=targets,
    )
    for input_event in inputs:
        if isinstance(input_event, ev.InputText) and input_event.payment_token:
            await take_payment_token(attached.session, input_event.payment_token)
    listener = None if connection.transport == "sse" else attached.subscription
    started = await start_response(request, listener)
    connection.started = tuple(started.response_ids)
    attached.note_asked(started.response_ids)
    connection.unanswered = started.refusal
    connection.has_begun = connection.has_begun or bool(started.response_ids)
    if started.queued:
        queue = await database.run(queue_of, attached.session.chat_id)
        connection.reply(queue, session_id=event.session_id, in_reply_to=event.event_id)
    elif started.repeated:
        if attached.pending_input_ids:
            # Its inputs were repeated too; if kept, they would become part of the next turn.
            await database.run(discard_inputs, attached.pending_input_ids)
        await reply_again(connection, event, attached, started.response_ids)
    elif listener is not None:
        for run in started.runs:
            listener.follow(run)


async def cancel_response(connection: ClientConnection, event: ev.ResponseCancel) -> None:
    """Cancel a response of the session or of its chat (UAMP §5.13)."""
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
        if not await database.run(selectors.may_stop, response_id, attached.session):
            raise RemoteProtocolError(
                ErrorCode.FORBIDDEN,
                "Only the asker, the payer and owners of the chat may stop a paid answer.",
            )
    for response_id in targets:
        await registry.current().signals.cancel(response_id, attached.session.principal.user_id)

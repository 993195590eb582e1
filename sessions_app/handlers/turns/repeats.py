"""Repeated `response.create` events, which are answered with their original outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

import uamp
from chat_app.log import fanout
from chat_app.log import history as chat_history
from sessions_app import database, selectors
from sessions_app.frames import frame
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from chat_app.log.history import LoggedEvent
    from sessions_app.connection.attached_session import AttachedSession
    from sessions_app.connection.client_connection import ClientConnection
    from sessions_app.selectors import StoredOutput


async def repeat_response(connection: ClientConnection, event: ev.ResponseCreate) -> None:
    """Answer a repeated response.create; pending inputs are left for the next one."""
    attached = connection.attached_to(event)
    response_ids = await database.run(
        selectors.responses_started_by, attached.session.id, event.event_id or ""
    )
    await reply_again(connection, event, attached, response_ids)


async def reply_again(
    connection: ClientConnection,
    event: ev.ResponseCreate,
    attached: AttachedSession,
    response_ids: Sequence[str],
) -> None:
    """Answer a repeated response.create with its responses, replaying those that have ended."""
    reply_created(connection, event, response_ids)
    attached.note_asked(response_ids)
    connection.has_repeated = True
    wire_id = attached.session.wire_id
    stamp = uamp.session_stamp(wire_id)
    ends = await database.run(
        chat_history.ends_of_responses, attached.session.chat_id, list(response_ids)
    )
    outputs = await database.run(selectors.stored_outputs, [end.response_id for end in ends])
    for end in ends:
        stored = outputs.get(end.response_id)
        for output_event in () if stored is None else _events_of(end, stored):
            connection.send_frame(uamp.stamp_session(frame(output_event), stamp), wire_id)
        text = fanout.frame_of(end.payload, end.seq)
        connection.send_frame(uamp.stamp_session(text, stamp), wire_id)


def reply_created(
    connection: ClientConnection, event: ev.ResponseCreate, response_ids: Sequence[str]
) -> None:
    """Answer a response.create with the responses that it started."""
    connection.started = tuple(response_ids)
    for response_id in response_ids:
        connection.reply(ev.ResponseCreated(response_id=response_id), session_id=event.session_id)


def _events_of(end: LoggedEvent, stored: StoredOutput) -> Iterator[uamp.Event]:
    """Yield the events of a response that precede its end.

    A client runs its tool on every `tool.call`, so only calls whose results come in another turn
    are sent again.
    """
    call_ids = {call.call_id for call in stored.client_calls}
    yield from uamp.events_of_output(end.response_id, stored.output, client_calls=call_ids)
    if stored.ends_at_tools and end.type == "response.done":
        for call in stored.client_calls:
            yield ev.ToolCall(
                call_id=call.call_id,
                name=call.name,
                arguments=call.arguments,
                response_id=end.response_id,
            )

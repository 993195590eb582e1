"""Shared parts of the handlers that start turns: rate limits, digests, edited questions."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from chat_app.ids import new_event_id
from sessions_app.connection.rate_limit import check_rate, check_text
from sessions_app.turn.request import TurnRequest
from sessions_app.turn.start import start_response
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessions_app.connection.attached_session import AttachedSession
    from sessions_app.connection.client_connection import ClientConnection


async def admit(
    connection: ClientConnection,
    attached: AttachedSession,
    answers: int,
    size: int,
    *,
    counted: int = 0,
) -> None:
    """Count a turn's answers, all or none, except those already `counted`, and its text."""
    session = attached.session
    if answers > counted:
        await check_rate(
            connection, session.principal, "responses", session.wire_id, cost=answers - counted
        )
    if size:
        await check_text(connection, session.principal, size, session.wire_id)


def digest(event: ev.ResponseCreate | ev.MessageEdit) -> str:
    """Return the digest that identifies repeats of an event."""
    content = msgspec.structs.replace(event, timestamp=None, session_id=None)
    return hashlib.sha256(msgspec.json.encode(content)).hexdigest()


async def regenerate_answers(
    connection: ClientConnection,
    attached: AttachedSession,
    event: ev.MessageEdit,
    answer_ids: Sequence[str],
) -> None:
    """Start a turn for each answer to an edited question; a repeated event starts none.

    The caller has counted the first answer. The others are counted here, all or none.
    """
    session = attached.session
    if len(answer_ids) > 1:
        others = len(answer_ids) - 1
        await check_rate(connection, session.principal, "responses", session.wire_id, cost=others)
    event_id = event.event_id or new_event_id()
    started: list[str] = []
    for number, answer_id in enumerate(answer_ids):
        if number:
            event_id = hashlib.sha256(event_id.encode()).hexdigest()
        request = TurnRequest(
            session=session,
            event_id=event_id,
            sha256=digest(event),
            inputs=(),
            create=ev.ResponseCreate(session_id=event.session_id, replaces=answer_id),
            origin=connection.origin,
            pay=connection.pay,
            admit=partial(admit, connection, attached, counted=1),
        )
        listener = None if connection.transport == "sse" else attached.subscription
        turn = await start_response(request, listener)
        started += turn.response_ids
        if listener is not None:
            for run in turn.runs:
                listener.follow(run)
    connection.started = tuple(started)
    attached.note_asked(started)
    connection.has_begun = connection.has_begun or bool(started)

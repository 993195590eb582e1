"""Agents in calls: a participant adds or removes one and reports its state.

Speech to an agent is a turn (`response.create` with `call`, sessions_app.turn.call_speech).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from chat_app.calls.agents import add_agent, hosted_agent, remove_agent
from chat_app.calls.call_change import Act
from chat_app.log import fanout
from sessions_app import database
from sessions_app.connection.rate_limit import check_rate
from sessions_app.frames import frame
from sessions_app.handlers.calls.call_refusals import REFUSALS, chat_of, refusal
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from sessions_app.connection.client_connection import ClientConnection


async def take_agent_event(
    connection: ClientConnection, event: ev.CallAgentAdd | ev.CallAgentRemove
) -> None:
    """Add an agent to the call of the session's chat, or remove it."""
    attached = connection.attached_to(event)
    session = attached.session
    await check_rate(connection, session.principal, "call events", session.wire_id)
    chat_id, user_id = chat_of(attached, event.chat_id), session.principal.user_id
    if not session.is_shared or user_id is None:
        raise RemoteProtocolError(ErrorCode.CALL_NOT_FOUND, "No call is in progress here.")
    act = Act(chat_id=chat_id, user_id=user_id, session_id=session.id, call_id=event.call_id)
    change = add_agent if isinstance(event, ev.CallAgentAdd) else remove_agent
    try:
        await database.run(partial(change, act, event.agent))
    except REFUSALS as error:
        raise refusal(error) from None


async def take_agent_state(connection: ClientConnection, event: ev.CallAgentState) -> None:
    """Relay an agent's state in the call to the chat; only the agent's host may send it."""
    attached = connection.attached_to(event)
    session = attached.session
    await check_rate(connection, session.principal, "call signals", session.wire_id)
    chat_id = chat_of(attached, event.chat_id)
    try:
        await database.run(
            partial(
                hosted_agent,
                chat_id=chat_id,
                call_id=event.call_id,
                session_id=session.id,
                name=event.agent,
            )
        )
    except REFUSALS as error:
        raise refusal(error) from None
    user_id = session.principal.user_id
    sent = msgspec.structs.replace(
        event,
        event_id=None,
        timestamp=None,
        session_id=None,
        from_=str(user_id),
        chat_id=chat_id,
    )
    message = fanout.signal_message(chat_id=chat_id, frame=frame(sent), user_id=user_id)
    await fanout.send(fanout.chat_group(chat_id), message)

"""The session lifecycle on a connection: create, resume, update and end.

UAMP §5.1-5.3, §10. `session.created` is always the first reply.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from django.conf import settings

import uamp
from agents_app.providers.vendor_extensions import problem_of_extensions
from chat_app.calls.reading import current_call
from sessions_app import database, selectors, services, session_states
from sessions_app.access.protocol_rights import check_reads_all, check_scope
from sessions_app.billing import requests
from sessions_app.billing.events import required as payment_required
from sessions_app.billing.events import waiting_for
from sessions_app.connection.rate_limit import check_rate, check_text
from sessions_app.frames import frame
from sessions_app.handlers.announcements import session_created
from sessions_app.handlers.capabilities import capabilities_of
from sessions_app.handlers.registrations import register_agent, registers
from sessions_app.handlers.scopes import SCOPES
from sessions_app.handlers.tokens import verified
from sessions_app.handlers.turns.payments import pay_requests, take_payment_token
from sessions_app.process import registry
from sessions_app.queue.reading import current_queue
from sessions_app.tools import approvals, calls, delegated_calls
from sessions_app.transitions import TransitionRefused
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sessions_app.access.principal import Principal
    from sessions_app.connection.attached_session import AttachedSession
    from sessions_app.connection.client_connection import ClientConnection
    from sessions_app.models import ToolCall
    from sessions_app.records import OpenSession


async def create_session(connection: ClientConnection, event: ev.SessionCreate) -> None:
    """Open a session, or resume one that lost its connection (UAMP §5.1)."""
    _check_extensions(event.session.extensions)
    principal = await _principal_of(connection, event.token)
    if registers(event, principal):
        await register_agent(connection, event, principal)
        return
    if connection.receives:
        check_scope(principal, SCOPES[ev.SessionCreate])
    if event.resume is not None and event.resume.session_id is not None:
        session = await _resumed_session(principal, event)
        if session is not None:
            _check_room(connection, principal, session.chat_id)
            await hold_session(connection, session.id)
            await attach_session(connection, session, event)
            return
    if event.session.id in connection.sessions and not principal.is_visitor:
        raise RemoteProtocolError(
            ErrorCode.SESSION_EXISTS,
            "This connection already has a session with this id. Leave the id out.",
        )
    chat_id = event.chat or connection.defaults.chat
    _check_room(connection, principal, chat_id)
    await check_rate(connection, principal, "sessions")
    await check_text(connection, principal, len(msgspec.json.encode(event.session)))
    agent_name = event.agent or connection.defaults.agent
    session = await database.run(
        services.open_session,
        principal=principal,
        transport=connection.transport,
        create=event,
        agent_name=agent_name,
        chat_id=chat_id,
        held_by=connection.held_by,
        ephemeral=connection.defaults.ephemeral,
        follows_closed=connection.defaults.follows_closed,
    )
    await attach_session(connection, session, event, asked_agent=agent_name)


def _check_room(connection: ClientConnection, principal: Principal, chat_id: str | None) -> None:
    """Refuse too many sessions of one chat, each of which would receive all of its events."""
    limit = connection.limits.sessions_per_chat
    others = [a for a in connection.sessions_in(chat_id) if a.session.principal == principal]
    if len(others) >= limit:
        raise RemoteProtocolError(
            ErrorCode.TOO_MANY_SESSIONS, f"at most {limit} sessions of one chat on a connection"
        )


def _check_extensions(extensions: Mapping[str, Any]) -> None:
    problem = problem_of_extensions(extensions)
    if problem is not None:
        raise RemoteProtocolError(ErrorCode.INVALID_EVENT, problem)


async def _principal_of(connection: ClientConnection, token: str | None) -> Principal:
    if token is None:
        if connection.principal.is_expired:
            raise RemoteProtocolError(
                ErrorCode.TOKEN_EXPIRED, "This connection's token has expired. Send a new one."
            )
        return connection.principal
    principal = await verified(token, connection)
    connection.protocol.authenticated = True
    return principal


async def _resumed_session(principal: Principal, event: ev.SessionCreate) -> OpenSession | None:
    """Return the session to resume; None if a new session of the same chat must be opened.

    Anyone who knows the unguessable id of an anonymous session may resume it.
    """
    session_id = event.resume.session_id if event.resume else None
    if session_id is None:
        return None
    session = await find_session(session_id, principal)
    if session is None and event.chat is None:
        raise RemoteProtocolError(
            ErrorCode.UNKNOWN_SESSION, "There is no such session to resume. Create a new one."
        )
    return session


async def find_session(
    session_id: str, principal: Principal, *, receives: bool = True
) -> OpenSession | None:
    """Find a session on a database thread; see `known_session`."""
    return await database.run(known_session, session_id, principal, receives=receives)


def known_session(
    session_id: str, principal: Principal, *, receives: bool = True
) -> OpenSession | None:
    """Return a session of this principal, or a visitor's session by its id. Synchronous.

    None if the person is no longer in its chat, or the credential is not for that chat. An
    ephemeral session becomes permanent, since its client knows it. `receives` is False for a client
    that receives nothing of the session. Raises RemoteProtocolError forbidden if the client would
    receive something and its credential may not read chats.
    """
    if receives:
        check_scope(principal, SCOPES[ev.SessionCreate])
    if not services.SESSION_ID.fullmatch(session_id):
        return None
    if principal.is_visitor:
        if not settings.UAMP_ALLOW_ANONYMOUS:
            return None
        key = selectors.anonymous_session_principal(session_id)
        if key is None:
            return None
        principal = replace(principal, key=key)
    session = selectors.find_session(session_id, principal)
    if session is not None and session.ephemeral:
        if not session_states.keep_session(session.id):
            return None
        session.ephemeral = False
    if session is None or not _may_enter(session):
        return None
    return session


def _may_enter(session: OpenSession) -> bool:
    """Return whether the session's person and credential may still access its chat.

    Membership may have ended since the session was opened, also in a chat that began as the
    session's own: others can be added to it, and an owner among them may remove the person.
    """
    if not session.principal.rights.sees_chat(session.chat_id):
        return False
    if session.principal.user_id is None:
        return not session.chat_scoped
    return services.is_member(session)


async def hold_session(connection: ClientConnection, session_id: str) -> None:
    """Make a session active if its connection holds sessions.

    Raises RemoteProtocolError unknown_session if it has just been closed.
    """
    if not connection.held_by:
        return
    try:
        await database.run(session_states.hold_session, session_id, held_by=connection.held_by)
    except TransitionRefused:
        raise RemoteProtocolError(
            ErrorCode.UNKNOWN_SESSION, "The session has ended. Create a new one."
        ) from None


async def attach_session(
    connection: ClientConnection,
    session: OpenSession,
    event: ev.SessionCreate,
    *,
    asked_agent: str | None = None,
) -> None:
    """Attach a session: `session.created`, then what the client missed, then live events."""
    resume = event.resume
    goes_on = (
        resume is not None
        and resume.epoch in {None, session.epoch}
        and 0 <= resume.after <= session.last_seq
    )
    # Built before attaching, after which live events may be sent.
    created = await session_created(
        session,
        agent=asked_agent or session.agent_name,
        resumed=goes_on if resume is not None else None,
        has_past=resume is not None or session.chat_scoped,
    )
    attached = connection.attach(
        session, cursor=resume.after if resume is not None and goes_on else session.last_seq
    )
    # Join before reading the log: events in between may be seen twice, but are never missed.
    registry.current().followers.add(connection)
    await connection.join_chat(session.chat_id)
    if not session.is_shared and (resume is not None or session.chat_scoped):
        await registry.current().signals.watch_chat(session.chat_id)
    connection.reply(
        created,
        session_id=session.wire_id,
        in_reply_to=event.event_id,
    )
    connection.reply(
        ev.CapabilitiesAnnounced(capabilities=await capabilities_of(session)),
        session_id=session.wire_id,
        in_reply_to=event.event_id,
    )
    if resume is not None and not goes_on:
        connection.reply(
            RemoteProtocolError(
                ErrorCode.RESYNC,
                "The log cannot be resumed from there. Read the chat again over REST.",
                event_id=event.event_id,
                session_id=session.wire_id,
            ).to_event(),
            session_id=session.wire_id,
        )
    payment_token = event.payment_token or connection.defaults.payment_token
    if payment_token:
        await take_payment_token(session, payment_token)
    if resume is not None or session.is_shared:
        await _catch_up(connection, attached)


async def _catch_up(connection: ClientConnection, attached: AttachedSession) -> None:
    session, subscription = attached.session, attached.subscription
    connection.outgoing.put(partial(subscription.catch_up, replay=True))
    connection.outgoing.put(subscription.catch_up_running)
    for event in await database.run(delegated_calls.work_under_way, session.chat_id):
        subscription.send_signal(frame(event))
    for text in await waiting_frames(session):
        subscription.send_signal(text)
    if session.is_shared:
        for row in await database.run(requests.waits_for_others, session):
            subscription.send_signal(frame(waiting_for(row)))
        call = await database.run(current_call, session.chat_id)
        if call is not None:
            subscription.send_signal(frame(call))
        queue = await database.run(current_queue, session.chat_id)
        if queue is not None:
            subscription.send_signal(frame(queue))


async def waiting_frames(session: OpenSession) -> list[str]:
    """Return frames for everything that awaits the client: tool results, approvals, payments."""
    return await database.run(frames_waiting_in, session)


def frames_waiting_in(session: OpenSession) -> list[str]:
    """Return the frames of `waiting_frames`. Synchronous."""
    return [
        *(_call_frame(call) for call in calls.waiting_calls(session.id)),
        *(frame(approval) for approval in approvals.pending_approvals(session.chat_id)),
        *(
            frame(payment_required(row, row.response.agent.name))
            for row in requests.waiting_payments(session)
        ),
    ]


def _call_frame(call: ToolCall) -> str:
    return frame(
        ev.ToolCall(
            call_id=call.call_id,
            name=call.name,
            arguments=call.arguments,
            response_id=call.response_id,
        )
    )


async def update_session(connection: ClientConnection, event: ev.SessionUpdate) -> None:
    """Refresh tokens or change the configuration (UAMP §5.2, §10.3).

    Without a session_id, this applies to every session of the connection. A token of another
    principal is refused and the old one stays.
    """
    if event.session is not None:
        _check_extensions(event.session.extensions or {})
    targets = (
        list(connection.sessions.values())
        if event.session_id is None
        else [connection.sessions[event.session_id]]
    )
    if event.token is not None:
        await _refresh_token(connection, event.token, targets)
    if event.payment_token is not None:
        # It may pay for a waiting response; see `handlers.payments.take_payment`.
        await check_rate(connection, connection.principal, "payments", event.session_id)
    configs = await _changed_configs(connection, event, targets)
    for attached in targets:
        session = attached.session
        config = configs.get(session.wire_id)
        if config is not None:
            session.config = config
            await database.run(services.update_session, session.id, config=config)
        if event.payment_token is not None:
            await take_payment_token(session, event.payment_token)
        connection.reply(
            ev.SessionUpdated(), session_id=session.wire_id, in_reply_to=event.event_id
        )
        if event.payment_token is not None:
            await pay_requests(connection, attached, event.payment_token)


async def _refresh_token(
    connection: ClientConnection, token: str, targets: Sequence[AttachedSession]
) -> None:
    principal = await verified(token, connection)
    _check_still_reads(connection, principal, targets)
    if any(not principal.rights.sees_chat(attached.session.chat_id) for attached in targets):
        raise RemoteProtocolError(
            ErrorCode.UNAUTHORIZED, "The new token is not for the chat of a session."
        )
    if any(principal.key != attached.session.principal.key for attached in targets):
        raise RemoteProtocolError(
            ErrorCode.UNAUTHORIZED, "The new token belongs to another person."
        )
    withheld = {a.session.chat_id for a in targets if a.is_withheld()}
    for attached in targets:
        attached.session.principal = principal
    for chat_id in withheld:
        connection.read_again(chat_id)
    if principal.key == connection.principal.key:
        # The connection itself should outlive the token that it was opened with.
        connection.principal = principal


def _check_still_reads(
    connection: ClientConnection, principal: Principal, targets: Sequence[AttachedSession]
) -> None:
    """Raise RemoteProtocolError forbidden if a new token does not cover what is being received."""
    if targets and connection.receives:
        check_scope(principal, SCOPES[ev.SessionCreate])
    if connection.watch is not None and principal.key == connection.principal.key:
        check_scope(principal, SCOPES[ev.ChatsWatch])
        check_reads_all(principal)


async def _changed_configs(
    connection: ClientConnection, event: ev.SessionUpdate, targets: Sequence[AttachedSession]
) -> Mapping[str, uamp.SessionConfig]:
    """Return the sessions' new configurations by id; raises RemoteProtocolError.

    Each is written in full, so all of its bytes count, however small the event is.
    """
    changes = event.session
    if changes is None:
        return {}
    configs: dict[str, uamp.SessionConfig] = {}
    for attached in targets:
        session = attached.session
        config = configs[session.wire_id] = changes.apply_to(session.config)
        size = len(msgspec.json.encode(config))
        await check_text(connection, session.principal, size, session.wire_id)
    return configs


async def end_session(connection: ClientConnection, event: ev.SessionEnd) -> None:
    """End a session and reply `session.end`; its running responses continue (UAMP §5.3)."""
    attached = connection.detach(event.session_id or "")
    if attached is None:
        raise RemoteProtocolError(ErrorCode.UNKNOWN_SESSION, "this connection has no such session")
    reason = event.reason or "user_left"
    await database.run(session_states.close_session, attached.session.id, reason=reason)
    wire_id = attached.session.wire_id
    connection.send_frame(frame(ev.SessionEnd(session_id=wire_id, reason=reason)), wire_id)

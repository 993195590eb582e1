"""The life of sessions on a connection: create, resume, update, end, and capabilities.

UAMP §5.1-5.4, §9.1, §10; resume is DESIGN D2. `session.created` is always the first answer.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from django.conf import settings

import uamp
from agents_app import selectors as agents
from agents_app.capabilities import agent_capabilities, server_capabilities
from payments_app import tokens
from sessions_app import auth, calls, database, payment_requests, runner, selectors, services
from sessions_app.frames import frame
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from sessions_app.attached import Attached
    from sessions_app.auth import Principal
    from sessions_app.models import ToolCall
    from sessions_app.peer import Peer
    from sessions_app.selectors import OpenSession


async def create_session(peer: Peer, event: ev.SessionCreate) -> None:
    """Open a session, or go on with one that lost its connection (UAMP §5.1)."""
    principal = await _principal_of(peer, event.token)
    if event.resume is not None and event.resume.session_id is not None:
        session = await _resumed_session(principal, event)
        if session is not None:
            await attach_session(peer, session, event)
            return
    agent_name = event.agent or peer.defaults.agent
    session = await database.run(
        services.open_session,
        principal=principal,
        transport=peer.transport,
        create=event,
        agent_name=agent_name,
        chat_id=event.chat or peer.defaults.chat,
    )
    await attach_session(peer, session, event, asked_agent=agent_name)


async def _principal_of(peer: Peer, token: str | None) -> Principal:
    if token is None:
        if peer.principal.is_expired:
            raise RemoteProtocolError(
                ErrorCode.TOKEN_EXPIRED, "The token of this connection has expired. Send a new one."
            )
        return peer.principal
    principal = await verified(token, address=peer.principal.address)
    peer.connection.authenticated = True
    return principal


async def verified(token: str, *, address: str) -> Principal:
    """Return whose token this is; raises RemoteProtocolError (unauthorized, token_expired)."""
    try:
        principal = await database.run(auth.verify_token, token)
    except auth.AuthenticationError as error:
        raise RemoteProtocolError(ErrorCode(error.code), str(error)) from None
    return replace(principal, address=address)


async def _resumed_session(principal: Principal, event: ev.SessionCreate) -> OpenSession | None:
    """Return the session to go on with; None where a new one of the same chat must do.

    An anonymous session belongs to whoever knows its id, which nobody can guess.
    """
    session_id = event.resume.session_id if event.resume else None
    if session_id is None:
        return None
    session = await find_session(session_id, principal)
    if session is None and event.chat is None:
        raise RemoteProtocolError(
            ErrorCode.UNKNOWN_SESSION, "There is no such session to go on with. Create a new one."
        )
    return session


async def find_session(session_id: str, principal: Principal) -> OpenSession | None:
    """Return a session of this principal, or an anonymous one by its id."""
    if not services.SESSION_ID.fullmatch(session_id):
        return None
    if principal.is_anonymous:
        if not settings.UAMP_ALLOW_ANONYMOUS:
            return None
        key = await database.run(selectors.anonymous_session_principal, session_id)
        if key is None:
            return None
        principal = replace(principal, key=key)
    session = await database.run(selectors.find_session, session_id, principal)
    if session is None or not session.chat_scoped:
        return session
    # Membership may have ended since the session was opened.
    member = await database.run(services.is_member, session)
    return session if member else None


async def attach_session(
    peer: Peer, session: OpenSession, event: ev.SessionCreate, *, asked_agent: str | None = None
) -> None:
    """Put a session on the connection: told, then caught up, then live."""
    resume = event.resume
    goes_on = (
        resume is not None
        and resume.epoch in {None, session.epoch}
        and 0 <= resume.after <= session.last_seq
    )
    attached = peer.attach(
        session, cursor=resume.after if resume is not None and goes_on else session.last_seq
    )
    # Heard before it is read: what comes in between is found twice, never missed.
    await peer.hear(session.chat_id)
    if not session.is_shared and (resume is not None or session.chat_scoped):
        await runner.current().watch_chat(session.chat_id)
    name = asked_agent or session.agent_name
    peer.reply(
        session_created(session, agent=name, resumed=goes_on if resume is not None else None),
        session_id=session.id,
        in_reply_to=event.event_id,
    )
    peer.reply(
        ev.CapabilitiesAnnounced(capabilities=await _capabilities_of(session)),
        session_id=session.id,
        in_reply_to=event.event_id,
    )
    if resume is not None and not goes_on:
        peer.reply(
            RemoteProtocolError(
                ErrorCode.RESYNC,
                "The log cannot be continued from there. Read the chat again by REST.",
                event_id=event.event_id,
                session_id=session.id,
            ).to_event(),
            session_id=session.id,
        )
    if event.payment_token is not None:
        await take_payment_token(peer, session, event.payment_token)
    if resume is not None or session.is_shared:
        await _catch_up(peer, attached)


def session_created(
    session: OpenSession, *, agent: str | None, resumed: bool | None
) -> ev.SessionCreated:
    """Return the event that tells of a session (UAMP §6.1)."""
    return ev.SessionCreated(
        uamp_version=uamp.VERSION,
        session=uamp.Session(
            id=session.id,
            created_at=int(session.created_at.timestamp()),
            config=session.config,
            status="active",
            agent=agent,
            agent_id=session.agent_id,
        ),
        session_id=session.id,
        chat=session.chat_id,
        agent=agent,
        epoch=session.epoch,
        seq=session.last_seq,
        resumed=resumed,
    )


async def _catch_up(peer: Peer, attached: Attached) -> None:
    session, feed = attached.session, attached.feed
    peer.put(partial(feed.catch_up, replay=True))
    peer.put(feed.catch_up_running)
    for shown in await database.run(calls.work_under_way, session.chat_id):
        peer.put(partial(feed.direct, frame(shown)))
    for call in await database.run(selectors.waiting_calls, session.id):
        peer.put(partial(feed.direct, _call_frame(call)))
    for approval in await database.run(calls.asking_calls, session.chat_id):
        peer.put(partial(feed.direct, frame(approval)))
    for row in await database.run(payment_requests.waiting_payments, session):
        asked = runner.payment_required(row, row.response.agent.name)
        peer.put(partial(feed.direct, frame(asked)))


def _call_frame(call: ToolCall) -> str:
    return frame(
        ev.ToolCall(
            call_id=call.call_id,
            name=call.name,
            arguments=call.arguments,
            response_id=call.response_id,
        )
    )


async def _capabilities_of(session: OpenSession) -> uamp.Capabilities:
    if session.agent_id is None:
        return server_capabilities()
    spec = await database.run(agents.get_spec, session.agent_id)
    return agent_capabilities(spec)


async def update_session(peer: Peer, event: ev.SessionUpdate) -> None:
    """Refresh tokens or change the configuration (UAMP §5.2, §10.3).

    Without a session_id it concerns every session of the connection. A token of somebody else is
    refused, and the old one stays.
    """
    targets = (
        list(peer.sessions.values())
        if event.session_id is None
        else [peer.sessions[event.session_id]]
    )
    if event.token is not None:
        principal = await verified(event.token, address=peer.principal.address)
        if any(principal.key != attached.session.principal.key for attached in targets):
            raise RemoteProtocolError(
                ErrorCode.UNAUTHORIZED, "The new token belongs to somebody else."
            )
        for attached in targets:
            attached.session.principal = principal
        if principal.key == peer.principal.key:
            # The connection itself shall not end with the token that it was opened with.
            peer.principal = principal
    for attached in targets:
        session = attached.session
        if event.session is not None:
            session.config = event.session.apply_to(session.config)
            await database.run(services.update_session, session.id, config=session.config)
        if event.payment_token is not None:
            await take_payment_token(peer, session, event.payment_token)
        peer.reply(ev.SessionUpdated(), session_id=session.id, in_reply_to=event.event_id)
        if event.payment_token is not None:
            await _pay_what_waits(peer, session, event.payment_token)


async def _pay_what_waits(peer: Peer, session: OpenSession, secret: str) -> None:
    """Pay what waits with a token that came with session.update (transports, UAMP)."""
    for row in await database.run(payment_requests.waiting_payments, session):
        submit = ev.PaymentSubmit(
            payment=ev.Payment(scheme="token", token=secret), response_id=row.response_id
        )
        try:
            await database.run(payment_requests.submit, session, submit)
        except LookupError:
            continue
        except payment_requests.PaymentRefused as refused:
            peer.reply(refused.event, session_id=session.id)
            return
        await runner.current().settle_payment(row.response_id, row.pk)


async def take_payment_token(peer: Peer, session: OpenSession, secret: str) -> None:
    """Keep the token that a session's answers are paid with; a bad one is answered (UAMP §7.2)."""
    try:
        token = await database.run(tokens.resolve, secret)
    except tokens.TokenRefused as error:
        refused = ev.PaymentError(code=error.code, message=str(error), can_retry=True)
        peer.reply(refused, session_id=session.id)
        return
    session.payment_token_id = token.id
    await database.run(services.keep_payment_token, session.id, token.id)


async def end_session(peer: Peer, event: ev.SessionEnd) -> None:
    """End a session; the answer says so, and its running responses go on (UAMP §5.3)."""
    attached = peer.detach(event.session_id or "")
    if attached is None:
        raise RemoteProtocolError(ErrorCode.UNKNOWN_SESSION, "no such session here")
    reason = event.reason or "user_left"
    await database.run(services.close_session, attached.session.id, reason=reason)
    peer.send_frame(
        frame(ev.SessionEnd(session_id=attached.session.id, reason=reason)), attached.session.id
    )


async def query_capabilities(peer: Peer, event: ev.CapabilitiesQuery) -> None:
    """Say what an agent, by name, or this server can do (UAMP §5.4, §9.1)."""
    session_id = event.session_id
    if session_id is None and len(peer.sessions) == 1:
        session_id = next(iter(peer.sessions))
    attached = peer.sessions.get(session_id or "")
    if session_id is not None and attached is None:
        raise RemoteProtocolError(ErrorCode.UNKNOWN_SESSION, "no such session here")
    if event.model is not None:
        principal = attached.session.principal if attached else peer.principal
        spec = await database.run(services.agent_by_name, event.model, principal)
        capabilities = agent_capabilities(spec)
    elif attached is not None:
        capabilities = await _capabilities_of(attached.session)
    else:
        capabilities = server_capabilities()
    peer.reply(
        ev.CapabilitiesAnnounced(capabilities=capabilities),
        session_id=session_id,
        in_reply_to=event.event_id,
    )

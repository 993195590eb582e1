"""Daemons that register agents on their socket and answer there (UAMP §10.2).

Only a credential that is limited to agents registers them, such as a connect token. Like all events
for the agent, `session.created` repeats the name that the daemon sent. Events of a turn go straight
to its run.
"""

from __future__ import annotations

import secrets
import time
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec
from django.utils import timezone

import uamp
from agents_app import connections
from agents_app.capabilities import agent_capabilities
from sessions_app import database
from sessions_app.access.connect_tokens import only_connects
from sessions_app.access.protocol_rights import check_scope
from sessions_app.connected.agent_socket import AgentSocket, RegisteredAgent
from sessions_app.connection import presence
from sessions_app.connection.rate_limit import check_rate, check_text
from sessions_app.frames import frame
from sessions_app.handlers.tokens import verified
from sessions_app.process import registry
from sessions_app.process.followers import counted_as
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_app.selectors import AgentSpec
    from sessions_app.access.principal import Principal
    from sessions_app.connection.client_connection import ClientConnection

CAPABILITIES_BYTES: Final = 16 * 1024
"""Size limit for a daemon's announcement of one agent, as JSON."""


def registers(event: ev.SessionCreate, principal: Principal) -> bool:
    """Return whether a session.create registers an agent, judging by its form or its token."""
    return event.registers or only_connects(principal.rights)


async def register_agent(
    connection: ClientConnection, event: ev.SessionCreate, principal: Principal
) -> None:
    """Register the client as a daemon for an agent; raises RemoteProtocolError."""
    name = event.agent or connection.defaults.agent
    if not name:
        raise RemoteProtocolError(ErrorCode.INVALID_EVENT, "Specify the agent to register.")
    _check_may_register(connection, principal)
    await check_rate(connection, principal, "sessions")
    spec = await _claimed(name, principal)
    link = _link_of(connection)
    if link.has_agent(spec.id):
        raise _already_registered()
    if event.client_capabilities is not None:
        await _check_capabilities(connection, principal, event.client_capabilities)
    daemon = RegisteredAgent(
        link,
        agent_id=spec.id,
        name=name,
        session_id=f"sess_{secrets.token_hex(16)}",
        principal=principal,
        capabilities=event.client_capabilities,
    )
    await _written(daemon)
    # Nothing may fail between writing the row and this, or other processes would send turns to a
    # daemon that no one serves.
    link.register(daemon)
    _reply_created(connection, event, daemon, spec)
    registry.current().connected.admit(daemon)
    if connection.presence_id is not None:
        # The socket belongs to a program, so the person is not online.
        presence_id, connection.presence_id = connection.presence_id, None
        await presence.leave(connection.principal, presence_id)


def _check_may_register(connection: ClientConnection, principal: Principal) -> None:
    if principal.user_id is None:
        raise RemoteProtocolError(
            ErrorCode.UNAUTHORIZED, "Register an agent with a token of its owner."
        )
    check_scope(principal, connections.CONNECT)
    if principal.rights.agents is None:
        # A mistyped name must not create an agent.
        raise RemoteProtocolError(
            ErrorCode.FORBIDDEN,
            "This key is not limited to an agent. Create a connect token for the agent that you"
            " register.",
        )
    if connection.transport != "websocket":
        raise RemoteProtocolError(
            ErrorCode.FORBIDDEN,
            "An agent can only be registered over a WebSocket, which delivers its turns.",
        )
    followers = registry.current().followers
    if counted_as(connection) != principal.counted_as and not followers.has_room_for(principal):
        raise RemoteProtocolError(
            ErrorCode.RATE_LIMITED, "You have too many open connections. Close one first."
        )
    if registry.current().draining:
        raise RemoteProtocolError(
            ErrorCode.UNAVAILABLE,
            "The server is stopping. Connect again in a moment.",
            details={"retry_after": 1},
        )


async def _claimed(name: str, principal: Principal) -> AgentSpec:
    claim = partial(
        connections.claim, name, owner_id=principal.user_id or 0, rights=principal.rights
    )
    try:
        return await database.run(claim)
    except connections.NameNotYours:
        raise RemoteProtocolError(
            ErrorCode.FORBIDDEN, "This token may not register that name."
        ) from None


def _already_registered() -> RemoteProtocolError:
    return RemoteProtocolError(
        ErrorCode.SESSION_EXISTS, "This connection has registered the agent already."
    )


async def _written(daemon: RegisteredAgent) -> None:
    try:
        await registry.current().connected.write(daemon)
    except connections.AlreadyRegistered:
        raise _already_registered() from None
    except connections.TooManyDaemons:
        raise RemoteProtocolError(
            ErrorCode.TOO_MANY_SESSIONS, "This agent has the maximum number of daemons."
        ) from None
    except connections.NameNotYours:
        raise RemoteProtocolError(ErrorCode.FORBIDDEN, "The agent was deleted.") from None


def _link_of(connection: ClientConnection) -> AgentSocket:
    if connection.agent_socket is None:
        process = registry.current()

        def remove_daemons(daemons: Sequence[RegisteredAgent]) -> None:
            process.spawn(process.connected.remove(daemons), name="agents gone")

        connection.agent_socket = AgentSocket(
            origin=connection.origin,
            base_url=connection.defaults.base_url,
            protocol=connection.protocol,
            send=connection.send_frame,
            on_change=process.connected.changed,
            on_lost=remove_daemons,
        )
    return connection.agent_socket


def _reply_created(
    connection: ClientConnection, event: ev.SessionCreate, daemon: RegisteredAgent, spec: AgentSpec
) -> None:
    session = uamp.Session(
        id=daemon.session_id,
        created_at=int(timezone.now().timestamp()),
        config=msgspec.structs.replace(event.session, id=None),
        agent=daemon.name,
        agent_id=daemon.agent_id,
    )
    created = ev.SessionCreated(session=session, session_id=daemon.session_id, agent=daemon.name)
    for reply in (created, ev.CapabilitiesAnnounced(capabilities=agent_capabilities(spec))):
        connection.reply(reply, session_id=daemon.session_id, in_reply_to=event.event_id)


async def _check_capabilities(
    connection: ClientConnection, principal: Principal, capabilities: uamp.Capabilities
) -> None:
    size = len(msgspec.json.encode(capabilities))
    if size > CAPABILITIES_BYTES:
        raise RemoteProtocolError(
            ErrorCode.EVENT_TOO_LARGE,
            f"An agent's capabilities may have at most {CAPABILITIES_BYTES} bytes.",
        )
    await check_text(connection, principal, size)


# --- Events of daemons ---


def take_answer(connection: ClientConnection, event: uamp.Event, size: int) -> bool:
    """Pass an event of a turn to its run; return False if it is not an agent's event.

    `size` is the size of its frame. Raises RemoteProtocolError.
    """
    link = connection.agent_socket
    if link is None:
        return False
    link.received_at, link.took = time.monotonic(), False
    if isinstance(event, uamp.UnknownEvent | uamp.Repeated) or not link.is_for_turn(event):
        return False
    link.took = True
    link.take(event, size)
    return True


async def take_registration_event(connection: ClientConnection, event: uamp.Event) -> bool:
    """Handle an event about a registration; return False if another handler should.

    Raises RemoteProtocolError.
    """
    link = connection.agent_socket
    if link is None or isinstance(event, ev.SessionCreate | ev.Ping | ev.CapabilitiesQuery):
        return False
    if isinstance(event, ev.SessionUpdate) and event.session_id is None:
        await _update(connection, event, list(link.daemons.values()))
        return not connection.sessions
    daemon = link.daemons.get(event.session_id or "")
    if daemon is None:
        return False
    match event:
        case ev.SessionUpdate():
            await _update(connection, event, [daemon])
        case ev.SessionEnd():
            link.take_out(daemon.session_id)
            # Before the reply, since the daemon may immediately register the agent again.
            await registry.current().connected.remove([daemon])
            reason = event.reason or "ended"
            ended = ev.SessionEnd(session_id=daemon.session_id, reason=reason)
            connection.send_frame(frame(ended), daemon.session_id)
        case ev.ClientCapabilities(capabilities=capabilities):
            await _announce(connection, daemon, capabilities)
        case ev.CapabilitiesAnnounced(capabilities=capabilities):
            await _announce(connection, daemon, capabilities)
        case _:
            raise RemoteProtocolError(
                ErrorCode.INVALID_EVENT,
                "This session registers an agent. Create another one to talk to agents.",
            )
    return True


async def _announce(
    connection: ClientConnection, daemon: RegisteredAgent, capabilities: uamp.Capabilities
) -> None:
    await _check_capabilities(connection, daemon.principal, capabilities)
    daemon.capabilities = capabilities
    if daemon.row is not None:
        await database.run(connections.announce, daemon.row, capabilities)


async def _update(
    connection: ClientConnection, event: ev.SessionUpdate, daemons: list[RegisteredAgent]
) -> None:
    """Accept a new token of the same person for registrations (UAMP §10.3)."""
    if event.token is not None:
        principal = await verified(event.token, connection)
        check_scope(principal, connections.CONNECT)
        for daemon in daemons:
            is_same = principal.user_id == daemon.principal.user_id
            if not is_same or not principal.rights.may_ask(daemon.agent_id):
                raise RemoteProtocolError(
                    ErrorCode.UNAUTHORIZED, "The new token is not for this agent."
                )
        for daemon in daemons:
            daemon.principal = principal
        rows = [daemon.row for daemon in daemons if daemon.row is not None]
        await database.run(connections.change_key, rows, principal.api_key_id)
    for daemon in daemons:
        connection.reply(
            ev.SessionUpdated(), session_id=daemon.session_id, in_reply_to=event.event_id
        )

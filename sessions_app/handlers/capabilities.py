"""Capabilities of servers, agents and clients: queries, announcements and storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

import uamp
from agents_app import selectors as agents
from agents_app.capabilities import CONVERSATION, agent_capabilities, server_capabilities
from sessions_app import database, services
from sessions_app.connection.rate_limit import check_text
from sessions_app.turn.targets import agent_spec
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from agents_app.selectors import AgentSpec
    from sessions_app.connection.client_connection import ClientConnection
    from sessions_app.records import OpenSession


async def capabilities_of(session: OpenSession) -> uamp.Capabilities:
    """Return the capabilities of a session's agent or, without an agent, of this server."""
    if session.agent_id is None:
        return server_capabilities()
    return _of_agent(await agent_spec(session.agent_id))


def _of_agent(spec: AgentSpec) -> uamp.Capabilities:
    """Return an agent's capabilities, including those of the conversations it takes part in."""
    return msgspec.structs.replace(agent_capabilities(spec), conversation=CONVERSATION)


def _capabilities_by_name(name: str, viewer: int | None) -> uamp.Capabilities | None:
    """Return the capabilities of an agent or, under the model's name, of a model."""
    if (spec := agents.get_agent(name, viewer=viewer)) is not None:
        return _of_agent(spec)
    if (spec := agents.agent_with_model(name, viewer=viewer)) is not None:
        return msgspec.structs.replace(_of_agent(spec), id=name, model_id=name)
    return None


async def query_capabilities(connection: ClientConnection, event: ev.CapabilitiesQuery) -> None:
    """Announce the capabilities of a model, an agent or this server (UAMP §5.4, §9.1).

    `model` is an agent's name or id, or a model that an agent uses. If the caller may use no such
    agent, a session receives those of its own agent, with that agent's `id`; without a session the
    error is agent_not_found.
    """
    session_id = event.session_id
    if session_id is None and len(connection.sessions) == 1:
        session_id = next(iter(connection.sessions))
    attached = connection.sessions.get(session_id or "")
    if session_id is not None and attached is None:
        raise RemoteProtocolError(ErrorCode.UNKNOWN_SESSION, "this connection has no such session")
    principal = attached.session.principal if attached else connection.principal
    capabilities = None
    if event.model is not None:
        capabilities = await database.run(_capabilities_by_name, event.model, principal.user_id)
    if capabilities is None and attached is not None:
        capabilities = await capabilities_of(attached.session)
    elif capabilities is None and event.model is not None:
        raise RemoteProtocolError(
            ErrorCode.AGENT_NOT_FOUND, "No agent that you may use has this name, id or model."
        )
    connection.reply(
        ev.CapabilitiesAnnounced(capabilities=capabilities or server_capabilities()),
        session_id=session_id,
        in_reply_to=event.event_id,
    )


async def take_client_capabilities(
    connection: ClientConnection, event: ev.ClientCapabilities
) -> None:
    """Store the client's capabilities (UAMP §5.5)."""
    attached = connection.attached_to(event)
    session, size = attached.session, len(msgspec.json.encode(event.capabilities))
    await check_text(connection, session.principal, size, session.wire_id)
    await database.run(
        services.update_session, attached.session.id, client_capabilities=event.capabilities
    )
    attached.session.client_capabilities = event.capabilities

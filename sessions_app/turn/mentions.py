"""Agents mentioned in another agent's answer: a turn without a client message.

The turn runs on behalf of the original asker: in their session, against their limits, and at their
expense like their other turns, within the agents that their credential may ask. Guards in
`chat_app.members.agents.agent_mentions` bound how far it goes.
"""

from __future__ import annotations

import hashlib
import logging
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

import uamp
from agents_app.rest.rights import restricted_rights
from chat_app.members.agents.agent_mentions import MentionStop, agents_asked, append_stops
from chat_app.members.membership import AgentMember
from sessions_app import database
from sessions_app.access.principal import Principal
from sessions_app.models import Response, Session
from sessions_app.selectors import session_on_behalf
from sessions_app.session_states import session_like
from sessions_app.turn.request import TurnRequest
from sessions_app.turn.start import start_response
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chat_app.log.entries import NewMessage
    from sessions_app.response.context import RunContext

logger = logging.getLogger(__name__)

NOT_FOR_IT: Final = "the asker's credential does not permit it."


async def ask_mentioned(context: RunContext, message: NewMessage) -> None:
    """Start the responses of the agents that an answer mentions; a refusal is added to the log."""
    request = await database.run(_request, context, message)
    if request is None:
        return
    rights = request.session.principal.rights
    members = [member for member in request.asked if rights.may_ask(member.agent_id)]
    refused = [member for member in request.asked if member not in members]
    await _append_refusals(context, message, refused, NOT_FOR_IT)
    if not members:
        return
    try:
        await start_response(msgspec.structs.replace(request, asked=members), None)
    except uamp.RemoteProtocolError as error:
        logger.info("the mentions of %s are not answered: %s", context.response_id, error.message)
        await _append_refusals(context, message, members, error.message)


async def _append_refusals(
    context: RunContext, message: NewMessage, members: Sequence[AgentMember], why: str
) -> None:
    stops = [
        MentionStop(
            agent_id=member.agent_id,
            agent=member.name,
            reason="refused",
            words=f"{context.spec.name} mentioned {member.name}, which does not answer: {why}",
            mentioned_by=context.spec.name,
        )
        for member in members
    ]
    write = partial(append_stops, message_id=message.id, thread=context.thread)
    await database.run(write, context.chat_id, stops)


def _request(context: RunContext, message: NewMessage) -> TurnRequest | None:
    """Return a turn for the agents that an answer mentions, if any. Synchronous."""
    row = Response.objects.filter(pk=context.response_id).select_related("session__chat").first()
    if row is None or row.session is None:
        return None
    hops = int(row.request.get("hops", 0))
    # If one message asked several agents, they are not asked again when one mentions another.
    together = Response.objects.filter(message_id=row.message_id) if row.message_id else ()
    members = agents_asked(
        context.chat_id,
        by=AgentMember(context.spec.id, context.spec.name, "mention"),
        asker=row.session.user_id,
        text=message.content,
        hops=hops,
        but={member.agent_id for member in together},
        message_id=message.id,
        thread=context.thread,
    )
    if not members:
        return None
    event_id = f"mentions-{context.response_id}"
    session = row.session if row.session.status in Session.OPEN else session_like(row.session)
    principal = Principal(
        key=session.principal,
        user_id=session.user_id,
        username=session.user.get_username() if session.user else "",
        credential=str(row.request.get("credential", "")),
        actors=context.actors,
        rights=restricted_rights(row.request.get("agents"), row.request.get("chats")),
        servers=int(row.request.get("servers", 0)),
    )
    return TurnRequest(
        session=session_on_behalf(row, session, principal),
        event_id=event_id,
        sha256=hashlib.sha256(event_id.encode()).hexdigest(),
        inputs=[],
        create=ev.ResponseCreate(event_id=event_id, session_id=session.pk),
        counted_as=context.counted_as,
        asked=members,
        hops=hops + 1,
        mentioned_in=message,
        thread=context.thread,
        unprompted=bool(row.request.get("unprompted")),
    )

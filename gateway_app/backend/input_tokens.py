"""An estimate of the tokens that an agent's model would read for a turn, without asking it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import uamp
from agents_app import selectors as agents
from chat_app.contents.quota import ContentOwner
from chat_app.contents.reading_rights import ContentNotFound, readable
from sessions_app import database
from sessions_app.access.protocol_rights import check_scope
from sessions_app.billing.media_weights import media_ids, read_extents
from sessions_app.billing.weights import whole_input
from sessions_app.response.request import ResponseRequest, run_request
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway_app.types.client_turn import ClientTurn
    from sessions_app.access.principal import Principal


async def input_tokens(principal: Principal, turn: ClientTurn) -> int:
    """Estimate the input of a turn that carries its whole conversation (docs/money.md).

    Nothing is stored or charged. Raises RemoteProtocolError, including when the caller may use
    no such agent.
    """
    check_scope(principal, "messages:write")
    name = turn.session.agent or ""
    spec = await database.run(partial(agents.get_agent, name, viewer=principal.user_id))
    if spec is None or not principal.rights.may_ask(spec.id):
        raise RemoteProtocolError(ErrorCode.AGENT_NOT_FOUND, f"There is no agent {name!r}.")
    config = turn.response.response or uamp.ResponseConfig()
    history = config.messages or ()
    request = run_request(
        "",
        uamp.SessionConfig(),
        ResponseRequest(
            instructions=config.instructions,
            tools=config.tools,
            response_format=turn.response.response_format,
            ends_at_tools=True,
        ),
        history,
    )
    ids = media_ids(history)
    owner = ContentOwner(user_id=principal.user_id, chats=principal.rights.chats)
    readable = await database.run(_readable, ids, owner) if ids else []
    extents = await read_extents(readable, principal.counted_as) if readable else {}
    return whole_input(spec, request, extents)


def _readable(ids: Sequence[str], owner: ContentOwner) -> list[str]:
    """Return the ids of the contents that a caller may read; the others count as unknown."""
    return [content_id for content_id in ids if _may_read(content_id, owner)]


def _may_read(content_id: str, owner: ContentOwner) -> bool:
    try:
        readable(content_id, owner=owner)
    except ContentNotFound:
        return False
    return True

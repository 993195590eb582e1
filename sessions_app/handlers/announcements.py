"""`session.created`: the first event of a session (UAMP §6.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

import uamp
from chat_app.log.shared_state import read_state
from sessions_app import database
from uamp import events as ev

if TYPE_CHECKING:
    from sessions_app.records import OpenSession


async def session_created(
    session: OpenSession, *, agent: str | None, resumed: bool | None, has_past: bool
) -> ev.SessionCreated:
    """Return the event that announces a session, with its chat's state if the chat `has_past`.

    The state may be newer than `seq`; its version identifies the changes that it already contains.
    """
    created = ev.SessionCreated(
        uamp_version=uamp.VERSION,
        session=uamp.Session(
            id=session.wire_id,
            created_at=int(session.created_at.timestamp()),
            config=session.config,
            status="active",
            agent=agent,
            agent_id=session.agent_id,
        ),
        session_id=session.wire_id,
        chat=session.chat_id,
        agent=agent,
        epoch=session.epoch,
        seq=session.last_seq,
        resumed=resumed,
    )
    if not has_past:
        return created
    state = await database.run(read_state, session.chat_id)
    if not state.version:
        return created
    return msgspec.structs.replace(created, state=state.value, state_version=state.version)

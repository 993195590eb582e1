"""Reads of the caller's own sessions, for protocols whose clients list and load them.

The sessions of other callers are not found.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.core import signing
from django.utils.dateparse import parse_datetime

import uamp
from chat_app.log import history
from gateway_app.types.stored_response import own_extension
from sessions_app import database
from sessions_app.access.protocol_rights import check_reads_all, check_scope
from sessions_app.handlers.sessions import find_session
from sessions_app.returning import open_sessions
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sessions_app.access.principal import Principal
    from sessions_app.records import OpenSession

HISTORY_MESSAGES: Final = 500
HISTORY_BYTES: Final = 2 * 1024 * 1024
SESSIONS: Final = 50
_SALT: Final = "gateway_app.doors.kept_sessions"


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedSession:
    """A session in a list; `extension` is the data that the protocol stores with it."""

    id: str
    extension: dict[str, Any]
    title: str
    changed_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadedSession:
    """A session's last messages, and the log position that they reach.

    At most HISTORY_MESSAGES and HISTORY_BYTES, except that the last message is always included.
    """

    messages: Sequence[uamp.Message]
    chat_id: str
    epoch: str
    seq: int


async def own_session(session_id: str, principal: Principal, *, agent: str | None) -> OpenSession:
    """Return the caller's open session with the agent of the path, or with any agent.

    Raises RemoteProtocolError unknown_session.
    """
    session = await find_session(session_id, principal)
    if session is None or not _is_with(session.agent_name, agent):
        raise RemoteProtocolError(
            ErrorCode.UNKNOWN_SESSION, "There is no such session, or it is not yours."
        )
    return session


def _is_with(agent_name: str | None, agent: str | None) -> bool:
    return None in {agent_name, agent} or str(agent_name).casefold() == str(agent).casefold()


class SessionReader:
    """The sessions of one caller with one agent over one protocol.

    `extension` names the session extension in which the protocol stores its data.
    """

    def __init__(
        self, principal: Principal, *, transport: str, agent: str | None, extension: str
    ) -> None:
        self._principal = principal
        self._transport, self._agent, self._extension = transport, agent, extension

    async def page(self, cursor: str = "") -> tuple[list[ListedSession], str]:
        """Return a page of open sessions, newest first, and the cursor of the next page.

        Raises RemoteProtocolError for a cursor of another list.
        """
        check_scope(self._principal, "chats:read")
        check_reads_all(self._principal)
        listed = [self._principal.key, self._transport, self._agent or ""]
        read = partial(
            open_sessions.list_sessions,
            self._principal,
            transport=self._transport,
            agent=self._agent,
            limit=SESSIONS + 1,
            before=_read_cursor(cursor, listed) if cursor else None,
        )
        rows = await database.run(read)
        following = ""
        if len(rows) > SESSIONS:
            last = rows[SESSIONS - 1]
            place = [*listed, last.created_at.isoformat(), last.row_id]
            following = signing.dumps(place, salt=_SALT)
        sessions = [
            ListedSession(
                id=row.id,
                extension=own_extension(row.extensions, self._extension),
                title=row.title,
                changed_at=row.seen_at,
            )
            for row in rows[:SESSIONS]
        ]
        return sessions, following

    async def load(self, session_id: str) -> LoadedSession:
        """Return a session's messages; raises RemoteProtocolError unknown_session."""
        check_scope(self._principal, "chats:read")
        session = await own_session(session_id, self._principal, agent=self._agent)
        read = partial(
            history.history,
            session.chat_id,
            limit=HISTORY_MESSAGES,
            before=session.last_seq + 1,
        )
        messages = [
            uamp.Message(
                role=message.role,
                content=message.content,
                content_items=message.content_items or None,
            )
            for message in await database.run(read)
        ]
        return LoadedSession(
            messages=_last(messages),
            chat_id=session.chat_id,
            epoch=session.epoch,
            seq=session.last_seq,
        )


def _last(messages: Sequence[uamp.Message]) -> Sequence[uamp.Message]:
    """Return the last messages that fit into HISTORY_BYTES, at least one."""
    remaining = HISTORY_BYTES
    for count, message in enumerate(reversed(messages)):
        remaining -= len(msgspec.json.encode(message))
        if remaining < 0:
            return messages[-max(count, 1) :]
    return messages


def _read_cursor(cursor: str, listed: Sequence[str]) -> tuple[datetime, str]:
    try:
        *named, at, pk = signing.loads(cursor, salt=_SALT)
    except (signing.BadSignature, ValueError):
        named, at, pk = [], "", ""
    moment = parse_datetime(at) if named == list(listed) else None
    if moment is None:
        raise RemoteProtocolError(
            ErrorCode.INVALID_EVENT,
            "The cursor does not belong to this list. Start again without one.",
        )
    return moment, pk

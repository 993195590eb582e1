"""The session of one request of a foreign protocol: a new one, or that of its thread."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

import msgspec

from sessions_app.connection.open_sessions import attached_session, opened_session
from sessions_app.handlers.sessions import find_session
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import uamp
    from gateway_app.types.client_turn import ClientTurn
    from sessions_app.connection.client_connection import ClientConnection
    from sessions_app.transports.http_exchange import HttpExchange

REPEAT_SECONDS: Final = 1


class RequestSession:
    """The session of a request; `id` and `chat_id` are '' until it has one.

    `take` handles a client event and raises the error with which it is refused. All methods are
    called from the request's task.
    """

    def __init__(
        self, http: HttpExchange, take: Callable[[uamp.SessionCreate], Awaitable[None]]
    ) -> None:
        self.id = ""
        self.chat_id = ""
        self._http = http
        self._take = take

    async def find(self, session_id: str) -> bool:
        """Attach the caller's open session of this id; return whether there is one."""
        connection = self._http.connection
        if not session_id or await find_session(session_id, connection.principal) is None:
            return False
        await self._http.join_known(session_id)
        self.attached(session_id)
        return True

    async def open(self, create: uamp.SessionCreate, *, is_named: bool, has_key: bool) -> None:
        """Attach the session of a session.create, opening it if it does not exist.

        Raises RemoteProtocolError.
        """
        session_id = create.session.id if is_named else None
        if await self.find(session_id or ""):
            return
        try:
            await self._take(create)
        except RemoteProtocolError as error:
            if error.code != ErrorCode.SESSION_EXISTS or not (is_named or has_key):
                raise
            if not session_id:
                raise RemoteProtocolError(
                    ErrorCode.SESSION_EXISTS,
                    "The same request is being answered. Send it again in a moment.",
                    details={"retry_after": REPEAT_SECONDS},
                ) from None
            # Another request of the same thread has just opened it, so this is not a refusal.
            self._http.connection.outgoing.take_replies()
            await self._http.join_known(session_id)
        self.attached(opened_session(self._http.connection).session.wire_id)

    def attached(self, session_id: str) -> None:
        """Record the session that the connection has attached.

        Raises RemoteProtocolError if it has ended since.
        """
        attached = attached_session(self._http.connection, session_id)
        self.id, self.chat_id = session_id, attached.session.chat_id


def session_create_of(connection: ClientConnection, turn: ClientTurn) -> uamp.SessionCreate:
    """Return the session.create of a turn, with the id of its thread's session."""
    session_id = turn.session_id
    if not session_id and turn.thread and not connection.principal.is_visitor:
        # Anyone who knows the id of a visitor's session may use it, so its id must not be
        # predictable.
        session_id = _thread_session(connection, turn)
    if not session_id:
        return turn.session
    session = msgspec.structs.replace(turn.session.session, id=session_id)
    return msgspec.structs.replace(turn.session, session=session)


def _thread_session(connection: ClientConnection, turn: ClientTurn) -> str:
    """Return the session id of a thread, unique per protocol, agent, chat and thread."""
    agent = turn.session.agent or connection.defaults.agent or ""
    chat = turn.session.chat or connection.defaults.chat or ""
    digest = hashlib.sha256(msgspec.json.encode((agent, chat, turn.thread))).hexdigest()
    return f"{connection.transport}-{digest[:40]}"

"""The sessions of a connection, as a request needs them after it has waited.

Meanwhile a session may have ended: its key was replaced or revoked, its person was removed from the
chat, or an operator ended it (`Followers.check_principals`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessions_app.connection.client_connection import CLOSE_UNAUTHORIZED
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Container

    from sessions_app.connection.attached_session import AttachedSession
    from sessions_app.connection.client_connection import ClientConnection


def attached_session(connection: ClientConnection, session_id: str) -> AttachedSession:
    """Return an attached session; raises RemoteProtocolError if it has ended since."""
    attached = connection.sessions.get(session_id)
    if attached is None:
        raise _ended(connection)
    return attached


def opened_session(
    connection: ClientConnection, *, known_ids: Container[str] = ()
) -> AttachedSession:
    """Return the first session that is not known, which the connection has just opened.

    Raises RemoteProtocolError if it has ended since.
    """
    for session_id, attached in connection.sessions.items():
        if session_id not in known_ids:
            return attached
    raise _ended(connection)


def _ended(connection: ClientConnection) -> RemoteProtocolError:
    if connection.closed_with == CLOSE_UNAUTHORIZED:
        return RemoteProtocolError(
            ErrorCode.UNAUTHORIZED, "You are signed out, or the token was revoked. Sign in again."
        )
    return RemoteProtocolError(ErrorCode.UNKNOWN_SESSION, "The session has ended. Start a new one.")

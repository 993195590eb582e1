"""The response that the last `response.create` of a client inside the process began."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from sessions_app.connection.client_connection import ClientConnection


def begun_response(connection: ClientConnection) -> str:
    """Return the response that began; raises RemoteProtocolError where no agent answers, and why.

    In a chat whose agents are quiet or switched off, or have spent their budget, the message is
    kept.
    """
    if response_id := next(iter(connection.started), ""):
        return response_id
    raise connection.unanswered or RemoteProtocolError(
        ErrorCode.AGENT_NOT_FOUND, "No agent of this chat answers the message."
    )

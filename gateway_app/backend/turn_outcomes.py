"""The outcome of the last `response.create` of an in-process client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from django.http import HttpResponse

    from sessions_app.connection.client_connection import ClientConnection


class PaymentDemanded(Exception):
    """The turn must be paid for first; `response` is the 402 in the dialect's format."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__("payment required")
        self.response = response


def started_response(connection: ClientConnection) -> str:
    """Return the response that began; raises RemoteProtocolError if no agent answers.

    The error gives the reason. If the agents of a chat are silent, switched off or out of budget,
    the message is stored all the same.
    """
    if response_id := next(iter(connection.started), ""):
        return response_id
    raise connection.unanswered or RemoteProtocolError(
        ErrorCode.AGENT_NOT_FOUND, "No agent of this chat answers the message."
    )

"""A response of an HTTP exchange, for the edges of other protocols: events in and out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

import uamp
from chat_app.log import fanout
from chat_app.log import history as chat_history
from sessions_app import database, selectors
from sessions_app.connection.open_sessions import attached_session
from sessions_app.handlers.sessions import waiting_frames
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from sessions_app.connection.attached_session import AttachedSession
    from sessions_app.connection.outgoing_queue import Outgoing
    from sessions_app.transports.http_exchange import HttpExchange
    from uamp.events import Event

# Session errors that do not affect the running response.
_WARNINGS: Final = frozenset({ErrorCode.TOKEN_EXPIRING, ErrorCode.RESYNC})

# Frames made by this server, which need no validation as client input.
SERVER_EVENTS: Final[msgspec.json.Decoder[ev.ServerEvent]] = msgspec.json.Decoder(ev.ServerEvent)


class FollowedResponse:
    """A response as followed by an exchange's client: its events in, the answer's out.

    All methods are called by one task.
    """

    def __init__(self, http: HttpExchange) -> None:
        self._http = http
        self._refused: list[RemoteProtocolError] = []
        http.connection.on_error = self._refused.append

    async def take(self, event: Event) -> None:
        """Handle an event of the client; `check` raises its refusal."""
        await self._http.take(uamp.encode(event).encode())

    def refuse(self, error: RemoteProtocolError) -> None:
        """Make `check` raise an error."""
        self._refused.append(error)

    def check(self) -> None:
        """Raise the error that refused or ended the session, if any."""
        if self._refused:
            raise self._refused.pop()

    async def join(self, response_id: str) -> AttachedSession:
        """Follow the caller's response, in whichever process it runs; return its session.

        Queues its text at offset 0, followed by everything new. Raises RemoteProtocolError
        unknown_session if the caller has no such response.
        """
        connection = self._http.connection
        wire_id = await database.run(
            selectors.session_of_response, response_id, connection.principal
        )
        if wire_id is None:
            raise RemoteProtocolError(
                ErrorCode.UNKNOWN_SESSION, "There is no such response, or it is not yours."
            )
        if wire_id not in connection.sessions:
            await self._http.join_known(wire_id)
        await self._http.follow_running(wire_id)
        return attached_session(connection, wire_id)

    async def send_state(
        self, attached: AttachedSession, response_id: str, *, with_output: bool = False
    ) -> None:
        """Queue the end of the response, or its current requests to the client.

        With `with_output`, queue its whole output before the end.
        """
        session = attached.session
        ends = await database.run(chat_history.ends_of_responses, session.chat_id, [response_id])
        if ends and with_output:
            outputs = await database.run(selectors.stored_outputs, [response_id])
            for stored in outputs.values():
                for event in uamp.events_of_output(response_id, stored.output):
                    attached.subscription.send_signal(msgspec.json.encode(event).decode())
        for entry in ends:
            attached.subscription.send_signal(fanout.frame_of(entry.payload, entry.seq))
        for text in await waiting_frames(session):
            attached.subscription.send_signal(text)


def received(sent: Outgoing) -> Event:
    """Decode an event sent by the server; raises RemoteProtocolError if it ended the session."""
    event = SERVER_EVENTS.decode(sent.text)
    if isinstance(event, ev.SessionError) and event.error.code not in _WARNINGS:
        raise RemoteProtocolError(ErrorCode(event.error.code), event.error.message)
    return event

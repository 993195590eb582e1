"""A response of an HTTP exchange, for the edges of other protocols: events in and out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

import uamp
from chat_app.log import fanout
from chat_app.log import history as chat_history
from sessions_app import database, selectors
from sessions_app.connection.open_sessions import attached_session
from sessions_app.handlers.sessions import frames_waiting_in, known_session
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Collection

    from sessions_app.access.principal import Principal
    from sessions_app.connection.attached_session import AttachedSession
    from sessions_app.connection.outgoing_queue import Outgoing
    from sessions_app.records import OpenSession
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
        wire_id, session = await database.run(
            _session_of, response_id, connection.principal, attached=tuple(connection.sessions)
        )
        if wire_id is None:
            raise RemoteProtocolError(
                ErrorCode.UNKNOWN_SESSION, "There is no such response, or it is not yours."
            )
        if wire_id not in connection.sessions:
            await self._http.join_found(session)
        await self._http.follow_running(wire_id)
        return attached_session(connection, wire_id)

    async def send_state(
        self, attached: AttachedSession, response_id: str, *, with_output: bool = False
    ) -> None:
        """Queue the end of the response, or its current requests to the client.

        With `with_output`, queue its whole output before the end.
        """
        for text in await database.run(
            _state_of, attached.session, response_id, with_output=with_output
        ):
            attached.subscription.send_signal(text)


def _session_of(
    response_id: str, principal: Principal, *, attached: Collection[str]
) -> tuple[str | None, OpenSession | None]:
    """Return the wire id of the session of a principal's response, and the session unless attached.

    Both are None for a response that is not the principal's.
    """
    wire_id = selectors.session_of_response(response_id, principal)
    if wire_id is None or wire_id in attached:
        return wire_id, None
    return wire_id, known_session(wire_id, principal)


def _state_of(session: OpenSession, response_id: str, *, with_output: bool) -> list[str]:
    """Return the frames of `FollowedResponse.send_state`."""
    ends = chat_history.ends_of_responses(session.chat_id, [response_id])
    frames: list[str] = []
    if ends and with_output:
        for stored in selectors.stored_outputs([response_id]).values():
            events = uamp.events_of_output(response_id, stored.output)
            frames += [msgspec.json.encode(event).decode() for event in events]
    frames += [fanout.frame_of(entry.payload, entry.seq) for entry in ends]
    return [*frames, *frames_waiting_in(session)]


def received(sent: Outgoing) -> Event:
    """Decode an event sent by the server; raises RemoteProtocolError if it ended the session."""
    event = SERVER_EVENTS.decode(sent.text)
    if isinstance(event, ev.SessionError) and event.error.code not in _WARNINGS:
        raise RemoteProtocolError(ErrorCode(event.error.code), event.error.message)
    return event

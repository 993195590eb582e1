"""A client that posts requests and reads the answers on event streams of any process.

`PostedEvents` is one POST and `EventStream` one GET; they share rows
(`sessions_app.http_connections`). A POST notifies the streams of its connection, which also poll
the rows every HEARTBEAT_SECONDS.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

import uamp
from agents_app.rest.rights import ANY
from chat_app.log import fanout
from chat_app.log import history as chat_history
from gateway_app.backend.agents.agent_tools import tools_of
from gateway_app.backend.content_links import content_link
from gateway_app.backend.demands import answer_of, charged_failure
from gateway_app.backend.session_reader import SessionReader, own_session
from gateway_app.backend.turn_outcomes import started_response
from sessions_app import database, http_connections, selectors
from sessions_app.access.protocol_rights import check_scope
from sessions_app.connection.open_sessions import opened_session
from sessions_app.handlers.sessions import (
    attach_session,
    hold_session,
    waiting_frames,
)
from sessions_app.http_connections import PendingAnswer
from sessions_app.process import registry
from sessions_app.transports.followed_response import SERVER_EVENTS
from sessions_app.transports.http_exchange import (
    HttpExchange,
    count_events,
    principal_of,
    with_heartbeat,
)
from sessions_app.transports.unpaid_turns import refuse_unpaid
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from django.http import HttpRequest, StreamingHttpResponse

    from gateway_app.backend.agents.agent_tools import AgentTool
    from sessions_app.access.principal import Principal
    from sessions_app.connection.client_connection import ClientConnection
    from sessions_app.records import OpenSession
    from uamp.events import Event

__all__ = ["EventStream", "PendingAnswer", "PostedEvents"]

_encoder: Final = msgspec.json.Encoder()


def _too_many_requests(principal: Principal) -> RemoteProtocolError:
    sharers, advice = "your connections", "Read their streams, or delete those you no longer use."
    if principal.is_visitor:
        sharers = "the connections of visitors from your address"
        advice = "Read the streams of yours, sign in with a key, or try again later."
    return RemoteProtocolError(
        ErrorCode.TOO_MANY_ITEMS,
        f"At most {http_connections.REQUESTS_PER_CONNECTION} requests wait for answers, and"
        f" unread answers may have at most {http_connections.KEPT_CHARS_PER_CONNECTION}"
        f" characters, {http_connections.KEPT_CHARS_PER_PRINCIPAL} in all {sharers}. {advice}",
    )


class PostedEvents:
    """One POST of a client: the events that it sends, and the requests it leaves to streams.

    Used by the request's task only.
    """

    def __init__(self, request: HttpRequest, http: HttpExchange) -> None:
        self._request = request
        self._http = http
        self._connection = http.connection
        self._connection.pay = refuse_unpaid
        self._refused: list[RemoteProtocolError] = []
        self._connection.on_error = self._refused.append
        self._row = 0

    @classmethod
    async def of(cls, request: HttpRequest, transport: str) -> Self:
        """Authenticate the caller, apply the rate limits and return the events of a request.

        Raises RemoteProtocolError.
        """
        principal = await principal_of(request, protocol=transport, scope=ANY)
        await count_events(request, principal)
        return cls(request, HttpExchange(request, principal, transport))

    async def close(self) -> None:
        """Leave the sessions; their responses keep running."""
        await self._http.close()

    # --- The connection and its requests ---

    async def open_connection(self) -> str:
        """Open a connection, which counts as a session, and return its id."""
        principal, transport = self._connection.principal, self._connection.transport
        await count_events(self._request, principal, kind="sessions")
        return await database.run(
            partial(
                http_connections.open_connection,
                principal,
                transport=transport,
                agent=self.agent or "",
            )
        )

    async def check_connection(self, connection_id: str) -> None:
        """Raise RemoteProtocolError unknown_session if the caller has no such connection."""
        find = partial(
            http_connections.find_connection,
            connection_id,
            self._connection.principal,
            transport=self._connection.transport,
            agent=self.agent or "",
        )
        if not await database.run(find):
            raise RemoteProtocolError(
                ErrorCode.UNKNOWN_SESSION, "There is no such connection, or it is not yours."
            )

    async def close_connection(self, connection_id: str) -> None:
        """Close a connection and its streams."""
        await self.check_connection(connection_id)
        await database.run(http_connections.close_connection, connection_id)
        await ring(connection_id)

    async def expect_answer(self, connection_id: str, request_id: str, session_id: str) -> bool:
        """Leave a request to the streams; return whether it is a new one.

        The session's stream answers it, or the connection's own stream if there is no session.
        Raises RemoteProtocolError too_many_items.
        """
        session = None if not session_id else await self._session(session_id)
        add = partial(
            http_connections.add_request,
            connection_id,
            request_id,
            session_id=None if session is None else session.id,
        )
        try:
            self._row = await database.run(add)
        except http_connections.RequestRepeated:
            return False
        except http_connections.TooManyRequests:
            raise _too_many_requests(self._connection.principal) from None
        return True

    async def answer(
        self, connection_id: str, messages: Sequence[dict[str, Any]], *, is_refusal: bool = False
    ) -> None:
        """Have a stream send these messages, the last of which answers the request.

        Raises RemoteProtocolError too_many_items if there is no room for them. As the request has
        been executed, the caller then stores a refusal, for which there is always room.
        """
        lines = "\n".join(_encoder.encode(message).decode() for message in messages)
        keep = partial(http_connections.keep_answer, self._row, lines, is_refusal=is_refusal)
        try:
            await database.run(keep)
        except http_connections.TooManyRequests:
            raise _too_many_requests(self._connection.principal) from None
        await ring(connection_id)

    async def answered_by(self, connection_id: str, response_id: str) -> None:
        """Have a stream answer the request when a response ends."""
        await database.run(http_connections.keep_response, self._row, response_id)
        await ring(connection_id)

    # --- The client's events ---

    @property
    def agent(self) -> str | None:
        """The agent named by the path or a header."""
        return self._connection.defaults.agent

    def link_in(self, chat_id: str) -> Callable[[str], str]:
        """Return a function that gives temporary addresses to the media of a chat."""
        return _link_in(self._request, self._connection, chat_id)

    def own_sessions(self, extension: str) -> SessionReader:
        """Return a reader of the caller's sessions over this transport with the path's agent."""
        return SessionReader(
            self._connection.principal,
            transport=self._connection.transport,
            agent=self.agent,
            extension=extension,
        )

    async def tools(self) -> list[AgentTool]:
        """Return the agent's tools; raises RemoteProtocolError agent_not_found."""
        return await tools_of(self._connection.principal, self.agent)

    def drop_inputs(self, session_id: str) -> None:
        """Drop the inputs of a refused turn, which belonged to this request alone."""
        if (attached := self._connection.sessions.get(session_id)) is not None:
            attached.inputs.take()

    async def open_session(self, create: ev.SessionCreate) -> str:
        """Open a session and return its id; raises RemoteProtocolError."""
        await self.send(create)
        return opened_session(self._connection).session.wire_id

    async def send(self, event: Event) -> None:
        """Send an event in its session; raises the error with which it is refused.

        A response.create that is sent again begins no second turn for the request.
        """
        session_id = event.session_id
        if session_id and session_id not in self._connection.sessions:
            await self._http.attach_known(session_id)
        if isinstance(event, ev.ResponseCreate) and self._row:
            event_id = http_connections.event_id_of(self._row)
            event = msgspec.structs.replace(event, event_id=event_id)
        await self._http.take(_encoder.encode(event))
        if self._refused:
            raise self._refused.pop()
        for reply in self._connection.outgoing.take_replies():
            failed = SERVER_EVENTS.decode(reply.text)
            if isinstance(failed, ev.PaymentError):
                raise RemoteProtocolError(
                    ErrorCode.PAYMENT_REQUIRED,
                    failed.message,
                    details={"payment_error": failed.code},
                )

    async def begin(self, create: ev.ResponseCreate) -> str:
        """Begin a turn and return its response; raises RemoteProtocolError if none begins."""
        await self.send(create)
        return started_response(self._connection)

    async def unpaid(self, session_id: str) -> dict[str, str]:
        """Return the responses for which a session's client has to pay, oldest first.

        Each maps to the requested answer: a response may be work that this delegated.
        """
        session = await self._session(session_id)
        waiting = [SERVER_EVENTS.decode(text) for text in await waiting_frames(session)]
        demands = [event for event in waiting if isinstance(event, ev.PaymentRequired)]
        return {event.response_id or "": await answer_of(event) for event in demands}

    async def check_session(self, session_id: str) -> None:
        """Raise RemoteProtocolError unknown_session if the caller has no such session."""
        await self._session(session_id)

    async def live_responses(self, session_id: str) -> list[str]:
        """Return the unfinished responses of a session."""
        session = await self._session(session_id)
        read = partial(selectors.response_ids_of, session.id, live_only=True)
        return await database.run(read)

    async def _session(self, session_id: str) -> OpenSession:
        return await _found_session(session_id, self._http)


class EventStream:
    """One GET of a client: the events of a session, or only the answers of a connection.

    Used by the request's task only.
    """

    def __init__(
        self,
        request: HttpRequest,
        http: HttpExchange,
        connection_id: str,
        session: OpenSession | None,
    ) -> None:
        self._request = request
        self._http = http
        self._connection_id = connection_id
        self._session = session

    @classmethod
    async def of(
        cls, request: HttpRequest, transport: str, connection_id: str, session_id: str
    ) -> Self:
        """Open a stream and return it; raises RemoteProtocolError."""
        posted = await PostedEvents.of(request, transport)
        http = posted._http  # noqa: SLF001 same module
        process, principal = registry.current(), http.connection.principal
        # Also without a session, a stream sends what the connection's requests have read.
        check_scope(principal, "chats:read")
        await posted.check_connection(connection_id)
        if not process.followers.has_room_for(principal):
            raise RemoteProtocolError(
                ErrorCode.RATE_LIMITED, "You have too many open connections. Close one first."
            )
        session = await _found_session(session_id, http) if session_id else None
        try:
            http.stay()
            await http.join(fanout.session_group(connection_id))
            if session is not None:
                await hold_session(http.connection, session.id)
                resume = uamp.Resume(
                    session_id=session_id, epoch=session.epoch, after=session.last_seq
                )
                await attach_session(http.connection, session, ev.SessionCreate(resume=resume))
        except BaseException:
            await http.close()
            raise
        return cls(request, http, connection_id, session)

    def link(self, url: str) -> str:
        """Return a temporary address of a medium, readable by any client that knows it."""
        chat_id = "" if self._session is None else self._session.chat_id
        return _link_in(self._request, self._http.connection, chat_id)(url)

    async def events(self) -> AsyncIterator[Event | None]:
        """Yield the server's events, and None after a POST of the client or a period of silence.

        The failure of a response has what it has cost.
        """
        async for outgoing in with_heartbeat(self._http.connection.outgoing):
            if outgoing is None or not outgoing.text:
                yield None
                continue
            event = SERVER_EVENTS.decode(outgoing.text)
            yield await charged_failure(event, getattr(event, "response_id", None) or "")

    async def owed(self) -> list[PendingAnswer] | None:
        """Return the answers that the stream owes; None if the connection was closed."""
        session_id = None if self._session is None else self._session.id
        read = partial(http_connections.pending_answers, self._connection_id, session_id=session_id)
        return await database.run(read)

    async def take(self, owed: PendingAnswer) -> bool:
        """Claim an owed answer; return whether this stream is to send it."""
        return await database.run(http_connections.take, owed.pk)

    async def take_answer(self, owed: PendingAnswer) -> str | None:
        """Claim a stored answer and return it; None if another stream is to send it."""
        return await database.run(http_connections.take_answer, owed.pk)

    async def has_requested(self, response_id: str) -> bool:
        """Return whether the stream's session requested a response.

        A shared chat also has the responses of its other members.
        """
        if self._session is None or not self._session.chat_scoped:
            return True
        principal = self._session.principal
        read = partial(selectors.session_of_response, response_id, principal)
        return await database.run(read) == self._session.wire_id

    async def ended(self, response_id: str) -> list[Event]:
        """Return a finished response as its output followed by its end; empty if unfinished."""
        if self._session is None:
            return []
        chat_id = self._session.chat_id
        ends = await database.run(chat_history.ends_of_responses, chat_id, [response_id])
        stored = await database.run(selectors.stored_outputs, [response_id])
        if not ends or response_id not in stored:
            return []
        end = SERVER_EVENTS.decode(fanout.frame_of(ends[0].payload, ends[0].seq))
        return [*uamp.events_of_output(response_id, stored[response_id].output), end]

    def stream(self, frames: AsyncIterator[bytes]) -> StreamingHttpResponse:
        """Return a streaming response that closes the stream when it ends."""
        return self._http.answer(self._closing(frames))

    async def _closing(self, frames: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        try:
            async for frame in frames:
                yield frame
        finally:
            await self._http.close()


async def ring(connection_id: str) -> None:
    """Wake the streams of a connection to look for answers."""
    message = {"type": "session.frame", "row": connection_id, "session": "", "frame": ""}
    await fanout.send(fanout.session_group(connection_id), message)


async def _found_session(session_id: str, http: HttpExchange) -> OpenSession:
    connection = http.connection
    return await own_session(session_id, connection.principal, agent=connection.defaults.agent)


def _link_in(
    request: HttpRequest, connection: ClientConnection, chat_id: str
) -> Callable[[str], str]:
    return partial(
        content_link,
        base_url=request.build_absolute_uri("/"),
        user_id=connection.principal.user_id,
        chat_id=chat_id,
    )

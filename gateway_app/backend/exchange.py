"""An HTTP request of a foreign protocol, acting as a UAMP client.

An edge opens a session, starts a turn or follows a running one, and reads the server's events.
Client events pass through the same handlers and limits as the frames of a socket, and the same code
runs the answer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Self, TypeAlias

import msgspec

import uamp
from agents_app.rest.rights import ANY
from chat_app.ids import new_event_id
from chat_app.log.shared_state import read_state
from gateway_app.backend.content_links import content_link
from gateway_app.backend.demands import charged_details, charged_failure, is_of_work_below, refusal
from gateway_app.backend.request_session import RequestSession, session_create_of
from gateway_app.backend.turn_outcomes import PaymentDemanded, started_response
from gateway_app.types.pending_questions import PendingQuestions
from sessions_app import database, selectors
from sessions_app.billing.demands import demands_below
from sessions_app.connection.open_sessions import attached_session
from sessions_app.handlers.sessions import find_session
from sessions_app.transports import batch_repeats, event_repeats
from sessions_app.transports.followed_response import FollowedResponse, received
from sessions_app.transports.http_exchange import (
    HEARTBEAT_SECONDS,
    HttpExchange,
    count_events,
    principal_of,
)
from sessions_app.transports.http_payment import HttpPayment
from uamp import RemoteProtocolError
from uamp import events as ev
from uamp.digital_source import AI_HEADERS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse

    from gateway_app.types.client_turn import ClientTurn
    from sessions_app.access.principal import Principal
    from sessions_app.connection.client_connection import ClientConnection
    from sessions_app.connection.outgoing_queue import Outgoing
    from sessions_app.transports.http_payment import DemandBody
    from uamp.events import Event, InputEvent
    from uamp.shared_state import VersionedState

Leaving: TypeAlias = Literal["cancel", "continue"]
"""What happens to a running response when its client leaves early."""


class Exchange:
    """The life of one request: a session, its turn and the events that answer it.

    All methods are called from the request's task, except that another task may call `close` again.
    `pending_questions` are for the client, a person or a payer. `state` is the chat's shared state
    before the response began, for a turn that shares it.
    """

    def __init__(
        self,
        request: HttpRequest,
        http: HttpExchange,
        *,
        payment: HttpPayment | None,
        leaving: Leaving,
    ) -> None:
        self.pending_questions = PendingQuestions()
        self.has_ended = False
        self.state: VersionedState | None = None
        self._request = request
        self._http = http
        self._payment = payment
        self._leaving = leaving
        self._followed = FollowedResponse(http)
        self._joined = ""
        self._is_read = False
        self._session = RequestSession(http, self._take)

    @classmethod
    async def of(
        cls,
        request: HttpRequest,
        transport: str,
        *,
        demand_body: DemandBody | None = None,
        leaving: Leaving = "continue",
        events: int = 1,
    ) -> Self:
        """Authenticate the caller, count the request's events and return its exchange.

        With `demand_body`, a turn that must be paid for raises PaymentDemanded before it begins;
        without it, the response waits for the payment. Raises RemoteProtocolError.
        """
        principal = await principal_of(request, protocol=transport, scope=ANY)
        await count_events(request, principal, events)
        http = HttpExchange(request, principal, transport, ephemeral=True)
        payment = (
            None
            if demand_body is None
            else HttpPayment(request, http.connection, demand_body=demand_body)
        )
        return cls(request, http, payment=payment, leaving=leaving)

    # --- Client to server ---

    async def begin(self, turn: ClientTurn) -> None:
        """Open the session of a turn and start it.

        A repeated request with the same `Idempotency-Key` starts nothing and gets the first
        request's response. Raises RemoteProtocolError if the turn is refused and PaymentDemanded if
        it must be paid for first; in both cases only the session has been stored. If no agent of a
        chat answers, the message is stored and RemoteProtocolError gives the reason.
        """
        turn.check_content()
        await self._send(turn, [*turn.inputs, turn.response])
        started_response(self._connection)

    async def add(self, turn: ClientTurn, messages: Sequence[Sequence[InputEvent]]) -> list[str]:
        """Send messages to the chat of a turn, which no agent is asked to answer; return their ids.

        A repeated request with the same `Idempotency-Key` gets the ids of the first. Raises
        RemoteProtocolError.
        """
        silent = uamp.ResponseCreate(agents=())
        sent = await self._send(turn, [event for inputs in messages for event in (*inputs, silent)])
        row_id = attached_session(self._connection, self.session_id).session.id
        outcomes = [await database.run(selectors.outcome_of, row_id, event_id) for event_id in sent]
        return [outcome.message_id for outcome in outcomes if outcome and outcome.message_id]

    async def _send(
        self, turn: ClientTurn, batch: Sequence[InputEvent | uamp.StateUpdate | uamp.ResponseCreate]
    ) -> list[str]:
        """Open the session of a turn and send its events; return the ids of response.create."""
        connection, create = self._connection, session_create_of(self._connection, turn)
        defaults = connection.defaults
        if turn.thread or turn.is_kept:
            defaults.ephemeral = False
        defaults.follows_closed = bool(turn.thread)
        target = (create.agent or defaults.agent or "", create.chat or defaults.chat or "")
        connection.principal, opening, events = await event_repeats.under_key(
            self._request, connection.principal, create, batch, names=target
        )
        if turn.follows and connection.principal.is_visitor:
            earlier = await find_session(turn.follows, connection.principal)
            if earlier is not None:
                connection.principal = replace(connection.principal, key=earlier.principal.key)
        has_key = batch_repeats.HEADER in self._request.headers
        await self._session.open(opening, is_named=bool(create.session.id), has_key=has_key)
        asking: list[str] = []
        for event in events:
            event_id = event.event_id
            if isinstance(event, uamp.ResponseCreate):
                event_id = event_id or new_event_id()
                asking.append(event_id)
                if turn.shares_state:
                    self.state = await self.follow_state()
            scope = {"event_id": event_id, "session_id": self.session_id}
            await self._take(msgspec.structs.replace(event, **scope))
        if connection.has_repeated:
            # Only a repeated request catches up. A response that begins now is followed from its
            # start: resending its text so far would put that text before its first calls.
            await self._http.follow_running(self.session_id)
        return asking

    async def join(self, response_id: str) -> Sequence[Event]:
        """Resume a response of the caller, in whichever process it runs, and return its state.

        The state is its text at offset 0 and its pending questions, or its end. `events` yields the
        rest. Raises RemoteProtocolError unknown_session if the caller has no such response.
        """
        attached = await self._followed.join(response_id)
        self._joined = response_id
        self._session.attached(attached.session.wire_id)
        await self._followed.send_state(attached, response_id)
        state: list[Event] = []
        queue = self._connection.outgoing
        while queue.has_work and (batch := await queue.batch()) is not None:
            state += await self._own_events(batch)
        self._followed.check()
        return state

    async def find(self, turn: ClientTurn) -> bool:
        """Resume the session of a turn's thread; return whether the caller has one.

        If that session was closed, open its successor in the same thread.
        """
        create = session_create_of(self._connection, turn)
        session_id = create.session.id or ""
        if await self._session.find(session_id):
            return True
        if not await database.run(selectors.was_closed, session_id, self._connection.principal):
            return False
        defaults = self._connection.defaults
        defaults.ephemeral, defaults.follows_closed = False, True
        await self._session.open(create, is_named=True, has_key=False)
        return True

    async def running(self) -> str:
        """Return the session's last unfinished response; '' if none is running."""
        session = attached_session(self._connection, self.session_id).session
        live = await database.run(selectors.response_ids_of, session.id, live_only=True)
        return live[-1] if live else ""

    async def follow_state(self) -> VersionedState:
        """Return the chat's shared state, and have `events` yield its changes from now on."""
        await self._http.follow_chat(self.session_id)
        return await database.run(read_state, self.chat_id)

    async def send(self, event: Event) -> None:
        """Send a client event in the session, and mark the question that it answers as answered.

        Raises the error with which the event is refused.
        """
        scoped = msgspec.structs.replace(event, session_id=self.session_id or None)
        await self._take(scoped)
        self.pending_questions.note_answer(event)

    async def _take(self, event: Event) -> None:
        await self._followed.take(event)
        if self._payment is not None and (demanded := self._payment.refusal) is not None:
            raise PaymentDemanded(demanded)
        self._followed.check()

    # --- Server to client ---

    async def events(self) -> AsyncIterator[Sequence[Event]]:
        """Yield the events of the response, grouped as they arrived.

        Yields an empty sequence after HEARTBEAT_SECONDS of silence. The last events are the end of
        the response or its `pending_questions`. Raises RemoteProtocolError for a session error that
        arrives before them.
        """
        self._is_read = True
        self._http.end_when_idle()
        queue = self._connection.outgoing
        while (batch := await queue.batch(HEARTBEAT_SECONDS)) is not None:
            if not batch:
                yield ()
                continue
            events = await self._own_events(batch)
            if events:
                yield events
            if not self.has_ended:
                # The end of the session may arrive together with that of the answer.
                self._followed.check()
        if below := await self._asked_below():
            yield below

    async def _asked_below(self) -> list[Event]:
        """Return the demands of delegated work, unless the response has demands of its own."""
        if self.has_ended or self.pending_questions or not self.response_id:
            return []
        session = attached_session(self._connection, self.session_id).session
        asking = await database.run(demands_below, session, self.response_id)
        for event in asking:
            self.pending_questions.note(event)
        return [*asking]

    async def _own_events(self, batch: Sequence[Outgoing]) -> list[Event]:
        """Return the events of this response, up to an error of the session."""
        events: list[Event] = []
        try:
            for sent in batch:
                event = received(sent)
                if self._is_own(event) or (
                    not self.has_ended and await is_of_work_below(event, self.response_id)
                ):
                    self.has_ended = self.pending_questions.note(event) or self.has_ended
                    events.append(await charged_failure(event, self.response_id))
        except RemoteProtocolError as error:
            self._followed.refuse(error)
        return events

    def _is_own(self, event: Event) -> bool:
        """Return whether an event belongs to this client's response or to the state it shares."""
        if isinstance(event, ev.StateUpdated):
            return True
        # Events after the end, such as a balance, exist in no foreign protocol. A repeated request
        # gets the end twice: once sent to it, and once from the log.
        of_response = "" if self.has_ended else getattr(event, "response_id", None)
        return bool(of_response) and of_response == self.response_id

    # --- What the client may store ---

    @property
    def principal(self) -> Principal:
        """The caller."""
        return self._connection.principal

    @property
    def response_id(self) -> str:
        """The response of the turn, or the one joined; '' if there is none."""
        return self._joined or next(iter(self._connection.started), "")

    @property
    def session_id(self) -> str:
        """The id of the session, which a program may resume over UAMP."""
        return self._session.id

    @property
    def chat_id(self) -> str:
        """The chat of the session."""
        return self._session.chat_id

    @property
    def headers(self) -> dict[str, str]:
        """The response headers: the chat, the session, the mark of AI and the payment receipt."""
        ours = {"X-Chat-Id": self.chat_id, "X-Session-Id": self.session_id}
        return {**ours, **AI_HEADERS, **(self._payment.headers if self._payment else {})}

    def link(self, url: str) -> str:
        """Return a temporary address of a medium, readable by any client that knows it."""
        here = self._request.build_absolute_uri("/")
        user_id = self.principal.user_id
        return content_link(url, base_url=here, user_id=user_id, chat_id=self.chat_id)

    def stream(self, frames: AsyncIterator[bytes]) -> StreamingHttpResponse:
        """Return a streaming response that closes the exchange when it ends."""
        response = self._http.answer(self._closing(frames), close=self.close)
        self._mark(response)
        return response

    async def refuse(self, response: HttpResponse) -> HttpResponse:
        """Close the exchange; return a refusal with the headers of the answer, if one began."""
        await self.close()
        if self.response_id:
            self._mark(response)
        return response

    def _mark(self, response: HttpResponseBase) -> None:
        for header, value in self.headers.items():
            response[header] = value

    async def _closing(self, frames: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        try:
            async for frame in frames:
                yield frame
        finally:
            await self.close()

    async def cancel(self) -> None:
        """Cancel the response, unless it has ended."""
        if not self.response_id or self.has_ended:
            return
        self.has_ended = True
        cancel = ev.ResponseCancel(session_id=self.session_id, response_id=self.response_id)
        await self._followed.take(cancel)

    async def give_up(self) -> RemoteProtocolError:
        """Return the refusal of demands that the client cannot meet, and cancel the answer.

        One that may continue without this client waits: a person pays or approves later.
        """
        error = await refusal(self.pending_questions.values(), self.response_id)
        self.pending_questions.clear()
        if self._leaving == "cancel":
            await self.cancel()
        charged = await charged_details(self.response_id, has_stopped=self.has_ended)
        error.details = {**(error.details or {}), **charged}
        return error

    @property
    def is_closed(self) -> bool:
        """Whether the server has closed the exchange, such as at the end of the process."""
        return self._connection.closed_with is not None

    def check_session(self) -> None:
        """Raise RemoteProtocolError if the session has ended, as it does with its key."""
        attached_session(self._connection, self.session_id)

    def end_with_process(self) -> None:
        """End the exchange at the end of the process, as `stream` does."""
        self._http.end_with_process()

    async def close(self) -> None:
        """Leave the response, either cancelling it or letting it run; later calls do nothing.

        A response that waits for its client, a person or a payer is not cancelled, because it can
        be joined again. Nor is a response that was joined but never read: the join was refused.
        """
        is_own = self._is_read or not self._joined
        if self._leaving == "cancel" and is_own and not self.pending_questions:
            await self.cancel()
        await self._http.close()

    @property
    def _connection(self) -> ClientConnection:
        return self._http.connection

"""One HTTP request of a foreign protocol as a UAMP client.

An edge opens a session, starts a turn or follows one that runs, and reads the server's events. The
events of the client pass the handlers that the frames of a socket pass, with the same limits, and
the answer is the same run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import msgspec

import uamp
from agents_app.rest.rights import ANY
from chat_app.contents.addresses import ContentReader
from chat_app.contents.references import absolute_url
from chat_app.log.shared_state import read_state
from gateway_app.doors.begun_turns import begun_response
from gateway_app.doors.request_session import RequestSession, named
from gateway_app.shapes.asked_events import AskedEvents
from sessions_app import database, selectors
from sessions_app.handlers.sessions import find_session
from sessions_app.tools import delegated_calls
from sessions_app.tools.approvals import delegated_questions
from sessions_app.transports import batch_repeats
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

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from django.http import HttpRequest, HttpResponse, StreamingHttpResponse

    from gateway_app.shapes.client_turn import ClientTurn
    from sessions_app.access.principal import Principal
    from sessions_app.connection.client_connection import ClientConnection
    from sessions_app.connection.outgoing_queue import Outgoing
    from sessions_app.transports.http_payment import DemandBody
    from uamp.events import Event
    from uamp.shared_state import VersionedState

Leaving: TypeAlias = Literal["cancel", "continue"]
"""The fate of a running response when its client leaves before the end."""


class PaymentDemanded(Exception):
    """The turn has to be paid first; `response` is the 402, in the words of the dialect."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__("payment required")
        self.response = response


class Exchange:
    """One request's life: a session, its turn, and the events that answer it.

    The task of the request calls all methods; `close` may be called again, by another task.
    `asked` has the events that ask the client, a person or a payer for something and have no answer
    yet. `state` is what the chat shared before the response began, for a turn that shares it.
    """

    def __init__(
        self,
        request: HttpRequest,
        http: HttpExchange,
        *,
        payment: HttpPayment | None,
        leaving: Leaving,
    ) -> None:
        self.asked = AskedEvents()
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
        self._epoch = ""
        self._seq: int | None = None

    @classmethod
    async def of(
        cls,
        request: HttpRequest,
        transport: str,
        *,
        demand_body: DemandBody | None = None,
        leaving: Leaving = "continue",
    ) -> Self:
        """Return the exchange of a request, whose caller is known and within the limits.

        With `demand_body` a turn that has to be paid raises PaymentDemanded before it begins;
        without it the response waits for the payment. Raises RemoteProtocolError.
        """
        principal = await principal_of(request, protocol=transport, scope=ANY)
        await count_events(request, principal)
        http = HttpExchange(request, principal, transport, ephemeral=True)
        payment = (
            None
            if demand_body is None
            else HttpPayment(request, http.connection, demand_body=demand_body)
        )
        return cls(request, http, payment=payment, leaving=leaving)

    # --- What the client sends ---

    async def begin(self, turn: ClientTurn) -> None:
        """Open the session of a turn and start it.

        The same request again, under the same `Idempotency-Key`, starts nothing: its response is
        the one that the first request started. Raises RemoteProtocolError where the turn is refused
        and PaymentDemanded where it has to be paid first; then nothing was stored but the session.
        Where no agent of a chat answers, its message is stored, and RemoteProtocolError says why.
        """
        turn.check_content()
        connection, create = self._connection, named(self._connection, turn)
        defaults = connection.defaults
        if turn.thread or turn.is_kept:
            defaults.ephemeral = False
        defaults.follows_closed = bool(turn.thread)
        asked = (create.agent or defaults.agent or "", create.chat or defaults.chat or "")
        given = [uamp.to_dict(event) for event in (create, *turn.inputs, turn.response)]
        connection.principal, events = await batch_repeats.under_key(
            self._request, connection.principal, given, asked=asked
        )
        if turn.follows and connection.principal.is_visitor:
            known = await find_session(turn.follows, connection.principal)
            if known is not None:
                connection.principal = replace(connection.principal, key=known.principal.key)
        has_key = batch_repeats.HEADER in self._request.headers
        await self._session.open(events[0], is_named=bool(create.session.id), has_key=has_key)
        *inputs, response = events[1:]
        for event in inputs:
            await self._take({**event, "session_id": self.session_id})
        if turn.shares_state:
            self.state = await self.follow_state()
        await self._take({**response, "session_id": self.session_id})
        if connection.has_repeated:
            # One that begins now is followed from its start: its text so far, sent again, would
            # come before its first calls.
            await self._http.follow_running(self.session_id)
        begun_response(connection)

    async def join(self, response_id: str) -> Sequence[Event]:
        """Go on with a response of the caller, in whichever process it runs; return its state.

        That is its text at offset 0 and what it asks for, or its end. `events` yields what comes
        after it. Raises RemoteProtocolError unknown_session where the caller has no such response.
        """
        attached = await self._followed.join(response_id)
        self._joined = response_id
        self._session.attached(attached.session.wire_id)
        await self._followed.send_state(attached, response_id)
        state: list[Event] = []
        queue = self._connection.outgoing
        while queue.has_work and (batch := await queue.batch()) is not None:
            state += await self._own(batch)
        self._followed.check()
        return state

    async def find(self, turn: ClientTurn) -> bool:
        """Go on with the session of a turn's thread; return whether the caller has it already.

        Where it was closed another one of the thread follows it.
        """
        create = named(self._connection, turn)
        wanted = create.session.id or ""
        if await self._session.find(wanted):
            return True
        if not await database.run(selectors.was_closed, wanted, self._connection.principal):
            return False
        defaults = self._connection.defaults
        defaults.ephemeral, defaults.follows_closed = False, True
        await self._session.open(uamp.to_dict(create), is_named=True, has_key=False)
        return True

    async def running(self) -> str:
        """Return the last response of the session that has not ended; '' where none runs."""
        session = self._connection.sessions[self.session_id].session
        live = await database.run(selectors.response_ids_of, session.id, live_only=True)
        return live[-1] if live else ""

    async def follow_state(self) -> VersionedState:
        """Return the state that the chat shares; `events` yields its changes from now on."""
        await self._http.follow_chat(self.session_id)
        return await database.run(read_state, self.chat_id)

    async def send(self, event: Event) -> None:
        """Send an event of the client in the session; raises what it is refused with.

        What was asked for has its answer then.
        """
        scoped = msgspec.structs.replace(event, session_id=self.session_id or None)
        await self._take(uamp.to_dict(scoped))
        self.asked.note_answer(event)

    async def _take(self, event: dict[str, Any]) -> None:
        await self._followed.take(event)
        if self._payment is not None and (demanded := self._payment.refusal) is not None:
            raise PaymentDemanded(demanded)
        self._followed.check()

    # --- What the server sends ---

    async def events(self) -> AsyncIterator[Sequence[Event]]:
        """Yield the events of the response, those that came together at once.

        An empty sequence follows HEARTBEAT_SECONDS of silence. The last events are the end of the
        response, or what `asked` names. Raises RemoteProtocolError for an error of the session
        that comes before them.
        """
        self._is_read = True
        self._http.end_when_idle()
        queue = self._connection.outgoing
        while (batch := await queue.batch(HEARTBEAT_SECONDS)) is not None:
            if not batch:
                yield ()
                continue
            events = await self._own(batch)
            if events:
                yield events
            if not self.has_ended:
                # The end of the answer may come together with that of the session.
                self._followed.check()
        if below := await self._asked_below():
            yield below

    async def _asked_below(self) -> list[Event]:
        """Return the questions about work that was delegated, where nothing else is asked."""
        if self.has_ended or self.asked or not self.response_id:
            return []
        asking = await database.run(delegated_questions, self.chat_id, self.response_id)
        for event in asking:
            self.asked.note(event)
        return list(asking)

    async def _own(self, batch: Sequence[Outgoing]) -> list[Event]:
        """Return the events of this response, up to an error of the session."""
        events: list[Event] = []
        try:
            for sent in batch:
                event = self._received(sent)
                if event is None:
                    continue
                if self._is_own(event) or await self._is_of_work_below(event):
                    self.has_ended = self.asked.note(event) or self.has_ended
                    events.append(event)
        except RemoteProtocolError as error:
            self._followed.refuse(error)
        return events

    def _is_own(self, event: Event) -> bool:
        """Return whether an event is of this client's response, or of the state that it shares."""
        if isinstance(event, ev.StateUpdated):
            return True
        # What follows the end, as a balance, is of no protocol but our own. A repeated request
        # finds an end that is sent to it, and in the log.
        of_response = "" if self.has_ended else getattr(event, "response_id", None)
        return bool(of_response) and of_response == self.response_id

    async def _is_of_work_below(self, event: Event) -> bool:
        """Return whether an event asks about work that was delegated for this response."""
        if not isinstance(event, ev.ToolApprovalRequired | ev.ToolApprovalDone):
            return False
        below, above = event.response_id, self.response_id
        if self.has_ended or not below or not above:
            return False
        return await database.run(delegated_calls.works_for, below, above)

    def _received(self, sent: Outgoing) -> Event | None:
        """Return an event, and keep its place; None for the announcement of the session."""
        event = received(sent)
        if sent.seq is not None:
            self._seq = sent.seq
        if isinstance(event, ev.SessionCreated):
            self._epoch, self._seq = event.epoch or "", event.seq
            return None
        return event

    # --- What the client may keep ---

    @property
    def principal(self) -> Principal:
        """The caller."""
        return self._connection.principal

    @property
    def response_id(self) -> str:
        """The response of the turn, or the one that was joined; '' where none began."""
        return self._joined or next(iter(self._connection.started), "")

    @property
    def session_id(self) -> str:
        """The id of the session, which a program may go on with over UAMP."""
        return self._session.id

    @property
    def chat_id(self) -> str:
        """The chat of the session."""
        return self._session.chat_id

    @property
    def cursor(self) -> str:
        """The place in the chat's log that was read, as `<epoch>:<seq>`; '' where unknown."""
        return f"{self._epoch}:{self._seq}" if self._epoch and self._seq is not None else ""

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the answer: the chat, the session, and the receipt of a payment."""
        paid = {} if self._payment is None else self._payment.headers
        return {"X-Chat-Id": self.chat_id, "X-Session-Id": self.session_id, **paid}

    def link(self, url: str) -> str:
        """Return the address of a medium, for a while readable by each client that knows it."""
        item = uamp.ImageContent(image=uamp.MediaUrl(url=url))
        reader = ContentReader(user_id=self.principal.user_id, chat_id=self.chat_id)
        base_url = self._request.build_absolute_uri("/")
        return absolute_url(item, base_url=base_url, reader=reader) or url

    # --- The end ---

    def stream(self, frames: AsyncIterator[bytes]) -> StreamingHttpResponse:
        """Return a streamed answer, with which the exchange is closed."""
        response = self._http.answer(self._closing(frames), close=self.close)
        for header, value in self.headers.items():
            response[header] = value
        return response

    async def _closing(self, frames: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        try:
            async for frame in frames:
                yield frame
        finally:
            await self.close()

    async def cancel(self) -> None:
        """Cancel the response; one that has ended stays as it is."""
        if not self.response_id or self.has_ended:
            return
        self.has_ended = True
        cancel = ev.ResponseCancel(session_id=self.session_id, response_id=self.response_id)
        await self._followed.take(uamp.to_dict(cancel))

    def give_up(self) -> None:
        """Expect no answer to what is asked: the response is left as one that goes on."""
        self.asked.clear()

    async def close(self) -> None:
        """Leave the response, which is cancelled or goes on; a second time does nothing.

        A response that waits for its client, a person or a payer is not cancelled: it can be
        joined. Nor is one that was joined and not read: its joining was refused.
        """
        is_own = self._is_read or not self._joined
        if self._leaving == "cancel" and is_own and not self.asked:
            await self.cancel()
        await self._http.close()

    @property
    def _connection(self) -> ClientConnection:
        return self._http.connection

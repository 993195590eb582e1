"""One turn of a peer, acting as a UAMP client inside the process (docs/adapters.md).

Its events pass through the same handlers and limits as the frames of a socket, and the same code
runs the answer.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from django.db import DatabaseError, InterfaceError

import uamp
from federation_app.terms.chain_payments import (
    CREDITED,
    ON_CHAIN,
    due_of,
    not_due,
    several_due,
    taken,
)
from sessions_app import database
from sessions_app.billing.demands import demands_below, payable_demands
from sessions_app.connection.defaults import Defaults
from sessions_app.connection.rate_limit import check_rate
from sessions_app.handlers.turns.payments import accept_payment
from sessions_app.process import registry
from sessions_app.transports.followed_response import SERVER_EVENTS, FollowedResponse, received
from sessions_app.transports.http_exchange import HEARTBEAT_SECONDS, HttpExchange
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from sessions_app.access.principal import Principal
    from sessions_app.records import OpenSession
    from uamp.events import Event

logger = logging.getLogger(__name__)

TRANSPORT: Final = "envelope"
_payments: Final[WeakValueDictionary[str, asyncio.Lock]] = WeakValueDictionary()
"""A lock for each response for which this process takes a payment."""
_ENDS: Final = (ev.ResponseDone, ev.ResponseError, ev.ResponseCancelled)


class PeerTurn:
    """The session of a peer, with one response in it. One task at a time calls its methods."""

    def __init__(self, principal: Principal, *, agent: str) -> None:
        defaults = Defaults(agent=agent or None)
        self._http = HttpExchange(None, principal, TRANSPORT, defaults=defaults)
        self._connection = self._http.connection
        self._followed = FollowedResponse(self._http)
        self._session: OpenSession | None = None
        self.session_id = ""
        self.response_id = ""

    async def begin(
        self, session_id: str, open_session: OpenSession | None, text: str, *, event_id: str
    ) -> str:
        """Start a response to a text, and return its id; repeating the event starts nothing.

        `open_session` is the session of this id as it was just read; without one, it is opened.
        Raises RemoteProtocolError.
        """
        if open_session is not None:
            await self._http.join_found(open_session)
        else:
            session = uamp.SessionConfig(id=session_id)
            await self._take(ev.SessionCreate(session=session))
        self.session_id = session_id
        await self._take(
            ev.InputText(session_id=session_id, text=text, event_id=f"{event_id}:input")
        )
        await self._take(ev.ResponseCreate(session_id=session_id, event_id=event_id))
        self.response_id = next(iter(self._connection.started), "")
        if not self.response_id:
            raise self._connection.unanswered or RemoteProtocolError(
                ErrorCode.AGENT_NOT_FOUND, "No agent answers the message."
            )
        attached = self._connection.sessions.get(session_id)
        self._session = None if attached is None else attached.session
        return self.response_id

    @property
    def has_begun_here(self) -> bool:
        """Whether `begin` started the response, so that `events` can yield it from its start."""
        return self._session is not None and not self._connection.has_repeated

    def rest(self) -> None:
        """Stop counting as one of the peer's open connections."""
        registry.current().followers.discard(self._connection)

    def stay(self) -> None:
        """Stay in the session, to follow the response that `begin` has started here.

        Counts as one of the peer's open connections from now on. Raises RemoteProtocolError
        rate_limited.
        """
        followers = registry.current().followers
        followers.discard(self._connection)
        followers.admit(self._connection)
        self._http.end_with_process()

    async def join(self, response_id: str) -> None:
        """Follow a response of the peer, in whichever process it runs.

        `events` yields its text at offset 0 and the rest, or its end. Raises RemoteProtocolError
        unknown_session if the peer has no such response.
        """
        self._http.end_with_process()
        attached = await self._followed.join(response_id)
        self._session = attached.session
        self.session_id, self.response_id = attached.session.wire_id, response_id
        await self._followed.send_state(attached, response_id, with_output=True)

    async def events(self) -> AsyncIterator[Sequence[Event]]:
        """Yield the response's events in batches as they arrive; an empty list after silence.

        Ends with the response, or when it cannot continue without help: the last events are then
        the demands of the work that it delegated. Raises RemoteProtocolError for an error of the
        session.
        """
        self._http.end_when_idle()
        queue, has_ended = self._connection.outgoing, False
        while (batch := await queue.batch(HEARTBEAT_SECONDS)) is not None:
            events: list[Event] = []
            for frame in batch:
                event = received(frame)
                if getattr(event, "response_id", None) == self.response_id:
                    events.append(event)
                    has_ended = has_ended or isinstance(event, _ENDS)
            if events or not batch:
                yield events
            self._followed.check()
        if self._session is None or has_ended:
            return
        if below := await database.run(demands_below, self._session, self.response_id):
            yield below

    async def demands(self) -> list[ev.PaymentRequired]:
        """Return the open demands for the response and for work that it delegated, oldest first.

        The response may run in any process.
        """
        if self._session is None:
            return []
        return await database.run(payable_demands, self._session, self.response_id)

    async def cancel(self) -> None:
        """Cancel the response, unless it has ended."""
        cancel = ev.ResponseCancel(session_id=self.session_id, response_id=self.response_id)
        try:
            await self._take(cancel)
        except RemoteProtocolError as error:
            if error.code != ErrorCode.NOTHING_TO_CANCEL:
                raise

    async def pay(self, submit: ev.PaymentSubmit) -> None:
        """Pay for the response, or for work that it delegated, which waits for it.

        `submit` names the response that waits; it may leave that out if only one does. Raises
        EnvelopeError conflict if several do, RemoteProtocolError payment_not_due if it does not
        wait, and payment_required for a payment that is refused, in which case it keeps waiting. A
        payment on a chain that was settled first pays for another answer of its agent then.
        """
        connection, payment = self._connection, submit.payment
        await check_rate(connection, connection.principal, "payments", self.session_id)
        named = submit.response_id
        due = due_of(d for d in await self.demands() if named in {None, d.response_id})
        if not due:
            raise not_due()
        if len({demand.response_id for demand in due}) > 1:
            raise several_due(due)
        demand = due[0]
        # Of two payments at once, the second is refused before it is settled.
        async with _payments.setdefault(demand.response_id or "", asyncio.Lock()):
            if demand not in due_of(await self.demands()):
                raise not_due()
            await self._pay_demand(payment, demand)

    async def _pay_demand(self, payment: ev.Payment, demand: ev.PaymentRequired) -> None:
        if payment.scheme != ON_CHAIN:
            await self._submit(payment, demand.response_id)
            return
        payment = await taken(payment, demand, peer=self._connection.principal.key)
        try:
            await self._submit(payment, demand.response_id)
        except RemoteProtocolError as error:
            is_over = error.code == ErrorCode.PAYMENT_NOT_DUE
            reason = "The answer no longer waits." if is_over else error.message
            message = f"{reason} {CREDITED}"
            raise RemoteProtocolError(error.code, message, details=error.details) from None

    async def _submit(self, payment: ev.Payment, response_id: str | None) -> None:
        submit = ev.PaymentSubmit(
            session_id=self.session_id, response_id=response_id, payment=payment
        )
        try:
            await accept_payment(self._connection, submit)
        except (DatabaseError, InterfaceError):
            logger.exception("the database did not store a payment")
            raise RemoteProtocolError(
                ErrorCode.UNAVAILABLE, "The server cannot store this now."
            ) from None
        for frame in self._connection.outgoing.take_replies():
            event = SERVER_EVENTS.decode(frame.text)
            if isinstance(event, ev.PaymentError):
                raise RemoteProtocolError(ErrorCode.PAYMENT_REQUIRED, event.message)

    def end(self) -> None:
        """End `events` soon, whatever the response does."""
        self._connection.outgoing.end_when(lambda: True)

    async def close(self) -> None:
        """Leave the session; its response keeps running."""
        await self._http.close()

    async def _take(self, event: Event) -> None:
        await self._followed.take(event)
        self._followed.check()

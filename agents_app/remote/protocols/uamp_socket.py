"""Remote agents over UAMP on a WebSocket; the address is as https://host/agents/echo.

The session is the client's own state (`uamp.client.state`). If the connection breaks during an
answer, it is re-established, and the session resumes after its last durable event (UAMP §10). A
process that takes an answer over resumes the session before the answer, and receives it whole.
"""

import logging
import time
import uuid

import uamp
from agents_app.remote.onward import OverBudget
from agents_app.remote.protocols.server import Called, SideEvents
from agents_app.remote.protocols.sockets import SocketFrames, SocketLost, SocketModel, SocketTraffic
from agents_app.remote.protocols.uamp_events import UampAnswer
from agents_app.remote.protocols.uamp_requests import response_create
from agents_app.remote.tasks import Ids
from uamp import RemoteProtocolError
from uamp.client.state.session import ClientSession
from uamp.events import (
    Event,
    Payment,
    PaymentError,
    PaymentRequired,
    ResponseCancel,
    ResponseCreated,
    SessionCreate,
    SessionCreated,
    SessionEnd,
)
from uamp.types.session import SessionConfig
from upp import ErrorCode, LLMRequest, LLMResponse, UPPError
from upp.stream import Emit

logger = logging.getLogger(__name__)

_BALANCE = ("balance", "uamp")
RESUMES = 3
"""The most reconnections for one answer."""


class UampSocketModel(SocketModel):
    """Opens a session for each inference."""

    def __init__(self, called: Called, side_events: SideEvents) -> None:
        super().__init__(called, side_events)
        self._paid: set[tuple[str | None, float | None, str]] = set()
        # The place in the session's log before the answer.
        self._began_at = 0
        # Where the answer in progress is, and whether the connection to it is lost.
        self._running: Ids | None = None
        self._is_cut_off = False

    @property
    def address(self) -> str:
        """See SocketModel."""
        return f"{self.called.url}/uamp"

    async def ask(self, request: LLMRequest, emit: Emit) -> LLMResponse:
        """See SocketModel."""
        session = self._session()
        answer = UampAnswer(self, request, self.failures)
        traffic, question = SocketTraffic(), response_create(request)
        self._running = ids = self.called.task.ids
        self._is_cut_off = ids is not None
        if ids is None:
            session.ask([], question)
        else:
            answer.response_id = _restore(session, ids)
            # The process that asked has sent the conversation.
            traffic.sent = len(uamp.encode(question).encode())
        for attempt in range(RESUMES + 1):
            async with self.connected(traffic) as frames:
                try:
                    self._is_cut_off = False
                    return await self._follow(frames, session, answer, emit)
                except SocketLost:
                    self._is_cut_off = True
                    session.connection_lost()
                    if attempt == RESUMES or answer.response_id is None:
                        raise
        raise SocketLost

    async def cancel(self) -> None:
        """Stop an answer that the last connection could not stop, because it was lost."""
        if not self._is_cut_off or self._running is None:
            return
        try:
            await self.stop(self._running)
        except UPPError as error:
            logger.info("a stop was not sent to %s: %s", self.called.agent, error)

    async def stop(self, ids: Ids) -> None:
        """Stop an answer that another process left behind; raises UPPError."""
        protocol, session = uamp.Connection("client"), self._session()
        response_id = _restore(session, ids)
        session.begin()
        try:
            async with self.connected(SocketTraffic()) as frames:
                for event in session.events_to_send():
                    await frames.send(self._frame(protocol, event, session))
                while not session.is_open and session.error is None:
                    for event in protocol.receive(await frames.receive(), now=time.monotonic()):
                        session.receive(event)
                frames.last_words = lambda: self._stops(protocol, session, response_id)
        except (SocketLost, RemoteProtocolError) as error:
            message = "The answer could not be stopped."
            raise self.failures.error(message, ErrorCode.NETWORK_ERROR) from error

    def _session(self) -> ClientSession:
        return ClientSession(
            chat=None,
            agent=self.called.name or None,
            config=SessionConfig(),
            new_id=_new_id,
            now=_now,
        )

    def _stops(
        self, protocol: uamp.Connection, session: ClientSession, response_id: str | None
    ) -> list[str]:
        """Return the frames that stop an answer; none if another process continues it."""
        if self.called.task.is_left:
            return []
        return [
            self._frame(protocol, event, session)
            for event in (ResponseCancel(response_id=response_id), SessionEnd())
        ]

    async def _follow(
        self, frames: SocketFrames, session: ClientSession, answer: UampAnswer, emit: Emit
    ) -> LLMResponse:
        protocol = uamp.Connection("client")
        session.begin()
        # An answer that is stopped or rejected here is stopped on the other side too.
        frames.last_words = lambda: self._stops(protocol, session, answer.response_id)
        while not answer.complete:
            for event in session.events_to_send():
                await frames.send(self._frame(protocol, event, session))
            try:
                events = protocol.receive(await frames.receive(), now=time.monotonic())
            except RemoteProtocolError as error:
                raise answer.invalid(f"an invalid UAMP event: {error.message}") from error
            for event in events:
                if session.receive(event):
                    await self._take(session, event, answer, emit)
            if session.error is not None:
                raise self.failures.error(str(session.error), ErrorCode.PROVIDER_ERROR)
        frames.last_words = lambda: [self._frame(protocol, SessionEnd(), session)]
        return self.believed(answer.response(), frames.traffic)

    async def _take(
        self, session: ClientSession, event: Event, answer: UampAnswer, emit: Emit
    ) -> None:
        if isinstance(event, PaymentRequired):
            await self._pay(session, event, answer)
            return
        if isinstance(event, PaymentError) and self.called.payments is not None:
            self.called.payments.refused()
        if isinstance(event, SessionCreated):
            self._began_at = session.seq
            if event.resumed is False and answer.response_id is not None:
                raise answer.invalid("another log than that of its answer")
        for stream_event in answer.take(event):
            await emit(stream_event)
        if isinstance(event, ResponseCreated) and session.epoch is not None:
            self._running = {
                "session": session.session_id or "",
                "epoch": session.epoch,
                "seq": self._began_at,
                "response": answer.response_id or "",
            }
            self.called.task.record_ids(**self._running)

    async def _pay(
        self, session: ClientSession, event: PaymentRequired, answer: UampAnswer
    ) -> None:
        """Pay a payment request from the balance there of the person whose key is used."""
        requirements, payments = event.requirements, self.called.payments
        demand = (event.response_id, requirements.expires_at, requirements.amount)
        if demand in self._paid:
            # The request was repeated after a reconnection, and so is the payment.
            return
        schemes = {(offer.scheme, offer.network) for offer in requirements.schemes}
        if payments is None or self.called.key is None or _BALANCE not in schemes:
            raise answer.failed(
                "it accepts no available means of payment", ErrorCode.QUOTA_EXCEEDED
            )
        try:
            await payments.reserve(requirements.amount, requirements.currency)
        except OverBudget as error:
            raise answer.failed(
                f"it requires a payment: {error}", ErrorCode.QUOTA_EXCEEDED
            ) from error
        self._paid.add(demand)
        scheme, network = _BALANCE
        session.pay(event, Payment(scheme=scheme, network=network, amount=requirements.amount))

    def _frame(self, protocol: uamp.Connection, event: Event, session: ClientSession) -> str:
        of_session = None if isinstance(event, SessionCreate) else session.session_id
        return protocol.send(event, event_id=_new_id(), timestamp=_now(), session_id=of_session)


def _restore(session: ClientSession, ids: Ids) -> str:
    """Restore the session of an answer in progress; return the id of the answer."""
    response_id = str(ids["response"])
    session.restore(
        response_id,
        session_id=str(ids["session"]),
        epoch=str(ids["epoch"]),
        seq=int(ids["seq"]),
    )
    return response_id


def _new_id() -> str:
    return uuid.uuid4().hex


def _now() -> int:
    return int(time.time() * 1000)

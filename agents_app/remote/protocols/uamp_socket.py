"""Remote agents over UAMP on a WebSocket; the address is as https://host/agents/echo.

The session is the client's own state (`uamp.client.state`). If the connection breaks during an
answer, it is re-established, and the session resumes after its last durable event (UAMP §10).
"""

import time
import uuid

import uamp
from agents_app.remote.onward import OverBudget
from agents_app.remote.protocols.server import Called, Shown
from agents_app.remote.protocols.sockets import SocketFrames, SocketLost, SocketModel
from agents_app.remote.protocols.uamp_events import UampAnswer
from agents_app.remote.protocols.uamp_requests import response_create
from uamp import RemoteProtocolError
from uamp.client.state.session import ClientSession
from uamp.events import (
    Event,
    Payment,
    PaymentError,
    PaymentRequired,
    ResponseCancel,
    SessionCreate,
    SessionEnd,
)
from uamp.types.session import SessionConfig
from upp import ErrorCode, LLMRequest, LLMResponse
from upp.stream import Emit

_BALANCE = ("balance", "uamp")
RESUMES = 3
"""The most reconnections for one answer."""


class UampSocketModel(SocketModel):
    """Opens a session for each inference."""

    def __init__(self, called: Called, shown: Shown) -> None:
        super().__init__(called, shown)
        self._paid: set[tuple[str | None, float | None, str]] = set()

    @property
    def address(self) -> str:
        """See SocketModel."""
        return f"{self.called.url}/uamp"

    async def ask(self, request: LLMRequest, emit: Emit) -> LLMResponse:
        """See SocketModel."""
        session = ClientSession(
            chat=None,
            agent=self.called.name or None,
            config=SessionConfig(),
            new_id=_new_id,
            now=_now,
        )
        answer = UampAnswer(self, request, self.failures)
        session.ask([], response_create(request))
        for attempt in range(RESUMES + 1):
            async with self.connected() as frames:
                try:
                    return await self._follow(frames, session, answer, emit)
                except SocketLost:
                    session.lost()
                    if attempt == RESUMES or answer.response_id is None:
                        raise
        raise SocketLost

    async def _follow(
        self, frames: SocketFrames, session: ClientSession, answer: UampAnswer, emit: Emit
    ) -> LLMResponse:
        protocol = uamp.Connection("client")
        session.begin()
        # An answer that is stopped or rejected here is stopped on the other side too.
        frames.last_words = lambda: [
            self._frame(protocol, event, session)
            for event in (ResponseCancel(response_id=answer.response_id), SessionEnd())
        ]
        while not answer.complete:
            for event in session.events_to_send():
                await frames.send(self._frame(protocol, event, session))
            try:
                events = protocol.receive(await frames.receive(), now=time.monotonic())
            except RemoteProtocolError as error:
                raise answer.invalid(f"what is no event of UAMP: {error.message}") from error
            for event in events:
                if not session.receive(event):
                    continue
                if isinstance(event, PaymentRequired):
                    await self._pay(session, event, answer)
                    continue
                if isinstance(event, PaymentError) and self.called.payments is not None:
                    self.called.payments.refused()
                for shown in answer.take(event):
                    await emit(shown)
            if session.error is not None:
                raise self.failures.error(str(session.error), ErrorCode.PROVIDER_ERROR)
        frames.last_words = lambda: [self._frame(protocol, SessionEnd(), session)]
        return self.believed(answer.response(), frames)

    async def _pay(
        self, session: ClientSession, event: PaymentRequired, answer: UampAnswer
    ) -> None:
        """Pay a payment request from the balance there of the person whose key is used."""
        asked, payments = event.requirements, self.called.payments
        demand = (event.response_id, asked.expires_at, asked.amount)
        if demand in self._paid:
            # The request was repeated after a reconnection, and so is the payment.
            return
        schemes = {(one.scheme, one.network) for one in asked.schemes}
        if payments is None or self.called.key is None or _BALANCE not in schemes:
            raise answer.failed("it takes no payment that is possible", ErrorCode.QUOTA_EXCEEDED)
        try:
            await payments.reserve(asked.amount, asked.currency)
        except OverBudget as error:
            raise answer.failed(
                f"it wants to be paid: {error}", ErrorCode.QUOTA_EXCEEDED
            ) from error
        self._paid.add(demand)
        scheme, network = _BALANCE
        session.pay(event, Payment(scheme=scheme, network=network, amount=asked.amount))

    def _frame(self, protocol: uamp.Connection, event: Event, session: ClientSession) -> str:
        of_session = None if isinstance(event, SessionCreate) else session.session_id
        return protocol.send(event, event_id=_new_id(), timestamp=_now(), session_id=of_session)


def _new_id() -> str:
    return uuid.uuid4().hex


def _now() -> int:
    return int(time.time() * 1000)

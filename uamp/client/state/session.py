"""One session of a client, without a socket: the events it sends and how it handles each event.

The shell calls ``begin`` on every new connection and ``lost`` when one is gone, passes each event
of the session to ``receive``, sends the events that ``events_to_send`` returns, and carries out the
requests that ``take_requests`` returns. Durable events are processed once, by their ``seq``;
unacknowledged events are sent again under the same ids. All calls must come from one thread.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from uamp.client.errors import (
    ClientError,
    ConnectionLostError,
    OutcomeUnknownError,
    PaymentRefusedError,
    error_of,
)
from uamp.client.state.answers import AnswerState
from uamp.client.state.requests import AnswerRequests, ClientRequest, payment_of
from uamp.client.state.running_answers import RunningAnswers
from uamp.client.state.sent_turns import PASSING, SentTurns
from uamp.client.state.turns import TurnState
from uamp.events import (
    ErrorDetail,
    InputEvent,
    MessageCreated,
    Payment,
    PaymentAccepted,
    PaymentError,
    PaymentRequired,
    Ping,
    Pong,
    Progress,
    QueueUpdated,
    ResponseCancel,
    ResponseCancelled,
    ResponseCreate,
    ResponseCreated,
    ResponseDelta,
    ResponseDone,
    ResponseError,
    SessionCreate,
    SessionCreated,
    SessionEnd,
    SessionError,
    Thinking,
    ToolApprovalRequired,
    ToolApprove,
    ToolCall,
    ToolCallDone,
    ToolResult,
    UsageDelta,
)
from uamp.events.base import Event
from uamp.types.session import Resume, SessionConfig

_E = TypeVar("_E", bound=Event)

_OF_ANSWER = (ResponseDelta, Thinking, ToolCallDone, UsageDelta)
_ASKS = (ToolCall, PaymentRequired, PaymentAccepted, PaymentError, ToolApprovalRequired)
_ENDS = (ResponseDone, ResponseCancelled, ResponseError)
_CREATE_AGAIN = PASSING | {"internal_error", "rate_limited", "too_many_sessions"}


class ClientSession:
    """A session in a ``chat``, or a private session with an ``agent`` if there is no chat.

    ``seq`` is the place in the log of the last durable event received. ``error`` is set once the
    session cannot continue. ``now`` is the time in Unix milliseconds.
    """

    def __init__(
        self,
        *,
        chat: str | None,
        agent: str | None,
        config: SessionConfig,
        new_id: Callable[[], str],
        now: Callable[[], int],
        payment_token: str | None = None,
    ) -> None:
        self.chat = chat
        self.session_id: str | None = None
        self.epoch: str | None = None
        self.seq = 0
        self.is_open = False
        self.error: ClientError | None = None
        self.refusal: ClientError | None = None
        """Why the last attempt to open it failed, if it is to be retried; the shell clears it."""
        self.last_refusal: ClientError | None = None
        self.create_id: str | None = None
        self._agent = agent
        self._config = config
        self._payment_token = payment_token
        self._new_id = new_id
        self._now = now
        self._turns = SentTurns()
        self._running = RunningAnswers()
        self._outgoing: deque[Event] = deque()
        self._requests = AnswerRequests()
        self._pings: dict[str, TurnState] = {}

    # --- The connection ---

    def begin(self) -> None:
        """Open or resume the session on a new connection."""
        self.is_open = False
        self._outgoing.clear()
        self._pings.clear()
        self.create_id = self._new_id()
        resume = None
        if self.epoch is not None:
            resume = Resume(session_id=self.session_id, epoch=self.epoch, after=self.seq)
        self._outgoing.append(
            SessionCreate(
                event_id=self.create_id,
                session=self._config,
                chat=self.chat,
                agent=self._agent,
                payment_token=self._payment_token,
                resume=resume,
            )
        )

    def restore(self, response_id: str, *, session_id: str, epoch: str, seq: int) -> TurnState:
        """Continue a session that another program opened, and follow an answer in it.

        ``seq`` is a place in the log before the answer.
        """
        self.session_id, self.epoch, self.seq = session_id, epoch, seq
        turn = TurnState([], self._identified(ResponseCreate()))
        turn.sent_in, turn.expected = session_id, 1
        self._running.begin(AnswerState(response_id), turn)
        self._turns.add(turn)
        return turn

    def connection_lost(self) -> None:
        """Record that the connection is gone; later events wait for the next one."""
        self.is_open = False
        self._outgoing.clear()

    def end(self) -> None:
        """End the session on the server (UAMP §5.3)."""
        if self.is_open:
            self._outgoing.append(SessionEnd(event_id=self._new_id()))

    def fail(self, error: ClientError) -> None:
        """Fail everything in progress in the session with an error."""
        self.error = self.error or error
        self._turns.fail(error)

    def events_to_send(self) -> list[Event]:
        """Return the events to send now, in order, each with its id."""
        events = list(self._outgoing)
        self._outgoing.clear()
        return events

    def take_requests(self) -> list[ClientRequest]:
        """Return the server's requests that the client has not started."""
        return self._requests.take()

    def sent(self, event_id: str) -> bool:
        """Return whether this session sent an event with this id that may still be answered."""
        return (
            event_id == self.create_id
            or event_id in self._pings
            or self._requests.sent(event_id)
            or self._turns.sent(event_id)
        )

    # --- Actions of the client ---

    def ask(self, inputs: Sequence[InputEvent], create: ResponseCreate) -> TurnState:
        """Send a turn; its events get ids here."""
        turn = TurnState([self._identified(event) for event in inputs], self._identified(create))
        if self.error is not None:
            turn.fail(self.error)
            return turn
        self._turns.add(turn)
        if self.is_open:
            self._send_turn(turn)
        return turn

    def retry(self, turn: TurnState) -> None:
        """Resend the frames of a turn that the server could not accept before."""
        turn.retry_after = None
        if self.is_open and not turn.is_complete and not turn.is_stored:
            self._send_turn(turn)

    def cancel(self, response_id: str) -> None:
        """Cancel an answer, and again after a lost connection until it has ended (UAMP §5.13)."""
        if self._running.cancel(response_id) and self.is_open:
            self._send(ResponseCancel(response_id=response_id))

    def finish_tool(self, call_id: str, result: str, *, is_error: bool) -> None:
        """Send the result of a client tool, as JSON text (UAMP §5.14)."""
        event = self._identified(ToolResult(call_id=call_id, result=result, is_error=is_error))
        if self._requests.finish(event) and self.is_open:
            self._outgoing.append(event)

    def pay(self, required: PaymentRequired, payment: Payment) -> None:
        """Pay for an answer that waits for it; a repeat is the same payment (UAMP §5.15)."""
        event = self._identified(payment_of(required, payment))
        if self._requests.paid(required, event) and self.is_open:
            self._outgoing.append(event)

    def decline(self, required: PaymentRequired, error: ClientError) -> None:
        """Decline to pay: the answer is cancelled, and its turn ends with ``error``."""
        if required.response_id is not None:
            self._requests.declined(required.response_id, error)
            self.cancel(required.response_id)

    def decide(self, call: ToolApprovalRequired, *, approved: bool, reason: str = "") -> None:
        """Allow or refuse an agent's tool call."""
        event = self._identified(
            ToolApprove(
                call_id=call.call_id,
                response_id=call.response_id,
                approved=approved,
                reason=reason or None,
            )
        )
        if self._requests.decided(event) and self.is_open:
            self._outgoing.append(event)

    def turn_of_pong(self, pong: Pong) -> TurnState | None:
        """Return the turn whose message is stored, as the answer to a later ping shows."""
        return self._pings.pop(str(pong.reply_to), None)

    def _settle_by(self, pong: Pong) -> None:
        """Settle the turn of a pong that arrived after everything sent before it."""
        if (turn := self.turn_of_pong(pong)) is not None:
            self.settle(turn, len(turn.answers))

    def settle(self, turn: TurnState, answers: int) -> None:
        """Record how many answers a turn has, including those not yet begun here."""
        if turn.expected is None:
            turn.expected = answers
        self._turns.forget_complete()

    # --- Events of the server ---

    def receive(self, event: Event) -> bool:
        """Process an event of the session; return False if it was processed before."""
        if isinstance(event, SessionCreated):
            self._created(event)
            return True
        if event.seq is not None:
            if event.seq <= self.seq:
                return False
            self.seq = event.seq
        match event:
            case MessageCreated():
                self._message(event)
            case ResponseCreated():
                self._response_created(event)
            case QueueUpdated():
                self._turns.queued(event)
            case Pong():
                self._settle_by(event)
            case SessionError():
                self._refused(event.error)
            case _ if isinstance(event, _ASKS):
                self._request(event)
            case _:
                self._answer_event(event)
        self._turns.settle_doubt(self.seq, self.session_id)
        self._turns.forget_complete()
        return True

    def _created(self, event: SessionCreated) -> None:
        previous_id, resumed = self.session_id, event.resumed is not False
        was_resume = self.epoch is not None
        self.session_id = event.session_id or event.session.id
        self.chat = self.chat or event.chat
        self.is_open, self.refusal = True, None
        place = int(event.seq or 0)
        if not was_resume or not resumed:
            self.seq, self.epoch = place, event.epoch
        if was_resume and not resumed:
            reason = "The server has a new log of the chat; the missed events cannot be sent."
            self._running.forget()
            self._requests = AnswerRequests()
            self._turns.fail(OutcomeUnknownError(reason))
        if previous_id is not None and previous_id != self.session_id:
            self._turns.doubt(place)
            self._turns.settle_doubt(self.seq, self.session_id)
        for turn in self._turns.to_send(self.session_id):
            self._send_turn(turn)
        self._outgoing.extend(self._requests.payments)
        for response_id in self._running.cancelled:
            self._send(ResponseCancel(response_id=response_id))

    def _message(self, event: MessageCreated) -> None:
        if (turn := self._turns.stored(event)) is not None:
            # The turn's answers begin before the server answers this ping.
            ping_id = self._new_id()
            self._pings[ping_id] = turn
            self._outgoing.append(Ping(event_id=ping_id))

    def _response_created(self, event: ResponseCreated) -> None:
        if self._running.knows(event.response_id):
            return
        turn = self._turns.answered(event, is_private=self._agent is not None)
        answer = self._running.begin(AnswerState(event.response_id, event), turn)
        if turn is not None:
            turn.add(answer.take(event))

    def _answer_event(self, event: Event) -> None:
        if isinstance(event, _ENDS):
            self._answer_ended(event)
        elif isinstance(event, Progress):
            self._running.add(str(event.response_id or event.target_id), event)
        elif isinstance(event, _OF_ANSWER):
            self._running.add(str(event.response_id), event)

    def _answer_ended(self, event: ResponseDone | ResponseCancelled | ResponseError) -> None:
        if event.response_id is None or not self._running.has(event.response_id):
            if isinstance(event, ResponseError):
                self._refused(event.error)
            return
        self._running.end(event, declined=self._requests.end(event.response_id))

    def _request(self, event: Event) -> None:
        match event:
            case ToolCall():
                self._tool_call(event)
            case PaymentRequired() | PaymentAccepted() | PaymentError():
                self._payment(event)
            case ToolApprovalRequired() if self._running.is_own(event.response_id):
                if (decision := self._requests.approval(event)) is not None:
                    self._outgoing.append(decision)

    def _tool_call(self, event: ToolCall) -> None:
        is_new, result = self._requests.call(event)
        if result is not None:
            self._outgoing.append(result)
        if is_new:
            self._running.add(str(event.response_id), event)

    def _payment(self, event: PaymentRequired | PaymentAccepted | PaymentError) -> None:
        if event.response_id is None or not self._running.is_own(event.response_id):
            return
        if isinstance(event, PaymentRequired):
            self._requests.payment(event)
        elif isinstance(event, PaymentError):
            error = PaymentRefusedError(event.message, code=event.code)
            self._requests.declined(event.response_id, error)
            self.cancel(event.response_id)
        self._running.add(event.response_id, event)

    def _refused(self, detail: ErrorDetail) -> None:
        cause = (detail.details or {}).get("event_id")
        error = error_of(detail)
        if cause is None:
            if detail.code in {"unauthorized", "token_expired"}:
                self.fail(error)
        elif cause == self.create_id:
            self._not_created(detail, error)
        else:
            self._turns.refused(str(cause), detail)

    def _not_created(self, detail: ErrorDetail, error: ClientError) -> None:
        self.refusal = self.last_refusal = error
        if detail.code == "unknown_session" and self.session_id is not None:
            if self.chat is None or self._agent is not None:
                self.fail(ConnectionLostError("The server has forgotten the session."))
                return
            # Its chat still exists: continue after the last event, in a new session.
            self.session_id, self.refusal = "", None
            self.create_id = self._new_id()
            resume = Resume(epoch=self.epoch, after=self.seq)
            create = SessionCreate(
                event_id=self.create_id, session=self._config, chat=self.chat, resume=resume
            )
            self._outgoing.append(create)
        elif detail.code not in _CREATE_AGAIN:
            self.fail(error)

    def _send_turn(self, turn: TurnState) -> None:
        turn.sent_in = self.session_id
        self._outgoing.extend(turn.events)

    def _send(self, event: Event) -> None:
        self._outgoing.append(event if event.event_id else self._identified(event))

    def _identified(self, event: _E) -> _E:
        """Return an event with its id and time set: a repeat is identical to the byte."""
        return msgspec.structs.replace(event, event_id=self._new_id(), timestamp=self._now())

    @property
    def waiting_turns(self) -> list[TurnState]:
        """The turns that have not ended, oldest first."""
        return self._turns.waiting

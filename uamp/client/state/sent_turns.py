"""The turns that a session has sent and that have not ended; matches events to them."""

from uamp.client.errors import ClientError, OutcomeUnknownError, error_of
from uamp.client.state.turns import TurnState
from uamp.events import ErrorDetail, MessageCreated, QueueUpdated, ResponseCreated

# Temporary refusals: the same frames are resent after the wait that the server asks for.
PASSING = frozenset({"unavailable", "busy"})
_MAX_RETRIES = 5


class SentTurns:
    """Turns in the order in which they were sent; complete turns are dropped."""

    def __init__(self) -> None:
        self._turns: list[TurnState] = []
        # Set if the server forgot the session: the log up to here shows what was stored.
        self._doubt_until: int | None = None

    @property
    def waiting(self) -> list[TurnState]:
        """The turns that have not ended, oldest first."""
        return list(self._turns)

    def add(self, turn: TurnState) -> None:
        """Add a turn."""
        self._turns.append(turn)

    def forget_complete(self) -> None:
        """Forget the turns that are complete."""
        self._turns = [turn for turn in self._turns if not turn.is_complete]

    def sent(self, event_id: str) -> bool:
        """Return whether an event of a turn has this id."""
        return any(event_id in turn.event_ids for turn in self._turns)

    def to_send(self, session_id: str | None) -> list[TurnState]:
        """Return the turns to send in a session: new turns, and those that may not have arrived."""
        return [
            turn
            for turn in self._turns
            if not turn.is_stored
            and turn.retry_after is None
            and turn.sent_in in {None, session_id}
        ]

    def fail(self, error: ClientError) -> None:
        """End all turns with an error."""
        for turn in self._turns:
            turn.fail(error)
        self._turns.clear()

    def stored(self, event: MessageCreated) -> TurnState | None:
        """Assign a stored message to its turn and return the turn; None for others' messages."""
        request = event.message.client_event_id
        for turn in self._turns:
            if request is not None and request == turn.create.event_id:
                turn.message, turn.message_seq = event.message, int(event.seq or 0)
                turn.is_queued = False
                return turn
        return None

    def answered(self, event: ResponseCreated, *, is_private: bool) -> TurnState | None:
        """Return the turn that a response answers; None for an answer to others."""
        for turn in self._turns:
            if turn.message is not None and turn.message.id == event.message_id:
                return turn
        # A private session has no other members: its turns are answered in order.
        for turn in self._turns if is_private else ():
            if turn.expected is None and turn.message is None and turn.sent_in:
                turn.expected = 1
                return turn
        return None

    def queued(self, event: QueueUpdated) -> None:
        """Apply the current queue of the chat."""
        queued = {item.client_event_id: item for item in event.items}
        for turn in self._turns:
            item = queued.get(str(turn.create.event_id))
            turn.is_queued = item is not None
            if item is not None and item.status == "failed":
                detail = ErrorDetail(code=item.code or "invalid_event", message=item.reason or "")
                turn.fail(error_of(detail))

    def refused(self, event_id: str, detail: ErrorDetail) -> None:
        """Apply the refusal of an event: a turn's first refusal says why it was not accepted."""
        error = error_of(detail)
        for turn in self._turns:
            if event_id not in turn.event_ids or turn.retry_after is not None:
                continue
            if detail.code in PASSING and error.retry_after and turn.retries < _MAX_RETRIES:
                turn.retries += 1
                turn.retry_after = error.retry_after
            else:
                turn.fail(error)

    def doubt(self, until: int) -> None:
        """Record that the session of the turns is gone and the log must be read up to ``until``."""
        self._doubt_until = until

    def settle_doubt(self, seq: int, session_id: str | None) -> None:
        """End the turns of a forgotten session that are not in the log up to ``seq``."""
        if self._doubt_until is None or seq < self._doubt_until:
            return
        self._doubt_until = None
        for turn in self._turns:
            if not turn.is_stored and turn.sent_in not in {None, session_id}:
                reason = "The server has forgotten the session in which the message was sent."
                turn.fail(OutcomeUnknownError(reason))

"""A turn sent by a client: its frames, its stored message and its answers (UAMP §8.5.1)."""

from collections import deque
from collections.abc import Sequence

from uamp.client.errors import ClientError
from uamp.client.state.answers import AnswerState, Piece
from uamp.events import ChatMessage, InputEvent, ResponseCreate
from uamp.events.base import Event


class TurnState:
    """A turn from its first frame to the end of its last answer.

    The ids of its events stay the same however often they are sent: the server answers a repeat
    with the outcome of the first. ``expected`` is the number of its answers, once known.
    """

    def __init__(self, inputs: Sequence[InputEvent], create: ResponseCreate) -> None:
        self.inputs = tuple(inputs)
        self.create = create
        self.message: ChatMessage | None = None
        self.answers: list[AnswerState] = []
        self.message_seq = 0
        self.expected: int | None = None
        self.is_queued = False
        self.error: ClientError | None = None
        self.sent_in: str | None = None
        """The session that the frames were sent to; None if they were not sent."""
        self.retry_after: float | None = None
        """Seconds after which to resend the frames, as requested by the server."""
        self.is_retry_planned = False
        self.retries = 0
        self._pieces: deque[Piece] = deque()

    @property
    def events(self) -> tuple[Event, ...]:
        """The events of the turn, in the order in which they are sent."""
        return (*self.inputs, self.create)

    @property
    def event_ids(self) -> frozenset[str]:
        """The ids of its events."""
        return frozenset(event.event_id for event in self.events if event.event_id)

    @property
    def is_stored(self) -> bool:
        """Whether the server has stored the message, which then is not sent again."""
        return self.message is not None or bool(self.answers) or self.is_queued

    @property
    def is_complete(self) -> bool:
        """Whether the turn is over."""
        if self.error is not None:
            return True
        if self.expected is None or len(self.answers) < self.expected:
            return False
        return all(answer.has_ended for answer in self.answers)

    def fail(self, error: ClientError) -> None:
        """End the turn with an error; the first error counts."""
        if not self.is_complete:
            self.error = error

    def add(self, piece: Piece | None) -> None:
        """Store a piece until the caller takes it."""
        if piece is not None:
            self._pieces.append(piece)

    def next_piece(self) -> Piece | None:
        """Return the oldest piece not yet taken; None if there is none at the moment."""
        return self._pieces.popleft() if self._pieces else None

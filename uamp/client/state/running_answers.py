"""The answers that run in one session of a client, and the turns that they belong to."""

from collections import deque
from collections.abc import Collection

from uamp.client.errors import ClientError
from uamp.client.state.answers import AnswerState
from uamp.client.state.turns import TurnState
from uamp.events import ResponseCancelled, ResponseDone, ResponseError
from uamp.events.base import Event

_MAX_ENDED = 1_000


class RunningAnswers:
    """Answers by their response ids; those to other clients' questions have no turn."""

    def __init__(self) -> None:
        self._answers: dict[str, AnswerState] = {}
        self._turns: dict[str, TurnState] = {}
        self._ended: deque[str] = deque(maxlen=_MAX_ENDED)
        self._cancelled: set[str] = set()

    @property
    def cancelled(self) -> Collection[str]:
        """The ids of answers that the client cancelled and that have not ended."""
        return self._cancelled

    def has(self, response_id: str) -> bool:
        """Return whether an answer runs."""
        return response_id in self._answers

    def knows(self, response_id: str) -> bool:
        """Return whether an answer runs or has ended lately."""
        return response_id in self._answers or response_id in self._ended

    def is_own(self, response_id: str | None) -> bool:
        """Return whether an answer runs for a turn of this client."""
        return response_id in self._turns

    def begin(self, answer: AnswerState, turn: TurnState | None) -> AnswerState:
        """Add an answer, and return it."""
        self._answers[answer.response_id] = answer
        if turn is not None:
            turn.answers.append(answer)
            self._turns[answer.response_id] = turn
        return answer

    def cancel(self, response_id: str) -> bool:
        """Mark an answer as cancelled; return False if it does not run."""
        if response_id not in self._answers:
            return False
        self._cancelled.add(response_id)
        return True

    def add(self, response_id: str, event: Event) -> None:
        """Add an event to its answer, if that runs, and to its turn."""
        answer = self._answers.get(response_id)
        if answer is None:
            return
        piece = answer.take(event)
        turn = self._turns.get(response_id)
        if turn is not None:
            turn.add(piece)

    def end(
        self,
        event: ResponseDone | ResponseCancelled | ResponseError,
        *,
        declined: ClientError | None,
    ) -> None:
        """End a running answer; `declined` is the error of a payment that the client declined."""
        response_id = str(event.response_id)
        self.add(response_id, event)
        answer = self._answers.pop(response_id)
        self._ended.append(response_id)
        self._cancelled.discard(response_id)
        turn = self._turns.pop(response_id, None)
        if turn is not None:
            # The answers of one turn begin together: all of them have begun by now.
            turn.expected = len(turn.answers)
            if declined is not None and answer.status != "completed":
                answer.error = declined

    def forget(self) -> None:
        """Drop what runs: the log in which it would end is gone."""
        self._answers.clear()
        self._turns.clear()
        self._cancelled.clear()

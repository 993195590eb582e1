"""Tracks one answer and its new parts, also across lost connections (UAMP §6.6)."""

import logging

import msgspec

from uamp.client.errors import AnswerCancelledError, AnswerFailedError, ClientError
from uamp.errors import RemoteProtocolError
from uamp.events import (
    ErrorDetail,
    ResponseCancelled,
    ResponseCreated,
    ResponseDelta,
    ResponseDone,
    ResponseError,
    Thinking,
)
from uamp.events.base import Event
from uamp.output import OutputBuilder
from uamp.types.content import ContentItem
from uamp.types.session import UsageStats

logger = logging.getLogger(__name__)


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A new piece of an answer.

    ``text`` and ``thinking`` continue the previous pieces; both are empty if ``event`` is about
    something else, such as the progress of a tool. ``restarted`` means that the answer was
    restarted, and ``text`` replaces all of its text.
    """

    event: Event
    agent: str
    response_id: str
    text: str = ""
    thinking: str = ""
    restarted: bool = False


class AgentAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that has ended; ``status`` is completed, cancelled or failed."""

    response_id: str
    agent: str
    status: str
    text: str
    output: tuple[ContentItem, ...]
    usage: UsageStats | None = None


class AnswerState:
    """A growing answer; ``take`` returns its new parts, each part of the text once."""

    def __init__(self, response_id: str, created: ResponseCreated | None = None) -> None:
        self.response_id = response_id
        self.agent = (created.agent if created else None) or ""
        self.status = "running"
        self.error: ClientError | None = None
        self.usage: UsageStats | None = None
        self._output = OutputBuilder()
        # The text already shown, while the server sends the text again from the beginning.
        self._ahead: str | None = None
        self._thought = ""

    @property
    def has_ended(self) -> bool:
        """Whether the answer is over."""
        return self.status != "running"

    @property
    def text(self) -> str:
        """All text so far."""
        return self._output.text if self._ahead is None else self._ahead

    def result(self) -> AgentAnswer:
        """Return the answer in its current state."""
        return AgentAnswer(
            response_id=self.response_id,
            agent=self.agent,
            status=self.status,
            text=self.text,
            output=tuple(self._output.output),
            usage=self.usage,
        )

    def take(self, event: Event) -> Piece | None:
        """Apply an event of this answer and return the new part, or None if there is none."""
        if self.has_ended:
            return None
        match event:
            case ResponseDelta():
                return self._delta(event)
            case Thinking():
                return self._thinking(event)
            case ResponseDone() | ResponseCancelled() | ResponseError():
                return self._end(event)
            case _:
                return self._piece(event)

    def _delta(self, event: ResponseDelta) -> Piece | None:
        is_text = event.delta.type == "text"
        follows = event.offset is None or event.offset == self._output.offset
        if is_text and (self._ahead is not None or not follows):
            return self._repair(event)
        try:
            self._output.add(event)
        except RemoteProtocolError as error:
            logger.warning("a piece of the answer %s: %s", self.response_id, error)
            return None
        return self._piece(event, text=(event.delta.text or "") if is_text else "")

    def _thinking(self, event: Thinking) -> Piece:
        self._output.add(event)
        if event.is_delta:
            self._thought += event.content
            return self._piece(event, thinking=event.content)
        # A whole thought: after a lost connection, part of it may have been shown already.
        added = event.content.removeprefix(self._thought)
        self._thought = event.content
        return self._piece(event, thinking=added)

    def _repair(self, event: Event, *, is_end: bool = False) -> Piece | None:
        """Handle text that does not follow on: return only the part beyond the text shown."""
        before = self.text
        try:
            self._output.add(event)
        except RemoteProtocolError as error:
            # The server repairs a gap: it sends the whole text again, at the latest at the end.
            logger.warning("a piece of the answer %s: %s", self.response_id, error)
            return None
        after = self._output.text
        if before.startswith(after) and not is_end:
            self._ahead = before if len(after) < len(before) else None
            return None
        self._ahead = None
        if after.startswith(before):
            return self._piece(event, text=after[len(before) :])
        return self._piece(event, text=after, restarted=True)

    def _end(self, event: ResponseDone | ResponseCancelled | ResponseError) -> Piece:
        piece = self._repair(event, is_end=True)
        match event:
            case ResponseDone(response=response):
                self.status = response.status if response is not None else "completed"
                self.usage = response.usage if response is not None else None
                if self.status == "failed":
                    self._fail(response.error if response is not None else None)
            case ResponseCancelled():
                self.status, self.usage = "cancelled", event.usage
                self.error = AnswerCancelledError(text=self.text, username=event.username)
            case ResponseError():
                self.status, self.usage = "failed", event.usage
                self._fail(event.error)
        return piece or self._piece(event)

    def _fail(self, detail: ErrorDetail | None) -> None:
        if detail is None:
            detail = ErrorDetail(code="internal_error", message="The answer failed.")
        message = detail.message or detail.code
        self.error = AnswerFailedError(
            message, code=detail.code, details=detail.details or {}, text=self.text
        )

    def _piece(
        self, event: Event, *, text: str = "", thinking: str = "", restarted: bool = False
    ) -> Piece:
        return Piece(
            event=event,
            agent=self.agent,
            response_id=self.response_id,
            text=text,
            thinking=thinking,
            restarted=restarted,
        )

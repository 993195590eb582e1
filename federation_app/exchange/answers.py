"""Conversion of a response's events to deltas (envelope §5). Pure: it knows only UAMP events.

Text is collected while the window is full, so that one chunk carries all of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from federation_app.envelope.errors import MEANINGS, EnvelopeCode, EnvelopeError
from federation_app.envelope.streams.deltas import TERMINAL, DeltaType
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev
from uamp.errors.http_status import http_status

if TYPE_CHECKING:
    from uamp.events import Event

CHUNK_CHARS: Final = 64 * 1024
"""Longer text is split into several chunks."""
_INTERNAL: Final = 500
_BY_STATUS: Final = {meaning.http: code for code, meaning in MEANINGS.items()}


def envelope_error(error: RemoteProtocolError) -> EnvelopeError:
    """Convert a UAMP error to the codes of envelopes; `detail` keeps its original code."""
    status = http_status(error.code)
    # A failed or late model (502, 504) has ended the answer: only a new question is worth a retry.
    other = EnvelopeCode.INTERNAL if status > _INTERNAL else EnvelopeCode.MALFORMED
    code = _BY_STATUS.get(status, other)
    wait = (error.details or {}).get("retry_after")
    return EnvelopeError(
        code,
        error.message,
        detail=str(error.code),
        retry_after=None if wait is None else max(1, round(float(wait))),
    )


def _error_of(error: ev.ErrorDetail) -> EnvelopeError:
    """Convert the error of a response to the codes of envelopes."""
    try:
        code = ErrorCode(error.code)
    except ValueError:
        return EnvelopeError(EnvelopeCode.INTERNAL, error.message, detail=error.code)
    return envelope_error(RemoteProtocolError(code, error.message, details=error.details))


class AnswerDeltas:
    """The unsent part of a response; `take` returns it piece by piece, text first.

    With `replaces`, the first text is a `patch`, because its reader may have another text.
    """

    def __init__(self, *, replaces: bool) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._sent = 0
        self._replaces = replaces
        self._progress: dict[str, Any] | None = None
        self._demand: dict[str, Any] | None = None
        self._end: tuple[DeltaType, dict[str, Any]] | None = None
        self.has_ended = False

    @property
    def text(self) -> str:
        """The whole text so far."""
        self._pieces = ["".join(self._pieces)]
        return self._pieces[0]

    @property
    def has_pending(self) -> bool:
        """Whether `take` has a delta to return."""
        if self.has_ended:
            return False
        unsent = self._sent < self._length or (self._replaces and self._length > 0)
        waiting = (self._demand, self._progress, self._end)
        return unsent or any(pending is not None for pending in waiting)

    def feed(self, event: Event) -> None:
        """Process an event of the response."""
        match event:
            case ev.ResponseDelta(delta=ev.Delta(type="text")):
                self._add(event.delta.text or "", event.offset)
            case ev.ResponseDelta(delta=ev.Delta(tool_progress=ev.ToolProgress() as tool)):
                progress = {
                    "pct": tool.progress_percent,
                    "stage": tool.status,
                    "message": tool.text,
                }
                self._report(progress)
            case ev.Progress():
                progress = {"pct": event.percent, "stage": event.stage, "message": event.message}
                self._report(progress)
            case ev.ResponseDone():
                self.end(DeltaType.DONE, {"response_id": event.response_id})
            case ev.ResponseCancelled():
                self.end(DeltaType.CANCEL, {"response_id": event.response_id})
            case ev.ResponseError(error=error):
                self.fail(_error_of(error))

    def end(self, type_: DeltaType, payload: dict[str, Any]) -> None:
        """End the stream after any pending deltas; a second end is ignored."""
        if self._end is None:
            self._end = type_, payload

    def demand(self, payload: dict[str, Any]) -> None:
        """Have a payment demanded by the next `progress`; unlike others, it is not left out."""
        self._demand = payload

    def fail(self, error: EnvelopeError) -> None:
        """End the stream with an error."""
        self.end(DeltaType.ERROR, error.payload())

    @property
    def next_is_done(self) -> bool:
        """Whether `take` will return the `done` of a whole answer."""
        has_text = self._sent < self._length or (self._replaces and self._length > 0)
        return self._end is not None and self._end[0] is DeltaType.DONE and not has_text

    def take(self) -> tuple[DeltaType, dict[str, Any]]:
        """Return the type and payload of the next delta; call it only if `has_pending`."""
        if self._replaces and self._length:
            self._replaces = False
            self._sent = min(self._length, CHUNK_CHARS)
            return DeltaType.PATCH, {"text": self.text[: self._sent]}
        if self._sent < self._length:
            at = self._sent
            self._sent = min(self._length, at + CHUNK_CHARS)
            return DeltaType.CHUNK, {"text": self.text[at : self._sent], "offset": at}
        if self._demand is not None and self._end is None:
            demanded, self._demand = self._demand, None
            return DeltaType.PROGRESS, demanded
        if self._end is not None:
            self.has_ended = self._end[0] in TERMINAL
            return self._end
        progress, self._progress = self._progress or {}, None
        return DeltaType.PROGRESS, progress

    def _report(self, progress: dict[str, Any]) -> None:
        # Only the latest progress is sent.
        self._progress = {
            name: value for name, value in progress.items() if value not in {None, ""}
        }

    def _add(self, text: str, offset: int | None) -> None:
        at = self._length if offset is None else offset
        if at >= self._length:
            self._pieces.append(text)
            self._length += len(text)
            return
        before = self.text
        replaced = before[:at] + text
        if before.startswith(replaced):
            # Text that is already known, sent again.
            return
        if before[: self._sent] != replaced[: self._sent]:
            self._replaces, self._sent = True, 0
        self._pieces, self._length = [replaced], len(replaced)

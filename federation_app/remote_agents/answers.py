"""Conversion of the deltas of a peer's answer to UAMP events. Pure: it does no I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from federation_app.envelope.errors import EnvelopeCode, EnvelopeError, malformed
from federation_app.envelope.refusals import cause_of, missing
from federation_app.envelope.streams.deltas import PAYMENT_STAGE, DeltaType
from federation_app.envelope.streams.windows import ReceiveWindow
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev
from uamp.types.session import UsageStats

if TYPE_CHECKING:
    from federation_app.envelope.streams.deltas import StreamDelta
    from uamp.events import Event

_CODES: Final = {
    EnvelopeCode.MALFORMED: ErrorCode.REQUEST_REFUSED,
    EnvelopeCode.UNAUTHENTICATED: ErrorCode.UNAUTHORIZED,
    EnvelopeCode.PAYMENT_REQUIRED: ErrorCode.PAYMENT_REQUIRED,
    EnvelopeCode.UNAUTHORIZED: ErrorCode.FORBIDDEN,
    EnvelopeCode.TOO_LARGE: ErrorCode.CONTEXT_LENGTH_EXCEEDED,
    EnvelopeCode.UNSUPPORTED: ErrorCode.REQUEST_REFUSED,
    EnvelopeCode.RATE_LIMITED: ErrorCode.RATE_LIMITED,
    EnvelopeCode.BUSY: ErrorCode.UNAVAILABLE,
}
_UNPAID: Final = "The account that this server has there has not agreed to the price."
_WORD_CHARS: Final = 500
_MAX_PERCENT: Final = 100
_MAX_TOKENS: Final = 2**31


class PeerRefusal(Exception):
    """A refusal by a peer, with the `error` that the peer sent."""

    def __init__(self, error: EnvelopeError) -> None:
        super().__init__(error.message)
        self.error = error


def refusal_of(payload: object) -> PeerRefusal:
    """Return the refusal in the payload of a peer's error."""
    facts = payload if isinstance(payload, dict) else {}
    try:
        code = EnvelopeCode(str(facts.get("code")))
    except ValueError:
        code = EnvelopeCode.INTERNAL
    wait = facts.get("retry_after")
    is_wait = isinstance(wait, int) and not isinstance(wait, bool) and wait >= 0
    message = _word(facts.get("message")) or code.value
    error = EnvelopeError(
        code, message, detail=cause_of(facts), retry_after=wait if is_wait else None
    )
    return PeerRefusal(error)


def uamp_error(error: EnvelopeError) -> RemoteProtocolError:
    """Convert an envelope error to UAMP's codes."""
    details = None if error.retry_after is None else {"retry_after": error.retry_after}
    code = _CODES.get(error.code, ErrorCode.PROVIDER_ERROR)
    if error.code is EnvelopeCode.NOT_FOUND:
        # A question names only its agent, so a refusal without a cause is about that.
        code = missing(error.detail or "agent") or code
    return RemoteProtocolError(code, f"{error.code.value}: {error.message}", details=details)


class PeerAnswer:
    """A growing answer; `done` is the payload of its end, once that has arrived."""

    def __init__(self, response_id: str, window: int) -> None:
        self.window = ReceiveWindow(window)
        self.done: dict[str, Any] | None = None
        self._id = response_id

    def take(self, delta: StreamDelta) -> list[Event]:
        """Return the events of a delta; none for a delta that arrived before.

        Raises EnvelopeError 4.09 for a missing earlier delta, malformed for text that does not
        continue the text so far, and PeerRefusal for the end of a failed answer and for one that
        waits for a payment, which this server does not make.
        """
        if not self.window.take(delta):
            return []
        match delta.type:
            case DeltaType.CHUNK | DeltaType.PATCH:
                return self._text(delta)
            case DeltaType.PROGRESS:
                if delta.payload.get("stage") == PAYMENT_STAGE:
                    raise PeerRefusal(EnvelopeError(EnvelopeCode.PAYMENT_REQUIRED, _UNPAID))
                return [self._progress(delta.payload)]
            case DeltaType.CANCEL:
                return [ev.ResponseCancelled(response_id=self._id)]
            case DeltaType.ERROR:
                raise refusal_of(delta.payload)
            case _:
                self.done = delta.payload
                return []

    def ended(self, signed: str | None) -> list[Event]:
        """Return the final events; `signed` is the text that the agent signed, if any.

        Raises EnvelopeError if that text differs from the text that was streamed.
        """
        text, events = self.window.text, list[ev.Event]()
        if signed is not None and text and signed != text:
            raise malformed("The signed text differs from the text that was sent.", detail="sig")
        if signed and not text:
            events.append(self._delta(signed, 0))
        usage = _usage((self.done or {}).get("usage"))
        output = ev.ResponseOutput(id=self._id, status="completed", usage=usage)
        return [*events, ev.ResponseDone(response_id=self._id, response=output)]

    def _text(self, delta: StreamDelta) -> list[Event]:
        text = delta.payload.get("text")
        if not isinstance(text, str):
            return []
        offset = self.window.length - len(text) if delta.type is DeltaType.CHUNK else 0
        return [self._delta(text, offset)]

    def _delta(self, text: str, offset: int) -> Event:
        delta = ev.Delta(type="text", text=text)
        return ev.ResponseDelta(response_id=self._id, delta=delta, offset=offset)

    def _progress(self, payload: dict[str, Any]) -> Event:
        return ev.Progress(
            target="response",
            target_id=self._id,
            stage=_word(payload.get("stage")) or None,
            message=_word(payload.get("message")) or None,
            percent=_percent(payload.get("pct")),
            response_id=self._id,
        )


def _word(value: object) -> str:
    return value[:_WORD_CHARS] if isinstance(value, str) else ""


def _percent(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return value if 0 <= value <= _MAX_PERCENT else None


def _usage(value: object) -> UsageStats | None:
    if not isinstance(value, dict):
        return None
    input_tokens, output_tokens = (
        _count(value.get(name)) for name in ("input_tokens", "output_tokens")
    )
    return UsageStats(input_tokens=input_tokens, output_tokens=output_tokens)


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return min(max(value, 0), _MAX_TOKENS)

"""Middleware that comes with the protocol (UPP-1.3 §10.5).

Message texts are logged only on request.
"""

import logging

import msgspec

from upp.json_values.partial import parse_partial
from upp.middleware.chain import Middleware, MiddlewareContext
from upp.stream import StreamEvent


class LoggingMiddleware(Middleware):
    """Logs the start and end of each generation at `level`, and errors as warnings.

    `include_messages` adds the last message and the answer, which are private.
    """

    name = "logging"

    def __init__(
        self,
        *,
        logger: logging.Logger | None = None,
        level: int = logging.INFO,
        include_messages: bool = False,
    ) -> None:
        self._logger = logger or logging.getLogger("upp")
        self._level = level
        self._include_messages = include_messages

    def on_start(self, context: MiddlewareContext) -> None:
        """Log the model."""
        messages = context.request.messages
        text = f": {messages[-1].text!r}" if self._include_messages and messages else ""
        count = len(messages)
        self._logger.log(
            self._level, "%s started with %d messages%s", _model_name(context), count, text
        )

    def on_end(self, context: MiddlewareContext) -> None:
        """Log the time and the tokens."""
        turn = context.response
        if turn is not None:
            text = f": {turn.response.text!r}" if self._include_messages else ""
            self._logger.log(
                self._level,
                "%s ended in %.0f ms with %d cycles, %d tokens%s",
                _model_name(context),
                _milliseconds(context),
                turn.cycles,
                turn.usage.total_tokens,
                text,
            )

    def on_error(self, context: MiddlewareContext, error: Exception) -> None:
        """Log the error."""
        duration = _milliseconds(context)
        self._logger.warning("%s failed after %.0f ms: %s", _model_name(context), duration, error)

    def on_abort(self, context: MiddlewareContext) -> None:
        """Log the abort."""
        self._logger.log(
            self._level,
            "%s was aborted after %.0f ms",
            _model_name(context),
            _milliseconds(context),
        )


class ParsedObjectMiddleware(Middleware):
    """Sets `delta.parsed` of each object_delta to the object so far.

    Every piece parses the whole text again, so this is for objects shown while they grow.
    """

    name = "parsed_object"

    def on_stream_event(self, event: StreamEvent, context: MiddlewareContext) -> StreamEvent:
        """Parse the text so far; each inference and each block starts over."""
        texts: dict[int, str] = context.state.setdefault(self.name, {})
        if event.type == "message_start":
            texts.clear()
        if event.type != "object_delta":
            return event
        text = texts[event.index] = texts.get(event.index, "") + (event.delta.text or "")
        delta = msgspec.structs.replace(event.delta, parsed=parse_partial(text))
        return msgspec.structs.replace(event, delta=delta)


def _model_name(context: MiddlewareContext) -> str:
    return f"{context.provider}/{context.model_id}"


def _milliseconds(context: MiddlewareContext) -> float:
    return (context.end_time or context.start_time) - context.start_time

"""Code around a generation: sees and changes what goes in and what comes out (UPP-1.3 §10).

Hooks run once per `generate` or `stream`, not once per inference; what goes in passes the
middleware in order, what comes out in reverse order, and a hook for errors cannot cause one.
"""

import inspect
import logging
import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Any

from upp.conversation.turn import Turn
from upp.model import LLMRequest
from upp.stream import StreamEvent
from upp.tools import ToolCall, ToolExecution

_logger = logging.getLogger(__name__)


def _now() -> float:
    return time.time() * 1000


@dataclass(kw_only=True)
class MiddlewareContext:
    """One generation, as its middleware sees it; times are in milliseconds since 1970.

    `request` may be replaced in `on_start` and `on_request`, and `response` in `on_response`.
    `state` is shared by all middleware of the generation; in an agent's run, whose inferences are a
    generation each and whose rounds of tools come between them, by all of the run.
    """

    model_id: str
    provider: str
    streaming: bool
    request: LLMRequest
    response: Turn | None = None
    state: dict[str, Any] = field(default_factory=dict)
    modality: str = "llm"
    start_time: float = field(default_factory=_now)
    end_time: float | None = None


class Middleware:
    """Does nothing; override the hooks that you need, as sync or async functions.

    What a hook raises ends the generation, except: what `on_error` and `on_abort` raise is logged,
    and what `on_tool_call` raises becomes the call's error result.
    """

    name = "middleware"

    def on_start(self, context: MiddlewareContext) -> Awaitable[None] | None:
        """Begin; before every other hook."""

    def on_request(self, context: MiddlewareContext) -> Awaitable[None] | None:
        """See the request before the first inference."""

    def on_response(self, context: MiddlewareContext) -> Awaitable[None] | None:
        """See the turn; in reverse order."""

    def on_end(self, context: MiddlewareContext) -> Awaitable[None] | None:
        """End well; in reverse order."""

    def on_error(self, context: MiddlewareContext, error: Exception) -> Awaitable[None] | None:
        """See what ended the generation."""

    def on_abort(self, context: MiddlewareContext) -> Awaitable[None] | None:
        """See that the generation was aborted or cancelled; `on_error` does not."""

    def on_stream_event(
        self,
        event: StreamEvent,
        context: MiddlewareContext,  # noqa: ARG002 for subclasses
    ) -> StreamEvent | Sequence[StreamEvent] | None:
        """Return what takes the event's place: an event, several, or None; always sync."""
        return event

    def on_stream_end(self, context: MiddlewareContext) -> Awaitable[None] | None:
        """See that there are no more events."""

    def on_tool_call(self, call: ToolCall, context: MiddlewareContext) -> Awaitable[None] | None:
        """See a call before it runs."""

    def on_tool_result(
        self, execution: ToolExecution, context: MiddlewareContext
    ) -> Awaitable[None] | None:
        """See what came of a call; in reverse order."""


class Chain:
    """The middleware of one generation, in order."""

    def __init__(self, middleware: Sequence[Middleware], context: MiddlewareContext) -> None:
        self.context = context
        self._middleware = tuple(middleware)

    @property
    def is_empty(self) -> bool:
        """Whether there is no middleware."""
        return not self._middleware

    async def begin(self) -> None:
        """Call `on_start`, then `on_request`."""
        for one in self._middleware:
            await maybe_await(one.on_start(self.context))
        for one in self._middleware:
            await maybe_await(one.on_request(self.context))

    async def end(self, turn: Turn) -> Turn:
        """Call the hooks of the end; return what the middleware made of the turn."""
        context = self.context
        context.response, context.end_time = turn, _now()
        if context.streaming:
            for one in self._middleware:
                await maybe_await(one.on_stream_end(context))
        for one in reversed(self._middleware):
            await maybe_await(one.on_response(context))
        for one in reversed(self._middleware):
            await maybe_await(one.on_end(context))
        return context.response

    async def fail(self, error: Exception) -> None:
        """Call `on_error`; what a hook raises is logged."""
        self.context.end_time = _now()
        for one in self._middleware:
            try:
                await maybe_await(one.on_error(self.context, error))
            except Exception:
                _logger.exception("Middleware %s broke in on_error", one.name)

    async def abort(self) -> None:
        """Call `on_abort`; what a hook raises is logged."""
        self.context.end_time = _now()
        for one in self._middleware:
            try:
                await maybe_await(one.on_abort(self.context))
            except Exception:
                _logger.exception("Middleware %s broke in on_abort", one.name)

    def transform(self, event: StreamEvent) -> Sequence[StreamEvent]:
        """Return what the middleware makes of an event."""
        events: Sequence[StreamEvent] = (event,)
        for one in self._middleware:
            made: list[StreamEvent] = []
            for given in events:
                result = one.on_stream_event(given, self.context)
                if isinstance(result, StreamEvent):
                    made.append(result)
                elif result is not None:
                    made.extend(result)
            events = made
        return events

    async def tool_call(self, call: ToolCall) -> None:
        """Call `on_tool_call` before the call runs."""
        for one in self._middleware:
            await maybe_await(one.on_tool_call(call, self.context))

    async def tool_result(self, execution: ToolExecution) -> None:
        """Call `on_tool_result`, the last middleware first."""
        for one in reversed(self._middleware):
            await maybe_await(one.on_tool_result(execution, self.context))


async def maybe_await(given: Any) -> Any:
    """Return what a hook returned, awaited where it can be."""
    return await given if inspect.isawaitable(given) else given

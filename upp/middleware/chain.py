"""Middleware that sees and changes a generation's input and output (UPP-1.3 §10).

Hooks run once per `generate` or `stream`, not once per inference. Input passes through the
middleware in order, output in reverse order, and error hooks cannot cause errors.
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
    """One generation as seen by its middleware; times are in milliseconds since 1970.

    `request` may be replaced in `on_start` and `on_request`, and `response` in `on_response`.
    `state` is shared by all middleware of the generation; in an agent's run, where every inference
    is a generation with tool rounds in between, it is shared across the whole run.
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

    An error in a hook ends the generation, with two exceptions: errors of `on_error` and `on_abort`
    are logged, and an error of `on_tool_call` becomes the call's error result.
    """

    name = "middleware"

    def on_start(self, context: MiddlewareContext) -> Awaitable[None] | None:
        """Run before all other hooks."""

    def on_request(self, context: MiddlewareContext) -> Awaitable[None] | None:
        """Receive the request before the first inference."""

    def on_response(self, context: MiddlewareContext) -> Awaitable[None] | None:
        """Receive the turn; called in reverse order."""

    def on_end(self, context: MiddlewareContext) -> Awaitable[None] | None:
        """Run after success, in reverse order."""

    def on_error(self, context: MiddlewareContext, error: Exception) -> Awaitable[None] | None:
        """Receive the error that ended the generation."""

    def on_abort(self, context: MiddlewareContext) -> Awaitable[None] | None:
        """Run instead of `on_error` when the generation is aborted or cancelled."""

    def on_stream_event(
        self,
        event: StreamEvent,
        context: MiddlewareContext,  # noqa: ARG002 for subclasses
    ) -> StreamEvent | Sequence[StreamEvent] | None:
        """Return a replacement for an event: one event, several, or None; always sync."""
        return event

    def on_stream_end(self, context: MiddlewareContext) -> Awaitable[None] | None:
        """Run after the last event."""

    def on_tool_call(self, call: ToolCall, context: MiddlewareContext) -> Awaitable[None] | None:
        """Receive a tool call before it runs."""

    def on_tool_result(
        self, execution: ToolExecution, context: MiddlewareContext
    ) -> Awaitable[None] | None:
        """Receive the outcome of a tool call; called in reverse order."""


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
        for middleware in self._middleware:
            await maybe_await(middleware.on_start(self.context))
        for middleware in self._middleware:
            await maybe_await(middleware.on_request(self.context))

    async def end(self, turn: Turn) -> Turn:
        """Call the hooks at the end; return the turn as changed by the middleware."""
        context = self.context
        context.response, context.end_time = turn, _now()
        if context.streaming:
            for middleware in self._middleware:
                await maybe_await(middleware.on_stream_end(context))
        for middleware in reversed(self._middleware):
            await maybe_await(middleware.on_response(context))
        for middleware in reversed(self._middleware):
            await maybe_await(middleware.on_end(context))
        return context.response

    async def fail(self, error: Exception) -> None:
        """Call `on_error`; errors of the hooks are logged."""
        self.context.end_time = _now()
        for middleware in self._middleware:
            try:
                await maybe_await(middleware.on_error(self.context, error))
            except Exception:
                _logger.exception("Middleware %s raised an error in on_error", middleware.name)

    async def abort(self) -> None:
        """Call `on_abort`; errors of the hooks are logged."""
        self.context.end_time = _now()
        for middleware in self._middleware:
            try:
                await maybe_await(middleware.on_abort(self.context))
            except Exception:
                _logger.exception("Middleware %s raised an error in on_abort", middleware.name)

    def transform(self, event: StreamEvent) -> Sequence[StreamEvent]:
        """Return the events into which the middleware turns an event."""
        events: Sequence[StreamEvent] = (event,)
        for middleware in self._middleware:
            output: list[StreamEvent] = []
            for item in events:
                result = middleware.on_stream_event(item, self.context)
                if isinstance(result, StreamEvent):
                    output.append(result)
                elif result is not None:
                    output.extend(result)
            events = output
        return events

    async def tool_call(self, call: ToolCall) -> None:
        """Call `on_tool_call` before the call runs."""
        for middleware in self._middleware:
            await maybe_await(middleware.on_tool_call(call, self.context))

    async def tool_result(self, execution: ToolExecution) -> None:
        """Call `on_tool_result` in reverse order."""
        for middleware in reversed(self._middleware):
            await maybe_await(middleware.on_tool_result(execution, self.context))


async def maybe_await(result: Any) -> Any:
    """Return a hook's result, awaited if necessary."""
    return await result if inspect.isawaitable(result) else result

"""Events of a running generation, and the object through which one follows it (UPP-1.3 §9).

A StreamResult is lazy (nothing is sent before it is iterated or awaited), and who stops
following it ends it: leaving the iteration, `abort()`, `aclose()` and cancellation all reach the
provider's request.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypeVar

import msgspec

from upp.conversation.turn import TokenUsage, Turn
from upp.errors import ErrorCode, UPPError

StreamEventType = Literal[
    "text_delta",
    "reasoning_delta",
    "image_delta",
    "audio_delta",
    "video_delta",
    "object_delta",
    "tool_call_delta",
    "tool_execution_start",
    "tool_execution_end",
    "message_start",
    "message_stop",
    "content_block_start",
    "content_block_stop",
    # An addition: the words of a sound in the last message, which the model's server wrote down.
    "input_transcript",
]


class EventDelta(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The news in an event; which members are set follows from the event's type.

    `timestamp` is in milliseconds since 1970. `parsed` is the object so far, where a middleware
    parses it. `usage` is our addition: message_stop carries the tokens of its inference, because
    nothing else in a stream does.
    """

    text: str | None = None
    data: bytes | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    arguments_json: str | None = None
    result: Any = None
    is_error: bool | None = None
    timestamp: int | None = None
    usage: TokenUsage | None = None
    parsed: Any = None


class StreamEvent(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One event; `index` is the content block or the position of the call in its round."""

    type: StreamEventType
    index: int = 0
    delta: EventDelta = EventDelta()


def text_delta(text: str, *, index: int = 0) -> StreamEvent:
    """Return the event for a piece of the answer's text."""
    return StreamEvent(type="text_delta", index=index, delta=EventDelta(text=text))


def object_delta(text: str, *, index: int = 0) -> StreamEvent:
    """Return the event for a piece of structured output; it comes beside the text's (§12.3)."""
    return StreamEvent(type="object_delta", index=index, delta=EventDelta(text=text))


def reasoning_delta(text: str, *, index: int = 0) -> StreamEvent:
    """Return the event for a piece of the model's thinking."""
    return StreamEvent(type="reasoning_delta", index=index, delta=EventDelta(text=text))


def tool_call_delta(*, call_id: str, name: str, arguments_json: str, index: int = 0) -> StreamEvent:
    """Return the event for a piece of a call's arguments."""
    delta = EventDelta(tool_call_id=call_id, tool_name=name, arguments_json=arguments_json)
    return StreamEvent(type="tool_call_delta", index=index, delta=delta)


Emit = Callable[[StreamEvent], Awaitable[None]]

_WINDOW = 256
"""Events that may wait for the reader; then the provider's stream is not read on."""


EventT = TypeVar("EventT")
OutcomeT = TypeVar("OutcomeT")


class Following(Generic[EventT, OutcomeT]):
    """Work that one follows: `async for` its events, `await` it for its outcome.

    Awaiting without iterating drops the events; both together work. `async with` makes sure of the
    end. After `abort()` both the iteration and the await raise UPPError CANCELLED. There is one
    iteration: events that one reader took are gone for another.

    The work runs in a task of its own, which the first iteration or await starts. Any task of that
    event loop may call `abort` and `aclose`.
    """

    def __init__(
        self,
        produce: Callable[[Callable[[EventT], Awaitable[None]]], Coroutine[Any, Any, OutcomeT]],
    ) -> None:
        self._produce = produce
        self._events: deque[EventT] = deque()
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._unbounded = False
        self._end: _Done[OutcomeT] | Exception | None = None

    def abort(self) -> None:
        """End the work now; finished work stays as it is."""
        if self._end is None:
            self._events.clear()
            self._settle(UPPError("The generation was aborted.", code=ErrorCode.CANCELLED))
            if self._task is not None:
                self._task.cancel()

    async def aclose(self) -> None:
        """Abort, and return when the provider's request is closed."""
        self.abort()
        if self._task is not None:
            await asyncio.wait({self._task})

    async def outcome(self) -> OutcomeT:
        """Return the outcome when the work is over.

        Raises what the work raised: UPPError, CANCELLED after `abort()`.
        """
        self._unbounded = True
        self._room.set()
        task = self._start()
        if task is not None:
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:
                await self.aclose()
                raise
        return self._outcome()

    async def relay(self, emit: Callable[[EventT], Awaitable[None]]) -> OutcomeT:
        """Do the work now, and give each event to `emit` instead of an iteration.

        For who follows on behalf of another: no task and no queue stand between. Raises what the
        work raises.
        """
        return await self._produce(emit)

    def __await__(self) -> Generator[Any, None, OutcomeT]:
        return self.outcome().__await__()

    async def __aiter__(self) -> AsyncGenerator[EventT, None]:
        self._start()
        try:
            while True:
                while self._events:
                    yield self._events.popleft()
                    if len(self._events) < _WINDOW:
                        self._room.set()
                if self._end is not None:
                    break
                self._news.clear()
                await self._news.wait()
        finally:
            await self.aclose()
        self._outcome()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def _start(self) -> asyncio.Task[None] | None:
        if self._task is None and self._end is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        return self._task

    async def _run(self) -> None:
        # The outcome is kept here and not in the task, so that an unread result is silent.
        try:
            self._settle(_Done(await self._produce(self._emit)))
        except asyncio.CancelledError:
            self._settle(_cancelled())
            raise
        except Exception as error:  # noqa: BLE001 the reader raises it
            self._settle(error)

    def _settle(self, end: "_Done[OutcomeT] | Exception") -> None:
        """Keep the outcome; the first one stays."""
        self._end = self._end or end
        self._news.set()

    def _outcome(self) -> OutcomeT:
        if isinstance(self._end, _Done):
            return self._end.outcome
        raise self._end or _cancelled()

    async def _emit(self, event: EventT) -> None:
        if self._end is not None:
            # No caller reads on, and work that is being cancelled must not wait for room.
            return
        self._events.append(event)
        self._news.set()
        while len(self._events) >= _WINDOW and not self._unbounded:
            self._room.clear()
            await self._room.wait()


@dataclass(frozen=True)
class _Done(Generic[OutcomeT]):
    outcome: OutcomeT


class StreamResult(Following[StreamEvent, Turn]):
    """A generation that one follows (UPP-1.3 §9.1)."""

    async def turn(self) -> Turn:
        """Return the Turn when the generation is over; raises UPPError."""
        return await self.outcome()


def _cancelled() -> UPPError:
    return UPPError("The generation was cancelled.", code=ErrorCode.CANCELLED)

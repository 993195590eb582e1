"""Events of a running generation, and the object for following it (UPP-1.3 §9).

A StreamResult is lazy: nothing is sent until it is iterated or awaited. It ends when its follower
leaves: ending the iteration, `abort()`, `aclose()` and cancellation all reach the provider's
request.
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
    # Our addition: the transcript of audio in the last message, written by the model's server.
    "input_transcript",
]


class EventDelta(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The content of an event; its type determines which members are set.

    `timestamp` is in milliseconds since 1970. `parsed` is the object so far, if a middleware parses
    it. `usage` is our addition: message_stop carries the tokens of its inference, because no other
    event does.
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
    """Return the event for a piece of structured output, sent alongside its text (§12.3)."""
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
"""The most events that wait for the reader before reading from the provider pauses."""


EventT = TypeVar("EventT")
OutcomeT = TypeVar("OutcomeT")


class Following(Generic[EventT, OutcomeT]):
    """Work to follow: iterate over its events with `async for`, `await` its outcome.

    Awaiting without iterating drops the events; doing both works. `async with` guarantees the end.
    After `abort()`, both the iteration and the await raise UPPError CANCELLED. There is only one
    iteration: an event taken by one reader is gone for the others.

    The work runs in a separate task, started by the first iteration or await. Any task of that
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
        """Stop the work now; has no effect once it has finished."""
        if self._end is None:
            self._events.clear()
            self._settle(UPPError("The generation was aborted.", code=ErrorCode.CANCELLED))
            if self._task is not None:
                self._task.cancel()

    async def aclose(self) -> None:
        """Abort, and return once the provider's request is closed."""
        self.abort()
        if self._task is not None:
            await asyncio.wait({self._task})

    async def outcome(self) -> OutcomeT:
        """Wait for the end of the work and return its outcome.

        Raises the error of the work: UPPError, CANCELLED after `abort()`.
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
        """Run the work now and pass each event to `emit` instead of an iteration.

        For callers that follow on behalf of another: it needs neither a task nor a queue. Raises
        the error of the work.
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
        # The outcome is stored here, not in the task, so that asyncio does not warn if it goes
        # unread.
        try:
            self._settle(_Done(await self._produce(self._emit)))
        except asyncio.CancelledError:
            self._settle(_cancelled())
            raise
        except Exception as error:  # noqa: BLE001 the reader raises it
            self._settle(error)

    def _settle(self, end: "_Done[OutcomeT] | Exception") -> None:
        """Set the outcome, unless there is one already."""
        self._end = self._end or end
        self._news.set()

    def _outcome(self) -> OutcomeT:
        if isinstance(self._end, _Done):
            return self._end.outcome
        raise self._end or _cancelled()

    async def _emit(self, event: EventT) -> None:
        if self._end is not None:
            # There is no reader any more, and work being cancelled must not wait for space.
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
    """A generation to follow (UPP-1.3 §9.1)."""

    async def turn(self) -> Turn:
        """Wait for the end of the generation and return the Turn; raises UPPError."""
        return await self.outcome()


def _cancelled() -> UPPError:
    return UPPError("The generation was cancelled.", code=ErrorCode.CANCELLED)

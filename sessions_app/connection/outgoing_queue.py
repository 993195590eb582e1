"""The outgoing frames of a connection, in order and bounded in bytes.

If a client falls behind, only the queue is dropped: its subscriptions reread the log and the
running texts. Replies cannot be read again and are kept.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from django.conf import settings
from django.db import InterfaceError, OperationalError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator

logger = logging.getLogger(__name__)

QUEUE_ITEMS: Final = 4096
# The most that is sent to the socket before the pump checks the queue again.
BATCH_FRAMES: Final = 256
BATCH_BYTES: Final = 1024 * 1024
READ_AGAIN_SECONDS: Final = 1.0
# The estimated memory of a queued item, excluding its text.
ITEM_BYTES: Final = 256

# A subscription's step that must keep its place in the queue; returns a coroutine if it reads.
Work: TypeAlias = "Callable[[], Coroutine[Any, Any, None] | None]"


class Outgoing(NamedTuple):
    """A frame for the client; `seq` is set for durable events."""

    text: str
    session_id: str
    seq: int | None = None


class DialectFrame(Outgoing):
    """A frame in the socket's own dialect, sent unchanged."""

    __slots__ = ()


class OutgoingQueue:
    """Queued replies and subscription work, and the next batch to send.

    Any task on the process's loop may add (`send`, `put`), close or wake. One task, the transport's
    pump, takes batches (`batch`, `frames`) and runs the work. `emit` may be called by running work,
    or while `is_idle`. The task that reads from the client calls `wait_for_room`.

    `read_again` returns work that recovers what was dropped. All sizes are in bytes.
    """

    def __init__(self, read_again: Callable[[], Iterable[Work]]) -> None:
        self.closed_with: int | None = None
        # Whether nothing more will be sent.
        self.has_ended = False
        self._read_again = read_again
        # The most bytes that may be waiting for the client.
        self._limit = settings.UAMP_OWED_BYTES
        self._is_over: Callable[[], bool] = _never
        # Items with their sizes.
        self._items: deque[tuple[int, Outgoing | Work]] = deque()
        self._ready: list[Outgoing] = []
        self._queued_bytes = 0
        self._ready_bytes = 0
        # The size of the batch that the transport is sending.
        self._sending_bytes = 0
        self._has_room = asyncio.Event()
        self._woken = asyncio.Event()
        # The session whose frames are held back, and its frames.
        self._held_session = ""
        self._held: list[Outgoing] = []
        self._held_bytes = 0
        self._is_released = asyncio.Event()
        self._is_reading = False
        self._is_behind = False
        # How often queued work was dropped.
        self.drops = 0

    # --- Adding ---

    def send(self, outgoing: Outgoing) -> None:
        """Queue a finished frame."""
        self._queue(outgoing)
        self.wake()

    def put(self, work: Work) -> bool:
        """Queue a subscription's work; if the queue is full, fall behind and read again instead.

        Return whether the work was queued.
        """
        is_long = len(self._items) >= QUEUE_ITEMS or self.pending_bytes > self._limit
        if is_long and not self._is_behind:
            self._fall_behind()
        if not self._is_behind:
            self._queue(work)
        self.wake()
        return not self._is_behind

    def put_first(self, work: Work) -> None:
        """Queue the rest of the running work ahead of everything else."""
        size = _size_of(work)
        self._items.appendleft((size, work))
        self._queued_bytes += size

    def emit(self, outgoing: Outgoing) -> None:
        """Add a frame to the next batch, or to the frames held back."""
        size = ITEM_BYTES + outgoing.text.__sizeof__()
        if self._held_session and outgoing.session_id == self._held_session:
            self._held.append(outgoing)
            self._held_bytes += size
            return
        self._ready.append(outgoing)
        self._ready_bytes += size

    def wake(self) -> None:
        """Make the pump check for work."""
        self._woken.set()

    def _queue(self, item: Outgoing | Work) -> None:
        size = _size_of(item)
        self._items.append((size, item))
        self._queued_bytes += size

    def _fall_behind(self) -> None:
        """Drop everything but replies; subscriptions will read the rest again."""
        self._items = deque(sized for sized in self._items if isinstance(sized[1], Outgoing))
        self._queued_bytes = sum(size for size, _ in self._items)
        self._is_behind = True
        self.drops += 1

    # --- Limits ---

    @property
    def has_work(self) -> bool:
        """Whether `batch` has replies to send or reading to do."""
        return bool(self._items) or self._is_behind

    @property
    def is_idle(self) -> bool:
        """Whether `emit` would overtake nothing and the client is not too far behind."""
        return not (
            self._items
            or self._is_reading
            or self._is_behind
            or self._is_batch_full
            or self.pending_bytes > self._limit
        )

    @property
    def has_batch_bytes(self) -> bool:
        """Whether the next batch is full in bytes, so that reading a long log should pause."""
        return self._ready_bytes + self._held_bytes >= BATCH_BYTES

    @property
    def _is_batch_full(self) -> bool:
        return len(self._ready) >= BATCH_FRAMES or self.has_batch_bytes

    @property
    def pending_bytes(self) -> int:
        """The memory of everything that the client has not taken yet."""
        return self._queued_bytes + self._ready_bytes + self._held_bytes + self._sending_bytes

    async def wait_for_room(self) -> None:
        """Wait while the client is too far behind, so that its next event is not read yet."""
        while self.pending_bytes > self._limit and self.closed_with is None:
            self._has_room.clear()
            await self._has_room.wait()

    # --- The end ---

    def close(self, code: int) -> None:
        """End the connection with a WebSocket close code once the queue is sent."""
        self.closed_with = code
        self.wake()

    def refuse(self, code: int) -> None:
        """End the connection with a close code, discarding the queue."""
        self._items.clear()
        self._queued_bytes = 0
        self.close(code)

    def end_when(self, is_over: Callable[[], bool]) -> None:
        """End the connection once `is_over` is true and the queue is empty; `wake` rechecks it."""
        self._is_over = is_over
        self.wake()

    def abandon(self) -> None:
        """Discard everything: the client's transport is gone."""
        self.has_ended = True
        self._items.clear()
        self._ready.clear()
        self._held.clear()
        self._queued_bytes = self._ready_bytes = self._held_bytes = self._sending_bytes = 0
        self._has_room.set()

    def take_replies(self) -> list[Outgoing]:
        """Take the queued replies, for an HTTP exchange that ends with them."""
        replies = [item for _, item in self._items if isinstance(item, Outgoing)]
        self._items.clear()
        self._queued_bytes = 0
        return replies

    # --- Sending ---

    @contextmanager
    def held(self, session_id: str) -> Iterator[None]:
        """Hold back the frames of a session until the block ends; not reentrant.

        Other sessions' frames are still sent, unless those held back exceed BATCH_BYTES.
        """
        self._held_session = session_id
        self._is_released.clear()
        try:
            yield
        finally:
            self._ready += self._held
            self._ready_bytes += self._held_bytes
            self._held, self._held_bytes, self._held_session = [], 0, ""
            self._is_released.set()
            self.wake()

    async def frames(self) -> AsyncIterator[Outgoing]:
        """Yield frames in order until the connection closes."""
        while (batch := await self.batch()) is not None:
            for outgoing in batch:
                yield outgoing

    async def batch(self, pause: float | None = None) -> list[Outgoing] | None:
        """Wait for the next frames, in order; return None once the connection is closed.

        Calling it means that the client has taken the previous batch. Returns an empty batch after
        `pause` seconds without a frame. A task cancelled while waiting has taken nothing.
        """
        self._sending_bytes = 0
        self._has_room.set()
        until = None if pause is None else asyncio.get_running_loop().time() + pause
        while True:
            while self._items and not self._is_batch_full:
                if until is not None and self._is_past(until):
                    return []
                size, item = self._items.popleft()
                self._queued_bytes -= size
                await self._do(item)
            if self._ready:
                ready, self._ready = self._ready, []
                self._sending_bytes, self._ready_bytes = self._ready_bytes, 0
                return ready
            if self._is_batch_full:
                await self._is_released.wait()
            elif self._is_behind:
                self._is_behind = False
                for work in self._read_again():
                    self._queue(work)
            elif not self._held and (self.closed_with is not None or self._is_over()):
                self.has_ended = True
                return None
            elif not await self._is_woken(until):
                return []

    async def _is_woken(self, until: float | None) -> bool:
        """Wait for work; return False if there was none until a time of the loop's clock."""
        self._woken.clear()
        if until is None:
            await self._woken.wait()
            return True
        try:
            async with asyncio.timeout_at(until):
                await self._woken.wait()
        except TimeoutError:
            return False
        return True

    def _is_past(self, until: float) -> bool:
        """Return whether reading has taken so long that the client needs a keepalive."""
        return not self._ready and asyncio.get_running_loop().time() >= until

    async def _do(self, item: Outgoing | Work) -> None:
        if isinstance(item, Outgoing):
            self.emit(item)
        elif (reading := item()) is not None:
            await self._read(reading)

    async def _read(self, reading: Coroutine[Any, Any, None]) -> None:
        self._is_reading = True
        try:
            await reading
        except (OperationalError, InterfaceError):
            logger.warning("what a client missed cannot be read now", exc_info=True)
            self._fall_behind()
            await asyncio.sleep(READ_AGAIN_SECONDS)
        finally:
            self._is_reading = False


def _never() -> bool:
    return False


def _size_of(item: Outgoing | Work) -> int:
    """Return the memory of a queued item, including its text."""
    if isinstance(item, Outgoing):
        return ITEM_BYTES + item.text.__sizeof__()
    size = ITEM_BYTES
    if isinstance(item, partial):
        for value in item.args:
            if isinstance(value, str):
                size += value.__sizeof__()
    return size

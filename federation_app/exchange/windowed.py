"""A stream to one reader, within its window (envelope §5), whatever its deltas contain.

The window is that of the reader. Acknowledgements that reach another process are read from the row.
"""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from django.conf import settings
from django.db import DatabaseError, InterfaceError

from federation_app.envelope.errors import EnvelopeCode, EnvelopeError
from federation_app.envelope.streams.windows import SendWindow
from federation_app.exchange import admission
from federation_app.exchange.answers import envelope_error
from sessions_app import database
from sessions_app.process import registry as processes
from uamp import RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from federation_app.envelope.streams.deltas import StreamDelta
    from federation_app.models import EnvelopeStream
    from sessions_app.access.principal import Principal

logger = logging.getLogger(__name__)

ROW_SECONDS: Final = 0.25
"""How often a process with full windows reads the acknowledgements that reached others."""
_open: Final[dict[int, set[WindowedStream]]] = defaultdict(set)
_counts: Final[Counter[str]] = Counter()
_full: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, FullWindows]] = WeakKeyDictionary()


class WindowedStream(ABC):
    """The deltas of a stream after the last one that its reader has.

    The reader's task iterates over `deltas` and calls `close`; any other task of the process may
    call `acknowledge`, and set `woken` to have a stream recheck what it waits for. The peer reads
    at most `limit` streams here.
    """

    def __init__(
        self, stream: EnvelopeStream, principal: Principal, *, limit: int, after: int
    ) -> None:
        self.stream = stream
        self.window = SendWindow(stream.window, after=after)
        self._principal = principal
        self._limit = limit
        self.woken = asyncio.Event()
        self._acknowledged = asyncio.Event()
        self._is_refused = False
        self._is_open = False

    @abstractmethod
    async def join(self) -> None:
        """Join what the stream follows; raises RemoteProtocolError and EnvelopeError."""

    @abstractmethod
    async def leave(self) -> None:
        """Leave what the stream follows."""

    @abstractmethod
    def deltas(self) -> AsyncIterator[StreamDelta | None]:
        """Yield deltas until a terminal one, and None after a period of silence.

        Raises EnvelopeError busy if the window stays full, and unauthenticated if the peer is no
        longer trusted.
        """

    async def open(self) -> None:
        """Join what the stream follows.

        Raises EnvelopeError not_found, or busy if the peer reads too many.
        """
        check_room(self._principal, limit=self._limit)
        _counts[self._principal.key] += 1
        _open[self.stream.pk].add(self)
        self._is_open = True
        try:
            await self.join()
        except RemoteProtocolError as error:
            await self.close()
            raise envelope_error(error) from None
        except BaseException:
            await self.close()
            raise

    def acknowledge(self, delta_seq: int) -> None:
        """Process an acknowledgement from the reader; raises EnvelopeError malformed."""
        self.window.acknowledge(delta_seq)
        self._acknowledged.set()

    def acknowledge_stored(self, delta_seq: int) -> None:
        """Process an acknowledgement that the row has, up to the deltas that were sent here."""
        self.window.acknowledge(min(delta_seq, self.window.next - 1))
        if self.window.has_room:
            self._acknowledged.set()

    async def close(self) -> None:
        """Leave the source, which continues; later calls do nothing."""
        if not self._is_open:
            return
        self._is_open = False
        _counts[self._principal.key] -= 1
        if not _counts[self._principal.key]:
            del _counts[self._principal.key]
        _open[self.stream.pk].discard(self)
        if not _open[self.stream.pk]:
            del _open[self.stream.pk]
        await self.leave()

    @property
    def must_end(self) -> bool:
        """Whether its end does not wait for room in the window."""
        return self._is_refused

    def refuse(self) -> None:
        """End the stream, because its peer is no longer trusted."""
        self._is_refused = True
        self.wake()

    def wake(self) -> None:
        """Have the reader's task look at what it waits for once more."""
        self._acknowledged.set()
        self.woken.set()

    async def wait_for_room(self) -> None:
        """Wait until the window has room, or the stream must end.

        Raises EnvelopeError busy if the window stays full, and as `check_trust`.
        """
        ends_at = time.monotonic() + settings.UAMP_ENVELOPE_STALL_SECONDS
        while not self.window.has_room and not self.must_end:
            left = ends_at - time.monotonic()
            if left <= 0:
                raise EnvelopeError(
                    EnvelopeCode.BUSY,
                    "No delta was acknowledged for a long time. Resume the stream.",
                    detail="window",
                )
            self._acknowledged.clear()
            with full_windows().waiting(self), suppress(TimeoutError):
                await asyncio.wait_for(self._acknowledged.wait(), left)
        self.check_trust()

    def check_trust(self) -> None:
        """Raise EnvelopeError unauthenticated if the peer is no longer trusted (`standing`)."""
        if self._is_refused:
            raise EnvelopeError(
                EnvelopeCode.UNAUTHENTICATED, "The peer is no longer trusted.", detail="peer"
            )


class FullWindows:
    """The streams of a process with full windows, which wait for acknowledgements.

    While there are any, one task reads the acknowledgements that reached other processes from
    their rows, with one query for all. Everything belongs to one event loop.
    """

    def __init__(self) -> None:
        self._waiting: set[WindowedStream] = set()
        self._is_reading = False

    @contextmanager
    def waiting(self, stream: WindowedStream) -> Iterator[None]:
        """Pass stored acknowledgements to a stream during the block."""
        self._waiting.add(stream)
        if not self._is_reading:
            self._is_reading = True
            processes.current().spawn(self._read(), name="acknowledgements")
        try:
            yield
        finally:
            self._waiting.discard(stream)

    async def _read(self) -> None:
        try:
            await asyncio.sleep(ROW_SECONDS)
            while self._waiting:
                await self._read_rows()
                await asyncio.sleep(ROW_SECONDS)
        finally:
            self._is_reading = False

    async def _read_rows(self) -> None:
        """Pass on what the rows have; a read that fails is repeated in the next round."""
        pks = {waiting.stream.pk for waiting in self._waiting}
        try:
            stored = await database.run(admission.acknowledged, pks)
        except (DatabaseError, InterfaceError) as error:
            logger.warning("acknowledgements could not be read: %s", error)
            return
        for waiting in list(self._waiting):
            waiting.acknowledge_stored(stored.get(waiting.stream.pk, -1))


def full_windows() -> FullWindows:
    """Return the full windows of the running event loop."""
    return _full.setdefault(asyncio.get_running_loop(), FullWindows())


def check_room(principal: Principal, *, limit: int) -> None:
    """Raise EnvelopeError busy if a peer reads as many streams here as it may."""
    if _counts[principal.key] >= limit:
        raise EnvelopeError(EnvelopeCode.BUSY, "You read too many streams. Close one first.")


def all_open() -> list[WindowedStream]:
    """Return the open streams of this process."""
    return [stream for readers in _open.values() for stream in readers]


def open_streams(stream_pk: int) -> list[WindowedStream]:
    """Return the readers of a stream in this process."""
    return list(_open.get(stream_pk, ()))

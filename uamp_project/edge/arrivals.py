"""Deadlines and memory limits for messages and requests that clients have not finished.

A server library reads a message or request to its end, without a deadline. The `Arrival` of a
connection counts the received bytes against the `Budget` of its address, and ends the connection if
less than MIN_BYTES arrive within `seconds`. The clock stops while the server itself does not
read. `Frames` counts the WebSocket frames that cost work without completing a message. The module
depends on no settings and no server library, because every server uses it.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

MIN_BYTES: Final = 16 * 1024
"""A client that sends less of an unfinished message within the time is disconnected."""
FREE_BYTES: Final = 64 * 1024
"""Uncounted bytes per connection, so that other clients cannot cause an ordinary one to end."""
PIECE_BYTES: Final = 64
"""The memory that a piece of a message takes besides its bytes."""
PIECES_BYTES_MAX: Final = 4 * 1024 * 1024
"""The maximum memory for the pieces of one message, since pieces may be empty."""
FRAMES_PER_SECOND: Final = 100
"""Pings, pongs and small fragments per second on one WebSocket; well-behaved clients send few."""
FRAMES_BURST: Final = 400
"""Frames at once, since a client's network may have held them back."""
SMALL_BYTES: Final = 1024
"""Smaller fragments count as frames; larger ones are limited by their bytes."""
TOO_FAST: Final = (1008, "too many frames")
"""The close code and reason for a client that exceeds the limit."""


class Frames:
    """The frames of one WebSocket that are not messages: pings, pongs and fragments.

    Whole messages are not counted here, because a server reads on only once its application has
    taken them. Only the protocol of the socket calls the methods.
    """

    def __init__(self) -> None:
        self._left = float(FRAMES_BURST)
        self._at = 0.0

    def control(self, now: float) -> bool:
        """Count a ping or pong; return whether it is within the limit. `now` is monotonic."""
        self._left = min(FRAMES_BURST, self._left + (now - self._at) * FRAMES_PER_SECOND)
        self._at = now
        self._left -= 1
        return self._left >= 0

    def fragment(self, size: int, now: float) -> bool:
        """Count a frame that does not end its message."""
        return size >= SMALL_BYTES or self.control(now)


class Budget:
    """The bytes that one process holds for each address.

    It needs no lock, because all requests and sockets of a process use it on one event loop.
    """

    def __init__(self, limit: Callable[[], int]) -> None:
        self._limit = limit
        self._bytes: Counter[str] = Counter()

    def reserve(self, sender: str, size: int) -> bool:
        """Count more bytes of an address; return whether it is still within its budget."""
        self._bytes[sender] += size
        return self._bytes[sender] <= self._limit()

    def release(self, sender: str, size: int) -> None:
        """Stop counting bytes of an address."""
        self._bytes[sender] -= size
        if self._bytes[sender] <= 0:
            del self._bytes[sender]

    @property
    def total(self) -> int:
        """The bytes held for all addresses."""
        return self._bytes.total()


class Arrival:
    """The received bytes of one connection: of the unfinished message, and of whole unread ones.

    `sender` returns the address once bytes have arrived; `cut` ends the connection, and receives
    the reason for the log. All methods run on the connection's event loop.
    """

    def __init__(
        self,
        *,
        seconds: float,
        budget: Budget | None,
        sender: Callable[[], str],
        cut: Callable[[str], None],
    ) -> None:
        self._seconds = seconds
        self._budget = budget
        self._sender = sender
        self._cut = cut
        self._counted_as = ""
        self._counted = 0
        # The bytes of the unfinished message, of its pieces, and of each whole message.
        self._unfinished = 0
        self._pieces = 0
        self._whole: deque[int] = deque()
        self._held = 0
        # The bytes received since the timer was set, and whether reading was paused meanwhile.
        self._fresh = 0
        self._is_paused = False
        self._was_paused = False
        self._timer: asyncio.TimerHandle | None = None
        self._is_over = False

    def piece(self, size: int, *, is_last: bool = False) -> None:
        """Count a piece of an unfinished message; its first one sets the timer unless it is all."""
        if self._is_over:
            return
        self._unfinished += size + PIECE_BYTES
        self._pieces += PIECE_BYTES
        self._fresh += size
        if self._timer is None and not is_last:
            self._wait()
        if not self._hold(size + PIECE_BYTES):
            self._end("holds too much for its address")
        elif self._pieces > PIECES_BYTES_MAX:
            self._end("sends a message in too many pieces")

    def finished(self) -> None:
        """Note that the message is complete."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._whole.append(self._unfinished)
        self._unfinished = self._pieces = 0

    def taken(self) -> None:
        """Note that the application has read the oldest whole message."""
        if self._whole:
            self._hold(-self._whole.popleft())

    def paused(self) -> None:
        """Stop the clock while the server does not read."""
        self._is_paused = self._was_paused = True

    def resumed(self) -> None:
        """Restart the clock."""
        self._is_paused = False

    def close(self) -> None:
        """Release all bytes, because the connection is closed."""
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._hold(-self._held)

    def _hold(self, size: int) -> bool:
        self._held += size
        more = max(0, self._held - FREE_BYTES) - self._counted
        if not more or self._budget is None:
            return True
        if more < 0:
            self._budget.release(self._counted_as, -more)
            self._counted += more
            return True
        self._counted_as = self._counted_as or self._sender()
        self._counted += more
        return self._budget.reserve(self._counted_as, more)

    def _wait(self) -> None:
        self._fresh, self._was_paused = 0, self._is_paused
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._fresh < MIN_BYTES and not self._was_paused:
            self._end("does not finish what it sends")
        else:
            self._wait()

    def _end(self, reason: str) -> None:
        self.close()
        self._cut(reason)

"""Counters of the rate limits: in this process, or in Redis for all processes.

Both are storages of the `limits` library, which has the arithmetic of the sliding window.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from limits.storage import RedisStorage
from limits.storage.base import SlidingWindowCounterSupport, Storage
from redis.exceptions import NoScriptError

if TYPE_CHECKING:
    from collections.abc import Sequence

# The counters that one process keeps; the least recently used are dropped. About 15 MB.
COUNTERS_MAX: Final = 50_000
Window: TypeAlias = tuple[int, float, int, float]
"""Count of the previous window and the seconds that it weighs; count and end of this window."""


class CounterStorage(Storage, SlidingWindowCounterSupport):
    """Counters in this process, for any thread, at most `size` of them.

    The library's own memory storage has no bound, and starts a thread to delete ended windows.
    Windows begin with the counters, not with the minute.
    """

    STORAGE_SCHEME = None

    def __init__(self, size: int = COUNTERS_MAX) -> None:
        super().__init__()
        self.size = size
        self._lock = threading.Lock()
        self._began = time.monotonic()
        # For each key: the number of its window, the count of that and of the window before.
        self._counts: OrderedDict[str, tuple[int, int, int]] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of counters."""
        return len(self._counts)

    @property
    def base_exceptions(self) -> type[Exception]:
        """The type of its own failures, of which there are none."""
        return ValueError

    def acquire_sliding_window_entry(
        self, key: str, limit: int, expiry: int, amount: int = 1
    ) -> bool:
        """Count `amount` if the limit allows it; return whether it does."""
        now = self._now()
        with self._lock:
            window, current, previous = self._window(key, expiry, now)
            weighted = previous * (1 - now / expiry % 1) + current
            allowed = math.floor(weighted) + amount <= limit
            if allowed:
                current += amount
            self._counts[key] = (window, current, previous)
            self._counts.move_to_end(key)
            if len(self._counts) > self.size:
                self._counts.popitem(last=False)
        return allowed

    def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        """Return the count of the previous window and its weight in seconds, and the current."""
        now = self._now()
        with self._lock:
            _, current, previous = self._window(key, expiry, now)
        remaining = (1 - now / expiry % 1) * expiry
        return previous, remaining, current, remaining + expiry

    def _now(self) -> float:
        return time.monotonic() - self._began

    def _window(self, key: str, expiry: int, now: float) -> tuple[int, int, int]:
        window = int(now / expiry)
        then, current, previous = self._counts.get(key, (window, 0, 0))
        if then == window:
            return window, current, previous
        return window, 0, current if then == window - 1 else 0

    def clear_sliding_window(self, key: str, expiry: int) -> None:
        """Delete a counter."""
        del expiry
        self.clear(key)

    def clear(self, key: str) -> None:
        """Delete a counter."""
        with self._lock:
            self._counts.pop(key, None)

    def reset(self) -> int:
        """Delete all counters; return their number."""
        with self._lock:
            count = len(self._counts)
            self._counts.clear()
            self._began = time.monotonic()
        return count

    def check(self) -> bool:
        """Return True: memory is always reachable."""
        return True

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Raise NotImplementedError: there are no fixed windows."""
        raise NotImplementedError

    def get(self, key: str) -> int:
        """Raise NotImplementedError: there are no fixed windows."""
        raise NotImplementedError

    def get_expiry(self, key: str) -> float:
        """Raise NotImplementedError: there are no fixed windows."""
        raise NotImplementedError


class SharedCounters(RedisStorage):
    """Counters in Redis, many of them counted and read in one round trip.

    Any thread may call it, none on an event loop: it waits for Redis. The library needs two round
    trips for each request: one to count it, one to read what is left.
    """

    def acquire_all(
        self, requests: Sequence[tuple[str, int, int, int]]
    ) -> list[tuple[bool, Window]]:
        """Count each key with its limit, seconds and amount, in order.

        Returns for each whether it passed, and how its window is then.
        """
        try:
            replies = self._ask(requests)
        except NoScriptError:
            # A Redis that restarted has lost the scripts, and has counted nothing.
            for script in (self.lua_acquire_sliding_window, self.lua_sliding_window):
                self.storage.script_load(script.script)
            replies = self._ask(requests)
        return [
            (bool(acquired), _read(*window))
            for acquired, window in zip(replies[::2], replies[1::2], strict=True)
        ]

    def _ask(self, requests: Sequence[tuple[str, int, int, int]]) -> list[Any]:
        pipeline = self.storage.pipeline(transaction=False)
        for key, limit, seconds, amount in requests:
            names = (self._previous_window_key(key), self._current_window_key(key))
            keys = [self.prefixed_key(name) for name in names]
            acquire, read = self.lua_acquire_sliding_window.sha, self.lua_sliding_window.sha
            pipeline.evalsha(acquire, len(keys), *keys, limit, seconds, amount)
            pipeline.evalsha(read, len(keys), *keys, seconds)
        replies: list[Any] = pipeline.execute()
        return replies


def _read(previous: Any, previous_ms: Any, current: Any, current_ms: Any) -> Window:
    return (
        int(previous or 0),
        max(0, previous_ms or 0) / 1000,
        int(current or 0),
        max(0, current_ms or 0) / 1000,
    )


class ReadWindow(CounterStorage):
    """A storage of one window that was read before."""

    window: Window

    def get_sliding_window(self, key: str, expiry: int) -> Window:
        """Return the window."""
        del key, expiry
        return self.window

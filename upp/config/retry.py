"""Strategies for resending failed requests (UPP-1.3 §4.3).

A strategy decides and the provider waits; an answer that has begun is never requested again. All
times are in seconds.
"""

import asyncio
import random
import threading
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from upp.errors import ErrorCode, UPPError

_T = TypeVar("_T")

RETRYABLE = frozenset(
    {
        ErrorCode.RATE_LIMITED,
        ErrorCode.NETWORK_ERROR,
        ErrorCode.TIMEOUT,
        ErrorCode.PROVIDER_ERROR,
    }
)
"""Errors after which another attempt may succeed."""


class RetryStrategy:
    """Never retries; the base of other strategies. One strategy serves concurrent requests."""

    def before_request(self) -> float:
        """Return the seconds to wait before a request is sent."""
        return 0.0

    def on_retry(self, error: UPPError, attempt: int) -> float | None:  # noqa: ARG002 for subclasses
        """Return the wait after failed attempt number `attempt` (from 1), or None to give up."""
        return None

    def reset(self) -> None:
        """Record that a request succeeded."""


class NoRetry(RetryStrategy):
    """Gives up at once."""


class _Backoff(RetryStrategy):
    """Waits between attempts, at least as long as the server asks for (Retry-After).

    If the server asks for more than `max_delay`, the caller gets the error instead.
    """

    def __init__(self, max_attempts: int, base_delay: float, max_delay: float) -> None:
        self.max_attempts = max_attempts
        self.base_delay = base_delay
        self.max_delay = max_delay

    def on_retry(self, error: UPPError, attempt: int) -> float | None:
        requested = error.retry_after or 0.0
        if attempt > self.max_attempts or error.code not in RETRYABLE or requested > self.max_delay:
            return None
        return max(min(self.delay(attempt), self.max_delay), requested)

    def delay(self, attempt: int) -> float:
        """Return the wait after an attempt, before it is capped."""
        return self.base_delay * attempt


_MAX_DOUBLINGS = 64
"""More doublings exceed any cap, and soon the range of a float."""


class ExponentialBackoff(_Backoff):
    """Doubles the wait each time; jitter scales it by a random factor from 0.5 to 1.5."""

    def __init__(
        self,
        *,
        max_attempts: int = 3,
        base_delay: float = 1.0,
        max_delay: float = 30.0,
        jitter: bool = True,
        draw: Callable[[], float] = random.random,
    ) -> None:
        super().__init__(max_attempts, base_delay, max_delay)
        self._jitter = jitter
        self._draw = draw

    def delay(self, attempt: int) -> float:
        """Return the wait after an attempt, before it is capped."""
        wait: float = self.base_delay * 2 ** min(attempt - 1, _MAX_DOUBLINGS)
        return wait * (0.5 + self._draw()) if self._jitter else wait


class LinearBackoff(_Backoff):
    """Adds one delay to the wait each time."""

    def __init__(
        self, *, max_attempts: int = 3, delay: float = 1.0, max_delay: float = 30.0
    ) -> None:
        super().__init__(max_attempts, delay, max_delay)


class RetryAfterStrategy(RetryStrategy):
    """Waits as long as the server asks for, or `fallback_delay` if it does not say."""

    def __init__(self, *, max_attempts: int = 3, fallback_delay: float = 5.0) -> None:
        self.max_attempts = max_attempts
        self.fallback_delay = fallback_delay

    def on_retry(self, error: UPPError, attempt: int) -> float | None:
        """Retry after rate limits only (UPP-1.2 §4.3)."""
        if attempt > self.max_attempts or error.code != ErrorCode.RATE_LIMITED:
            return None
        return self.fallback_delay if error.retry_after is None else error.retry_after


class TokenBucket(RetryStrategy):
    """Lets `capacity` requests through at once, then `refill_rate` per second.

    A request takes its token before it waits, so waiting requests keep their order. `clock` returns
    seconds. Requests of any event loop and thread may share it.
    """

    def __init__(
        self,
        *,
        capacity: float = 10.0,
        refill_rate: float = 1.0,
        max_attempts: int = 3,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.capacity = capacity
        self.refill_rate = refill_rate
        self.max_attempts = max_attempts
        self._clock = clock
        self._tokens = capacity
        self._at = clock()
        # Event loops in several threads may share a provider.
        self._lock = threading.Lock()

    def before_request(self) -> float:
        """Take a token; return how long to wait until it is available."""
        with self._lock:
            now = self._clock()
            refilled = self._tokens + (now - self._at) * self.refill_rate
            self._tokens, self._at = min(refilled, self.capacity) - 1.0, now
            return max(0.0, -self._tokens / self.refill_rate)

    def on_retry(self, error: UPPError, attempt: int) -> float | None:
        """Retry after rate limits only, once two tokens have been refilled."""
        if attempt > self.max_attempts or error.code != ErrorCode.RATE_LIMITED:
            return None
        return 2.0 / self.refill_rate


async def retrying(
    attempt: Callable[[], Awaitable[_T]], strategy: RetryStrategy, has_begun: Callable[[], bool]
) -> tuple[_T, tuple[UPPError, ...]]:
    """Retry attempts that fail before they have begun; return the result and the earlier errors.

    Raises the UPPError of the last attempt, with those before it as `earlier`.
    """
    number, failed = 0, list[UPPError]()
    while True:
        wait = strategy.before_request()
        if wait > 0:
            await asyncio.sleep(wait)
        number += 1
        try:
            result = await attempt()
        except UPPError as error:
            delay = None if has_begun() else strategy.on_retry(error, number)
            if delay is None:
                error.earlier = tuple(failed)
                raise
            failed.append(error)
        else:
            strategy.reset()
            return result, tuple(failed)
        await asyncio.sleep(delay)

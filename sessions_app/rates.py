"""Token buckets: a flooding writer is slowed, not buffered (notes G11, UAMP §6.17)."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

BUCKETS_REMEMBERED: Final = 10_000


@dataclass(slots=True)
class Bucket:
    """`limit` tokens a minute, refilled continuously; `capacity` (or `limit`) is the burst."""

    limit: int
    tokens: float
    at: float
    capacity: int | None = None

    def take(self, now: float) -> bool:
        """Take one token; `now` is a monotonic clock in seconds. A limit of 0 allows nothing."""
        self.tokens = min(
            self.capacity or self.limit, self.tokens + (now - self.at) * self.limit / 60
        )
        self.at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True

    @property
    def remaining(self) -> int:
        """Whole tokens that are left."""
        return int(self.tokens)

    @property
    def seconds_until_next(self) -> float:
        """Seconds until the next token is there."""
        return max(0.0, (1 - self.tokens) * 60 / self.limit) if self.limit else 60.0


class Rates:
    """The buckets of one process, by name; the least recently used are forgotten."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def bucket(self, name: str, limit: int, now: float) -> Bucket:
        """Return the bucket of a name, full when it is new."""
        bucket = self._buckets.get(name)
        if bucket is None or bucket.limit != limit:
            bucket = self._buckets[name] = Bucket(limit, float(limit), now)
        self._buckets.move_to_end(name)
        if len(self._buckets) > BUCKETS_REMEMBERED:
            self._buckets.popitem(last=False)
        return bucket

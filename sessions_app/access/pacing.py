"""Pacing of reads from a socket, which slows down clients that send too fast.

No event is refused, and none is buffered in memory: unread data waits in the network. `rates`
limits a person's requests across all connections.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Pace:
    """Allows `per_minute` events on average, with bursts of `burst`.

    It has no lock: a single owner calls it on one event loop.
    """

    per_minute: int
    burst: int
    left: float
    at: float

    def wait(self, now: float, count: int = 1) -> float:
        """Count events; return the seconds to wait before reading them. `now` is monotonic."""
        self.left = min(self.burst, self.left + (now - self.at) * self.per_minute / 60)
        self.at = now
        self.left -= count
        return max(0.0, -self.left * 60 / self.per_minute)

    def weigh(self, weight: float) -> None:
        """Make the last event count as `weight` events."""
        self.left += 1 - weight

"""The pace of reading one socket: a client that sends too fast is slowed.

No event is refused for it and none is kept in memory: what the client sent waits in the network.
What a person may ask for in all their connections together is limited by `rates`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Pace:
    """`per_minute` events on average, and `burst` at once.

    It has no lock: one owner calls it, on one event loop.
    """

    per_minute: int
    burst: int
    left: float
    at: float

    def wait(self, now: float, count: int = 1) -> float:
        """Count events; return the seconds after which they may be read. `now` is monotonic."""
        self.left = min(self.burst, self.left + (now - self.at) * self.per_minute / 60)
        self.at = now
        self.left -= count
        return max(0.0, -self.left * 60 / self.per_minute)

    def weigh(self, weight: float) -> None:
        """Have the event that was counted last count as so many."""
        self.left += 1 - weight

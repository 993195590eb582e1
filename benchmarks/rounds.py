"""Runs in shuffled turns, and the ratios of their costs."""

from __future__ import annotations

import os
import random
import statistics
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

K = TypeVar("K", bound="Hashable")
V = TypeVar("V")


@dataclass(frozen=True, kw_only=True)
class Spread:
    """The median of some rounds, and their minimum and maximum."""

    median: float
    low: float
    high: float
    rounds: int

    def __str__(self) -> str:
        digits = 2 if abs(self.median) < 10 else 1
        text = f"{self.median:.{digits}f}"
        if self.rounds < 2:
            return text
        return f"{text} ({self.low:.{digits}f} to {self.high:.{digits}f})"


def spread(values: Sequence[float]) -> Spread:
    """Return the spread of at least one value."""
    return Spread(
        median=statistics.median(values), low=min(values), high=max(values), rounds=len(values)
    )


def ratio(numerators: Sequence[float], denominators: Sequence[float]) -> Spread:
    """Return the spread of the per-round ratios; rounds with a zero denominator are left out."""
    pairs = zip(numerators, denominators, strict=True)
    return spread([a / b for a, b in pairs if b > 0] or [float("nan")])


def measure(cells: Mapping[K, Callable[[], V]], rounds: int) -> dict[K, list[V]]:
    """Run every cell once per round in random order; return the runs by cell."""
    runs: dict[K, list[V]] = {name: [] for name in cells}
    order = list(cells)
    for number in range(1, rounds + 1):
        random.shuffle(order)
        for name in order:
            runs[name].append(cells[name]())
        print(f"  round {number} of {rounds}, load {load():.1f}", file=sys.stderr, flush=True)
    return runs


def load() -> float:
    """Return the load of the machine, averaged over the last minute."""
    return os.getloadavg()[0]

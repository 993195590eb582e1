"""Sources of a provider's key (UPP-1.3 §4.2).

The key is resolved for every request and never shown in full.
"""

import inspect
import random
from bisect import bisect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import accumulate, cycle
from typing import Protocol


class KeyStrategy(Protocol):
    """Chooses the key of the next request."""

    def get_key(self) -> str | Awaitable[str]:
        """Return the key."""


Key = str | Callable[[], str | Awaitable[str]] | KeyStrategy


class RoundRobinKeys:
    """Uses each key in turn; raises ValueError if there are none."""

    def __init__(self, keys: Sequence[str]) -> None:
        if not keys:
            raise ValueError("RoundRobinKeys needs at least one key.")
        self._keys = cycle(tuple(keys))

    def get_key(self) -> str:
        """Return the next key."""
        return next(self._keys)


class WeightedKeys:
    """Picks a key at random by weight; raises ValueError if no weight is positive."""

    def __init__(
        self, weights: Mapping[str, float], *, draw: Callable[[], float] = random.random
    ) -> None:
        if not weights or min(weights.values()) < 0 or not sum(weights.values()):
            raise ValueError(
                "WeightedKeys needs non-negative weights, at least one of them positive."
            )
        self._keys = tuple(weights)
        self._bounds = tuple(accumulate(weights.values()))
        self._draw = draw

    def get_key(self) -> str:
        """Return a key."""
        return self._keys[bisect(self._bounds, self._draw() * self._bounds[-1])]


class DynamicKey:
    """A key returned by a sync or async function."""

    def __init__(self, get_key: Callable[[], str | Awaitable[str]]) -> None:
        self._get_key = get_key

    def get_key(self) -> str | Awaitable[str]:
        """Return the function's result."""
        return self._get_key()


async def resolve_key(key: Key) -> str:
    """Return the key for one request."""
    if isinstance(key, str):
        return key
    result = key() if callable(key) else key.get_key()
    return await result if inspect.isawaitable(result) else result


_SHOWN = 4


def mask_key(key: str) -> str:
    """Mask a key for display: keep its ends to tell keys apart, or nothing of a short key."""
    return f"{key[:_SHOWN]}…{key[-_SHOWN:]}" if len(key) > 2 * _SHOWN else "***"

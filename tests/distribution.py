"""The order of tests for the workers of pytest-xdist: slow ones come first.

With `--dist=worksteal`, each worker gets an equal share of the tests in order, and takes later
tests of others once it has none. Every second worker's share begins with whole modules that start
processes and browsers. So no module is started by several workers, none runs alone at the end, and
no more browsers than cores are busy at once, since their pages would be too slow.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

SECONDS: Final = {"journeys": 8.0, "deployments": 10.0, "faults": 6.0, "growth": 8.0}
"""The approximate duration of one test by folder; others take a tenth of a second and more."""


def folder_of(item: pytest.Item) -> str:
    """Return the folder of a test below tests/."""
    return item.path.parent.name


def in_shares(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Order the tests so that each worker gets an equal part."""
    modules = [list(group) for _, group in groupby(items, key=_unit)]
    slow = [module for module in modules if folder_of(module[0]) in SECONDS]
    quick = [item for item in items if folder_of(item) not in SECONDS]
    shares: list[list[pytest.Item]] = [[] for _ in range(workers)]
    # There are two workers per core (tests/run.py).
    core_seconds = [0.0] * max(workers // 2, 1)
    for module in sorted(slow, key=lambda module: -_seconds(module)):
        least = core_seconds.index(min(core_seconds))
        shares[least] += module
        core_seconds[least] += _seconds(module)
    ordered: list[pytest.Item] = []
    for number, share in enumerate(shares):
        size = (len(items) - len(ordered)) // (workers - number)
        room = max(size - len(share), 0)
        ordered += share + quick[:room]
        quick = quick[room:]
    return ordered + quick


def _unit(item: pytest.Item) -> Path:
    # The modules in these folders share what the first of them creates: rows and running products.
    return item.path.parent if folder_of(item) in {"growth", "deployments"} else item.path


def _seconds(module: list[pytest.Item]) -> float:
    return SECONDS[folder_of(module[0])] * len(module)

"""Counts the CPU seconds of tests by folder in each process; `tests/run.py` adds them up.

A child's time counts once it has been waited for, in the test that waited.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

FOLDER: Final = os.environ.get("CPU_FOLDER")
TESTS: Final = Path(__file__).parent

seconds: Counter[str] = Counter()
modules: Counter[str] = Counter()
tests: Counter[str] = Counter()


def total(folder: Path, kind: str) -> Counter[str]:
    """Return the seconds recorded by all processes of a run, by folder, module or test."""
    totals: Counter[str] = Counter()
    for file in folder.glob("*.json"):
        totals.update(json.loads(file.read_text())[kind])
    return totals


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Count the CPU time of a test with its set-up and teardown."""
    before = sum(os.times()[:4])
    try:
        return (yield)
    finally:
        cpu_seconds = sum(os.times()[:4]) - before
        path = item.path.relative_to(TESTS) if item.path.is_relative_to(TESTS) else item.path
        seconds[path.parts[0]] += cpu_seconds  # type: ignore[assignment]  # a Counter of floats
        modules[path.as_posix()] += cpu_seconds  # type: ignore[assignment]  # as above
        tests[item.nodeid] += cpu_seconds  # type: ignore[assignment]  # as above


def pytest_sessionfinish() -> None:
    """Write the figures to a file."""
    if FOLDER and seconds:
        file = Path(FOLDER) / f"{os.getpid()}.json"
        file.write_text(json.dumps({"folders": seconds, "modules": modules, "tests": tests}))

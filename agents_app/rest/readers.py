"""How many REST requests of one caller are read at a time in this process.

Rates limit requests a minute, but not how many run together: each has a thread, a database
connection and its page in memory. Those beyond the limit wait, and some more are refused.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import Final

from django.conf import settings

from agents_app.rest.problems import Problem
from agents_app.workers import connections

WAITING: Final = 64
"""How many requests of a caller may wait."""
WAIT_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 1

_changed = threading.Condition()
_running: Final = Counter[str]()
_waiting: Final = Counter[str]()


def enter(caller: str) -> None:
    """Wait until fewer than UAMP_READS_PER_CALLER requests of a caller run, and count this one.

    Each `enter` is followed by a `leave`. Raises Problem rate_limit_exceeded if too many wait, or
    for too long.
    """
    with _changed:
        if _has_room(caller):
            _running[caller] += 1
            return
    # Others may need the connection that identified the caller.
    connections.release()
    with _changed:
        _wait(caller)
        _running[caller] += 1


def leave(caller: str) -> None:
    """Count a request no longer."""
    with _changed:
        _subtract(_running, caller)
        if _waiting[caller]:
            _changed.notify_all()


def _has_room(caller: str) -> bool:
    return _running[caller] < settings.UAMP_READS_PER_CALLER


def _wait(caller: str) -> None:
    if _waiting[caller] >= WAITING:
        raise _refusal()
    _waiting[caller] += 1
    try:
        if not _changed.wait_for(lambda: _has_room(caller), WAIT_SECONDS):
            raise _refusal()
    finally:
        _subtract(_waiting, caller)


def _subtract(counter: Counter[str], caller: str) -> None:
    counter[caller] -= 1
    if counter[caller] <= 0:
        del counter[caller]


def _refusal() -> Problem:
    return Problem(
        "rate_limit_exceeded",
        "You have too many requests under way. Try again in a moment.",
        members={"retry_after": RETRY_SECONDS},
    )

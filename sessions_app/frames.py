"""Frames of events that this server makes: a fresh `event_id` (UUID) and the time (UAMP §4)."""

from __future__ import annotations

import os
import time
from random import Random
from typing import TYPE_CHECKING, Final

import uamp

if TYPE_CHECKING:
    from uamp.events import Event


# The events that end a response (UAMP §6): each has exactly one of them.
TERMINAL: Final = frozenset({"response.done", "response.error", "response.cancelled"})
# A UUID of version 4 has 122 free bits; these are the others.
_FREE_BITS: Final = 0xFFFFFFFF_FFFF_0FFF_3FFF_FFFFFFFFFFFF
_VERSION_4: Final = 0x00000000_0000_4000_8000_000000000000
# A generator of its own: a tool or a library that calls random.seed() would repeat ids, and so
# would a worker that was forked with the state of its parent.
_random: Final = Random()  # noqa: S311 an id is no secret
os.register_at_fork(after_in_child=_random.seed)


def new_event_id() -> str:
    """Return a new event id, a random UUID: one of a kind, but no secret.

    There is one in each of the many frames of an answer: no system call for it.
    """
    digits = f"{_random.getrandbits(128) & _FREE_BITS | _VERSION_4:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def now_ms() -> int:
    """Return the time as Unix milliseconds, the unit of `timestamp`."""
    return time.time_ns() // 1_000_000


def frame(event: Event) -> str:
    """Return an event as a frame without `session_id`; ids and times that it has are kept."""
    return uamp.encode(event, event_id=new_event_id(), timestamp=now_ms())

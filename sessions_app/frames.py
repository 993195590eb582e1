"""Frames for events made by this server: a fresh `event_id` and the current time (UAMP §4)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import uamp
from chat_app.ids import new_event_id

if TYPE_CHECKING:
    from uamp.events import Event


# Every response ends with exactly one of these events (UAMP §6).
TERMINAL: Final = frozenset({"response.done", "response.error", "response.cancelled"})


def now_ms() -> int:
    """Return the time as Unix milliseconds, the unit of `timestamp`."""
    return time.time_ns() // 1_000_000


def frame(event: Event) -> str:
    """Return an event as a frame without `session_id`; existing ids and times are kept."""
    return uamp.encode(event, event_id=new_event_id(), timestamp=now_ms())

"""Frames of events that this server makes: a fresh `event_id` (UUID) and the time (UAMP §4)."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

import uamp

if TYPE_CHECKING:
    from uamp.events import Event


def new_event_id() -> str:
    """Return a new event id."""
    return str(uuid.uuid4())


def now_ms() -> int:
    """Return the time as Unix milliseconds, the unit of `timestamp`."""
    return time.time_ns() // 1_000_000


def frame(event: Event) -> str:
    """Return an event as a frame without `session_id`; ids and times that it has are kept."""
    return uamp.encode(event, event_id=new_event_id(), timestamp=now_ms())

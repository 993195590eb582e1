"""Internal events, which no peer sends or receives (UAMP §11).

They coordinate parts of one agent; on a client's connection they are unknown.
"""

from uamp.events.base import Event
from uamp.events.server import ErrorDetail


class SystemError(Event, frozen=True, kw_only=True, tag="system.error"):  # noqa: A001 - named for its type
    """Internal: an error during processing (UAMP §11)."""

    error: ErrorDetail | None = None


class SystemStop(Event, frozen=True, kw_only=True, tag="system.stop"):
    """Internal: stop the current processing (UAMP §11)."""

    reason: str | None = None


class SystemCancel(Event, frozen=True, kw_only=True, tag="system.cancel"):
    """Internal: cancel and clean up (UAMP §11)."""

    reason: str | None = None


class SystemPing(Event, frozen=True, kw_only=True, tag="system.ping"):
    """Internal keepalive (UAMP §11)."""


class SystemPong(Event, frozen=True, kw_only=True, tag="system.pong"):
    """Internal: the answer to a keepalive (UAMP §11)."""


class SystemUnroutable(Event, frozen=True, kw_only=True, tag="system.unroutable"):
    """Internal: no handler accepted a message (UAMP §11)."""

    message_type: str | None = None

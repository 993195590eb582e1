"""One log line for each request and socket, once it has ended.

The line has the route, never the path or its query, which may hold tokens and what people wrote:
`GET api/v1/chats/<chat_id>/messages 200 12.3 ms user:3`. The server's setting UAMP_ACCESS_LOG is
the level of this module's logger.
"""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

logger = logging.getLogger(__name__)
UNKNOWN: Final = "-"


@dataclass(slots=True)
class Access:
    """The facts about a request so far; all of its tasks and threads share the object."""

    method: str
    route: str = UNKNOWN
    status: int = 0
    principal: str = UNKNOWN
    began: float = field(default_factory=time.monotonic)

    def log(self) -> None:
        """Write the line; the JSON format has its parts as members."""
        duration = round((time.monotonic() - self.began) * 1000, 1)
        parts = {
            "method": self.method,
            "route": self.route,
            "status": self.status,
            "duration_ms": duration,
            "principal": self.principal,
        }
        status = self.status or UNKNOWN
        logger.info(
            "%s %s %s %s ms %s",
            *(self.method, self.route, status, duration, self.principal),
            extra={"access": parts},
        )


_access: ContextVar[Access | None] = ContextVar("access", default=None)


@contextmanager
def logged(method: str) -> Iterator[Access]:
    """Log what happens inside as one request, if the log is on."""
    access = Access(method)
    if not logger.isEnabledFor(logging.INFO):
        yield access
        return
    former = _access.set(access)
    try:
        yield access
    finally:
        _access.reset(former)
        access.log()


def note(*, route: str = "", principal: str = "") -> None:
    """Add to the line of the current request, if there is one."""
    if (access := _access.get()) is not None:
        access.route = route or access.route
        access.principal = principal or access.principal

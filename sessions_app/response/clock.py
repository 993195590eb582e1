"""The time limit of an answer, which pauses while the answer waits."""

from __future__ import annotations

import asyncio
import math
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Protocol

from django.conf import settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from sessions_app.response.context import RunContext


class IdleResponses(Protocol):
    """Tracks a process's idle responses, which free their capacity for others."""

    def pause(self, response_id: str) -> None:
        """Count a response as idle."""

    def resume(self, response_id: str) -> None:
        """Count a response as working."""


class ResponseClock:
    """An answer's time limit. The run's task enters `limit`; its tools' tasks enter the rest.

    `seconds` is UAMP_RESPONSE_SECONDS, or the agent's own limit if that is shorter.
    """

    def __init__(self, context: RunContext, idle: IdleResponses) -> None:
        self.seconds = min(settings.UAMP_RESPONSE_SECONDS, context.spec.max_seconds or math.inf)
        self._response_id = context.response_id
        self._idle = idle
        self._idle_waits = 0
        self._limit: asyncio.Timeout | None = None
        # The number of waits that currently stop the clock, and the time left when the first began.
        self._stops = 0
        self._remaining = math.inf

    @property
    def is_idle(self) -> bool:
        """Whether the answer is waiting for a client, a person, a payment or another agent."""
        return bool(self._idle_waits)

    @asynccontextmanager
    async def limit(self) -> AsyncIterator[None]:
        """Cancel the block after `seconds`; raises TimeoutError."""
        async with asyncio.timeout(self.seconds) as self._limit:
            yield

    @contextmanager
    def idle(self) -> Iterator[None]:
        """Free the answer's capacity for others while the clock keeps running."""
        self._idle_waits += 1
        self._idle.pause(self._response_id)
        try:
            yield
        finally:
            self._idle_waits -= 1
            if not self._idle_waits:
                self._idle.resume(self._response_id)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the clock and free the answer's capacity for others."""
        with self._no_limit(), self.idle():
            yield

    @contextmanager
    def _no_limit(self) -> Iterator[None]:
        limit, now = self._limit, asyncio.get_running_loop().time
        if limit is None:
            yield
            return
        self._stops += 1
        if self._stops == 1:
            # With several waits, the clock restarts after the last one.
            self._remaining = (limit.when() or math.inf) - now()
            limit.reschedule(None)
        try:
            yield
        finally:
            self._stops -= 1
            if self._stops == 0 and not limit.expired():
                limit.reschedule(now() + self._remaining)

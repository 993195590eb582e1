"""The state of a running response's row, as written by the process that runs it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

from agents_app.runtime.agent_run import AgentError
from sessions_app import database
from sessions_app.store import responses
from sessions_app.transitions import TransitionRefused
from uamp import RESPONSE_TRANSITIONS, ErrorCode, ResponseState, ResponseTrigger, advance

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sessions_app.response.context import RunContext

Wait: TypeAlias = "tuple[str, int]"
"""A row that a response waits for: its kind (`call` or `payment`) and key."""


class RowState:
    """Whether a response's row is waiting or in_progress, with one or several waits.

    The run's task and its tools' tasks call it; a lock serialises their writes.
    """

    def __init__(self, context: RunContext) -> None:
        self._response_id, self._fence = context.response_id, context.fence
        self._state = context.state
        self._waits: set[Wait] = set()
        # Beginning and ending waits must not be written concurrently.
        self._writing = asyncio.Lock()

    @asynccontextmanager
    async def begin_wait(self) -> AsyncIterator[set[Wait]]:
        """Write the rows of a wait in this block, and add the wait to the yielded set.

        The state changes before the write, since an interrupted write may still be committed.
        """
        async with self._writing:
            self._state = advance(RESPONSE_TRANSITIONS, self._state, ResponseTrigger.WAIT)
            yield self._waits

    def end_wait(self, wait: Wait) -> None:
        """Remove a wait; `resume` writes the change."""
        self._waits.discard(wait)

    def end_waits(self) -> None:
        """Remove all waits: the answer is complete, and its abandoned calls end with it."""
        self._waits.clear()

    async def resume(self) -> None:
        """Write in_progress, unless the response still waits for something.

        Raises AgentError interrupted if another process holds the response.
        """
        async with self._writing:
            if self._state is not ResponseState.WAITING or self._waits:
                return
            try:
                await database.run(
                    responses.continue_response, self._response_id, fence=self._fence
                )
            except TransitionRefused:
                raise takeover_error() from None
            self._state = advance(RESPONSE_TRANSITIONS, self._state, ResponseTrigger.CONTINUE)


def takeover_error() -> AgentError:
    """Return the error for a run that lost its response; its own end would be fenced off."""
    return AgentError("Another process runs this response.", code=ErrorCode.INTERRUPTED)
